"""The data of `ioncast serve --demo`, compared with the files that they come from."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest
from sqlalchemy import Connection

from benchdb.measurements.storing import count
from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import NODES, SYSTEM, TASKS, TESTBED, USER, fill
from ioncast.service.store.applications import applications
from ioncast.service.store.decisions import decisions
from ioncast.service.store.outcomes import joined_outcomes
from ioncast.service.store.runs import runs_of
from summario.reading.log import read_log

PROJECT = Path(__file__).resolve().parents[4]
PROGRAMS = {"hacc_io_write_posix_fpp", "phaseapp", "ior"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connection]:
    location = str(tmp_path_factory.mktemp("demo") / "demo.sqlite")
    fill(location)
    with opened_database(location) as engine, transaction(engine) as connection:
        yield connection


def rows_of(name: str) -> list[dict[str, str]]:
    with (PROJECT / "experiments/data/testbed" / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_packaged_data_are_those_of_the_experiments() -> None:
    assert (TESTBED / "benchmarks.csv").samefile(
        PROJECT / "experiments/data/testbed/benchmarks.csv"
    )


@pytest.mark.slow
def test_every_benchmark_is_in_the_database(filled: Connection) -> None:
    assert count(filled) == len(rows_of("benchmarks.csv"))


def test_every_log_is_a_run_with_the_io_nodes_of_its_name(filled: Connection) -> None:
    found = applications(filled, system=SYSTEM)
    assert {each.application.program for each in found} == PROGRAMS
    assert {each.application.user for each in found} == {USER}
    runs = [run for each in found for run in runs_of(filled, each.application.id)]
    assert len(runs) == len(list((TESTBED / "logs").iterdir()))
    assert Counter((run.name, run.io_nodes) for run in runs) == Counter(
        (name, io_nodes) for name in ("hacc-io", "multiphase", "periodic") for io_nodes in (0, 4, 4)
    )
    assert {(run.tasks, run.nodes) for run in runs} == {(TASKS, NODES)}


def test_every_rerun_is_an_outcome_of_a_decision_for_its_application(filled: Connection) -> None:
    found = joined_outcomes(filled, system=SYSTEM)
    assert sorted(
        (each.outcome.io_nodes, each.outcome.bandwidth_mib_s) for each in found
    ) == sorted(
        (int(row["io_nodes"]), float(row["bandwidth_mib_s"])) for row in rows_of("applications.csv")
    )
    for each in found:
        assert each.decision is not None
        assert each.application is not None
        assert each.application.program == each.decision.executable
        assert each.decision.asked_at <= each.outcome.reported_at


def test_no_decision_gives_more_than_was_available(filled: Connection) -> None:
    found = decisions(filled, system=SYSTEM, limit=1000)
    assert len(found) == len(rows_of("applications.csv"))
    for each in found:
        assert each.source == "history"
        assert each.io_nodes is not None
        assert each.available is not None
        assert each.io_nodes <= each.available


def test_a_prediction_knows_nothing_of_the_reruns(filled: Connection) -> None:
    """All decisions for an application have the same curve."""
    curves = {(each.executable, each.curve) for each in decisions(filled, limit=1000)}
    assert len(curves) == len(PROGRAMS)


def test_runs_and_decisions_are_spread_over_days(filled: Connection) -> None:
    asked = [each.asked_at for each in decisions(filled, limit=1000)]
    days = Counter(time[:10] for time in asked)
    assert len(days) >= 14
    assert max(days.values()) <= 7
    found = applications(filled)
    runs = [run for each in found for run in runs_of(filled, each.application.id)]
    assert len({(run.started or "")[:10] for run in runs}) >= 7
    assert max(run.started or "" for run in runs) < min(asked)


def test_an_outcome_is_reported_after_its_job_started(filled: Connection) -> None:
    now = datetime.now(timezone.utc).isoformat()
    for each in joined_outcomes(filled, system=SYSTEM):
        assert each.decision is not None
        times = (each.decision.asked_at, each.outcome.started or "", each.outcome.reported_at, now)
        assert list(times) == sorted(times)


def test_runs_keep_the_order_in_which_they_were_measured(filled: Connection) -> None:
    runs = [run for each in applications(filled) for run in runs_of(filled, each.application.id)]
    starts = {
        str(log.job.id): log.job.start_seconds
        for log in map(read_log, (TESTBED / "logs").iterdir())
    }
    in_order = sorted(runs, key=lambda run: run.started or "")
    assert [starts[run.job_id or ""] for run in in_order] == sorted(starts.values())
