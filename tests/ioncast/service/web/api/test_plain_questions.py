"""The schedulers' usual question is answered before Flask, and as Flask would answer it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ioncast.service.decide.spool import spool_files, spool_folder
from ioncast.service.settings import Settings
from ioncast.service.web.http.given import parameters

PATH = "/v1/decisions"
HACC = {"system": "testbed", "user": "demo", "executable": "/opt/bin/hacc_io_write_posix_fpp"}


def told(answer: TestResponse) -> tuple[int, dict[str, str], str]:
    """Status, headers and body without the decision's id, which differs each time."""
    number = answer.headers.get("X-Decision-Id") or answer.get_json()["decision_id"]
    assert len(number) == 32
    headers = {name: value.replace(number, "ID") for name, value in answer.headers.items()}
    return answer.status_code, headers, answer.text.replace(number, "ID")


@pytest.mark.slow
@pytest.mark.parametrize("accepted", ["application/json", "text/plain"])
@pytest.mark.parametrize(
    "question",
    [
        {**HACC, "tasks": "16", "nodes": "8"},
        {**HACC, "tasks": "17", "available": "2", "job_id": "4711"},
        {"system": "testbed", "user": "demo", "name": "hacc-io"},
        {"system": "testbed", "executable": "/nobody/knows it", "name": "Größe & more"},
        {"system": "elsewhere", "tasks": ""},
    ],
)
def test_it_is_answered_with_and_without_a_token(
    client: FlaskClient,
    filled: None,
    authorised: Callable[[str], dict[str, Any]],
    question: dict[str, str],
    accepted: str,
) -> None:
    token = authorised("reader")["headers"]
    by_flask = client.get(PATH, query_string=question, headers={**token, "Accept": accepted})
    before_flask = client.get(PATH, query_string=question, headers={"Accept": accepted})
    assert told(before_flask) == told(by_flask)


@pytest.mark.parametrize("accepted", ["application/json", "text/plain", "*/*"])
def test_flask_has_no_part_in_it(
    app: Flask, client: FlaskClient, monkeypatch: pytest.MonkeyPatch, accepted: str
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("Flask was asked")

    monkeypatch.setattr(app, "request_context", refuse)
    asked = client.get(PATH, query_string=HACC, headers={"Accept": accepted})
    assert asked.status_code in {200, 204}


def counted(client: FlaskClient, status: int) -> float:
    name = f'ioncast_request_seconds_count{{endpoint="decisions.ask",status="{status}"}}'
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(name))


def test_it_is_counted_like_any_other(client: FlaskClient) -> None:
    before = counted(client, 200)
    for accepted in ("application/json", "text/plain;q=0.1, application/json"):
        answer = client.get(PATH, query_string=HACC, headers={"Accept": accepted})
        assert answer.mimetype == "application/json"
    assert counted(client, 200) == before + 2


def test_a_defect_is_reported_and_counted_like_any_other(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret")

    before = counted(client, 500)
    monkeypatch.setattr("ioncast.service.decide.replying.default_answer", fail)
    answer = client.get(PATH, query_string={"system": "elsewhere"})
    assert (answer.status_code, answer.mimetype) == (500, "application/problem+json")
    assert "secret" not in answer.text
    assert "a secret" in caplog.text
    assert counted(client, 500) == before + 1


def test_each_decision_has_an_id_of_its_own(client: FlaskClient, settings: Settings) -> None:
    numbers = [client.get(PATH, query_string=HACC).get_json()["decision_id"] for _ in range(50)]
    assert numbers == sorted(set(numbers))
    [file] = spool_files(spool_folder(settings.state))
    lines = file.read_text().splitlines()
    assert [line[len('{"id":"') :][:32] for line in lines] == numbers


@pytest.mark.parametrize(
    "query",
    [
        "",
        "&&",
        "system=a&user=b",
        "system=a+b&executable=%2Fopt%2Fapp%20x",
        "name=a%26b%3Dc&a=b=c&d",
        "a%20b=1&name=&=2",
        "name=Gr%C3%B6%C3%9Fe&user=%FF%zz%",
    ],
)
def test_parameters_are_read_as_in_other_operations(query: str) -> None:
    assert list(parameters(query)) == parse_qsl(query, keep_blank_values=True)


def test_parameters_that_nobody_encoded_are_read_as_utf_8() -> None:
    as_wsgi_has_it = os.fsencode("name=Größe").decode("latin-1")
    assert list(parameters(as_wsgi_has_it)) == [("name", "Größe")]
