"""Writes the configuration of IOPS, the orchestrator that runs a campaign in random order.

IOPS (TADaaM team, Inria Bordeaux) starts one run after the other, on this machine or with Slurm.
It remembers the results of successful runs, so that it continues where it was stopped.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchdb.campaigns.folder import CampaignCell, CampaignFolder
from benchdb.campaigns.platform_file import KNOWN, PLACEHOLDERS
from benchdb.campaigns.script import cell_script, slot_s
from ioncast_base.errors import InputError
from ioncast_base.files import write_file

CACHE = "iops-cache.sqlite"
_PARSER = """def parse(file_path):
    from benchdb.campaigns.collecting import bandwidth
    return {"bandwidth_mib_s": bandwidth(file_path)}
"""


def write_inputs(folder: CampaignFolder, cells: Sequence[CampaignCell]) -> None:
    """Write the configuration of IOPS and the scripts of some cells."""
    scripts = folder.path / "cells"
    scripts.mkdir(exist_ok=True)
    for cell in cells:
        write_file(scripts / f"{cell.name}.sh", cell_script(folder, cell))
    _check_script(scripts / f"{cells[0].name}.sh")
    # IOPS reads YAML, and JSON is valid YAML.
    write_file(folder.path / "iops.yaml", json.dumps(configuration(folder, cells), indent=1))


def _check_script(script: Path) -> None:
    checked = subprocess.run(  # noqa: S603 - bash only reads it
        ["/bin/bash", "-n", str(script)], capture_output=True, text=True, check=False
    )
    if checked.returncode:
        raise InputError(
            f"the platform's commands are not a valid shell script: {checked.stderr.strip()}",
            remedy="correct platform.toml beside it",
        )


def configuration(folder: CampaignFolder, cells: Sequence[CampaignCell]) -> dict[str, Any]:
    """The configuration of IOPS for some cells; paths are relative to the campaign's folder."""
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
        "command": {"template": _command(folder)},
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


def _command(folder: CampaignFolder) -> str:
    command = f"bash {_quoted(folder, 'cells')}/{{{{ cell }}}}.sh {{{{ repetition }}}}"
    # IOPS calls the parser, which can stop the campaign before the next run, only after exit code
    # 0. A Slurm job keeps its exit code for the site's accounting.
    return f"{command} || true" if folder.platform.slurm is None else command


def _numbers(cells: Sequence[CampaignCell]) -> dict[str, Any]:
    """Variables of IOPS that give the values of the platform's placeholders for each cell."""
    return {
        name: {
            "type": "int",
            "expr": f"{{{{ { {cell.name: getattr(cell, name) for cell in cells}!r}[cell] }}}}",
        }
        for name in PLACEHOLDERS
    }


def _directives(folder: CampaignFolder) -> list[str]:
    """The lines with Slurm's directives, as templates of IOPS."""
    if folder.platform.slurm is None:
        return []
    lines = [*folder.platform.slurm.directives]
    if folder.campaign.spread_s:
        lines.append(f"--begin=now+{round(slot_s(folder))}")
    return [f"#SBATCH {_jinja(line)}" for line in lines]


def _quoted(folder: CampaignFolder, name: str) -> str:
    return _jinja(shlex.quote(str(folder.path / name)))


def _jinja(template: str) -> str:
    """Turn a template of the platform into a Jinja template, with Jinja's own marks escaped."""
    pieces = KNOWN.split(template)
    return "".join(
        f"{{{{ {piece if index % 2 else json.dumps(piece)} }}}}"
        if index % 2 or "{" in piece
        else piece
        for index, piece in enumerate(pieces)
    )
