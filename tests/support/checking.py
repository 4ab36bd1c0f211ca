"""Checks of a log that a test writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Applied, Case, Check, Checked, IoNodesOfRun, Thresholds
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.facts.values import Facts
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.support.records import CounterRecord, write_log


def facts_in(*logs: Path, all_files: bool = False) -> Facts:
    """Gather the facts of the run that some logs are of."""
    return facts_of(
        run_of([read_log(log, modules=FACT_MODULES) for log in logs]), all_files=all_files
    )


def check_log(
    *logs: Path,
    thresholds: Thresholds | None = None,
    allocation: IoNodesOfRun | None = None,
    checks: Sequence[Check] | None = None,
) -> Checked:
    """Check the run that some logs are of."""
    return run_checks(Case(facts_in(*logs), thresholds or Thresholds(), allocation), checks)


def check_records(
    folder: Path,
    records: Iterable[CounterRecord],
    *,
    nprocs: int = 4,
    thresholds: Thresholds | None = None,
    **log: Any,
) -> dict[str, Applied]:
    """Write a log with records into a folder, and return its findings by code."""
    path = write_log(folder / "app.darshan", records, nprocs=nprocs, **log)
    return {each.check.code: each for each in check_log(path, thresholds=thresholds).findings}
