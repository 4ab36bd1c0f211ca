"""The service keeps the promises of its OpenAPI document, whatever a client sends."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from openapi_spec_validator import validate
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    ensure_resource_availability,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)
from sqlalchemy import make_url

from benchdb.store.database import opened_database, transaction
from benchdb.store.system_changes import note_change
from ioncast.service.background.process import Keeper
from ioncast.service.context import Service
from ioncast.service.running.demo_data import NODES, SYSTEM, TASKS, TESTBED, USER
from ioncast.service.settings import Settings
from ioncast.service.store.tokens import add_token
from ioncast.service.web.app import create_app
from ioncast.service.web.http.openapi import document
from tests.support.databases import BOTH_DATABASES
from tests.support.examples import examples
from tests.support.postgresql import Server

pytestmark = [
    pytest.mark.slow,
    # Werkzeug does not close the files of a form that it rejects because it has too many.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <function SpooledTemporaryFile"
        ":pytest.PytestUnraisableExceptionWarning"
    ),
]

# A case takes ten milliseconds, half of them to draw it. Answers from a separate process take
# several times as long.
_CASES_OF_AN_OPERATION = {"sqlite": 110, "postgresql": 30}
_SEVERAL_THOUSAND = 3_000
_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
    ensure_resource_availability,
]
# All measurements of the demonstration are newer.
CHANGED = "2001-01-01"
_Known = Mapping[str, list[Any]]


@dataclass(frozen=True)
class Contract:
    """The application, and the values to ask it with.

    Attributes
    ----------
    app : Flask
        The application with the demonstration's data.
    schema : schemathesis.BaseSchema
        The application's own document.
    admin, reader : str
        Tokens.
    known : mapping of str to sequence
        Values that the application knows, by the names of parameters and fields.
    cases : int
        The number of requests that is enough for an operation.
    """

    app: Flask
    schema: schemathesis.BaseSchema
    admin: str
    reader: str
    known: _Known
    cases: int


@pytest.fixture(scope="module", params=BOTH_DATABASES)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Contract]:
    """The application with prepared answers for the demonstration's data."""
    folder = tmp_path_factory.mktemp("contract")
    with ExitStack() as stack:
        location = str(folder / "contract.sqlite")
        if request.param == "postgresql":
            server: Server = request.getfixturevalue("postgresql")
            location = stack.enter_context(server.database("contract"))
            name = make_url(location).database
            assert name is not None
            server.copy(request.getfixturevalue("demo_on_postgresql"), name)
        else:
            shutil.copy(request.getfixturevalue("demo_on_sqlite"), location)
        with opened_database(location) as database, transaction(database, write=True) as begun:
            admin, reader = (add_token(begun, role, role) for role in ("admin", "reader"))
            note_change(begun, SYSTEM, since=CHANGED, why="new disks")
        most = 2**31 - 1
        patience: dict[str, Any] = {"patience_s": 60, "upload_s": 600}
        patience["store"] = str(request.getfixturevalue("site_store"))
        told = Settings(database=location, state=str(folder), requests_per_minute=most, **patience)
        keep_up(told)
        app = create_app(told)
        service: Service = app.extensions["ioncast"]
        service.prepared.refresh()
        assert service.prepared.entries
        yield Contract(
            app,
            loaded(app),
            admin,
            reader,
            known_values(app.test_client()),
            examples(_CASES_OF_AN_OPERATION[request.param]),
        )
        service.prepared.close()
        service.spool.close()
        service.database.dispose()


def loaded(app: Flask) -> schemathesis.BaseSchema:
    """The document that an application serves."""
    text = app.test_client().get("/openapi.json").text
    schema = schemathesis.openapi.from_dict(json.loads(text, object_hook=without_prefix_items))
    # A form with too many files is rejected as too large, too.
    schema.config.checks.negative_data_rejection.expected_statuses.append("413")
    schema.app = app
    return schema


