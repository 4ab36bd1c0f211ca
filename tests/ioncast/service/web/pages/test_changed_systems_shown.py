"""Pages mark everything from before a change of the system, and propose to note one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from benchdb.store.database import opened_database, transaction
from benchdb.store.system_changes import note_change
from ioncast.service.context import Service
from ioncast.service.decide.prepared import StoredSummary
from ioncast.service.monitoring.common_shift import Shift, shifts_to_json
from ioncast.service.running.demo_data import SYSTEM
from ioncast.service.settings import Settings
from ioncast_base.times import now

PAGE = {"Accept": "text/html"}


def shown(client: FlaskClient, place: str) -> str:
    answer = client.get(place, headers=PAGE)
    assert answer.status_code == 200
    return " ".join(answer.text.split())


@pytest.mark.slow
@pytest.mark.usefixtures("filled")
def test_pages_mark_what_no_longer_counts(client: FlaskClient, settings: Settings) -> None:
    places = ("/", "/benchmarks", "/benchmarks/1", "/validation", "/applications/1")
    assert not any("the change of" in shown(client, place) for place in places)
    with (
        opened_database(settings.database) as database,
        transaction(database, write=True) as connection,
    ):
        change = note_change(connection, SYSTEM, since=now(), why="new <disks>")
    mark = f"before the change of {change.day}: new &lt;disks&gt;"
    overview = shown(client, "/")
    assert f"Nothing was measured on testbed since the change of {change.day}" in overview
    assert "Predictions have no basis until then" in overview
    benchmarks = shown(client, "/benchmarks")
    assert f"measurements from {mark} do not count" in benchmarks
    assert " before</span>" in benchmarks
    benchmark = shown(client, "/benchmarks/1")
    assert f"more {mark}" in benchmark
    assert "These measurements no longer count" in benchmark
    validation = shown(client, "/validation")
    assert f"outcomes with a decision from {mark} do not count, except by month" in validation
    assert mark in shown(client, "/applications/1")


def test_the_overview_proposes_a_change_that_outcomes_suggest(
    client: FlaskClient, service: Service, keep: Callable[[], None]
) -> None:
    keep()
    shift = Shift("here", "2026-11-20", 4, 5, 0.62)
    service.prepared.summaries["shifts"] = StoredSummary(shifts_to_json([shift]), now())
    overview = shown(client, "/")
    assert "here may have changed about 2026-11-20." in overview
    assert "4 of 5 programs get 62% of the expected bandwidth since then" in overview
    assert "ioncast system changed here --since 2026-11-20 --why" in overview
