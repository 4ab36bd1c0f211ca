"""Reports of the queue: who may send them, what is rejected, and where they are shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from flask.testing import FlaskClient

from benchdb.store.database import transaction
from ioncast.service.context import Service
from ioncast.service.store.queue_reports import (
    HourOfQueue,
    QueueReport,
    hours_of_queues,
    newest_queue_reports,
    store_queue_report,
)

pytestmark = pytest.mark.both_databases

Authorised = Callable[[str], dict[str, Any]]
REPORT = {"system": "here", "io_nodes": 8, "in_use": 6, "waiting": 12, "for_io_nodes": 3}
NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def put(service: Service, at: datetime, in_use: int, system: str = "here") -> None:
    with transaction(service.database, write=True) as connection:
        store_queue_report(connection, QueueReport(system, 8, in_use, 2, 1, True), at)


def words(page: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def test_a_report_is_shown_on_the_overview(client: FlaskClient, authorised: Authorised) -> None:
    assert "waiting jobs" not in client.get("/").text
    token = authorised("scheduler")
    for works in (None, False, True):
        told = {**REPORT, "arbiter_works": works}
        assert client.post("/v1/queue", json=told, **token).status_code == 201
        shown = words(client.get("/").text)
        assert "6 of 8 I/O nodes in use, 12 waiting jobs, 3 of them for I/O nodes" in shown
        arbiter = {None: "no arbiter", False: "the arbiter does not work"}
        assert arbiter.get(works, "the arbiter works") in shown
    # The hint of the hour's bar.
    assert "6 of 8 I/O nodes in use, " in client.get("/?days=30").text


def test_an_old_report_says_nothing_about_the_arbiter(
    client: FlaskClient, service: Service
) -> None:
    now = datetime.now(timezone.utc)
    put(service, now - timedelta(minutes=20), 3)
    shown = words(client.get("/").text)
    assert "no report since" in shown
    assert "the arbiter works" not in shown
    # The range begins with an hour, and the newest reports with a minute.
    put(service, now - timedelta(days=30, minutes=1), 3, "gone")
    assert client.get("/?days=30").status_code == 200


def test_only_a_scheduler_may_report(client: FlaskClient, authorised: Authorised) -> None:
    assert client.post("/v1/queue", json=REPORT).status_code == 401
    assert client.post("/v1/queue", json=REPORT, **authorised("reader")).status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [{"in_use": -1}, {"waiting": 1e30}, {"system": ""}, {"arbiter_works": "x"}, {"more": 1}],
)
def test_a_wrong_report_is_rejected(
    client: FlaskClient, authorised: Authorised, service: Service, wrong: dict[str, object]
) -> None:
    answer = client.post("/v1/queue", json=REPORT | wrong, **authorised("scheduler"))
    assert answer.status_code == 422
    assert next(iter(wrong)) in answer.json["detail"]  # type: ignore[index]
    with transaction(service.database) as connection:
        assert not newest_queue_reports(connection, NOON)


def test_an_hour_has_the_means_of_its_reports(service: Service) -> None:
    for minutes, in_use in ((-5, 8), (5, 1), (10, 4), (65, 7)):
        put(service, NOON + timedelta(minutes=minutes), in_use)
    put(service, NOON, 3, "elsewhere")
    with transaction(service.database) as connection:
        found = hours_of_queues(connection, NOON + timedelta(minutes=30))
    assert found == {
        "elsewhere": [HourOfQueue("2026-11-21T12:00:00+00:00", 8, 3, 2, 1)],
        "here": [
            HourOfQueue("2026-11-21T12:00:00+00:00", 8, 2.5, 2, 1),
            HourOfQueue("2026-11-21T13:00:00+00:00", 8, 7, 2, 1),
        ],
    }


def test_the_newest_report_of_each_system_is_found(service: Service) -> None:
    put(service, NOON - timedelta(days=3), 8, "gone")
    for minutes, system in ((0, "here"), (1, "elsewhere"), (2, "here")):
        put(service, NOON + timedelta(minutes=minutes), minutes, system)
    with transaction(service.database) as connection:
        found = newest_queue_reports(connection, NOON - timedelta(days=1))
    assert {name: report.in_use for name, (_, report) in found.items()} == {
        "elsewhere": 1,
        "here": 2,
    }
