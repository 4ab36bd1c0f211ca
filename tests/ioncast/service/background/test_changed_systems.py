"""A system changes: the running service forgets what was before, and remembers it after an undo."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from sqlalchemy.exc import OperationalError

from benchdb.store.database import opened_database, transaction
from benchdb.store.system_changes import note_change, undo_change
from ioncast.cli import cli
from ioncast.service.background import answer_step
from ioncast.service.running.demo_data import NODES, SYSTEM, TASKS, TESTBED, USER
from ioncast.service.settings import Settings
from ioncast_base.times import now

QUESTION = {
    "system": SYSTEM,
    "user": USER,
    "name": "hacc-io",
    "tasks": TASKS,
    "nodes": NODES,
    "available": 8,
}
LOG = str(TESTBED / "logs" / "hacc-io-ionodes4.darshan")


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch, keep: Callable[[], None]) -> Callable[[], None]:
    """Let the keeper do all its work ten minutes later."""
    now_s = time.time()

    def work() -> None:
        nonlocal now_s
        now_s += 600
        keep()

    monkeypatch.setattr("time.time", lambda: now_s)
    return work


def decision(client: FlaskClient) -> dict[str, Any]:
    found: dict[str, Any] = client.get("/v1/decisions", query_string=QUESTION).get_json()
    del found["decision_id"]
    return found


def prediction(settings: Settings) -> Any:
    asked = ["predict", LOG, "--system", SYSTEM, "--nodes", str(NODES), "--format", "json"]
    done = CliRunner().invoke(cli, [*asked, "--db", str(settings.database)])
    return json.loads(done.stdout) if done.exit_code == 0 else str(done.exception)


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
def test_after_a_change_nothing_older_decides_and_an_undo_gives_the_same_answers(
    client: FlaskClient, settings: Settings, later: Callable[[], None]
) -> None:
    decided, predicted = decision(client), prediction(settings)
    assert decided["source"] == "history"
    assert client.get("/v1/validation").get_json()["systems"][0]["decisions"] > 0
    with opened_database(settings.database) as database:
        with transaction(database, write=True) as connection:
            note_change(connection, SYSTEM, since=now(), why="new disks")
        later()
        assert decision(client)["source"] == "default"
        assert "nothing was measured on 'testbed' since the change of" in prediction(settings)
        told = client.get("/v1/validation").get_json()
        assert (told["systems"], told["drift"]) == ([], [])
        before = client.get("/v1/outcomes").get_json()["items"]
        assert all(outcome["before_change"] for outcome in before)
        assert sum(month["outcomes"] for month in told["months"]) > 0
        with transaction(database, write=True) as connection:
            undo_change(connection, SYSTEM)
    later()
    assert decision(client) == decided
    assert prediction(settings) == predicted
    assert client.get("/v1/validation").get_json()["systems"][0]["decisions"] > 0


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
def test_a_failure_of_the_database_meanwhile_only_delays_the_new_answers(
    client: FlaskClient,
    settings: Settings,
    later: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert decision(client)["source"] == "history"
    with opened_database(settings.database) as database, transaction(database, write=True) as c:
        note_change(c, SYSTEM, since=now(), why="new disks")
    with monkeypatch.context() as failing:
        failing.setattr(answer_step, "ids_of_applications", failed)
        later()
    assert "disk I/O error" in caplog.text
    later()
    assert decision(client)["source"] == "default"


def failed(*_arguments: object, **_named: object) -> list[int]:
    raise OperationalError("SELECT", {}, OSError("disk I/O error"))
