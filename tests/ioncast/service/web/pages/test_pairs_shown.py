"""The page of an application names the applications that slow it down, from the site's store."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine

from ioncast.service.settings import Settings
from ioncast.service.web import site_store as asked
from tests.ioncast.test_interference_command import START_S, log_of
from tests.support.command import run_ioncast
from tests.support.history import put_run


@pytest.fixture
def settings(location: str, database: Engine, tmp_path: Path) -> Settings:
    """Settings of a service with a store in which `other` slows `app` down."""
    folder, store = tmp_path / "logs", tmp_path / "store"
    folder.mkdir()
    for number in range(16):
        at_s, is_together = START_S + 1000 * number, number < 8
        log_of(folder, "app", 96 if is_together else 32, job=number, at_s=at_s)
        log_of(folder, "other", 32, job=50 + number, at_s=at_s + (0 if is_together else 500))
    done = run_ioncast("ingest", folder, "--system", "here", "--store", store)
    assert done.returncode == 0, done.stderr
    return Settings(database=location, state=str(tmp_path / "state"), store=str(store))


def page_of(client: FlaskClient, database: Engine, executable: str) -> str:
    run, _ = put_run(database, executable)
    answer = client.get(f"/applications/{run.application.id}", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", answer.text)).split())


def test_the_page_names_the_disturbing_application(client: FlaskClient, database: Engine) -> None:
    said = "app, 1 process, user 1000 other, 1 process, user 1000 file system 8:"
    text = page_of(client, database, "/opt/app")
    assert said in text
    assert "yes" in text.partition(said)[2][:80]


def test_an_application_without_pairs_has_a_line(client: FlaskClient, database: Engine) -> None:
    said = "No other application ran with it 5 times together and 5 times apart."
    assert said in page_of(client, database, "/opt/lonely")


def test_a_store_with_too_many_runs_says_so(
    client: FlaskClient, database: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_MOST_PLACES", 3)
    assert "the store has too many runs for a page" in page_of(client, database, "/opt/app")
