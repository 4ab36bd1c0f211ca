"""The page about the interface, and addresses that a login may lead to."""

from __future__ import annotations

from typing import Any

from ioncast.service.web.pages.frame import local
from ioncast.service.web.pages.reference import described


def test_a_local_address_is_kept() -> None:
    assert local("/benchmarks/1?system=a") == "/benchmarks/1?system=a"


DOCUMENT: dict[str, Any] = {
    "paths": {
        "/v1/things/{id}": {
            "post": {
                "operationId": "things_put",
                "tags": ["things"],
                "summary": "Put it.",
                "description": "Puts it.\n\nRole: admin.",
                "parameters": [
                    {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}
                    }
                },
                "security": [{"token": []}],
                "responses": {"200": {"description": "The answer"}},
            }
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "required": ["name", "sizes"],
                "properties": {
                    "name": {"type": "string", "examples": ["it's"], "description": "What it is."},
                    "sizes": {"type": "array", "items": {"anyOf": [{"type": "integer"}]}},
                    "left_out": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                },
            }
        }
    },
}


def test_an_operation_is_described_with_what_it_takes_and_an_example() -> None:
    [found] = described(DOCUMENT, "http://here", is_open=True)["things"]
    assert (found.method, found.operation["description"]) == ("POST", "Puts it.\n\nRole: admin.")
    assert [(field.name, field.place, field.kind, field.is_required) for field in found.fields] == [
        ("id", "path", "integer", True),
        ("name", "body", "string", True),
        ("sizes", "body", "list of integer", True),
        ("left_out", "body", "string", False),
    ]
    assert found.curl == (
        'curl \\\n  -H "Authorization: Bearer $IONCAST_TOKEN" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        """  -d '{"name": "it'"'"'s", "sizes": [1]}' \\\n"""
        "  http://here/v1/things/1"
    )
