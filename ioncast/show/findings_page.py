"""The findings of runs as a page in a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ioncast.insights.findings.text import by_reason
from ioncast.show.causes import CausesShown, causes_shown
from ioncast.show.rendering import write_offline


class CheckedRun(NamedTuple):
    """A run on the page: its log, its causes, warnings, and the checks that lack data."""

    log: str
    job: int
    processes: int
    causes: CausesShown
    notes: Sequence[str]
    unknown: Mapping[str, str]


def write_findings(path: str | Path, records: Sequence[Mapping[str, Any]]) -> None:
    """Write the page of runs, as `ioncast.insights.checks.record.to_record` makes them."""
    write_offline(path, "findings.html", runs=[_run(record) for record in records])


def _run(record: Mapping[str, Any]) -> CheckedRun:
    return CheckedRun(
        *(record["log"], record["job"], record["processes"]),
        causes_shown(record, {"advice": []}),
        record["warnings"],
        by_reason(record["unknown"]),
    )
