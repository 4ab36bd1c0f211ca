"""JSON has one kind of number: 8.0 is the integer 8, as JSON Schema says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, get_args

import pytest
from flask import Flask
from flask.testing import FlaskClient
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from ioncast.service.settings import Settings
from ioncast.service.web.app import create_app
from ioncast.service.web.http.framework import Operation


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """All models in a type."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    for part in get_args(annotation):
        yield from models_in(part)


def whole_numbers(schema: dict[str, Any]) -> Iterator[int]:
    """A number that a schema accepts, for each alternative that is an integer."""
    for each in schema.get("anyOf", [schema]):
        if each.get("type") == "integer":
            least = each.get("minimum", 0)
            yield max(least, min(8, each.get("maximum", 8)))


def bodies(app: Flask) -> set[type[BaseModel]]:
    operations = [getattr(view, "operation", None) for view in app.view_functions.values()]
    return {about.body for about in operations if isinstance(about, Operation) and about.body}


def fields() -> list[Any]:
    """Every field of a body of a request that accepts an integer."""
    app = create_app(Settings(database=":memory:", state="/nonexistent"))
    models = {model for body in bodies(app) for model in models_in(body)}
    return [
        pytest.param(field, number, id=f"{model.__name__}.{name}")
        for model in sorted(models, key=lambda model: model.__name__)
        for name, field in model.model_fields.items()
        for number in whole_numbers(TypeAdapter(Annotated[field.annotation, field]).json_schema())
    ]


@pytest.mark.parametrize(("field", "number"), fields())
def test_every_whole_number_of_a_request_may_be_an_integral_float(
    field: FieldInfo, number: int
) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[field.annotation, field])
    found = adapter.validate_json(f"{number}.0", strict=True)
    assert (found, type(found)) == (number, int)
    with pytest.raises(ValidationError):
        adapter.validate_json(f"{number}.5", strict=True)


def test_an_allocation_of_integral_floats_is_that_of_integers(client: FlaskClient) -> None:
    def allocated(number: Callable[[int], float]) -> Any:
        jobs = [
            {"id": "a", "curve": {"0": 10.0, "4": 60.0}, "nodes": number(1), "current": number(4)},
            {"id": "b", "curve": {"0": 10.0, "4": 70.0}, "nodes": number(2)},
        ]
        answer = client.post("/v1/allocations", json={"pool": number(4), "jobs": jobs})
        assert answer.status_code == 200, answer.text
        return answer.json

    assert allocated(float) == allocated(int)


@pytest.mark.parametrize("path", ["/v1/applications", "/v1/outcomes", "/v1/configurations"])
def test_an_empty_parameter_counts_as_absent(client: FlaskClient, path: str) -> None:
    assert client.get(f"{path}?system=").json == client.get(path).json


def test_an_empty_system_that_is_needed_is_missing(client: FlaskClient) -> None:
    answer = client.get("/v1/decisions?system=&executable=/opt/app")
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["detail"] == "query.system: is missing"


def test_an_empty_parameter_of_an_unknown_name_is_a_mistake(client: FlaskClient) -> None:
    answer = client.get("/v1/outcomes?sytem=")
    assert answer.status_code == 422
    assert answer.json is not None
    assert answer.json["detail"] == "query.sytem: is unknown"
