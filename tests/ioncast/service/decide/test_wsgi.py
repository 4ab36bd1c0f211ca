"""The process that only answers schedulers answers each request as the whole service does."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import product
from typing import Any
from urllib.parse import urlencode

import pytest
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from werkzeug.test import Client, TestResponse

from ioncast.service.context import Service
from ioncast.service.decide.wsgi import application

PATH = "/v1/decisions"
HACC = {"system": "testbed", "user": "demo", "executable": "/opt/bin/hacc_io_write_posix_fpp"}
SIZED = {**HACC, "tasks": 16, "nodes": 8}
SCRIPT = "#!/bin/bash\n#SBATCH -n 16\nsrun -n 16 ./hacc_io_write_posix_fpp 100000 out\n"


@pytest.fixture
def alone(service: Service) -> Client:
    """A client of the application that only answers decisions."""
    return Client(application(service))


def told(answer: TestResponse) -> tuple[int, dict[str, Any], bytes]:
    """Status, headers and body without the decision's id; the methods of Allow have no order."""
    headers: dict[str, Any] = dict(answer.headers)
    number = headers.get("X-Decision-Id", "")
    if answer.mimetype == "application/json" and answer.data:
        number = json.loads(answer.data)["decision_id"]
    if number:
        assert len(number) == 32
        headers = {name: value.replace(number, "ID") for name, value in headers.items()}
    if "Allow" in headers:
        headers["Allow"] = sorted(headers["Allow"].split(", "))
    return answer.status_code, headers, answer.data.replace(number.encode() or b"\0", b"ID")


ACCEPTED = ["application/json", "text/plain", "text/plain;q=0.5, */*", ""]
QUESTIONS: list[dict[str, Any]] = [
    SIZED,
    {**HACC, "tasks": "17", "available": "2", "job_id": "4711"},
    {"system": "testbed", "user": "demo", "name": "hacc-io"},
    {"system": "testbed", "executable": "/nobody/knows it", "name": "Größe & more"},
    {"system": "elsewhere", "tasks": ""},
    {},
    {"system": "x" * 201},
    {"system": "a", "tasks": "9" * 5000},
    {"system": "a", "user": "a\0b"},
    {"system": "a", "availble": 4},
    {"system": "a", "tasks": ["", "x"]},
]
BODIES: list[dict[str, Any]] = [
    {"json": {**SIZED, "script": SCRIPT}},
    {"json": {"system": "testbed", "user": "demo", "tasks": 16, "script": SCRIPT}},
    {"json": {"system": "testbed", "script": "srun ./unheard_of\n", "name": "hacc-io"}},
    {"json": {"system": "testbed", "script": "x" * (1 << 20) + "x"}},
    {"json": {"system": "testbed", "tasks": "16"}},
    {"json": ["system"]},
    {"data": b"{", "content_type": "application/json"},
    {"data": b"\xff\x00", "content_type": "application/json"},
    {"data": b" " * (5 << 20), "content_type": "application/json"},
    {"data": b"system=testbed", "content_type": "application/x-www-form-urlencoded"},
    {"data": {"system": "testbed", "script": "srun x"}},
    {"data": b"system"},
]


@pytest.mark.slow
@pytest.mark.parametrize("role", [None, "reader", "scheduler"])
def test_questions_by_get(
    client: FlaskClient,
    alone: Client,
    filled: None,
    authorised: Callable[[str], dict[str, Any]],
    role: str | None,
) -> None:
    token = authorised(role)["headers"] if role else {}
    for question, accepted in product(QUESTIONS, ACCEPTED):
        headers = {**token, "Accept": accepted} if accepted else token
        asked: dict[str, Any] = {"query_string": question, "headers": headers}
        assert told(alone.get(PATH, **asked)) == told(client.get(PATH, **asked))


@pytest.mark.slow
@pytest.mark.parametrize("role", [None, "reader", "scheduler", "admin"])
def test_questions_by_post(
    client: FlaskClient,
    alone: Client,
    filled: None,
    authorised: Callable[[str], dict[str, Any]],
    role: str | None,
) -> None:
    headers = authorised(role)["headers"] if role else {}
    for sent in BODIES:
        answer = alone.post(PATH, headers=headers, **sent)
        assert told(answer) == told(client.post(PATH, headers=headers, **sent))


