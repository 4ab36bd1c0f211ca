"""Writes the bandwidths of a campaign as `iops report` reads them: as those of one run of IOPS.

IOPS itself makes a folder for each start of a campaign, with only the runs of that start, and knows
a cell only by its name.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import humanize

from benchdb.campaigns.collecting import RunResult, result_of
from benchdb.campaigns.folder import CampaignCell, CampaignFolder, CampaignRun
from ioncast_base.files import write_file

# Names that `iops report` looks for.
_METADATA = "__iops_run_metadata.json"
_RESULTS = "results.csv"
_METRIC = "bandwidth_mib_s"
# Variables that are shown even if they have the same value in all runs.
_ALWAYS = ("request_size", "processes", "io_nodes")


def write_iops_report(folder: CampaignFolder) -> None:
    """Write the files that `iops report` needs in the folder of a campaign."""
    results = [(run, result_of(folder, run)) for run in folder.runs]
    done = sorted(
        ((run, result) for run, result in results if result and result.bandwidth_mib_s is not None),
        key=lambda pair: pair[1].started or "",
    )
    if done:
        write_file(folder.path / _RESULTS, _results(done))
        write_file(folder.path / _METADATA, json.dumps(_metadata(folder, done), indent=1))


def variables_of(cell: CampaignCell) -> dict[str, str | int]:
    """The variables of a cell for people, by their names in the report."""
    config = cell.ior_config
    return {
        "operation": config.operation,
        "api": config.api,
        "file_access": config.file_access,
        "layout": config.layout,
        "collective": _yes(config.collective),
        "request_size": _size(config.transfer_size),
        "bytes_per_process": _size(config.bytes_per_process),
        "segments": config.segments,
        "processes": cell.tasks,
        "compute_nodes": cell.nodes,
        "fsync": config.fsync or "not known",
        "direct_io": _yes(config.odirect),
        "reordered": _yes(config.reorder_tasks),
        "barriers": _yes(config.intra_test_barriers),
        "conditions": " ".join(config.conditions) or "none",
        "io_nodes": cell.io_nodes,
    }


def _results(done: Sequence[tuple[CampaignRun, RunResult]]) -> str:
    text = io.StringIO()
    numbers = {cell: number for number, cell in enumerate(_cells(done), 1)}
    rows = [
        {
            "execution.execution_id": numbers[run.cell],
            "execution.repetition": run.repetition,
            **{f"vars.{name}": value for name, value in variables_of(run.cell).items()},
            "vars.command": run.cell.config.command_line(launcher=True),
            f"metrics.{_METRIC}": result.bandwidth_mib_s,
        }
        for run, result in done
    ]
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _metadata(
    folder: CampaignFolder, done: Sequence[tuple[CampaignRun, RunResult]]
) -> Mapping[str, Any]:
    """The facts about a run that the report of IOPS 3.5 reads."""
    cells = [variables_of(cell) for cell in _cells(done)]
    values = {name: list(dict.fromkeys(cell[name] for cell in cells)) for name in cells[0]}
    shown = [name for name, some in values.items() if len(some) > 1 or name in _ALWAYS]
    varied = [name for name, some in values.items() if len(some) > 1 and name != "io_nodes"]
    started = [result.started for _, result in done if result.started]
    return {
        "iops_version": version("iops-benchmark"),
        "benchmark": {
            "name": f"{folder.campaign.name} on {folder.platform.system}",
            "description": folder.campaign.description,
            "executor": "local" if folder.platform.slurm is None else "slurm",
            "repetitions": folder.campaign.repetitions,
            "timestamp": min(started, default="unknown"),
            "search_method": "exhaustive",
            "report_vars": shown,
        },
        "variables": {
            **{name: _variable(some, swept=name in shown) for name, some in values.items()},
            "command": _variable([], swept=False),
        },
        "metrics": [{"name": _METRIC, "script": "run"}],
        "output": {"type": "csv", "path": _RESULTS, "table": None},
        "command": {"template": "{{ command }}", "labels": {}},
        "reporting": {
            # IOPS draws only numbers there, and most variables are words.
            "sections": {"parallel_coordinates": False},
            "metrics": {_METRIC: {"plots": _plots(varied or ["request_size"])}},
        },
    }


def _variable(values: Sequence[str | int], *, swept: bool) -> Mapping[str, Any]:
    kind = "int" if values and isinstance(values[0], int) else "str"
    return {"type": kind, "swept": swept, "sweep": {"mode": "list", "values": values}}


def _plots(rows: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "type": "coverage_heatmap",
            "row_vars": rows,
            "col_var": "io_nodes",
            "title": "Mean bandwidth in MiB/s by number of I/O nodes",
        },
        {"type": "box", "per_variable": True, "yaxis_label": "MiB/s"},
    ]


def _cells(done: Sequence[tuple[CampaignRun, RunResult]]) -> list[CampaignCell]:
    return list(dict.fromkeys(run.cell for run, _ in done))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _size(size_bytes: int) -> str:
    return humanize.naturalsize(size_bytes, binary=True, format="%.4g")
