"""Runs that do the same I/O share one prepared decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection

from benchdb.measurements.storing import store
from benchdb.store.database import opened_database, transaction
from experiments.datasets import DataSet, read
from experiments.shipped import TESTBED
from ioncast.service.keeper.deciding_ahead import Decided
from ioncast.service.keeper.preparing import Surveys
from predictor.composition.prediction import Policy
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


def decided(surveys: Surveys, connection: Connection, phases: Sequence[Phase]) -> Decided:
    return surveys.decided(connection, "testbed", phases, 8, [], Policy(), 0.0)


def test_runs_of_the_same_i_o_share_a_decision(connection: Connection, testbed: DataSet) -> None:
    """The three logs differ in their times, and one of them has a trace."""
    surveys = Surveys()
    logs = [phases for log, phases in testbed.phases.items() if log.application == "hacc-io"]
    traced = [phases[0].nodes is not None for phases in logs]
    assert traced == [False, False, True]
    one, other, of_trace = [decided(surveys, connection, phases) for phases in logs]
    assert one.choices
    assert other is one
    assert of_trace == one
    assert all(decided(Surveys(), connection, phases) == one for phases in logs[1:])


def test_times_of_phases_that_overlap_decide(connection: Connection, testbed: DataSet) -> None:
    """Two phases of different processes take less time at the same time than one by one."""
    [phase] = next(p for log, p in testbed.phases.items() if log.application == "hacc-io")
    half = replace(phase, processes=8)
    later = replace(half, start_seconds=20.0, end_seconds=30.0)
    surveys = Surveys()
    together, apart = (
        decided(surveys, connection, [half, other]) for other in (replace(half, log="b"), later)
    )
    assert together != apart
