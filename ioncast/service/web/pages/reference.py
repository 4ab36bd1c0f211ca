"""The HTTP interface as a page: the OpenAPI document as rows for a template."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from ioncast.service.web.http.access import Role
from ioncast.service.web.http.framework import FORM
from ioncast.service.web.http.given import JSON

_METHODS = ("get", "post", "put", "patch", "delete")
_TOKEN = "Authorization: Bearer $IONCAST_TOKEN"  # noqa: S105
_EXAMPLES = {"integer": 1, "number": 1.0, "string": "text", "boolean": True}
# Models in models: deeper lists are empty in examples.
_DEEPEST = 4
# A field of a form that takes several files.
_FILES = "one or more files"


@dataclass(frozen=True)
class Field:
    """A parameter or a field of a request."""

    name: str
    place: str
    kind: str
    is_required: bool
    text: str


@dataclass(frozen=True)
class Described:
    """An operation.

    Attributes
    ----------
    role : str or None
        The role that is needed; None for everybody.
    """

    method: str
    path: str
    summary: str
    text: str
    key: str
    role: Role | None
    fields: tuple[Field, ...]
    answers: tuple[tuple[str, str], ...]
    curl: str


def described(
    document: Mapping[str, Any],
    texts: Mapping[str, tuple[str, Role | None]],
    host: str,
    *,
    is_open: bool,
) -> dict[str, list[Described]]:
    """Describe all operations by group."""
    schemas = document["components"]["schemas"]
    groups: dict[str, list[Described]] = {}
    for path, operations in document["paths"].items():
        for method in _METHODS:
            if method not in operations:
                continue
            operation = operations[method]
            text, role = texts[operation["operationId"]]
            groups.setdefault(operation["tags"][0], []).append(
                Described(
                    method=method.upper(),
                    path=path,
                    summary=operation["summary"],
                    text=text,
                    key=operation["operationId"],
                    role=role,
                    fields=tuple(_fields(operation, schemas)),
                    answers=tuple(
                        (status, answer["description"])
                        for status, answer in operation["responses"].items()
                    ),
                    curl=_curl(host, path, method, operation, schemas, role, is_open),
                )
            )
    return dict(sorted(groups.items(), key=_place))


def _place(group: tuple[str, list[Described]]) -> tuple[bool, bool]:
    """Sort decisions first and operations for operators last."""
    name, _ = group
    return name == "operations", name != "decisions"


def _fields(operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[Field]:
    for each in operation["parameters"]:
        yield Field(
            each["name"],
            each["in"],
            _kind(each["schema"]),
            each["required"],
            _meaning(each, each["schema"], schemas),
        )
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        place = "form" if media_type == FORM else "body"
        schema = _resolved(content["schema"], schemas)
        required = schema.get("required", ())
        for name, each in schema.get("properties", {}).items():
            yield Field(name, place, _kind(each), name in required, _meaning(each, each, schemas))


def _meaning(
    field: Mapping[str, Any], schema: Mapping[str, Any], schemas: Mapping[str, Any]
) -> str:
    """The description of a field, or else of its type."""
    return str(field.get("description") or _resolved(schema, schemas).get("description", ""))


def _resolved(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve a reference to a schema; of several schemas, take the first that is not null."""
    if "$ref" in schema:
        found: Mapping[str, Any] = schemas[schema["$ref"].rsplit("/", 1)[-1]]
        return _resolved(found, schemas)
    for several in ("anyOf", "oneOf", "allOf"):
        choices = [each for each in schema.get(several, ()) if each != {"type": "null"}]
        if choices:
            kept = {name: value for name, value in schema.items() if name != several}
            return {**_resolved(choices[0], schemas), **kept}
    return schema


def _kind(schema: Mapping[str, Any]) -> str:
    """The name of a type, in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    choices = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if choices:
        return " or ".join(dict.fromkeys(map(_kind, choices)))
    if "const" in schema or "enum" in schema:
        return " | ".join(map(str, schema.get("enum", [schema.get("const")])))
    if schema.get("type") == "array":
        one = _kind(schema.get("items", {}))
        return _FILES if one == "file" else f"list of {one}"
    return "file" if schema.get("format") == "binary" else str(schema.get("type", "any"))


def _curl(
    host: str,
    path: str,
    method: str,
    operation: Mapping[str, Any],
    schemas: Mapping[str, Any],
    role: Role | None,
    is_open: bool,
) -> str:
    words = ["curl"]
    if role is not None and not (role == "reader" and is_open):
        words.append(f'-H "{_TOKEN}"')
    query = {}
    for each in operation["parameters"]:
        value = _example(each["schema"], schemas)
        if each["in"] == "path":
            path = path.replace(f"{{{each['name']}}}", quote(str(value)))
        elif each["required"] or each["schema"].get("examples"):
            query[each["name"]] = value
    content = operation.get("requestBody", {}).get("content", {})
    if FORM in content:
        schema = _resolved(content[FORM]["schema"], schemas)
        words += [
            f"-F {_form_field(name, schema['properties'][name])}"
            for name in schema.get("required", ())
        ]
    elif JSON in content:
        body = json.dumps(_example(content[JSON]["schema"], schemas))
        words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body)}"]
    elif method != "get":
        words.append(f"-X {method.upper()}")
    address = host + path + (f"?{urlencode(query)}" if query else "")
    lines = [*words[1:], shlex.quote(address)]
    return f"curl {lines[0]}" if len(lines) == 1 else " \\\n  ".join(["curl", *lines])


def _form_field(name: str, schema: Mapping[str, Any]) -> str:
    if _kind(schema) in {"file", _FILES}:
        return f"{name}=@app.darshan"
    examples = schema.get("examples") or [schema.get("default", "mysite")]
    return shlex.quote(f"{name}={examples[0]}")


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any], depth: int = 0) -> Any:
    """An example of a value; it has only those optional fields that have an example."""
    schema = _resolved(schema, schemas)
    if schema.get("examples"):
        return schema["examples"][0]
    for name in ("const", "default"):
        if schema.get(name) is not None:
            return schema[name]
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "array":
        return [] if depth > _DEEPEST else [_example(schema.get("items", {}), schemas, depth + 1)]
    if schema.get("type") == "object" or "properties" in schema:
        required = schema.get("required", ())
        return {
            name: _example(each, schemas, depth + 1)
            for name, each in schema.get("properties", {}).items()
            if name in required or each.get("examples")
        }
    return _EXAMPLES.get(str(schema.get("type")), "text")
