"""The space that decisions take in the database, by an estimate that deleting does not change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import String, func, literal

from benchdb.store.schema import decisions

# The name of the counter of the bytes of all decisions.
SIZE_COUNTER = "bytes of decisions"
# Numbers, and the row's entries in the indexes. SQLite and PostgreSQL cannot tell cheaply how large
# a table is, and a table of PostgreSQL does not shrink when rows are deleted.
_ROW_BYTES = 500
_TEXTS = tuple(column for column in decisions.c if isinstance(column.type, String))

# The same as `size_of`, as a column of a query.
SIZE = sum((func.coalesce(func.length(text), 0) for text in _TEXTS), literal(_ROW_BYTES))


def size_of(values: Mapping[str, Any]) -> int:
    """Estimate the bytes that a decision takes, by the values of its columns."""
    return _ROW_BYTES + sum(len(values[text.name] or "") for text in _TEXTS)