def without_prefix_items(described: dict[str, Any]) -> dict[str, Any]:
    """Replace them: schemathesis 4.32 makes an invalid schema of them, and rejects that."""
    if "prefixItems" not in described:
        return described
    kept = {name: value for name, value in described.items() if name != "prefixItems"}
    return {**kept, "items": {"anyOf": described["prefixItems"]}}


def keep_up(told: Settings) -> None:
    """Prepare all answers."""
    keeper = Keeper(told)
    keeper.round(time.time(), time.time())
    while keeper.is_behind:
        keeper.round(time.time(), time.time())
    keeper.close()


def known_values(client: FlaskClient) -> dict[str, list[Any]]:
    """Values that the application knows, by the names of parameters and fields."""

    def items(path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.get(path).get_json()["items"]
        assert found
        return found

    applications = items("/v1/applications")
    paths = [f"/v1/applications/{each['id']}" for each in applications]
    runs = [run for path in paths for run in items(f"{path}/runs")]
    decisions = [items(f"{path}/decisions")[0] for path in paths]
    configurations = items("/v1/configurations")
    commands = [each["command"] for each in configurations]
    executables = [each["executable"] for each in applications]
    logs = sorted((TESTBED / "logs").iterdir())
    rows = [f"{n},0,{50 + n},ior -a POSIX -w -F -b 4m -t 1m" for n in (0, 4)]
    return {
        "system": [SYSTEM],
        "application": [each["id"] for each in applications],
        "executable": executables,
        "search": [each["program"] for each in applications],
        "user": [USER],
        "name": sorted({run["name"] for run in runs}),
        "nodes": [NODES],
        "tasks": [TASKS],
        "available": [0, 4],
        "ran_with": [0, 4],
        "engine": ["ior"],
        "script": [f"#!/bin/sh\nsrun {each} out\n" for each in executables],
        "run_id": [run["id"] for run in runs],
        "phases": [run["phases"] for run in runs],
        "configuration": [each["id"] for each in configurations],
        "command": commands,
        "measurements": [
            [
                {"command": commands[0], "tasks": TASKS, "io_nodes": n, "bandwidth_mib_s": 50.0}
                for n in (0, 4)
            ]
        ],
        "curves": [
            [{"command": each, "cells": [{"io_nodes": 4, "bandwidths_mib_s": [50.0, 51.0]}]}]
            for each in commands
        ],
        "configurations": [[{"command": each} for each in commands]],
        # The first ones have an outcome, with which another one is in conflict.
        "job_id": [
            *(each["job_id"] for each in items("/v1/outcomes")[:5]),
            *(run["job_id"] for run in runs if run["job_id"]),
            *(f"new-{number}" for number in range(10)),
        ],
        "decision_id": [each["id"] for each in decisions],
        "jobs": [[{"id": each["id"], "decision_id": each["id"]} for each in decisions]],
        "log": [[log.read_bytes()] for log in logs],
        "since": [f"200{year}-0{month}-01" for year in range(2, 10) for month in range(1, 10)],
        "why": ["a new file system"],
        "file": ["\n".join(["io_nodes,repetition,bandwidth_mib_s,command", *rows]).encode()],
    }


def known_in_path(path: str, known: _Known) -> _Known:
    """Values of the parameters whose meaning depends on the path."""
    after = {"runs": known["run_id"], "decisions": known["decision_id"]}
    number = "decision_id" if "/decisions/" in path else "application"
    named = {"name": ["totals", "users"]} if path.startswith("/v1/queries/") else {}
    return {"number": known[number], "after": after.get(path.rsplit("/", 1)[-1], [0, 1]), **named}


def operations() -> list[tuple[str, str, bool]]:
    """Paths and methods, and whether they take any values."""
    paths = document(create_app(Settings()))["paths"]
    return [
        (path, method, bool(described["parameters"] or "requestBody" in described))
        for path, methods in paths.items()
        for method, described in methods.items()
    ]


# Rounds of examples, of which one is accepted at last.
_MOST_ROUNDS = 10


@st.composite
def telling(
    draw: st.DrawFn, cases: st.SearchStrategy[schemathesis.Case], known: _Known
) -> schemathesis.Case:
    """Cases with known values in the place of most random ones."""
    case = draw(cases)
    for place in ("path_parameters", "query", "body"):
        told = getattr(case, place)
        if isinstance(told, dict):
            chosen = {
                name: draw(st.sampled_from([*4 * known.get(name, []), value]))
                for name, value in told.items()
            }
            setattr(case, place, chosen)
    return case


def test_the_document_is_openapi_3_1(served: Contract) -> None:
    found = document(served.app)
    assert found["openapi"] == "3.1.0"
    validate(found)


def test_jobs_with_and_without_a_diagnosis_are_known(served: Contract) -> None:
    client = served.app.test_client()
    jobs = [client.get(f"/v1/jobs/{job}").get_json() for job in served.known["job_id"]]
    known = [item["diagnosis"] is not None for job in jobs for item in job.get("items", ())]
    assert set(known) == {True, False}


def test_the_document_tells_how_numbers_are_written_in_a_form(served: Contract) -> None:
    operation = document(served.app)["paths"]["/v1/predictions"]["post"]
    form = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    pattern = form["properties"]["io_nodes"]["pattern"]
    told = {text: bool(re.search(pattern, text)) for text in ("0,4", "8", "sources", "0,", "")}
    assert told == {"0,4": True, "8": True, "sources": False, "0,": False, "": False}


@pytest.mark.parametrize("nodes", [True, "8", 8])
def test_numbers_in_json_are_numbers(served: Contract, nodes: object) -> None:
    answer = served.app.test_client().post(
        "/v1/decisions",
        json={"system": SYSTEM, "nodes": nodes},
        headers={"Authorization": f"Bearer {served.admin}"},
    )
    assert answer.status_code == (200 if nodes == 8 else 422)


def test_several_thousand_requests_are_sent_each_night() -> None:
    """Check that the tests below send enough together."""
    asked = sum(takes for *_, takes in operations())
    assert asked * sum(_CASES_OF_AN_OPERATION.values()) >= _SEVERAL_THOUSAND


@pytest.mark.parametrize(("path", "method", "takes"), operations())
def test_every_operation_answers_as_promised(
    served: Contract, path: str, method: str, takes: bool
) -> None:
    operation = served.schema[path][method]
    known = {**served.known, **known_in_path(path, served.known)}
    made_up = operation.as_strategy(GenerationMode.POSITIVE)
    wrong = operation.as_strategy(GenerationMode.NEGATIVE)
    answers: Counter[int] = Counter()

    def send(case: schemathesis.Case, token: str | None, *, may_pass: bool) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = case.call(headers=headers)
        answers[answer.status_code] += 1
        # An empty value counts as missing, so that forms and scripts may leave a field blank.
        query = parse_qsl(urlsplit(answer.request.url).query, keep_blank_values=True)
        may_pass = may_pass or any(not value for _, value in query)
        checks = [one for one in _CHECKS if not (may_pass and one is negative_data_rejection)]
        case.validate_response(answer, checks=checks)

    tokens = st.sampled_from([*4 * [served.admin], served.reader, None])

    @given(case=made_up | wrong, token=tokens)
    @settings(max_examples=-(-served.cases // 2), suppress_health_check=list(HealthCheck))
    def check_what_is_made_up(case: schemathesis.Case, token: str | None) -> None:
        send(case, token, may_pass=False)

    @given(case=telling(made_up, known), token=tokens)
    @settings(max_examples=-(-served.cases // 2), suppress_health_check=list(HealthCheck))
    def check_what_is_known(case: schemathesis.Case, token: str | None) -> None:
        send(case, token, may_pass=True)

    def is_accepted() -> bool:
        return any(200 <= status < 300 for status in answers)

    check_what_is_made_up()
    # Each change of the code gives other examples, of which a dozen may all be rejected.
    for number in range(_MOST_ROUNDS):
        seed(number)(check_what_is_known)()
        if is_accepted():
            break
    assert is_accepted(), answers
    # An operation without values has only a few different requests.
    assert not takes or answers.total() >= served.cases
