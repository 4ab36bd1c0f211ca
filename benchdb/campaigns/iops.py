"""What IOPS, the orchestrator, is told: every run in random order, repetitions interleaved.

IOPS (TADaaM team, Inria Bordeaux) submits the runs, one after the other, here or to Slurm,
and keeps the results of those that succeeded, so that it goes on where it was stopped.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchdb.campaigns.folder import CampaignFolder, Cell
from benchdb.campaigns.platform_file import KNOWN, PLACEHOLDERS
from benchdb.campaigns.script import cell_script, slot_s
from ioncast_base.errors import InputError
from ioncast_base.files import write_file

CACHE = "iops-cache.sqlite"
_PARSER = """def parse(file_path):
    from benchdb.campaigns.collecting import bandwidth
    return {"bandwidth_mib_s": bandwidth(file_path)}
"""


def write_inputs(folder: CampaignFolder, cells: Sequence[Cell]) -> None:
    """Write IOPS's configuration, and the scripts it runs, for some cells of a campaign.

    Raises
    ------
    InputError
        When the commands of the platform file make no script.
    """
    scripts = folder.path / "cells"
    scripts.mkdir(exist_ok=True)
    for cell in cells:
        write_file(scripts / f"{cell.name}.sh", cell_script(folder, cell))
    _check_script(scripts / f"{cells[0].name}.sh")
    # JSON is YAML.
    write_file(folder.path / "iops.yaml", json.dumps(configuration(folder, cells), indent=1))


def _check_script(script: Path) -> None:
    checked = subprocess.run(  # noqa: S603 - bash only reads it
        ["/bin/bash", "-n", str(script)], capture_output=True, text=True, check=False
    )
    if checked.returncode:
        raise InputError(
            f"the platform's commands are no shell script: {checked.stderr.strip()}",
            remedy="correct platform.toml beside it",
        )


def configuration(folder: CampaignFolder, cells: Sequence[Cell]) -> dict[str, Any]:
    """IOPS's configuration for some cells of a campaign; paths are relative to its folder.

    Parameters
    ----------
    folder : CampaignFolder
        The campaign.
    cells : sequence of Cell
        Those that are to be run.

    Returns
    -------
    dict
        To be written as YAML.
    """
    slurm = folder.platform.slurm
    return {
        "benchmark": {
            "name": _jinja(folder.campaign.name),
            "workdir": "iops",
            "cache_file": CACHE,
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
                "sweep": {"mode": "list", "values": [cell.name for cell in cells]},
            },
            **({} if slurm is None else _numbers(cells)),
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
        "output": {"sink": {"type": "csv", "path": "iops-results.csv"}},
    }


def _numbers(cells: Sequence[Cell]) -> dict[str, Any]:
    """IOPS's variables for the placeholders of a platform, looked up by cell."""
    return {
        name: {
            "type": "int",
            "expr": f"{{{{ { {cell.name: getattr(cell, name) for cell in cells}!r}[cell] }}}}",
        }
        for name in PLACEHOLDERS
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
    pieces = KNOWN.split(template)
    return "".join(
        f"{{{{ {piece if index % 2 else json.dumps(piece)} }}}}"
        if index % 2 or "{" in piece
        else piece
        for index, piece in enumerate(pieces)
    )
