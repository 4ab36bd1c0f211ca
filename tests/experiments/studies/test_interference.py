"""The study of interference: its measurement on the platform, its tables and the shipped data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from math import log
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from experiments.checking import check_data_set
from experiments.platform.emulated import Emulated
from experiments.published import PrintedTable
from experiments.shipped import DATA
from experiments.studies.interference import conduct, measure, verdicts_of
from experiments.studies.interference_tables import interference_tables
from ioncast_base.darshan_runtime import find_darshan
from ioncast_base.errors import InputError
from tests.support.emulated import bundled, emulated, unique_name
from tests.support.mpi_in_python import needs_mpi

SHIPPED = DATA / "interference"
RUNS = "repetition,order,arm,application,io_nodes,seconds,started,load1"
VERDICTS = "repetition,arm,application,shared,named,slowdown,common_share,blamed_seconds,moved"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Three repetitions: together, an application takes 2, 4 and 8 times as long as alone."""
    runs = [
        f"{n},1,{arm},app,2,{seconds},2026-11-28T10:00:00+00:00,0.5"
        for n, times in enumerate(((10, 20, 11), (10, 40, 9), (10, 80, 10)), start=1)
        for arm, seconds in zip(("alone", "together", "apart"), times, strict=True)
    ]
    verdicts = [
        "1,together,app,1,1,0.9,0.8,9.0,app",
        "2,together,app,1,0,2.9,0.6,29.0,other",
        "3,together,app,0,,7.0,,,",
        "1,apart,app,,,0.1,,,",
    ]
    (tmp_path / "runs.csv").write_text("\n".join([RUNS, *runs, ""]))
    (tmp_path / "verdicts.csv").write_text("\n".join([VERDICTS, *verdicts, ""]))
    return tmp_path


def rows_of(table: PrintedTable) -> dict[tuple[str, str], dict[str, str]]:
    return {(row["application"], row["arm"]): dict(row) for row in table.rows}


def read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_slowdown_is_the_geometric_mean_over_repetitions(planted: Path) -> None:
    rows = rows_of(interference_tables(planted)[0])
    together = rows["app", "together"]
    assert (together["slowdown"], together["slower_than_alone"]) == ("3.0000", "3")
    # Student's t for 2 degrees of freedom is 4.303, and the ratios' logarithm has the deviation
    # ln 2: 4 · 2 ** ±(4.303 / √3) - 1.
    assert (float(together["low"]), float(together["high"])) == pytest.approx(
        (4 * 2**-2.4842 - 1, 4 * 2**2.4842 - 1), abs=0.002
    )
    assert rows["app", "apart"]["slower_than_alone"] == "1"
    assert rows["app", "apart"]["faster_than_together"] == "3"
    assert (rows["app", "alone"]["cv"], rows["app", "alone"]["slowdown"]) == ("0.0000", "")


def test_answers_that_name_the_shared_io_node_are_counted(planted: Path) -> None:
    rows = rows_of(interference_tables(planted)[1])
    together = rows["app", "together"]
    assert [together[name] for name in ("pairs", "named_right", "to_move")] == ["3", "1", "1"]
    assert (together["mean_slowdown"], together["least_common_share"]) == ("3.6000", "0.6000")
    # Nothing is the right answer for applications without a common I/O node.
    assert (rows["app", "apart"]["named_right"], rows["app", "apart"]["mean_blamed_s"]) == ("1", "")


def test_one_repetition_has_no_interval(planted: Path) -> None:
    lines = (planted / "runs.csv").read_text().splitlines()[:4]
    (planted / "runs.csv").write_text("\n".join([*lines, ""]))
    together = rows_of(interference_tables(planted)[0])["app", "together"]
    assert [together[name] for name in ("slowdown", "low", "cv")] == ["1.0000", "", ""]


@pytest.mark.parametrize("seconds", ["nan", "-1", "0", "inf", "fast", ""])
def test_impossible_times_are_an_error_of_their_line(planted: Path, seconds: str) -> None:
    file = planted / "runs.csv"
    file.write_text(file.read_text().replace(",20,", f",{seconds},"))
    with pytest.raises(InputError, match=r"runs\.csv:3: seconds: "):
        interference_tables(planted)


