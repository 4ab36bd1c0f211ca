"""The checks of all shared logs beside Drishti's: only the listed differences change a code.

benchmarks/drishti_codes.py wrote drishti_codes.csv, with drishti-io 0.8 and PyDarshan 3.5.0.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from ioncast.insights.checks.registry import own_checks, run_checks
from ioncast.insights.checks.values import Case
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.facts.values import Facts
from ioncast_base.errors import DamagedLogError
from summario.reading.log import DarshanLog, read_log
from summario.runs.logs_of_run import run_of
from tests.ioncast.insights.drishti_rules import codes
from tests.support.libdarshan import misread_counters

pytestmark = pytest.mark.slow

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/checks.md"
CODES_OF_DRISHTI = Path(__file__).with_name("drishti_codes.csv")
AGGREGATORS = {"M08", "M09", "M10"}
RULES = {
    check.code for check in own_checks() if check.code[0] in "SPM" and check.code not in AGGREGATORS
}
# These do not change a rule of `drishti_rules`: other files, other times, other data.
OTHER_DATA = {"system files", "old times", "aggregators"}


@dataclass(frozen=True)
class Compared:
    """A log with Drishti's codes, ioncast's, and its facts with and without system files."""

    path: str
    drishti: set[str]
    ioncast: set[str]
    all_files: Facts
    facts: Facts
    has_misread_times: bool


def listed() -> dict[str, set[str]]:
    """Read the differences and their codes in docs/checks.md."""
    section = DOCUMENT.read_text(encoding="utf-8").split("## Differences to Drishti\n", 1)[1]
    rows = re.findall(r"(?m)^\| ([^|]+) \| (all|[A-Z]\d\d[^|]*) \|", section.split("\n## ")[0])
    return {name: RULES if text == "all" else set(text.split(", ")) for name, text in rows}


CHANGES = listed().keys() - OTHER_DATA


@pytest.fixture(scope="module")
def logs(shared_data: Path) -> list[Compared]:
    with CODES_OF_DRISHTI.open(encoding="utf-8") as file:
        rows = {row["log"]: set(row["codes"].split(";")) for row in csv.DictReader(file)}
    assert rows.keys() == {
        path.relative_to(shared_data).as_posix() for path in shared_data.rglob("*.darshan")
    }
    return [*compared(shared_data, rows.items())]


def compared(folder: Path, rows: Iterable[tuple[str, set[str]]]) -> Iterable[Compared]:
    for path, drishti in rows:
        try:
            log = read_log(folder / path, modules=FACT_MODULES)
        except DamagedLogError:
            # The records of these logs have another size: a modified Darshan wrote them.
            assert "mdworkbench" in path
            continue
        facts = facts_of(run_of([log]))
        found = {each.check.code for each in run_checks(Case(facts), own_checks()).findings}
        all_files = facts_of(run_of([log]), all_files=True)
        yield Compared(path, drishti, found, all_files, facts, has_misread_times(log))


def has_misread_times(log: DarshanLog) -> bool:
    version = log.header.module_versions.get("POSIX")
    return version is not None and "POSIX_F_META_TIME" in misread_counters(
        "POSIX", version, log.header.byte_order
    )


def test_the_rules_without_changes_are_drishtis(logs: list[Compared]) -> None:
    unlike = {log.path: codes(log.all_files, set()) ^ log.drishti for log in logs}
    assert all(
        unlike[log.path] <= (listed()["old times"] if log.has_misread_times else set())
        for log in logs
    ), unlike
    assert any(unlike.values())


def test_the_rules_with_all_changes_are_ours(logs: list[Compared]) -> None:
    unlike = {log.path: (codes(log.facts, CHANGES) ^ log.ioncast) & RULES for log in logs}
    assert {path: found for path, found in unlike.items() if found} == {}


def test_each_change_is_needed_for_its_codes(logs: list[Compared]) -> None:
    for name in CHANGES:
        needed = [
            (codes(log.facts, CHANGES) ^ codes(log.facts, CHANGES - {name}))
            | (codes(log.all_files, {name}) ^ codes(log.all_files, set()))
            for log in logs
        ]
        assert set.union(*needed) == listed()[name], name


def test_leaving_out_system_files_changes_codes(logs: list[Compared]) -> None:
    assert any(codes(log.facts, CHANGES) != codes(log.all_files, CHANGES) for log in logs)


def test_aggregators_are_known_only_from_a_trace_or_a_heat_map(logs: list[Compared]) -> None:
    found = [log for log in logs if log.ioncast & AGGREGATORS]
    assert found
    assert all(log.facts.trace is not None or log.facts.heatmaps for log in found)
    assert not any(log.drishti & AGGREGATORS for log in logs)
