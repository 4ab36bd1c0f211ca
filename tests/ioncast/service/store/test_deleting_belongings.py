"""Everything of a run or of a user is found and deleted, and nothing of others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine, text

from benchdb.store.database import transaction
from ioncast.cli import cli
from ioncast.service.store.decisions import decisions
from ioncast.service.store.deleting_belongings import (
    Belongings,
    belongings_of_run,
    belongings_of_user,
    delete_some,
)
from ioncast.service.store.outcomes import joined_outcomes
from ioncast.service.store.runs import runs_like
from ioncast_base.errors import UnknownNameError
from tests.support.history import DECISION, put_decisions, put_outcome, put_run

pytestmark = pytest.mark.both_databases

Ioncast = Callable[..., Result]


@pytest.fixture
def ioncast(location: str) -> Ioncast:
    def run(*args: str) -> Result:
        return CliRunner().invoke(cli, ["history", "delete", *args, "--db", location])

    return run


def of_user(engine: Engine, user: str) -> Belongings:
    with transaction(engine) as connection:
        return belongings_of_user(connection, user)


def delete(engine: Engine, found: Belongings) -> int:
    """Delete rows, and return the number of transactions."""
    number = 0
    while found:
        with transaction(engine, write=True) as connection:
            found = delete_some(connection, found)
        number += 1
    return number


def left(engine: Engine) -> tuple[set[str], set[str], set[int]]:
    """The jobs with outcomes, the decisions and the runs that are left."""
    with transaction(engine) as connection:
        return (
            {row.outcome.job_id for row in joined_outcomes(connection)},
            {row.id for row in decisions(connection)},
            {run.id for run in runs_like(connection, "here")},
        )


def decide(engine: Engine, key: str, **changes: Any) -> None:
    unknown: dict[str, Any] = {"job_id": None, "application_id": None}
    put_decisions(engine, replace(DECISION, id=key, **(unknown | changes)))


@pytest.fixture
def others(database: Engine) -> tuple[set[str], set[str], set[int]]:
    """The rows of another user, with a job that has the same id on another system."""
    run, _ = put_run(database, user="bob")
    put_outcome(database, "of bob", run_id=run.id)
    put_outcome(database, "1", system="there")
    put_outcome(database, "of nobody known")
    decide(database, "bobs", user="bob", job_id="of bob", application_id=run.application.id)
    decide(database, "bobs there", user="bob", system="there", job_id="1")
    return left(database)


def test_a_user_goes_with_runs_decisions_and_outcomes(
    database: Engine, others: tuple[set[str], set[str], set[int]]
) -> None:
    run, _ = put_run(database)
    put_outcome(database, "of the log", run_id=run.id)
    put_outcome(database, "named by the decision", decision_id="reported")
    put_outcome(database, "1")
    decide(database, "reported")
    decide(database, "asked before the start", job_id="1")
    decide(database, "by another for the application", user="x", application_id=run.application.id)
    found = of_user(database, "ada")
    assert (len(found.outcomes), len(found.decisions), len(found.runs)) == (3, 3, 1)
    delete(database, found)
    assert left(database) == others
    with pytest.raises(UnknownNameError, match="nothing of a user 'ada'"):
        of_user(database, "ada")


def test_a_name_of_a_deleted_user_is_nowhere_but_in_the_list_of_deleted_runs(
    database: Engine,
) -> None:
    run, _ = put_run(database, user="zoë")
    put_outcome(database, run_id=run.id)
    decide(database, "d", user="zoë")
    delete(database, of_user(database, "zoë"))
    with database.connect() as connection:
        for table in ("applications", "decisions", "runs", "outcomes"):
            rows = connection.execute(text(f"SELECT * FROM {table}")).all()
            assert "zoë" not in str(rows)
        [known] = connection.execute(text("SELECT * FROM deleted_runs")).all()
    assert "zoë" in known


@pytest.mark.parametrize("user", ["", "nobody", "\0", "\ud800", "a" * 1000])
def test_a_user_who_has_nothing_is_unknown(database: Engine, user: str) -> None:
    put_run(database)
    with pytest.raises(UnknownNameError):
        of_user(database, user)


def test_a_run_goes_with_the_outcome_of_its_log(
    database: Engine, others: tuple[set[str], set[str], set[int]]
) -> None:
    run, _ = put_run(database)
    put_outcome(database, run_id=run.id)
    with transaction(database) as connection:
        found = belongings_of_run(connection, run.id)
    assert (len(found.outcomes), len(found.decisions), found.runs) == (1, 0, (run.id,))
    delete(database, found)
    assert left(database) == others


@pytest.mark.parametrize("key", [-1, 77, 2**31, 2**70])
def test_a_run_that_is_not_stored_is_unknown(database: Engine, key: int) -> None:
    with transaction(database) as connection, pytest.raises(UnknownNameError):
        belongings_of_run(connection, key)


@pytest.mark.slow
def test_after_a_deletion_that_was_interrupted_another_one_finds_the_rest(
    database: Engine,
) -> None:
    numbers = range(600)
    put_decisions(database, *(replace(DECISION, id=f"d{n}", job_id=None) for n in numbers))
    for number in numbers:
        put_outcome(database, f"{number}", decision_id=f"d{number}")
    put_run(database)
    with transaction(database, write=True) as connection:
        delete_some(connection, belongings_of_user(connection, "ada"))
    delete(database, of_user(database, "ada"))
    assert left(database) == (set(), set(), set())


def test_much_is_deleted_in_several_transactions(database: Engine) -> None:
    put_decisions(
        database, *(replace(DECISION, id=f"d{number}", job_id=None) for number in range(1200))
    )
    assert delete(database, of_user(database, "ada")) == 3
    assert left(database) == (set(), set(), set())


def test_the_command_shows_the_numbers_and_deletes_when_it_is_told_to(
    database: Engine, ioncast: Ioncast
) -> None:
    run, _ = put_run(database)
    put_outcome(database, run_id=run.id)
    decide(database, "d")
    result = ioncast("--user", "ada")
    assert result.exit_code == 0
    assert result.stdout == "would delete 1 run, 1 outcome and 1 decision\n"
    assert result.stderr == "ioncast: nothing was deleted; add --yes to delete them\n"
    assert left(database)[2] == {run.id}
    result = ioncast("--run", str(run.id), "--yes")
    assert (result.stdout, result.stderr) == ("deleted 1 run, 1 outcome and 0 decisions\n", "")
    result = ioncast("--user", "ada", "--yes")
    assert result.stdout == "deleted 0 runs, 0 outcomes and 1 decision\n"
    assert left(database) == (set(), set(), set())


@pytest.mark.parametrize("args", [(), ("--run", "1", "--user", "ada"), ("--run", "7")])
def test_the_command_refuses_what_it_cannot_do(
    database: Engine, ioncast: Ioncast, args: tuple[str, ...]
) -> None:
    put_run(database)
    result = ioncast(*args, "--yes")
    assert result.exit_code != 0
    assert len(left(database)[2]) == 1
