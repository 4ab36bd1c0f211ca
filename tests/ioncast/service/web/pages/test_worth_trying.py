"""Applications that never ran with a number of I/O nodes that may be better are named."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from flask.testing import FlaskClient
from sqlalchemy import delete

from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import SYSTEM
from ioncast.service.settings import Settings
from ioncast.service.store.applications import applications
from ioncast.service.store.tables import outcomes


@pytest.fixture
def settings(settings: Settings, request: pytest.FixtureRequest) -> Settings:
    return settings.model_copy(update={"explore": request.param})


def untried(client: FlaskClient) -> list[dict[str, object]]:
    [system] = client.get("/v1/systems").get_json()["items"]
    largest: list[dict[str, object]] = system["largest_untried"]
    assert system["untried"] == len(largest)
    return largest


@pytest.mark.parametrize("settings", [0.0, 0.01], indirect=True)
def test_the_overview_and_the_list_of_systems_name_them(
    client: FlaskClient,
    settings: Settings,
    filled_location: str,
    keep: Callable[[], None],
) -> None:
    with opened_database(filled_location) as database:
        with transaction(database, write=True) as connection:
            # They ran with every number of I/O nodes.
            connection.execute(delete(outcomes))
        with transaction(database) as connection:
            programs = {
                one.application.id: one.application.program for one in applications(connection)
            }
    keep()
    found = untried(client)
    if settings.explore:
        assert found == []
        assert "worth trying" not in client.get("/", headers={"Accept": "text/html"}).text
        return
    assert found
    gains = [one["gain"] for one in found]
    assert gains == sorted(gains, reverse=True)
    page = client.get("/", headers={"Accept": "text/html"}).text
    assert f"Numbers of I/O nodes worth trying on {SYSTEM}" in page
    for one in found:
        assert one["program"] == programs[one["id"]]
        assert one["io_nodes"] != one["chosen"]
        assert f'<a href="/applications/{one["id"]}">{one["program"]}</a>' in page
