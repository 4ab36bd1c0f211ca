"""A job is found by its id with all its decisions, outcomes and runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.store.jobs import JobEntry, entries_of_job
from ioncast_base.errors import UnknownNameError
from tests.support.history import DECISION, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases

ID = DECISION.id


def found(engine: Engine, job_id: str = "4711", **wanted: Any) -> list[JobEntry]:
    with transaction(engine) as connection:
        return entries_of_job(connection, job_id, **wanted)


def test_a_decision_without_an_outcome_is_an_entry(database: Engine) -> None:
    run, _ = put_run(database)
    put_decisions(database, replace(DECISION, application_id=run.application.id))
    [entry] = found(database)
    assert (entry.system, entry.job_id, entry.time) == ("here", "4711", DECISION.asked_at)
    assert entry.decision is not None
    assert entry.decision.id == ID
    assert entry.application == run.application
    assert (entry.outcome, entry.run) == (None, None)


def test_an_outcome_is_an_entry_with_its_decision(database: Engine) -> None:
    """Slurm gives a job its id after the question, so the decision has none."""
    put_decisions(database, replace(DECISION, job_id=None))
    put_outcome(database, decision_id=ID, started="2026-11-21T12:00:10Z")
    [entry] = found(database)
    assert entry.decision is not None
    assert entry.outcome is not None
    assert (entry.decision.id, entry.outcome.bandwidth_mib_s) == (ID, 70.0)
    assert entry.time == "2026-11-21T12:00:10.000000+00:00"


def test_a_run_without_an_outcome_is_an_entry_and_one_with_an_outcome_is_not(
    database: Engine,
) -> None:
    run, _ = put_run(database, job_id="4711", bandwidth_mib_s=12.0, started="2026-11-21T12:00:00Z")
    [entry] = found(database)
    assert entry.run is not None
    assert (entry.run.id, entry.run.bandwidth_mib_s) == (run.id, 12.0)
    put_outcome(database, run_id=run.id)
    [entry] = found(database)
    assert entry.run is None
    assert entry.outcome is not None
    assert entry.outcome.run_id == run.id


def test_an_id_that_came_again_has_all_its_entries_newest_first(database: Engine) -> None:
    put_decisions(
        database,
        replace(DECISION, id="d1", asked_at="2026-11-01T00:00:00Z"),
        replace(DECISION, id="d2", asked_at="2026-11-03T00:00:00Z"),
        replace(DECISION, id="d3", asked_at="2026-11-05T00:00:00Z", system="there"),
    )
    put_outcome(database, started="2026-11-02T00:00:00Z")
    put_run(database, system="there", job_id="4711", started="2026-11-04T00:00:00Z")
    days = [entry.time[:10] for entry in found(database)]
    assert days == ["2026-11-05", "2026-11-04", "2026-11-03", "2026-11-02"]
    assert [entry.time[:10] for entry in found(database, limit=2)] == days[:2]
    assert [entry.time[:10] for entry in found(database, system="there")] == days[:2]
    assert found(database)[-1].decision is not None


@pytest.mark.parametrize("end", ["", ":held", ":held until:1795465753"])
def test_a_job_is_found_by_the_mark_of_its_decision(database: Engine, end: str) -> None:
    mark = f"ioncast:{ID}{end}"
    put_decisions(database, replace(DECISION, job_id=None))
    [entry] = found(database, mark)
    assert entry.decision is not None
    assert (entry.job_id, entry.decision.id, entry.outcome) == (None, ID, None)
    put_outcome(database, decision_id=ID)
    [entry] = found(database, mark)
    assert entry.outcome is not None
    assert entry.job_id == "4711"
    with pytest.raises(UnknownNameError):
        found(database, mark, system="there")


def test_a_job_is_found_by_the_decision_in_slurmctlds_log(database: Engine) -> None:
    # In shadow mode jobs have no mark, and the plugin's line has only `decision=ID`.
    put_decisions(database, replace(DECISION, job_id=None))
    [entry] = found(database, ID)
    assert entry.decision is not None
    assert entry.decision.id == ID


@pytest.mark.parametrize(
    "job_id",
    [
        "0",
        "",
        "%",
        "4711 ",
        "' OR 1=1 --",
        "\0",
        "x" * 5000,
        "ioncast:",
        "ioncast:nothing",
        "\ud800",
    ],
)
def test_an_unknown_job_is_told_with_what_to_do(database: Engine, job_id: str) -> None:
    put_decisions(database, DECISION)
    with pytest.raises(UnknownNameError) as raised:
        found(database, job_id)
    told = str(raised.value)
    assert told.startswith("nothing is known about job ")
    assert "\n" not in told


def test_a_decision_of_an_application_of_another_database_is_still_shown(database: Engine) -> None:
    put_run(database)
    put_decisions(database, replace(DECISION, application_id=77))
    [entry] = found(database)
    assert entry.application is None
