"""The page of a run shows its findings; a dropped log shows them without being stored."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import delete, func, select

from benchdb.store.database import transaction
from benchdb.store.schema import insights
from experiments.applications.darshan_writer import write_log
from ioncast.service.context import Service
from ioncast.service.http import uploads
from tests.summario.phases.test_rules import KIB, posix

# The Accept header of a browser.
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
EVIL = (
    "/d</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'\N{RIGHT-TO-LEFT OVERRIDE}"
)

Send = Callable[[Path], str]


def small_writes(folder: Path, path: str = "/data/out", *, exe: str = "app") -> Path:
    record = posix(path, 0, 1, requests=5000, size=KIB)
    return write_log(folder / "app.darshan", nprocs=1, records=[record], exe=exe)


@pytest.fixture
def send(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Send:
    """Send a log, and return the address of the page of its run."""
    token = authorised("scheduler")

    def send_log(log: Path) -> str:
        data = {"system": "mn4", "log": (io.BytesIO(log.read_bytes()), log.name)}
        response = client.post("/v1/traces", data=data, **token)
        assert response.status_code in {200, 201}, response.text
        assert response.json is not None
        return f"/applications/{response.json['application_id']}?run={response.json['run_id']}"

    return send_log


def page(client: FlaskClient, path: str) -> str:
    response = client.get(path, headers=BROWSER)
    assert response.status_code == 200, response.text
    return response.text


def words(text: str) -> str:
    """The text of a page without tags, with single blanks."""
    without = re.sub(r"<script.*?</script>|<style.*?</style>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", without)).split())


def drop(client: FlaskClient, log: Path) -> str:
    data = {"log": (io.BytesIO(log.read_bytes()), log.name), "system": "testbed"}
    response = client.post("/predict", data=data, headers=BROWSER)
    assert response.status_code == 200, response.text
    return response.text


def test_the_page_of_a_run_tells_its_findings_files_and_advice(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    text = page(client, send(small_writes(tmp_path)))
    told = words(text)
    assert "1 finding is very likely harmful" in told
    assert "HIGH Many small writes P06" in told
    assert "5,000 of 5,000 writes (100.00%) are smaller than 1 MiB." in told
    assert "/data/out : 5,000 (100.00%)" in told
    assert "Write more with each request" in told
    assert "enum { BUFFER_BYTES = 16 << 20 };" in told
    assert "Source: Drishti (Ather 2022), Table II." in told
    assert "/data/out POSIX 1 0 bytes 4.88 MiB" in told


def test_a_run_without_insights_says_how_to_get_them(
    client: FlaskClient, send: Send, service: Service, tmp_path: Path
) -> None:
    log = small_writes(tmp_path)
    path = send(log)
    with transaction(service.database, write=True) as connection:
        connection.execute(delete(insights))
    told = words(page(client, path))
    assert "This run has no findings: it was sent to an older version" in told
    assert "send all its logs again" in told
    send(log)
    assert "Many small writes" in words(page(client, path))


def test_names_of_files_cannot_break_the_page(
    filled: None, client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    log = small_writes(tmp_path, EVIL, exe=EVIL.replace(" ", "_"))
    for text in (page(client, send(log)), drop(client, log)):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        assert html.escape(EVIL, quote=False) in text.replace("&#34;", '"').replace("&#39;", "'")


def test_a_log_that_is_dropped_shows_its_findings_and_is_not_stored(
    client: FlaskClient, service: Service, filled: None, tmp_path: Path
) -> None:
    with transaction(service.database) as connection:
        before = connection.scalar(select(func.count()).select_from(insights))
    assert "Many small writes" in words(drop(client, small_writes(tmp_path)))
    with transaction(service.database) as connection:
        assert connection.scalar(select(func.count()).select_from(insights)) == before


def test_a_log_whose_insights_fail_is_predicted_all_the_same(
    client: FlaskClient, filled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_INSIGHTS_S", 0)
    told = words(drop(client, small_writes(tmp_path)))
    assert "For the next run" in told
    assert "No insights were made: the work on it took more than 0 s" in told


def test_runs_of_the_demonstration_have_findings(client: FlaskClient, filled: None) -> None:
    for number in (1, 2, 3):
        told = words(page(client, f"/applications/{number}"))
        assert "This run has no findings" not in told
        assert re.search(r"Findings (\d+ findings? |No check found)", told)
