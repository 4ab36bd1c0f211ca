"""Diagnoses of stored runs, from the store of the site: over HTTP and on pages."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine

from ioncast.service.context import Service
from ioncast.service.settings import Settings
from ioncast.service.web import site_store
from ioncast.service.web.site_store import SiteStore
from tests.support.busy_store import (
    OTHER_JOB,
    OTHER_PROGRAM,
    SLOW_JOB,
    SLOWDOWN,
    log_of,
    put_busy_store,
)
from tests.support.history import put_outcome, put_run

USUAL_JOB = SLOW_JOB - 1
HEADING = "Was this run slower than usual?"
NOT_IN_STORE = "the store of this service has no log of the run"


@pytest.fixture(scope="module")
def busy_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which another job kept a server of the slow run busy."""
    folder = tmp_path_factory.mktemp("store")
    put_busy_store(folder)
    return folder


@pytest.fixture
def settings(location: str, database: Engine, tmp_path: Path, busy_store: Path) -> Settings:
    """Settings of a service with the store."""
    state = str(tmp_path / "state")
    return Settings(database=location, state=state, store=str(busy_store), patience_s=60)


def put_job(database: Engine, job: int, **changes: Any) -> int:
    """Store the run of a job with its outcome; return the id of its application."""
    run, _ = put_run(database, **({"logs": [log_of(job)], "job_id": str(job)} | changes))
    put_outcome(database, str(job), run_id=run.id)
    return run.application.id


def item_of(client: FlaskClient, job: int | str) -> dict[str, Any]:
    answer = client.get(f"/v1/jobs/{job}")
    assert answer.status_code == 200, answer.text
    [item] = answer.get_json()["items"]
    assert (item["diagnosis"] is None) == (item["no_diagnosis"] is not None)
    found: dict[str, Any] = item
    return found


def words_of_page(client: FlaskClient, path: str) -> str:
    answer = client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def test_a_slow_job_has_its_verdict_with_evidence(client: FlaskClient, database: Engine) -> None:
    put_job(database, SLOW_JOB)
    found = item_of(client, SLOW_JOB)["diagnosis"]
    assert (found["verdict"], found["reason"]) == ("system", None)
    assert found["slowdown"] == pytest.approx(SLOWDOWN)
    assert found["lost_seconds"] == pytest.approx(50)
    [part] = found["parts"]
    assert (part["cause"], part["share"], part["reason"]) == ("system", 1, None)
    assert part["seconds"] == pytest.approx(50)
    [server] = [line for line in found["evidence"] if "server 4 was busy" in line]
    assert server.endswith("; by 1 log of other jobs.")


@pytest.mark.slow
def test_the_pages_show_verdict_and_evidence(client: FlaskClient, database: Engine) -> None:
    application = put_job(database, SLOW_JOB)
    for path in (f"/applications/{application}", f"/jobs/{SLOW_JOB}"):
        said = words_of_page(client, path).partition(HEADING)[2]
        assert said.startswith(" The system explains the slow run: others kept its servers busy.")
        assert "Of the lost time: system 50 s (100%)." in said


@pytest.mark.slow
def test_other_jobs_are_counted_and_not_named(client: FlaskClient, database: Engine) -> None:
    application = put_job(database, SLOW_JOB)
    texts = [
        client.get(f"/v1/jobs/{SLOW_JOB}").text,
        *(client.get(path).text for path in (f"/applications/{application}", f"/jobs/{SLOW_JOB}")),
    ]
    for text in texts:
        assert "by 1 log of other jobs" in text
        others = log_of(OTHER_JOB), OTHER_PROGRAM, str(OTHER_JOB), log_of(USUAL_JOB), "/secret/"
        assert not [each for each in others if each in text]


def test_a_usual_job_is_normal(client: FlaskClient, database: Engine) -> None:
    put_job(database, USUAL_JOB)
    found = item_of(client, USUAL_JOB)["diagnosis"]
    assert (found["verdict"], found["parts"]) == ("normal", [])
    assert found["slowdown"] == pytest.approx(1)


def test_the_slowest_log_of_a_run_of_several_logs_counts(
    client: FlaskClient, database: Engine
) -> None:
    put_job(database, SLOW_JOB, logs=[log_of(USUAL_JOB), log_of(SLOW_JOB)])
    assert item_of(client, SLOW_JOB)["diagnosis"]["verdict"] == "system"


@pytest.mark.slow
def test_a_log_that_the_store_lacks_is_told(client: FlaskClient, database: Engine) -> None:
    application = put_job(database, 5)
    assert item_of(client, 5)["no_diagnosis"] == NOT_IN_STORE
    text = words_of_page(client, f"/applications/{application}")
    assert f"{HEADING} The store of this service has no log of the run." in text


def test_a_job_without_a_log_is_told(client: FlaskClient, database: Engine) -> None:
    put_outcome(database)
    assert item_of(client, "4711")["no_diagnosis"] == "this service has no log of the run"


def test_answers_are_kept_until_the_store_changes(
    client: FlaskClient, database: Engine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_job(database, SLOW_JOB)
    first = item_of(client, SLOW_JOB)
    monkeypatch.setattr(SiteStore, "_diagnose", lambda *_: pytest.fail("it is asked again"))
    assert item_of(client, SLOW_JOB) == first


def test_a_diagnosis_that_takes_too_long_is_not_tried_at_each_view(
    client: FlaskClient, database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_job(database, SLOW_JOB)
    with monkeypatch.context() as patched:
        patched.setattr(site_store, "_DIAGNOSES_S", -1.0)
        told = item_of(client, SLOW_JOB)["no_diagnosis"]
    assert told.endswith("; ask `ioncast diagnose JOB --store DIR`")
    assert item_of(client, SLOW_JOB)["no_diagnosis"] == told


def test_too_many_rows_are_told(
    client: FlaskClient, database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_job(database, SLOW_JOB)
    monkeypatch.setattr(site_store, "_MOST_ROWS_OF_RUN", 9)
    assert item_of(client, SLOW_JOB)["no_diagnosis"].startswith("this has more than 9 rows; ask")


def test_a_busy_store_is_told(client: FlaskClient, database: Engine, service: Service) -> None:
    put_job(database, SLOW_JOB)
    service.store._patience_s = 0.1
    with service.store._place:
        told = item_of(client, SLOW_JOB)["no_diagnosis"]
    assert told == "the store cannot tell it now; try again later"
    assert item_of(client, SLOW_JOB)["diagnosis"]["verdict"] == "system"


class TestWithoutAStore:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service without a store."""
        return settings.model_copy(update={"store": None})

    @pytest.mark.slow
    def test_jobs_say_so_and_pages_say_nothing(self, client: FlaskClient, database: Engine) -> None:
        application = put_job(database, SLOW_JOB)
        assert item_of(client, SLOW_JOB)["no_diagnosis"] == "this service has no store"
        for path in (f"/applications/{application}", f"/jobs/{SLOW_JOB}"):
            assert HEADING not in words_of_page(client, path)
