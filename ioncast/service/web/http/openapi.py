"""The OpenAPI 3.1 document of all operations (see `ioncast.service.web.http.framework`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from inspect import getdoc
from typing import Any, cast

from flask import Flask, current_app
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema
from werkzeug.routing import Rule

from ioncast.service.web.http.framework import FORM, Operation
from ioncast.service.web.http.given import JSON
from ioncast.service.web.http.problems import Problem

_TEMPLATE = "#/components/schemas/{model}"
_PROBLEM_TYPE = "application/problem+json"
_ARGUMENT = re.compile(r"<(?:(?P<converter>[^:<>]+):)?(?P<name>[^<>]+)>")
_TOKEN = {"type": "http", "scheme": "bearer", "description": "From `ioncast token add`."}
_TITLES = {
    400: "Bad request",
    401: "A token is needed, or the token is unknown",
    403: "The token's role is too low",
    404: "Not found",
    408: "The body of the request comes too slowly",
    409: "It contradicts a stored value",
    413: "The request is too large",
    415: "The request has another media type",
    422: "A value, a file or a log cannot be used",
    429: "Too many requests; Retry-After says when to ask again",
    503: "The database is unavailable or the service is busy; Retry-After says when to ask again",
}
_Schemas = dict[tuple[type[BaseModel], JsonSchemaMode], dict[str, Any]]


def document_text() -> str:
    """The document of the current application as JSON, made once."""
    return _text(cast("Flask", current_app._get_current_object()))  # type: ignore[attr-defined]


@cache
def _text(app: Flask) -> str:
    return json.dumps(document(app))


def document(app: Flask) -> dict[str, Any]:
    """Describe every operation of an application."""
    found = [
        (rule, method, about, getdoc(app.view_functions[rule.endpoint]) or "")
        for rule, about in _operations(app)
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})
    ]
    schemas, components = _schemas([about for _, _, about, _ in found])
    paths: dict[str, dict[str, Any]] = {}
    for rule, method, about, text in found:
        described = _described(rule, method, about, text, schemas)
        paths.setdefault(_ARGUMENT.sub(r"{\g<name>}", rule.rule), {})[method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "ioncast",
            "version": version("ioncast"),
            "description": "Predicts an application's I/O bandwidth with each number of I/O nodes,"
            " and tells schedulers how many to give it. Every error is a problem document"
            " (RFC 9457).",
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
        },
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components, "securitySchemes": {"token": _TOKEN}},
    }


def _operations(app: Flask) -> Iterator[tuple[Rule, Operation]]:
    for rule in app.url_map.iter_rules():
        about = getattr(app.view_functions[rule.endpoint], "operation", None)
        if about is not None:
            yield rule, about


def _schemas(operations: list[Operation]) -> tuple[_Schemas, dict[str, Any]]:
    """The schemas of all models: references by model and direction, and the schemas by name."""
    wanted: set[tuple[type[BaseModel], JsonSchemaMode]] = {(Problem, "serialization")}
    for about in operations:
        given = filter(None, (about.query, about.body, about.form))
        wanted.update((model, "validation") for model in given)
        answered = (model for model in about.answers.values() if isinstance(model, type))
        wanted.update((model, "serialization") for model in answered)
    ordered = sorted(wanted, key=lambda each: (each[0].__name__, each[1]))
    references, found = models_json_schema(ordered, ref_template=_TEMPLATE)
    return cast("_Schemas", references), found["$defs"]


def _described(
    rule: Rule, method: str, about: Operation, text: str, schemas: _Schemas
) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": rule.endpoint.replace(".", "_"),
        "tags": [rule.endpoint.split(".")[0]],
        "summary": about.summary,
        "description": text,
        "parameters": [*_path_parameters(rule), *_query_parameters(about)],
        "responses": dict(_responses(about, schemas)),
    }
    if content := _content(about, schemas):
        described["requestBody"] = {"required": True, "content": content}
    if about.role is not None:
        # Reading may be open, then it needs no token.
        open_: list[dict[str, list[str]]] = [{}] if about.role == "reader" else []
        described["security"] = [{"token": []}, *open_]
        described["description"] += f"\n\nRole: {about.role}."
    return described


def _path_parameters(rule: Rule) -> Iterator[dict[str, Any]]:
    for match in _ARGUMENT.finditer(rule.rule):
        number = (match["converter"] or "").startswith("int")
        schema = {"type": "integer", "minimum": 0} if number else {"type": "string"}
        yield {"name": match["name"], "in": "path", "required": True, "schema": schema}


def _query_parameters(about: Operation) -> Iterator[dict[str, Any]]:
    if about.query is None:
        return
    schema = about.query.model_json_schema()
    if more := schema.get("additionalProperties"):
        yield {
            "name": "parameters",
            "in": "query",
            "required": False,
            "description": schema["description"],
            "schema": {"type": "object", "additionalProperties": more},
            "style": "form",
            "explode": True,
        }
    for name, described in schema.get("properties", {}).items():
        yield {
            "name": name,
            "in": "query",
            "required": name in schema.get("required", ()),
            "description": described.pop("description", ""),
            "schema": _without_null(described),
        }


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value in a URL or a form: it may be missing, but it is never null."""
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) != 1:
        return schema
    kept = {name: value for name, value in schema.items() if name not in {"anyOf", "default"}}
    return {**kept, **choices[0]}


def _content(about: Operation, schemas: _Schemas) -> dict[str, Any]:
    content: dict[str, Any] = {}
    if about.body is not None:
        content[JSON] = {"schema": schemas[about.body, "validation"]}
    if about.form is not None:
        schema = about.form.model_json_schema(ref_template=_TEMPLATE)
        fields = {name: _without_null(each) for name, each in schema["properties"].items()}
        files = {
            name: _file_schema(about.many_files) | {"description": what}
            for name, what in about.files.items()
        }
        content[FORM] = {
            "schema": {
                "type": "object",
                "properties": files | fields,
                "required": [*files, *schema.get("required", ())],
                "additionalProperties": False,
            }
        }
    return content


def _file_schema(most: int) -> dict[str, Any]:
    one = {"type": "string", "format": "binary"}
    return one if most == 1 else {"type": "array", "items": one, "minItems": 1, "maxItems": most}


def _responses(about: Operation, schemas: _Schemas) -> Iterator[tuple[str, Any]]:
    for status, answer in about.answers.items():
        kinds: dict[str, Any] = {}
        if isinstance(answer, str):
            kinds = {answer: {"schema": {}}}
        elif answer is not None:
            kinds = {JSON: {"schema": schemas[answer, "serialization"]}}
        if about.text and answer is not None:
            kinds["text/plain"] = {"schema": {"type": "string"}}
        described: dict[str, Any] = {"description": _TITLES.get(status, "The answer")}
        yield str(status), described | ({"content": kinds} if kinds else {})
    problem = {"schema": schemas[Problem, "serialization"]}
    for status in sorted(_problems(about) - set(about.answers)):
        described = {"description": _TITLES[status], "content": {_PROBLEM_TYPE: problem}}
        yield str(status), described


def _problems(about: Operation) -> set[int]:
    """The statuses of all problems that an operation may answer."""
    # 503: the first tokens are not read yet, or a store is unavailable.
    problems = {400, 401, 503, *about.also}
    if about.role in {"scheduler", "admin"}:
        problems.add(403)
    if about.query or about.body or about.form:
        problems.add(422)
    if about.body or about.form:
        problems |= {408, 413, 415}
    if about.limited:
        problems.add(429)
    return problems
