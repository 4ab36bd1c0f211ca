"""Kept results: nothing is stored before the button, and only those who know the address see it."""

from __future__ import annotations

import hashlib
import html
import io
import json
import logging
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from flask import Flask
from flask.testing import FlaskClient
from sqlalchemy import inspect, text, update
from werkzeug.test import TestResponse

from benchdb.store.database import opened_database, transaction
from ioncast.service.context import Service
from ioncast.service.running.demo_data import SYSTEM
from ioncast.service.settings import Settings
from ioncast.service.store import kept_results as kept_in_database
from ioncast.service.store.tables import kept_results
from ioncast.service.store.tokens import add_token
from ioncast.service.web.app import create_app
from ioncast.service.web.results import keeping
from ioncast.service.web.results import result as results

pytestmark = pytest.mark.slow

LOGS = Path(__file__).resolve().parents[5] / "experiments" / "data" / "testbed" / "logs"
LOG = LOGS / "hacc-io-ionodes0.darshan"
ANOTHER = LOGS / "multiphase-ionodes4.darshan"
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
OTHER_SITE = {"Origin": "https://evil.example"}


def upload(client: FlaskClient, log: Path = LOG) -> str:
    """Send a log to the page, and return the page of its result."""
    data = {"log": (io.BytesIO(log.read_bytes()), log.name), "system": SYSTEM, "nodes": "8"}
    response = client.post("/predict", data=data, headers=BROWSER)
    assert response.status_code == 200, response.text
    return response.text


def sealed_of(page: str) -> str:
    """The value that the button sends."""
    [found] = re.findall(r'<input type="hidden" name="sealed" value="([^"]*)">', page)
    return html.unescape(found)


def press(client: FlaskClient, sealed: str, **headers: str) -> TestResponse:
    return client.post("/kept", data={"sealed": sealed}, headers=BROWSER | headers)


def keep(client: FlaskClient, log: Path = LOG) -> str:
    """Send a log and press the button; the address of the kept result."""
    response = press(client, sealed_of(upload(client, log)))
    assert response.status_code == 303, response.text
    return response.location


def delete(client: FlaskClient, page: str, **headers: str) -> TestResponse:
    [action] = re.findall(r'action="(/kept/[^"]*)"', page)
    return client.post(action, headers=BROWSER | headers)


def get(client: FlaskClient, address: str, status: int = 200) -> str:
    response = client.get(address, headers=BROWSER)
    assert response.status_code == status, response.text
    return response.text


def words(page: str) -> str:
    without = re.sub(r"<script.*?</script>|<style.*?</style>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", without)).split())


def rows(service: Service) -> list[dict[str, Any]]:
    with transaction(service.database) as connection:
        return [dict(row) for row in connection.execute(kept_results.select()).mappings()]


@contextmanager
def other_settings(app: Flask, **changed: Any) -> Iterator[FlaskClient]:
    """A client of the same service after its settings changed."""
    own: Service = app.extensions["ioncast"]
    other = create_app(own.settings.model_copy(update=changed))
    service: Service = other.extensions["ioncast"]
    service.prepared.refresh()
    yield other.test_client()
    service.prepared.close()
    service.database.dispose()


@dataclass(frozen=True)
class Stored:
    """Everything that a service may have stored: rows, files and their bytes."""

    tables: dict[str, list[Any]]
    files: dict[str, bytes]


