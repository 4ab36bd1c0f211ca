"""The service keeps what its OpenAPI document promises, whatever it is sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
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

# Together several thousand requests.
_CASES_OF_AN_OPERATION = 120
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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Flask, str]]:
    """The application with the demonstration's data, and an admin's token."""
    folder = tmp_path_factory.mktemp("contract")
    location = str(folder / "contract.sqlite")
    fill(location)
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, "contract", "admin")
    made = Settings(database=location, state=str(folder / "state"), requests_per_minute=2**31 - 1)
    keeper = Keeper(made)
    keeper.round(time.time())
    keeper.close()
    app = create_app(made)
    service: Service = app.extensions["ioncast"]
    service.prepared.refresh()
    yield app, token
    service.children.close()
    service.prepared.close()
    service.spool.close()
    service.database.dispose()


def operations() -> list[tuple[str, str]]:
    paths = document(create_app(Settings()))["paths"]
    return [(path, method) for path, methods in paths.items() for method in methods]


def test_the_document_is_openapi_3_1(served: tuple[Flask, str]) -> None:
    found = document(served[0])
    assert found["openapi"] == "3.1.0"
    validate(found)


@pytest.mark.parametrize(("path", "method"), operations())
def test_every_operation_answers_as_it_is_promised(
    served: tuple[Flask, str], path: str, method: str
) -> None:
    app, token = served
    operation = schemathesis.openapi.from_wsgi("/openapi.json", app)[path][method]

    @given(
        case=operation.as_strategy(GenerationMode.POSITIVE)
        | operation.as_strategy(GenerationMode.NEGATIVE)
    )
    @settings(max_examples=_CASES_OF_AN_OPERATION, suppress_health_check=list(HealthCheck))
    def check(case: schemathesis.Case) -> None:
        answer = case.call(headers={"Authorization": f"Bearer {token}"})
        # An empty value is none, so that forms and scripts may leave one blank.
        query = parse_qsl(urlsplit(answer.request.url).query, keep_blank_values=True)
        may_pass = any(not value for _, value in query)
        checks = [one for one in _CHECKS if not (may_pass and one is negative_data_rejection)]
        case.validate_response(answer, checks=checks)

    check()
