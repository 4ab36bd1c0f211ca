"""What IOPS, the orchestrator, is told: every run in random order, repetitions interleaved.

IOPS (TADaaM team, Inria Bordeaux) submits the runs, one after the other, here or to Slurm,
and keeps the results of those that succeeded, so that it goes on where it was stopped.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

from benchdb.campaigns.folder import CampaignFolder
from benchdb.campaigns.script import cell_script, slot_s
from benchdb.files import write_file

_PLACEHOLDER = re.compile(r"(?<!\$)\{(tasks|nodes|processes_per_node|io_nodes)\}")
_PARSER = """def parse(file_path):
    from benchdb.campaigns.results import bandwidth
    return {"bandwidth_mib_s": bandwidth(file_path)}
"""


def write_inputs(folder: CampaignFolder) -> None:
    """Write IOPS's configuration and the scripts it runs."""
    scripts = folder.path / "cells"
    scripts.mkdir(exist_ok=True)
    for cell in folder.cells:
        write_file(scripts / f"{cell.name}.sh", cell_script(folder, cell))
    # JSON is YAML.
    write_file(folder.path / "iops.yaml", json.dumps(configuration(folder), indent=1))


def configuration(folder: CampaignFolder) -> dict[str, Any]:
    """IOPS's configuration of a campaign.

    Parameters
    ----------
    folder : CampaignFolder
        The campaign.

    Returns
    -------
    dict
        To be written as YAML.
    """
    slurm = folder.platform.slurm
    return {
        "benchmark": {
            "name": folder.campaign.name,
            "workdir": str(folder.path / "iops"),
            "cache_file": str(folder.path / "iops-cache.sqlite"),
            "repetitions": folder.campaign.repetitions,
            "random_seed": folder.campaign.seed,
            "search_method": "exhaustive",
            "executor": "local" if slurm is None else "slurm",
            **({} if slurm is None else {"slurm_options": {"poll_interval": slurm.poll_seconds}}),
            "probes": {"system_snapshot": False, "execution_index": False},
        },
        "vars": {
            "cell": {
                "type": "str",
                "sweep": {"mode": "list", "values": [cell.name for cell in folder.cells]},
            },
            **_numbers(folder),
        },
        "command": {
            "template": f"bash {_quoted(folder, 'cells')}/{{{{ cell }}}}.sh {{{{ repetition }}}}"
        },
        "scripts": [
            {
                "name": "run",
                "script_template": "\n".join(
                    ["#!/bin/bash", *_directives(folder), "{{ command.template }}", ""]
                ),
                "parser": {
                    "file": _jinja(f"{folder.path}/runs/")
                    + "{{ cell }}-r{{ repetition }}/exit_code",
                    "metrics": [{"name": "bandwidth_mib_s"}],
                    "parser_script": _PARSER,
                },
            }
        ],
        "output": {"sink": {"type": "csv", "path": str(folder.path / "iops-results.csv")}},
    }


def _numbers(folder: CampaignFolder) -> dict[str, Any]:
    """IOPS's variables for the placeholders of a platform, looked up by cell."""
    if folder.platform.slurm is None:
        return {}
    tables: dict[str, dict[str, int]] = {
        "tasks": {c.name: c.config.tasks or 1 for c in folder.cells},
        "nodes": {c.name: c.config.nodes or 1 for c in folder.cells},
        "io_nodes": {c.name: c.io_nodes for c in folder.cells},
    }
    tables["processes_per_node"] = {
        name: -(-tasks // tables["nodes"][name]) for name, tasks in tables["tasks"].items()
    }
    return {
        name: {"type": "int", "expr": f"{{{{ {table!r}[cell] }}}}"}
        for name, table in tables.items()
    }


def _directives(folder: CampaignFolder) -> list[str]:
    """Slurm's directives, with IOPS's spelling of the placeholders."""
    if folder.platform.slurm is None:
        return []
    lines = [*folder.platform.slurm.directives]
    if folder.campaign.spread_s:
        lines.append(f"--begin=now+{round(slot_s(folder))}")
    return [f"#SBATCH {_jinja(line)}" for line in lines]


def _quoted(folder: CampaignFolder, name: str) -> str:
    return _jinja(shlex.quote(str(folder.path / name)))


def _jinja(template: str) -> str:
    """A template of the platform as one of Jinja, whose own marks mean nothing in it."""
    pieces = _PLACEHOLDER.split(template)
    return "".join(
        f"{{{{ {piece if index % 2 else json.dumps(piece)} }}}}"
        if index % 2 or "{" in piece
        else piece
        for index, piece in enumerate(pieces)
    )
