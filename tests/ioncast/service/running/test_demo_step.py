"""The keeper imports the data of `ioncast serve --demo`, and all parts of the service say so."""

from __future__ import annotations

import csv
import html
import time
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from benchdb.store.database import opened_database, transaction
from ioncast.service.background.process import Keeper
from ioncast.service.context import Service
from ioncast.service.decide.prepared import IMPORTING as MARK
from ioncast.service.decide.prepared import Writer, prepared_file
from ioncast.service.running import demo_data
from ioncast.service.running.demo_step import let_import
from ioncast.service.settings import Settings
from ioncast.service.store.decisions import decisions
from ioncast.service.store.outcomes import joined_outcomes

HACC = {"system": "testbed", "user": "demo", "executable": "/opt/bin/hacc_io_write_posix_fpp"}
IMPORTING = "the demonstration's data are still being imported"
with (demo_data.TESTBED / "applications.csv").open(encoding="utf-8", newline="") as file:
    RERUNS = len(list(csv.DictReader(file)))
BROWSER = {"Accept": "text/html"}
DATA_PAGES = ("/", "/applications", "/jobs", "/benchmarks", "/validation", "/predict")


@pytest.fixture
def importing(settings: Settings, service: Service) -> None:
    """A service that was started for the demonstration, whose keeper has not begun."""
    let_import(settings)
    service.prepared.refresh()


def page(client: FlaskClient, path: str) -> str:
    return html.unescape(client.get(path, headers=BROWSER).text)


def readiness(client: FlaskClient) -> tuple[int, bool, str | None]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json["ready"], answer.json["reason"]


@pytest.mark.slow
@pytest.mark.usefixtures("importing")
def test_until_the_data_are_imported_answers_pages_and_readiness_say_so(
    client: FlaskClient, keep: Callable[[], None]
) -> None:
    found = client.get("/v1/decisions", query_string=HACC).json
    assert (found["io_nodes"], found["source"]) == (None, "default")
    assert found["why"].startswith(f"no earlier run on testbed is known yet: {IMPORTING}")
    assert readiness(client) == (503, False, IMPORTING)
    for path in DATA_PAGES:
        assert IMPORTING in page(client, path)
    assert "The database is empty" not in page(client, "/")
    keep()
    found = client.get("/v1/decisions", query_string={**HACC, "tasks": 16}).json
    assert (found["io_nodes"], found["source"]) == (8, "history")
    assert readiness(client) == (200, True, None)
    for path in DATA_PAGES:
        assert "Not ready" not in page(client, path)


@pytest.mark.slow
@pytest.mark.usefixtures("importing")
def test_an_import_that_was_interrupted_is_completed(
    settings: Settings,
    service: Service,
    client: FlaskClient,
    keep: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError

    with monkeypatch.context() as failing:
        failing.setattr(demo_data, "_store_model", fail)
        keep()
    assert readiness(client) == (503, False, IMPORTING)
    keep()
    assert readiness(client) == (200, True, None)
    # A keeper that is killed before it removes the mark of the import leaves it to the next one.
    writer = Writer(prepared_file(settings.state))
    with writer.transaction():
        writer.put_progress({**writer.progress(), MARK: ""})
    writer.close()
    following = Keeper(settings)
    following.round(time.time(), time.time())
    following.close()
    service.prepared.refresh()
    assert readiness(client) == (200, True, None)
    with opened_database(settings.database) as database, transaction(database) as connection:
        assert len(joined_outcomes(connection)) == RERUNS
        assert len(decisions(connection, limit=1000)) == RERUNS


@pytest.mark.parametrize("has_runs", [False, True])
def test_other_services_are_ready_when_all_answers_are_prepared(
    has_runs: bool,
    request: pytest.FixtureRequest,
    service: Service,
    client: FlaskClient,
    keep: Callable[[], None],
) -> None:
    if has_runs:
        request.getfixturevalue("filled_location")
    said = "answers are still being prepared from the earlier runs"
    assert readiness(client) == (503, False, said)
    assert said in page(client, "/")
    assert said in client.get("/v1/decisions", query_string=HACC).json["why"]
    keep()
    assert service.prepared.keeper_state(0.0) == "ok"
    assert readiness(client) == (200, True, None)
    source = client.get("/v1/decisions", query_string=HACC).json["source"]
    assert source == ("history" if has_runs else "default")
