"""Runs that do the same I/O share one prepared decision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from benchdb.measurements.storing import store
from benchdb.store.database import opened_database, transaction
from experiments.datasets import DataSet, read
from experiments.shipped import TESTBED
from ioncast.service.background import preparing
from ioncast.service.background.deciding_ahead import Decided, decide_all
from ioncast.service.background.preparing import JobPhases, KnownSystems, Preparing
from ioncast.service.decide.prepared import Untried, WantedSize
from ioncast.service.settings import Settings
from ioncast.service.store.outcomes import JoinedOutcome
from predictor.curve.prediction import DecisionRules, EarlierRun, Prediction
from predictor.matching.same_application import scaled
from summario.phases.values import Phase


@pytest.fixture(scope="module")
def testbed() -> DataSet:
    return read(TESTBED)


@pytest.fixture(scope="module")
def connection(testbed: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    """A database with the testbed's writes to a file for each process."""
    rows = [
        one.measurement
        for one in testbed.benchmarks
        if one.measurement.config.write and one.measurement.config.file_per_process
    ]
    place = Path(tmp_path_factory.mktemp("db")) / "ioncast.db"
    with opened_database(str(place)) as database:
        with transaction(database, write=True) as found:
            store(found, system="testbed", file="", content=b"", file_format="test", rows=rows)
        with transaction(database) as found:
            yield found


def decided(systems: KnownSystems, connection: Connection, phases: Sequence[Phase]) -> Decided:
    job = JobPhases(tuple(phases), 8)
    return systems.decided(connection, "testbed", job, job, [], DecisionRules(), 0.0)


def test_runs_of_another_size_teach_as_far_as_their_errors_are_shared(
    connection: Connection, testbed: DataSet
) -> None:
    """HACC-IO ran at a third of what is expected, and a job has twice its processes."""
    systems = KnownSystems()
    phases = next(tuple(p) for log, p in testbed.phases.items() if log.application == "hacc-io")
    ran, larger = JobPhases(phases, 8), JobPhases(tuple(scaled(phases, 2 * phases[0].processes)), 8)

    def expected(job: JobPhases, of: JobPhases, runs: Sequence[EarlierRun]) -> dict[int, float]:
        found = systems.decided(connection, "testbed", job, of, runs, DecisionRules())
        points = [json.loads(f"{{{point}}}") for point in found.points]
        return {point["io_nodes"]: point["expected_mib_s"] for point in points}

    before = expected(ran, ran, [])
    runs = [EarlierRun(n, before[n] / 3) for n in (0, 4, 0, 4)]
    after, then = expected(ran, ran, runs), expected(larger, ran, runs)
    unknown = expected(larger, larger, [])
    for n in before:
        assert after[n] / before[n] < 0.5
        assert then[n] / unknown[n] < 0.8


@pytest.mark.slow
def test_runs_of_the_same_i_o_share_a_decision(connection: Connection, testbed: DataSet) -> None:
    """The three logs differ in their times, and one of them has a trace."""
    systems = KnownSystems()
    logs = [phases for log, phases in testbed.phases.items() if log.application == "hacc-io"]
    traced = [phases[0].nodes is not None for phases in logs]
    assert traced == [False, False, True]
    one, other, of_trace = [decided(systems, connection, phases) for phases in logs]
    assert one.choices
    assert other is one
    assert of_trace == one
    assert all(decided(KnownSystems(), connection, phases) == one for phases in logs[1:])


def test_times_of_phases_that_overlap_decide(connection: Connection, testbed: DataSet) -> None:
    """Two phases of different processes take less time at the same time than one by one."""
    [phase] = next(p for log, p in testbed.phases.items() if log.application == "hacc-io")
    half = replace(phase, processes=8)
    later = replace(half, start_seconds=20.0, end_seconds=30.0)
    systems = KnownSystems()
    together, apart = (
        decided(systems, connection, [half, other]) for other in (replace(half, log="b"), later)
    )
    assert together != apart


def test_outcomes_whose_number_was_cut_say_less(
    settings: Settings, filled_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demonstration's outcomes contradict the benchmarks of one application."""

    def expected() -> list[list[float]]:
        found = []
        with opened_database(filled_location) as database, transaction(database) as connection:
            asked = Preparing(connection, settings, KnownSystems(), {})
            for application_id in (1, 2, 3):
                for entry in asked.prepare(application_id).entries.values():
                    points = [json.loads(f"{{{point}}}") for point in entry[0].points]
                    found.append([point["expected_mib_s"] for point in points])
        return found

    monkeypatch.setattr(JoinedOutcome, "is_cut", False)
    usual = expected()
    monkeypatch.setattr(JoinedOutcome, "is_cut", True)
    cut = expected()
    assert len(cut) == len(usual) > 2
    assert all(less != more for less, more in zip(cut, usual, strict=True))


def test_a_size_that_never_ran_is_not_worth_trying(
    settings: Settings, filled_location: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its phases are scaled from those of another size, so its doubts are larger."""

    def decided(found: Prediction, *told: Any) -> Decided:
        tasks = found.phases[0].phase.processes
        return decide_all(found, *told)._replace(untried=Untried(8, 0, 0.0, tasks / 1000))

    monkeypatch.setattr(preparing, "decide_all", decided)
    with opened_database(filled_location) as database, transaction(database) as connection:
        asked = Preparing(connection, settings, KnownSystems(), {1: [WantedSize(1, 128, 8)]})
        prepared = asked.prepare(1)
        sizes = {group.tasks for entry in prepared.entries.values() for group in entry}
    assert sizes == {16, 128}
    assert prepared.untried == {1: Untried(8, 0, 0.0, 16 / 1000)}
