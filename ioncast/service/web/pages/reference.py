"""The HTTP interface as a page: the OpenAPI document as rows for a template."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from ioncast.service.web.http.framework import FORM
from ioncast.service.web.http.given import JSON

_TOKEN = "Authorization: Bearer $IONCAST_TOKEN"  # noqa: S105
_EXAMPLES = {"integer": 1, "number": 1.0, "string": "text", "boolean": True}
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
    """An operation of the document, with the fields of its requests and an example."""

    method: str
    path: str
    operation: Mapping[str, Any]
    fields: tuple[Field, ...]
    curl: str


def described(
    document: Mapping[str, Any], host: str, *, is_open: bool
) -> dict[str, list[Described]]:
    """Describe all operations by group."""
    schemas = document["components"]["schemas"]
    groups: dict[str, list[Described]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            security = operation.get("security", ())
            needs_token = bool(security) and not (is_open and {} in security)
            curl = _curl(host + path, method, operation, schemas, needs_token)
            fields = tuple(_fields(operation, schemas))
            of_group = groups.setdefault(operation["tags"][0], [])
            of_group.append(Described(method.upper(), path, operation, fields, curl))
    # Decisions are first, and operations for operators last.
    order = sorted(groups, key=lambda name: (name == "operations", name != "decisions"))
    return {name: groups[name] for name in order}


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
    address: str,
    method: str,
    operation: Mapping[str, Any],
    schemas: Mapping[str, Any],
    needs_token: bool,
) -> str:
    words = [f'-H "{_TOKEN}"'] if needs_token else []
    query = {}
    for each in operation["parameters"]:
        value = _example(each["schema"], schemas)
        if each["in"] == "path":
            address = address.replace(f"{{{each['name']}}}", quote(str(value)))
        elif each["required"] or each["schema"].get("examples"):
            query[each["name"]] = value
    content = operation.get("requestBody", {}).get("content", {})
    if FORM in content:
        form = content[FORM]["schema"]
        for name in form["required"]:
            value = _example(form["properties"][name], schemas)
            words.append(f"-F {shlex.quote(f'{name}={value}')}")
    elif JSON in content:
        body = json.dumps(_example(content[JSON]["schema"], schemas))
        words += ["-H 'Content-Type: application/json'", f"-d {shlex.quote(body)}"]
    elif method != "get":
        words.append(f"-X {method.upper()}")
    words.append(shlex.quote(f"{address}?{urlencode(query)}" if query else address))
    return f"curl {words[0]}" if len(words) == 1 else " \\\n  ".join(["curl", *words])


def _example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """An example of a value; it has only those optional fields that have an example."""
    if _kind(schema) in {"file", _FILES}:
        return "@app.darshan"
    schema = _resolved(schema, schemas)
    usual = schema.get("const"), schema.get("default")
    for value in (*schema.get("examples", ()), *usual, *schema.get("enum", ())):
        if value is not None:
            return value
    if schema.get("type") == "array":
        return [_example(schema.get("items", {}), schemas)]
    if schema.get("type") == "object" or "properties" in schema:
        required = schema.get("required", ())
        return {
            name: _example(each, schemas)
            for name, each in schema.get("properties", {}).items()
            if name in required or each.get("examples")
        }
    return _EXAMPLES.get(str(schema.get("type")), "text")