def test_a_file_without_rows_is_an_error(planted: Path) -> None:
    (planted / "verdicts.csv").write_text(f"{VERDICTS}\n")
    with pytest.raises(InputError, match="it has no rows"):
        interference_tables(planted)


def test_the_shipped_tables_follow_from_the_shipped_runs() -> None:
    checked = check_data_set(SHIPPED, write=False)
    assert checked.comparison.differences == ()
    seconds: dict[tuple[str, str], list[float]] = {}
    for row in sorted(read(SHIPPED / "runs.csv"), key=lambda row: int(row["repetition"])):
        seconds.setdefault((row["application"], row["arm"]), []).append(float(row["seconds"]))
    for (application, arm), row in rows_of(checked.tables[0]).items():
        times, alone = seconds[application, arm], seconds[application, "alone"]
        assert len(times) == len(alone) >= 10
        assert float(row["cv"]) == pytest.approx(stdev(times) / fmean(times), abs=1e-4)
        if arm != "alone":
            ratios = [log(a / b) for a, b in zip(times, alone, strict=True)]
            assert log(1 + float(row["slowdown"])) == pytest.approx(fmean(ratios), abs=1e-4)
            assert float(row["low"]) < float(row["slowdown"]) < float(row["high"])


@pytest.mark.slow
@pytest.mark.parametrize("arm", ["together", "apart"])
def test_the_shipped_logs_give_the_shipped_answers(arm: str) -> None:
    rows = [
        row
        for row in read(SHIPPED / "verdicts.csv")
        if (row["repetition"], row["arm"]) == ("1", arm)
    ]
    shared = int(rows[0]["shared"]) if rows[0]["shared"] else None
    found = verdicts_of(SHIPPED / "logs", SHIPPED / f"placement-{arm}.csv", 1, arm, shared)
    assert [
        {name: "" if value is None else str(value) for name, value in vars(verdict).items()}
        for verdict in found
    ] == rows


def test_the_documents_have_the_figures_of_the_shipped_tables() -> None:
    slowdowns, answers = map(rows_of, interference_tables(SHIPPED))
    text = " ".join((DATA / "README.md").read_text(encoding="utf-8").split())
    for (application, arm), row in slowdowns.items():
        times = [f"{float(row['mean_s']):.1f} s", f"{float(row['cv']):.1%}"]
        told = answers.get((application, arm))
        interval = (
            [f"{float(row[name]):.1%}" for name in ("slowdown", "low", "high")] if told else []
        )
        cells = [*times, *([f"{interval[0]} ({interval[1]} to {interval[2]})"] if told else [""])]
        cells.append(f"{float(told['mean_slowdown']):.1%}" if told else "")
        line = " | ".join([f"`{application}`", arm, *cells]).replace("%", " %")
        assert f"| {line} |".replace("  ", " ") in text.replace("  ", " ")
    named = {arm: row for (_, arm), row in answers.items()}
    pairs = named["together"]["pairs"]
    assert f"in {named['together']['named_right']} of {pairs} pairs" in text
    assert f"in {named['apart']['named_right']} of {pairs} pairs apart" in text


def test_without_traces_the_study_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("experiments.studies.own_platform.find_darshan", lambda: None)
    with pytest.raises(InputError, match="traces need Darshan's runtime and mpi4py"):
        conduct(tmp_path / "new", repetitions=1, seed=1, command="ioncast")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def platform() -> Iterator[Emulated]:
    with emulated(bundled(unique_name())) as found:
        yield found


@needs_mpi
@pytest.mark.slow
@pytest.mark.platform
@pytest.mark.skipif(find_darshan() is None, reason="Darshan's runtime is not installed")
def test_the_common_io_node_of_two_applications_is_named(
    platform: Emulated, tmp_path: Path
) -> None:
    darshan: Any = find_darshan()
    (tmp_path / "logs").mkdir()
    measure(platform, tmp_path, darshan, repetitions=1, seed=1)
    rows = read(tmp_path / "verdicts.csv")
    assert len(rows) == 4
    for row in rows:
        assert row["named"] == row["shared"]
        assert bool(row["named"]) == (row["arm"] == "together")
        assert not row["common_share"] or float(row["common_share"]) > 0.5
    assert list(platform.scratch.iterdir()) == []
