"""The study of background load on an I/O node: its measurement, its tables and the shipped data."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.checking import Checked, check_data_set
from experiments.platform.emulated import Emulated
from experiments.shipped import DATA
from experiments.studies.background import (
    APPLICATION,
    BACKGROUND,
    SAMPLES,
    RunOfArm,
    conduct,
    diagnosed,
    measure,
)
from experiments.studies.background_tables import DIAGNOSES, DiagnosedRun, outcomes_of
from experiments.studies.interference_tables import read_rows
from ioncast_base.darshan_runtime import find_darshan
from ioncast_base.errors import InputError
from tests.support.emulated import bundled, emulated, unique_name
from tests.support.mpi_in_python import needs_mpi

SHIPPED = DATA / "background"


@pytest.fixture(scope="module")
def shipped() -> list[DiagnosedRun]:
    return read_rows(SHIPPED / DIAGNOSES, DiagnosedRun)


@pytest.fixture(scope="module")
def checked() -> Checked:
    return check_data_set(SHIPPED, write=False)


def test_outcomes_have_the_noise_of_their_diagnoses() -> None:
    run = DiagnosedRun(
        *(1, "loaded", 4, "log", 86_400.0, 0.5, 20.0, 2.5, 0, "system", 0.7, 0, True, 0.21)
    )
    [outcome], [plain] = outcomes_of([run]), outcomes_of([run], widened=False)
    assert (outcome.io_nodes, outcome.bandwidth_mib_s, outcome.day) == (4, 20.0, 1.0)
    assert (outcome.scatter, plain.scatter) == (0.21, 0.0)


def test_the_shipped_tables_follow_from_the_shipped_diagnoses(checked: Checked) -> None:
    assert checked.comparison.differences == ()


def test_only_runs_under_load_are_diagnosed_as_slow_by_the_system(
    shipped: list[DiagnosedRun],
) -> None:
    loaded = [run for run in shipped if run.loaded is not None]
    assert len(loaded) >= 3
    assert {(run.verdict, run.named, run.by_background) for run in loaded} == {("system", 0, True)}
    assert {run.verdict for run in shipped if run.loaded is None} == {"normal"}
    # The noise is a third of the logarithm of the slowdown, times the share of the system.
    assert all(run.outcome_scatter > 0 for run in loaded)


def test_outcomes_under_load_do_not_change_the_decision(checked: Checked) -> None:
    decisions = {row["outcomes"]: row for row in checked.tables[1].rows}
    assert decisions["runs alone"]["io_nodes"] == decisions["all runs"]["io_nodes"] == "4"
    # The means of all runs would take more I/O nodes, because the runs under load have 4.
    assert decisions["plain means"]["io_nodes"] == "8"


@pytest.mark.slow
def test_the_shipped_logs_and_samples_give_the_shipped_answers(
    shipped: list[DiagnosedRun],
) -> None:
    expected = next(run for run in shipped if run.loaded is not None)
    run = RunOfArm(**{name: getattr(expected, name) for name in RunOfArm._fields})
    assert list(diagnosed(SHIPPED, [run])) == [expected]


def test_the_documents_have_the_figures_of_the_shipped_tables(checked: Checked) -> None:
    answers, decisions = checked.tables
    text = (DATA / "README.md").read_text(encoding="utf-8")
    for row in answers.rows:
        cells = (row["arm"], row["io_nodes"], row["runs"], f"{float(row['mean_mib_s']):.1f}")
        cells += (f"{float(row['mean_slowdown']):.2f}", row["normal"], row["system"])
        assert f"| {' | '.join(cells)} |" in text
    for row in decisions.rows:
        means = (f"{float(row[name]):.1f}" for name in ("mib_s_4", "mib_s_8"))
        assert f"| {' | '.join((row['outcomes'], *means, row['io_nodes']))} |" in text


def test_without_traces_the_study_does_not_begin(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("experiments.studies.own_platform.find_darshan", lambda: None)
    with pytest.raises(InputError, match="traces need Darshan's runtime and mpi4py"):
        conduct(tmp_path / "new", repetitions=6, seed=1, command="ioncast")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def platform() -> Iterator[Emulated]:
    with emulated(bundled(unique_name())) as found:
        yield found


@needs_mpi
@pytest.mark.slow
@pytest.mark.platform
@pytest.mark.skipif(find_darshan() is None, reason="Darshan's runtime is not installed")
def test_the_samples_have_the_bytes_of_the_application_and_of_the_load(
    platform: Emulated, tmp_path: Path
) -> None:
    darshan: Any = find_darshan()
    (tmp_path / "logs").mkdir()
    runs = measure(platform, tmp_path, darshan, repetitions=1, seed=1, idle_s=0.0)
    assert sorted((run.arm, run.io_nodes) for run in runs) == [
        ("alone", 4),
        ("alone", 8),
        ("loaded", 4),
    ]
    assert len(list((tmp_path / "logs").iterdir())) == 4
    moved = {"0": 0, "1": 0}
    with (tmp_path / SAMPLES).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            moved[row["server"]] += int(row["written_bytes"])
    # Of four compute nodes, two use each of the I/O nodes in runs with four of these, and one in
    # the run with eight.
    own = APPLICATION.bytes * (2 / 4 + 2 / 4 + 1 / 4)
    # Besides, I/O nodes receive headers and short answers.
    assert 1 < moved["0"] / (own + BACKGROUND.bytes) < 1.2
    assert 1 < moved["1"] / own < 1.2
    assert list(platform.scratch.iterdir()) == []