@pytest.mark.slow
@pytest.mark.parametrize("header", ["Bearer wrong", "bearer", "Basic eDp5", "Bearer \xff", ""])
def test_a_token_that_is_not_valid(
    client: FlaskClient, alone: Client, filled: None, header: str
) -> None:
    for method in ("GET", "POST"):
        asked: dict[str, Any] = {
            "method": method,
            "query_string": {"system": "testbed"},
            "environ_overrides": {"HTTP_AUTHORIZATION": header},
        }
        answer = alone.open(PATH, **asked)
        assert answer.status_code == 401
        assert told(answer) == told(client.open(PATH, **asked))


def change(service: Service, **settings: object) -> None:
    """Change settings of both applications, whose resources are the same."""
    object.__setattr__(service, "settings", service.settings.model_copy(update=settings))


def test_a_closed_service_needs_a_token(
    client: FlaskClient, alone: Client, service: Service
) -> None:
    change(service, reading="closed")
    answer = alone.get(PATH, query_string=HACC)
    assert answer.status_code == 401
    of_web = client.get(PATH, query_string=HACC)
    # Only there a session could have opened it.
    assert of_web.headers.pop("Vary") == "Cookie"
    assert told(answer) == told(of_web)


@pytest.mark.usefixtures("stopped_clock")
def test_too_many_wrong_tokens_of_a_client(
    client: FlaskClient, alone: Client, filled: None, service: Service
) -> None:
    change(service, requests_per_minute=20)
    wrong: dict[str, Any] = {
        "headers": {"Authorization": "Bearer wrong"},
        "environ_overrides": {"REMOTE_ADDR": "192.0.2.1"},
    }
    assert [alone.get(PATH, **wrong).status_code for _ in range(3)] == [401, 401, 429]
    assert told(alone.get(PATH, **wrong)) == told(client.get(PATH, **wrong))


def test_other_methods(client: FlaskClient, alone: Client, filled: None) -> None:
    for method in ("HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "BREW"):
        asked: dict[str, Any] = {"method": method, "query_string": SIZED}
        assert told(alone.open(PATH, **asked)) == told(client.open(PATH, **asked))


@pytest.mark.parametrize("path", ["/v1/decisions/", "/v1//decisions", "/v1/decision"])
def test_another_address(client: FlaskClient, alone: Client, path: str) -> None:
    answer, expected = alone.get(path), client.get(path)
    assert told(answer) == told(expected)


def test_pages_and_numbers_are_elsewhere(alone: Client) -> None:
    for path in ("/", "/healthz", "/metrics", "/v1/systems", "/assets/style.css"):
        answer = alone.get(path)
        assert (answer.status_code, answer.mimetype) == (404, "application/problem+json")


def test_a_defect_is_one_problem_document(
    client: FlaskClient, alone: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("ioncast.service.decide.replying.default_answer", fail)
    answer = alone.get(PATH, query_string={"system": "elsewhere"})
    assert answer.status_code == 500
    assert told(answer) == told(client.get(PATH, query_string={"system": "elsewhere"}))


NAMES = st.sampled_from(
    ["system", "user", "executable", "name", "nodes", "tasks", "available", "x"]
)
VALUES = st.one_of(
    st.sampled_from(["testbed", "demo", "hacc-io", "16", "0", "-1", "4.5", ""]), st.text(max_size=9)
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=8,
)
unhurried = hypothesis_settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@unhurried
@given(
    query=st.lists(st.tuples(NAMES, VALUES), max_size=5),
    accepted=st.sampled_from(["*/*", "text/plain", "text/*", "application/json;q=0", "é", ",;="]),
)
def test_any_question_by_get(
    client: FlaskClient,
    alone: Client,
    filled: None,
    query: list[tuple[str, str]],
    accepted: str,
) -> None:
    asked: dict[str, Any] = {"query_string": query_of(query), "headers": {"Accept": accepted}}
    assert told(alone.get(PATH, **asked)) == told(client.get(PATH, **asked))


def query_of(pairs: list[tuple[str, str]]) -> str:
    return urlencode([(name, value.encode("utf-8", "surrogatepass")) for name, value in pairs])


@pytest.fixture
def token(authorised: Callable[[str], dict[str, Any]]) -> dict[str, str]:
    """The header of a scheduler."""
    headers: dict[str, str] = authorised("scheduler")["headers"]
    return headers


@unhurried
@given(body=st.one_of(JSON.map(json.dumps).map(str.encode), st.binary(max_size=40)))
def test_any_question_by_post(
    client: FlaskClient,
    alone: Client,
    filled: None,
    token: dict[str, str],
    body: bytes,
) -> None:
    headers = {**token, "Content-Type": "application/json"}
    asked: dict[str, Any] = {"data": body, "headers": headers}
    assert told(alone.post(PATH, **asked)) == told(client.post(PATH, **asked))
