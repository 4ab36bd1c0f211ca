"""Stored insights become sentences of a page."""

from __future__ import annotations

from typing import Any

import pytest

from ioncast.insights.checks.registry import all_advice
from ioncast.service.web.sandbox.insight_documents import with_advice
from ioncast.show.insights import (
    FindingShown,
    InsightsShown,
    finding_shown,
    insights_shown,
)

MANY_FILES = [
    {"path": f"/data/{n}", "layer": "MPIIO", "read_seconds": 1, "slowest_rank": None}
    for n in range(20)
]


def finding(code: str, level: str, **told: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"title": code, "sentence": "it is so", "source": "a paper"}
    usual |= {"importance": "major", "thresholds": {}}
    lists: dict[str, Any] = {"numbers": {}, "files": [], "ranks": [], "advice": []}
    return {"code": code, "level": level, **usual, **lists, **told}


def shown(**changes: Any) -> InsightsShown:
    checks = {"libraries": ["hdf5"], "unknown": {}, "warnings": [], "left_out": {}}
    job = {
        "command": "app -x",
        "run_seconds": 100.0,
        "darshan": "3.5.0",
        "modules": [],
        "processes": 1,
    }
    run = {"job": job, "tables": [], "not_recorded": [], "warnings": [], "left_out": {}}
    run |= {"file_count": 20, "files": MANY_FILES, "layer_times": [], "ranks": None}
    return insights_shown(run | changes.pop("run", {}), {**checks, "findings": [], **changes})


def arranged(code: str, level: str, **told: Any) -> FindingShown:
    """A finding as the page of a run gets it, with its advice."""
    [found] = with_advice({"libraries": ["hdf5"], "findings": [finding(code, level, **told)]})[
        "findings"
    ]
    return finding_shown(found)


@pytest.mark.parametrize(
    ("importance", "level", "tag", "style"),
    [
        ("major", "HIGH", "major", "bad"),
        ("minor", "WARN", "minor", "warn"),
        ("unknown", "HIGH", "unknown", "info"),
        ("negligible", "HIGH", "negligible", "info"),
        ("none", "OK", "OK", "good"),
        ("none", "INFO", "INFO", "info"),
    ],
)
def test_a_finding_has_the_colour_of_its_importance(
    importance: str, level: str, tag: str, style: str
) -> None:
    found = arranged("P06", level, importance=importance)
    assert (found.tag, found.style) == (tag, style)


def test_advice_is_completed_with_the_snippet_of_the_library_that_the_run_uses_first() -> None:
    [(sentence, examples)] = arranged("P06", "HIGH", advice=[{"key": "larger_writes"}]).advice
    own = all_advice()["larger_writes"]
    assert sentence == own.sentence
    assert examples[0] == ("HDF5", own.snippets["hdf5"])
    assert len(examples) == len(own.snippets)


def test_advice_of_a_site_is_shown_and_advice_that_no_longer_exists_is_left_out() -> None:
    ours = {"key": "ours", "sentence": "ask us", "snippets": {}}
    found = arranged("X1", "HIGH", advice=[ours, {"key": "of an older version"}])
    assert found.advice == (("ask us", ()),)


def test_a_table_shows_all_but_zeros() -> None:
    rows = [
        ["POSIX", "reads", 0, "", 0.0, "calls", ""],
        ["POSIX", "writes", 5000, "", 0.625, "calls", "at least"],
        ["MPIIO", "bytes written", 5 << 20, "bytes", None, "", ""],
        ["", "extents", None, "", None, "", "not recorded"],
    ]
    columns = ["layer", "characteristic", "value", "unit", "share", "of", "note"]
    [table] = shown(run={"tables": [{"name": "pattern", "columns": columns, "rows": rows}]}).tables
    assert table.title == "Pattern"
    assert table.rows == (
        ("POSIX", "writes", "5,000", "62.50% of calls", "at least"),
        ("MPI-IO", "bytes written", "5 MiB", "", ""),
        ("run", "extents", "not recorded", "", ""),
    )


def test_a_list_of_files_says_how_many_there_are() -> None:
    some = arranged("P06", "HIGH", files=MANY_FILES, numbers={"files": 64_000})
    all_ = arranged("P08", "HIGH", files=MANY_FILES[:1], numbers={"files": 1})
    assert (some.files_said, all_.files_said) == ("20 of 64,000 files", "1 file")
    [files] = shown(run={"file_count": 64_001}).figures
    assert files.caption == "The numbers of 20 of 64,001 files"


def test_layers_of_files_have_the_names_that_tables_have() -> None:
    [files] = shown().figures
    assert {row[1] for row in files.rows} == {"MPI-IO"}


def test_a_finding_names_its_source_its_thresholds_and_ranks() -> None:
    found = arranged("D02", "HIGH", thresholds={"least_count": 1000}, ranks=list(range(9)))
    assert found.details == (
        "Published level: HIGH. Source: a paper.",
        "Thresholds: least_count 1,000.",
        "Ranks: 0, 1, 2, 3, 4, 5, 6, 7 and 1 other.",
    )


def test_missing_data_are_told_once() -> None:
    run = {"warnings": ["the log is incomplete"], "left_out": {"files": 13}}
    found = shown(run=run, warnings=["the log is incomplete", "check X1 of the site failed"])
    assert found.notes == [
        "the log is incomplete",
        "check X1 of the site failed",
        "13 of the files are not stored, because there are too many",
    ]


def test_checks_that_lack_the_same_data_share_a_line() -> None:
    found = shown(unknown={"D03": "no trace", "I04": "no OSTs", "I05": "no trace"})
    assert found.unknown == {"no trace": "D03, I05", "no OSTs": "I04"}
