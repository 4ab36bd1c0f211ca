"""JSON documents of a bounded size, made from logs whose texts and lists may be of any length."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ioncast_base.errors import InputError

# The most items of a list and characters of a text; the first step that makes a document small
# enough counts. A path has at most 4,096 characters on Linux.
_STEPS = ((100, 4096), (30, 1000), (10, 300), (3, 100))


def shortened(document: Mapping[str, Any], most_bytes: int) -> str:
    """Write a document as JSON, with shorter lists and texts if it is too large.

    Parameters
    ----------
    document : mapping
        The document: texts, numbers, lists and mappings by text. Its lists have the most important
        items first.

    Returns
    -------
    str
        The document with one more field `left_out`: the number of items that lists lost, by the
        lists' names. Texts have "…" in the place of characters in their middle. Numbers that are
        not finite are null.

    Raises
    ------
    InputError
        When the document cannot be made small enough.

    Examples
    --------
    >>> shortened({"files": [{"path": "/a", "bytes": 1.5}]}, 100)
    '{"files": [{"path": "/a", "bytes": 1.5}], "left_out": {}}'
    """
    for items, characters in _STEPS:
        cut = _Cut(items, characters)
        text = json.dumps({**cut.mapping(document), "left_out": cut.left_out}, allow_nan=False)
        if len(text) <= most_bytes:
            return text
    raise InputError(f"it has too many parts to be stored in {most_bytes} bytes")


class _Cut:
    def __init__(self, items: int, characters: int) -> None:
        self.items = items
        self.characters = characters
        self.left_out: Counter[str] = Counter()

    def mapping(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {self.text(key): self.value(value, key) for key, value in given.items()}

    def value(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return self.mapping(value)
        if isinstance(value, list | tuple):
            items = len(value) if all(map(_is_number, value)) else self.items
            if len(value) > items:
                self.left_out[name] += len(value) - items
            return [self.value(each, name) for each in value[:items]]
        if isinstance(value, float) and not math.isfinite(value):
            return None
        return value

    def text(self, text: str) -> str:
        if len(text) <= self.characters:
            return text
        half = self.characters // 2
        return f"{text[:half]}…{text[-half:]}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
