"""Documents of hostile logs stay small, and say what they lack."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast.service.web.sandbox.shortening import shortened
from ioncast_base.errors import InputError

MOST = 64 << 10
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=200) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=300,
)


def read(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_a_small_document_stays_as_it_is() -> None:
    document = {"job": {"id": 7}, "files": [{"path": "/größe\0\n", "bytes": 1 << 63}], "share": 0.5}
    assert read(shortened(document, MOST)) == document | {"left_out": {}}


def test_the_most_important_files_stay() -> None:
    files = [{"path": f"/data/{n}"} for n in range(64_000)]
    found = read(shortened({"files": files}, MOST))
    assert found["files"] == files[:100]
    assert found["left_out"] == {"files": 63_900}


def test_columns_of_numbers_stay_whole() -> None:
    columns = {"ranks": list(range(256)), "seconds": 255 * [0.5] + [math.inf]}
    found = read(shortened(columns | {"files": [{}] * 101}, MOST))
    assert found["ranks"] == columns["ranks"]
    assert found["seconds"] == 255 * [0.5] + [None]
    assert found["left_out"] == {"files": 1}


def test_a_long_text_loses_its_middle() -> None:
    path = "/a" + 5000 * "x" + "/b"
    [found] = read(shortened({"files": [path]}, MOST))["files"]
    assert found == f"{path[:2048]}…{path[-2048:]}"


def test_lists_become_shorter_until_the_document_is_small_enough() -> None:
    findings = [{"files": [{"path": "x" * 4000}] * 100}] * 30
    text = shortened({"findings": findings}, MOST)
    assert len(text) <= MOST
    found = read(text)
    listed = sum(len(finding["files"]) for finding in found["findings"])
    left_out = found["left_out"]
    assert len(found["findings"]) + left_out.get("findings", 0) == 30
    assert listed + left_out["files"] == 100 * len(found["findings"])


def test_a_document_of_too_many_fields_is_rejected() -> None:
    with pytest.raises(InputError, match="too many parts to be stored in 65536 bytes"):
        shortened({f"field {n}": n for n in range(10_000)}, MOST)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_not_known(number: float) -> None:
    assert read(shortened({"numbers": {"share": number}}, MOST))["numbers"] == {"share": None}


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_any_document_becomes_json_of_at_most_this_size(document: dict[str, Any]) -> None:
    text = shortened(document, MOST)
    assert len(text.encode()) <= MOST
    assert "left_out" in json.loads(text)