def stored(service: Service, *folders: Path) -> Stored:
    with transaction(service.database) as connection:
        names = inspect(connection).get_table_names()
        tables = {
            name: sorted(map(repr, connection.execute(text(f"SELECT * FROM {name}"))))
            for name in names
        }
    files = {
        str(path): path.read_bytes()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    return Stored(tables, files)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of temporary files of this process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.usefixtures("filled")
class TestAKeptResult:
    def test_is_stored_only_by_the_button(
        self, client: FlaskClient, service: Service, tmp_path: Path, temporary: Path
    ) -> None:
        # The database of SQLite, the state folder and the folder of uploads are below `tmp_path`.
        assert Path(service.settings.state).is_relative_to(tmp_path)
        first = stored(service, tmp_path)
        upload(client, ANOTHER)
        before = stored(service, tmp_path)
        # The service's key is made for the first result.
        [key] = before.files.keys() - first.files.keys()
        assert Path(key).name == "results.key"
        page = upload(client)
        assert stored(service, tmp_path) == before
        assert list(temporary.iterdir()) == []
        press(client, sealed_of(page))
        after = stored(service, tmp_path)
        assert after.tables | {"kept_results": []} == before.tables
        assert len(after.tables["kept_results"]) == 1
        assert before.files.keys() == after.files.keys()

    def test_has_the_page_of_the_upload_except_for_its_buttons(self, client: FlaskClient) -> None:
        fresh = upload(client)
        kept = get(client, press(client, sealed_of(fresh)).location)
        section = re.compile(
            r'<section class="card" aria-labelledby="keep">.*?</section>', re.DOTALL
        )
        assert len(section.findall(fresh)) == len(section.findall(kept)) == 1
        fresh, kept = section.sub("", fresh), section.sub("", kept)
        fresh = fresh.replace(' <a href="#keep">Keep this result</a>', "")
        kept = re.sub(r" Made on <time[^>]*>[^<]*</time>\.", "", kept)
        kept = re.sub(r" This result is kept until .*? \(<a.*?</a>\)\.", "", kept)
        assert kept == fresh
        assert LOG.name in kept

    def test_says_until_when_it_is_kept(self, client: FlaskClient, service: Service) -> None:
        page = get(client, keep(client))
        [row] = rows(service)
        days = service.settings.kept_days
        assert row["expires_at"][10:] == row["kept_at"][10:]
        assert days == 30
        [shown, again] = re.findall(r'kept until <time[^>]* datetime="([^"]*)"', page) + re.findall(
            r'without the log, until <time[^>]* datetime="([^"]*)"', page
        )
        assert shown == again == row["expires_at"]
        [made] = re.findall(r'Made on <time[^>]* datetime="([^"]*)"', page)
        assert made == json.loads(row["document"])["made_at"]

    def test_has_an_address_that_the_database_does_not_tell(
        self, client: FlaskClient, service: Service
    ) -> None:
        secret = keep(client).rsplit("/", 1)[1]
        # 256 bits in base64.
        assert re.fullmatch(r"[\w-]{43}", secret)
        [row] = rows(service)
        assert row["sha256"] == hashlib.sha256(secret.encode()).hexdigest()
        assert secret not in json.dumps(row)

    def test_never_has_the_log(self, client: FlaskClient, service: Service) -> None:
        keep(client)
        [row] = rows(service)
        assert row["bytes"] == len(row["document"].encode())
        result = json.loads(row["document"])
        assert set(result) == set(results.UploadResult.__dataclass_fields__)
        assert result["name"] == LOG.name

    def test_has_one_address_however_often_the_button_is_pressed(
        self, client: FlaskClient, service: Service
    ) -> None:
        page = upload(client)
        addresses = {press(client, sealed_of(page)).location for _ in range(3)}
        assert len(addresses) == 1
        assert len(rows(service)) == 1
        # Another upload of the same log is another result.
        assert keep(client) not in addresses

    def test_is_deleted_by_its_button(self, client: FlaskClient, service: Service) -> None:
        address, other = keep(client), keep(client, ANOTHER)
        page = get(client, address)
        deleted = delete(client, page)
        assert deleted.status_code == 200
        assert "The result is deleted" in words(deleted.text)
        assert sorted(bool(row["document"]) for row in rows(service)) == [False, True]
        get(client, address, 404)
        assert delete(client, page).status_code == 404
        get(client, other)

    def test_does_not_come_back_after_it_was_deleted(self, client: FlaskClient) -> None:
        sealed = sealed_of(upload(client))
        address = press(client, sealed).location
        delete(client, get(client, address))
        response = press(client, sealed)
        assert response.status_code == 409
        assert "This result was deleted; send the log again." in words(response.text)
        get(client, address, 404)

    def test_that_is_not_there_does_not_tell_why(
        self, client: FlaskClient, service: Service
    ) -> None:
        deleted, expired = keep(client), keep(client, ANOTHER)
        delete(client, get(client, deleted))
        with transaction(service.database, write=True) as connection:
            connection.execute(update(kept_results).values(expires_at="2026-01-01T00:00:00"))
        unknown = "/kept/" + "A" * 43
        pages = {get(client, address, 404) for address in (deleted, expired, unknown)}
        [page] = pages
        assert "This address has no result" in words(page)


@pytest.mark.usefixtures("filled")
class TestTheAddress:
    def test_is_told_to_nobody_else(self, client: FlaskClient) -> None:
        address = keep(client)
        unknown = "/kept/" + "A" * 43
        for response in (
            client.get(address, headers=BROWSER),
            client.get(unknown, headers=BROWSER),
            client.post(f"{unknown}/delete", headers=BROWSER),
            press(client, sealed_of(upload(client))),
            press(client, "forged"),
            client.get(f"/login?next={address}", headers=BROWSER),
        ):
            assert response.headers["Cache-Control"] == "no-store"
            assert response.headers["X-Robots-Tag"] == "noindex"
            assert response.headers["Referrer-Policy"] == "strict-origin"
        assert client.get("/", headers=BROWSER).headers["Referrer-Policy"] == "same-origin"

    def test_is_in_no_list_no_log_and_no_metric(
        self, client: FlaskClient, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        page = upload(client)
        address = press(client, sealed_of(page)).location
        secret = address.rsplit("/", 1)[1]
        get(client, address)
        for path in ("/", "/applications", "/jobs", "/predict", "/docs", "/metrics", "/v1/systems"):
            assert secret not in client.get(path, headers=BROWSER).text
        Path(str(service.settings.database)).rename(f"{service.settings.database}-away")
        assert get(client, address, 503)
        assert press(client, sealed_of(page)).status_code == 503
        assert client.post(f"{address}/delete", headers=BROWSER).status_code == 503
        assert caplog.records
        assert secret not in caplog.text
        assert secret not in client.get("/metrics").text


@pytest.mark.usefixtures("filled")
class TestThePages:
    def test_are_built_like_all_others(self, client: FlaskClient) -> None:
        fresh = upload(client)
        kept = get(client, press(client, sealed_of(fresh)).location)
        for page in (fresh, kept, delete(client, kept).text):
            assert len(re.findall("<h1[ >]", page)) == 1
            names = Counter(re.findall(r'\bid="([^"]*)"', page))
            assert {name for name, times in names.items() if times > 1} == set()
            referred = re.findall(r'\b(?:aria-labelledby|href)="#?([\w-]+)"', page)
            assert set(referred) <= set(names)
            assert re.search(r'aria-current="true">Predict</a>', page)
            assert not re.search(r"<[^>]*\son\w+\s*=|javascript:", page)

    def test_say_what_is_stored_for_how_long_and_who_sees_it(self, client: FlaskClient) -> None:
        told = words(upload(client))
        assert "stores this result for 30 days, without the log" in told
        assert "Everybody who knows the address can read the result" in told

    def test_of_a_result_from_an_older_version_say_so(
        self, client: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sealed = sealed_of(upload(client))
        address = press(client, sealed).location
        monkeypatch.setattr(results, "VERSION", results.VERSION + 1)
        assert "from another version of ioncast" in words(get(client, address, 422))
        response = press(client, sealed)
        assert (response.status_code, len(rows(service))) == (422, 1)


@pytest.mark.usefixtures("filled")
class TestTheButton:
    @pytest.mark.parametrize("cut", [0, 1, 20, -1])
    def test_keeps_nothing_that_was_changed(
        self, client: FlaskClient, service: Service, cut: int
    ) -> None:
        response = press(client, sealed_of(upload(client))[:cut])
        assert response.status_code == 422
        assert "The result is not as this service sent it; send the log again." in words(
            response.text
        )
        assert rows(service) == []

    def test_needs_its_field(self, client: FlaskClient, service: Service) -> None:
        assert client.post("/kept", headers=BROWSER).status_code == 422
        assert client.post("/kept", data=b"\xff", headers=BROWSER).status_code == 422
        assert rows(service) == []

    def test_rejects_more_than_the_largest_result(
        self, client: FlaskClient, service: Service
    ) -> None:
        response = press(client, "A" * (9 << 20))
        assert response.status_code == 413
        assert "Traceback" not in response.text
        # This one is read, although other forms may have no fields of that size.
        assert press(client, "A" * (3 << 20)).status_code == 422
        assert rows(service) == []

    def test_keeps_nothing_after_a_day(
        self, client: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sealed = sealed_of(upload(client))
        monkeypatch.setattr("ioncast.service.web.results.sealing.LIFE", timedelta(days=-1))
        response = press(client, sealed)
        assert response.status_code == 422
        assert "so its result can no longer be kept; send the log again" in words(response.text)
        assert rows(service) == []

    def test_keeps_nothing_that_another_service_sealed(
        self, client: FlaskClient, service: Service
    ) -> None:
        sealed = sealed_of(upload(client))
        key = Path(service.settings.state) / "results.key"
        key.write_bytes(os.urandom(32))
        assert press(client, sealed).status_code == 422

    def test_works_after_a_restart(self, app: Flask, client: FlaskClient) -> None:
        sealed = sealed_of(upload(client))
        with other_settings(app) as restarted:
            address = press(restarted, sealed).location
            get(restarted, address)
        get(client, address)

    def test_keeps_nothing_for_a_page_of_another_site(
        self, client: FlaskClient, service: Service
    ) -> None:
        sealed = sealed_of(upload(client))
        response = press(client, sealed, **OTHER_SITE)
        assert response.status_code == 403
        assert "The form is not from a page of localhost" in words(response.text)
        assert rows(service) == []
        page = get(client, press(client, sealed, Origin="http://localhost").location)
        assert delete(client, page, **OTHER_SITE).status_code == 403
        assert len(rows(service)) == 1
        assert delete(client, page, Origin="http://localhost").status_code == 200

    def test_is_missing_where_the_site_keeps_nothing(
        self, app: Flask, client: FlaskClient, service: Service
    ) -> None:
        sealed, address = sealed_of(upload(client)), keep(client, ANOTHER)
        with other_settings(app, keeping="off") as other:
            assert "Keep this result" not in upload(other)
            response = press(other, sealed)
            assert response.status_code == 403
            assert "This service keeps no results; print or save the page." in words(response.text)
            # A result that was kept before stays until it expires.
            page = get(other, address)
            assert len(rows(service)) == 1
            assert delete(other, page).status_code == 200

    def test_says_when_the_room_is_full_and_deletes_nothing(
        self, app: Flask, client: FlaskClient, service: Service
    ) -> None:
        address, sealed = keep(client), sealed_of(upload(client, ANOTHER))
        with transaction(service.database, write=True) as connection:
            connection.execute(update(kept_results).values(bytes=1 << 20))
        with other_settings(app, kept_mib=1) as other:
            response = press(other, sealed)
            assert response.status_code == 409
            assert "The room for kept results, 1 MiB, is full, so this one was not stored" in words(
                response.text
            )
            get(other, address)
        assert press(client, sealed).status_code == 303

    def test_is_not_offered_for_a_result_that_is_too_large(
        self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(keeping, "MOST_DOCUMENT_BYTES", 1 << 10)
        page = upload(client)
        assert 'name="sealed"' not in page
        assert re.search(
            r"This result cannot be kept: it has [\d.]+ KiB, more than 1 KiB\.", words(page)
        )

    def test_keeps_a_result_of_the_largest_size(
        self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sealed = sealed_of(upload(client))
        monkeypatch.setattr(kept_in_database, "MOST_DOCUMENT_BYTES", 1 << 10)
        response = press(client, sealed)
        assert response.status_code == 422
        assert "bytes, more than 1024" in words(response.text)

    def test_is_not_offered_without_the_state_folder(
        self, client: FlaskClient, service: Service, caplog: pytest.LogCaptureFixture
    ) -> None:
        sealed = sealed_of(upload(client))
        (Path(service.settings.state) / "results.key").write_bytes(b"")
        told = words(upload(client))
        assert "cannot be kept: the service cannot use its state folder." in told
        assert "results.key is damaged" in caplog.text
        assert press(client, sealed).status_code == 503

    @pytest.mark.usefixtures("stopped_clock")
    def test_counts_as_a_request_of_its_client(self, app: Flask) -> None:
        for method, path in (
            ("POST", "/kept"),
            ("GET", "/kept/x"),
            ("POST", "/kept/x/delete"),
        ):
            with other_settings(app, requests_per_minute=2) as client:
                statuses = [
                    client.open(path, method=method, headers=BROWSER).status_code for _ in range(3)
                ]
            assert statuses[-1] == 429, path
            assert 429 not in statuses[:2]


class TestWhereReadingIsClosed:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"reading": "closed"})

    @pytest.fixture
    def reader(
        self, client: FlaskClient, settings: Settings, filled: None, keep: Callable[[], None]
    ) -> FlaskClient:
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            token = add_token(c, "somebody", "reader")
        keep()
        client.post("/login", data={"token": token}, headers=BROWSER)
        return client

    def test_a_kept_result_needs_a_reader(self, app: Flask, reader: FlaskClient) -> None:
        page = upload(reader)
        address = press(reader, sealed_of(page)).location
        kept = get(reader, address)
        stranger = app.test_client()
        for response in (
            stranger.get(address, headers=BROWSER),
            press(stranger, sealed_of(page)),
            delete(stranger, kept),
        ):
            assert response.status_code == 303
            assert urlsplit(response.location).path == "/login"
        assert stranger.get(address).status_code == 401
        get(reader, address)
        assert delete(reader, kept).status_code == 200
