"""Roles, tokens, and the number of requests that a client may send."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from flask import Flask, request
from flask.testing import FlaskClient

from benchdb.store.database import opened_database, transaction
from ioncast.service.settings import Settings
from ioncast.service.store.tokens import add_token, revoke_token
from ioncast.service.web.app import create_app
from ioncast.service.web.http.access import reject_other_origins
from ioncast.service.web.http.problems import RequestError

Authorised = Callable[[str], dict[str, Any]]
BODY = {"json": {"system": "a"}}


def test_reading_is_open_unless_it_is_closed(settings: Settings) -> None:
    for reading, status in (("open", 200), ("closed", 401)):
        app = create_app(settings.model_copy(update={"reading": reading}))
        client = app.test_client()
        assert client.get("/v1/decisions?system=a").status_code == status
        assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(("role", "status"), [("reader", 403), ("scheduler", 200), ("admin", 200)])
def test_a_role_includes_the_lower_roles(
    client: FlaskClient, authorised: Authorised, role: str, status: int
) -> None:
    headers = authorised(role)
    assert client.get("/v1/decisions?system=a", **headers).status_code == 200
    assert client.post("/v1/decisions", **BODY, **headers).status_code == status


@pytest.mark.parametrize("header", ["Bearer ion_wrong", "Basic YTpi", "Bearer", "ion_wrong"])
def test_a_wrong_token_is_rejected_even_when_no_token_is_needed(
    client: FlaskClient, keep: Callable[[], None], header: str
) -> None:
    keep()
    answer = client.get("/v1/decisions?system=a", headers={"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert "wrong" not in answer.text


def test_before_tokens_are_known_a_token_is_not_called_wrong(client: FlaskClient) -> None:
    answer = client.post("/v1/decisions", **BODY, headers={"Authorization": "Bearer ion_new"})
    assert (answer.status_code, answer.get_json()["title"]) == (503, "Not ready")
    assert int(answer.headers["Retry-After"]) > 0


def test_after_a_first_start_without_the_database_no_token_is_called_wrong(
    client: FlaskClient, settings: Settings, keep: Callable[[], None]
) -> None:
    Path(str(settings.database)).unlink()
    keep()
    answer = client.post("/v1/decisions", **BODY, headers={"Authorization": "Bearer ion_new"})
    assert (answer.status_code, answer.get_json()["title"]) == (503, "Not ready")


def test_a_revoked_token_is_rejected(
    client: FlaskClient, settings: Settings, authorised: Authorised, keep: Callable[[], None]
) -> None:
    headers = authorised("scheduler")
    assert client.post("/v1/decisions", **BODY, **headers).status_code == 200
    with opened_database(settings.database) as database, transaction(database, write=True) as c:
        revoke_token(c, "a scheduler")
    keep()
    assert client.post("/v1/decisions", **BODY, **headers).status_code == 401


def test_an_expired_token_is_rejected_also_without_the_database(
    client: FlaskClient,
    settings: Settings,
    keep: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = time.time()
    moment = datetime.fromtimestamp(now_s + 3600, timezone.utc)
    with opened_database(settings.database) as database, transaction(database, write=True) as c:
        token = add_token(c, "portal", "scheduler", moment)
    keep()
    headers = {"Authorization": f"Bearer {token}"}
    Path(str(settings.database)).unlink()
    assert client.post("/v1/decisions", **BODY, headers=headers).status_code == 200
    numbers = client.get("/metrics").get_data(as_text=True)
    assert "\nioncast_token_expiry_timestamp_seconds " in numbers
    monkeypatch.setattr("time.time", lambda: now_s + 3601)
    answer = client.post("/v1/decisions", **BODY, headers=headers)
    assert (answer.status_code, answer.get_json()["title"]) == (401, "Expired token")
    assert f"expired at {moment:%Y-%m-%d %H:%M} UTC" in answer.get_json()["detail"]
    assert "ioncast token add" in answer.get_json()["detail"]
    # An expired token is rejected where none is needed, too, so that its owner notices.
    assert client.get("/v1/decisions?system=a", headers=headers).status_code == 401
    numbers = client.get("/metrics").get_data(as_text=True)
    assert "\nioncast_token_expiry_timestamp_seconds " not in numbers


def test_a_token_can_ask_for_its_rights(client: FlaskClient, authorised: Authorised) -> None:
    headers = authorised("scheduler")
    rights = {"name": "a scheduler", "role": "scheduler", "expires_s": None}
    assert client.get("/v1/token", **headers).get_json() == rights
    nobody = client.get("/v1/token").get_json()
    assert nobody == {"name": None, "role": None, "expires_s": None}
    wrong = {"Authorization": "Bearer ion_wrong"}
    assert client.get("/v1/token", headers=wrong).status_code == 401


def test_a_cookie_reads_and_never_writes(
    with_settings: Callable[..., FlaskClient], authorised: Authorised
) -> None:
    token = authorised("admin")["headers"]["Authorization"].removeprefix("Bearer ")
    browser = with_settings(reading="closed")
    browser.application.extensions["ioncast"].prepared.refresh()
    assert browser.post("/login", data={"token": token}).status_code == 303
    assert browser.get("/v1/decisions?system=a").status_code == 200
    assert browser.post("/v1/decisions", **BODY).status_code == 401


@pytest.mark.usefixtures("stopped_clock")
def test_a_client_that_guesses_tokens_is_told_how_long_to_wait(
    with_settings: Callable[..., FlaskClient], keep: Callable[[], None]
) -> None:
    keep()
    client = with_settings(requests_per_minute=30)
    client.application.extensions["ioncast"].prepared.refresh()

    def guess() -> Any:
        return client.get("/v1/decisions?system=a", headers={"Authorization": "Bearer ion_x"})

    assert [guess().status_code for _ in range(4)] == [401, 401, 401, 429]
    assert 0 < int(guess().headers["Retry-After"]) <= 60
    # Questions are not counted: a scheduler may send any number.
    assert client.get("/v1/decisions?system=a").status_code == 200


@pytest.fixture
def with_settings(settings: Settings) -> Iterator[Callable[..., FlaskClient]]:
    """Make clients of services with other settings."""
    made = []

    def make(**changed: object) -> FlaskClient:
        made.append(create_app(settings.model_copy(update=changed)))
        return made[-1].test_client()

    yield make
    for app in made:
        app.extensions["ioncast"].prepared.close()
        app.extensions["ioncast"].database.dispose()


@pytest.mark.promise("service-wrong-clock")
def test_a_client_of_the_time_when_the_clock_was_ahead_is_answered_again(
    with_settings: Callable[..., FlaskClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = with_settings(requests_per_minute=2)
    now_s = time.time()
    monkeypatch.setattr("time.time", lambda: now_s + 1200 * 86_400)
    assert client.get("/v1/applications").status_code == 200
    monkeypatch.setattr("time.time", lambda: now_s)
    assert [client.get("/v1/applications").status_code for _ in range(3)] == [200, 200, 200]


@pytest.mark.usefixtures("stopped_clock")
def test_a_client_that_asks_too_often_is_told_how_long_to_wait_and_others_are_answered(
    with_settings: Callable[..., FlaskClient],
) -> None:
    client = with_settings(requests_per_minute=2)

    def ask(address: str) -> Any:
        return client.get("/v1/applications", environ_base={"REMOTE_ADDR": address})

    assert [ask("192.0.2.1").status_code for _ in range(3)] == [200, 200, 429]
    refused = ask("192.0.2.1")
    assert refused.mimetype == "application/problem+json"
    assert refused.get_json()["title"] == "Too many requests"
    assert 0 < int(refused.headers["Retry-After"]) <= 60
    assert ask("192.0.2.2").status_code == 200
    # Clients on a unix socket are the site's own programs and have no address.
    assert {ask("").status_code for _ in range(3)} == {200}


@pytest.mark.usefixtures("stopped_clock")
def test_behind_a_proxy_a_client_has_the_address_that_the_proxy_names(
    with_settings: Callable[..., FlaskClient],
) -> None:
    client = with_settings(requests_per_minute=2, proxies=1)

    def ask(forwarded: str) -> int:
        headers = {"X-Forwarded-For": forwarded}
        return client.get("/v1/applications", headers=headers).status_code

    assert [ask("192.0.2.1") for _ in range(3)] == [200, 200, 429]
    assert ask("192.0.2.2") == 200
    # The client itself sent the first address; the proxy added the last one.
    assert ask("192.0.2.3, 192.0.2.1") == 429


@pytest.mark.parametrize(
    ("proxies", "scheme", "is_secure"),
    [(1, "https", True), (1, "http", False), (0, "https", False)],
)
def test_behind_a_proxy_with_tls_the_cookie_is_for_https_only(
    with_settings: Callable[..., FlaskClient],
    authorised: Authorised,
    proxies: int,
    scheme: str,
    is_secure: bool,
) -> None:
    token = authorised("reader")["headers"]["Authorization"].removeprefix("Bearer ")
    client = with_settings(proxies=proxies)
    client.application.extensions["ioncast"].prepared.refresh()
    headers = {"Accept": "text/html", "X-Forwarded-Proto": scheme}
    answer = client.post("/login", data={"token": token}, headers=headers)
    assert answer.status_code == 303
    assert ("; Secure" in answer.headers["Set-Cookie"]) == is_secure


HERE = "http://here.example:8420"


@pytest.mark.parametrize(
    ("headers", "is_ours"),
    [
        # Programs.
        ({}, True),
        # Browsers over http.
        ({"Origin": HERE}, True),
        ({"Origin": "http://here.example"}, False),
        ({"Origin": "http://here.example:8421"}, False),
        ({"Origin": "http://evil.example:8420"}, False),
        ({"Origin": "http://here.example:8420.evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": ""}, False),
        ({"Origin": "http://["}, False),
        # Browsers over https, and on the service's machine; behind a proxy Host may be another.
        ({"Sec-Fetch-Site": "same-origin", "Origin": HERE}, True),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxy.example"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "same-site", "Origin": HERE}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "anything"}, False),
        ({"Sec-Fetch-Site": ""}, False),
    ],
)
def test_a_form_is_accepted_only_from_pages_of_this_service(
    app: Flask, headers: dict[str, str], is_ours: bool
) -> None:
    with app.test_request_context("/", method="POST", base_url=HERE, headers=headers):
        if is_ours:
            reject_other_origins(request)
            return
        with pytest.raises(
            RequestError, match=r"the form is not from a page of here\.example:8420"
        ):
            reject_other_origins(request)


@pytest.mark.parametrize("path", ["/v1/decisions?system=a", "/healthz", "/nowhere"])
def test_every_answer_has_the_headers_that_keep_browsers_from_harm(
    client: FlaskClient, path: str
) -> None:
    headers = client.get(path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'unsafe" not in policy


def test_no_proxy_or_browser_stores_an_answer_to_a_program(client: FlaskClient) -> None:
    assert client.get("/v1/decisions?system=a").headers["Cache-Control"] == "no-store"
