"""The service keeps what its OpenAPI document promises, whatever it is sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, given, settings
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

from benchdb.store import opened_database, transaction
from benchdb.tokens import add_token
from predictor.service.app import create_app
from predictor.service.context import Service
from predictor.service.demo import fill
from predictor.service.keeper import Keeper
from predictor.service.openapi import document
from predictor.service.settings import Settings
from tests.support.postgresql import Server

# Together several thousand requests.
_CASES_OF_AN_OPERATION = {"sqlite": 90, "postgresql": 30}
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


@dataclass(frozen=True)
class Contract:
    """The application, an admin's token, and how many requests are enough for an operation."""

    app: Flask
    token: str
    cases: int


@pytest.fixture(scope="module", params=_CASES_OF_AN_OPERATION)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Contract]:
    """The application with the demonstration's data."""
    folder = tmp_path_factory.mktemp("contract")
    with ExitStack() as stack:
        location = str(folder / "contract.sqlite")
        if request.param == "postgresql":
            server: Server = request.getfixturevalue("postgresql")
            location = stack.enter_context(server.database("contract"))
        fill(location)
        with opened_database(location) as database, transaction(database, write=True) as begun:
            token = add_token(begun, "contract", "admin")
        most = 2**31 - 1
        told = Settings(database=location, state=str(folder), requests_per_minute=most)
        keeper = Keeper(told)
        keeper.round(time.time())
        keeper.close()
        app = create_app(told)
        service: Service = app.extensions["ioncast"]
        service.prepared.refresh()
        yield Contract(app, token, _CASES_OF_AN_OPERATION[request.param])
        service.children.close()
        service.prepared.close()
        service.spool.close()
        service.database.dispose()


def operations() -> list[tuple[str, str]]:
    paths = document(create_app(Settings()))["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


def test_the_document_is_openapi_3_1(served: Contract) -> None:
    found = document(served.app)
    assert found["openapi"] == "3.1.0"
    validate(found)


@pytest.mark.parametrize(("path", "method"), operations())
def test_every_operation_answers_as_it_is_promised(
    served: Contract, path: str, method: str
) -> None:
    operation = schemathesis.openapi.from_wsgi("/openapi.json", served.app)[path][method]

    @given(
        case=operation.as_strategy(GenerationMode.POSITIVE)
        | operation.as_strategy(GenerationMode.NEGATIVE)
    )
    @settings(max_examples=served.cases, suppress_health_check=list(HealthCheck))
    def check(case: schemathesis.Case) -> None:
        answer = case.call(headers={"Authorization": f"Bearer {served.token}"})
        # An empty value is none, so that forms and scripts may leave one blank.
        query = parse_qsl(urlsplit(answer.request.url).query, keep_blank_values=True)
        may_pass = any(not value for _, value in query)
        checks = [one for one in _CHECKS if not (may_pass and one is negative_data_rejection)]
        case.validate_response(answer, checks=checks)

    check()
