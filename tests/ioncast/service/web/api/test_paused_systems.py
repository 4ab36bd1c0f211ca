"""The service gives a paused system no decisions, and says who paused them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient

from benchdb.store.database import opened_database, transaction
from ioncast.service.background.process import Keeper
from ioncast.service.context import Service
from ioncast.service.settings import Settings
from ioncast.service.store.paused_systems import pause_decisions, resume_decisions

HACC = {"system": "testbed", "user": "demo", "executable": "/opt/bin/hacc_io_write_posix_fpp"}
TEXT = {"Accept": "text/plain"}
WHY = "decisions are paused by alice since "
REASON = 'new <disks> & "more"'


@pytest.fixture
def settings(settings: Settings) -> Settings:
    # A pause comes before the site's default, too.
    return settings.model_copy(update={"default_io_nodes": 2})


@pytest.fixture
def change(settings: Settings, filled: None, keep: Callable[[], None]) -> Callable[..., None]:
    """Change the pauses in the database, and let the service learn it."""

    def make(what: Callable[..., Any], *told: Any) -> None:
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            what(c, *told)
        keep()

    return make


def test_a_paused_system_gets_no_decision(
    client: FlaskClient, change: Callable[..., None], authorised: Callable[[str], dict[str, Any]]
) -> None:
    change(pause_decisions, "testbed", "alice", REASON)
    found = client.get("/v1/decisions", query_string=HACC).get_json()
    assert (found["io_nodes"], found["source"], found["alternatives"]) == (None, "default", [])
    assert found["why"].startswith(WHY)
    assert found["why"].endswith(f" UTC: {REASON}")
    answer = client.get("/v1/decisions", query_string=HACC, headers=TEXT)
    assert (answer.status_code, answer.text) == (204, "")
    assert answer.headers["X-Decision-Source"] == "default"
    assert answer.headers["X-Decision-Why"] == found["why"]
    body = {**HACC, "script": "srun ./hacc_io_write_posix_fpp\n"}
    by_script = client.post("/v1/decisions", json=body, **authorised("scheduler")).get_json()
    assert by_script["why"] == found["why"]


def test_other_systems_get_decisions_as_before(
    client: FlaskClient, change: Callable[..., None]
) -> None:
    change(pause_decisions, "testbed", "alice")
    found = client.get("/v1/decisions", query_string={**HACC, "system": "elsewhere"}).get_json()
    assert found["io_nodes"] == 2


def test_a_resumed_system_gets_its_decisions_again(
    client: FlaskClient, change: Callable[..., None]
) -> None:
    before = client.get("/v1/decisions", query_string=HACC).get_json()
    change(pause_decisions, "testbed", "alice")
    change(resume_decisions, "testbed")
    after = client.get("/v1/decisions", query_string=HACC).get_json()
    assert after["source"] == "history"
    assert before | {"decision_id": ""} == after | {"decision_id": ""}


@pytest.mark.slow
def test_pages_readiness_and_metrics_show_the_pause(
    client: FlaskClient, change: Callable[..., None]
) -> None:
    assert client.get("/readyz").get_json()["paused"] == 0
    assert "ioncast_decisions_paused{" not in client.get("/metrics").text
    change(pause_decisions, "testbed", "alice", REASON)
    assert client.get("/readyz").get_json()["paused"] == 1
    assert 'ioncast_decisions_paused{system="testbed"} 1.0' in client.get("/metrics").text
    page = client.get("/", headers={"Accept": "text/html"}).text
    assert "Decisions for testbed are paused by alice since " in page
    assert "new &lt;disks&gt; &amp; &#34;more&#34;" in page


def test_a_file_that_is_made_anew_has_the_pauses_at_once(
    settings: Settings, service: Service, change: Callable[..., None]
) -> None:
    change(pause_decisions, "testbed", "alice")
    keeper = Keeper(settings)
    keeper.round(0.0, 0.0)
    keeper._file.renew()
    service.prepared.refresh()
    assert list(service.prepared.pauses) == ["testbed"]
    keeper.close()


def test_the_log_says_when_a_pause_begins_and_ends(
    settings: Settings, change: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ioncast.keeper")
    change(pause_decisions, "testbed", "alice", "new disks")
    change(resume_decisions, "testbed")
    lines = [line for line in caplog.messages if "decisions for" in line]
    begin, end = lines
    assert begin.startswith("decisions for 'testbed' are paused by alice since ")
    assert begin.endswith(": new disks")
    assert end == "decisions for 'testbed' are made again"
