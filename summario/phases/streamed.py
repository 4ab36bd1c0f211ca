"""CSV and JSON of many records, written while they are made."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ioncast_base.visible_text import as_cell, visible

Record = Mapping[str, Any]


def stream_json(batches: Iterable[Iterable[Record]]) -> Iterator[str]:
    """Yield a JSON list of objects in pieces, one for each batch of records."""
    before = "["
    for records in batches:
        objects = [json.dumps([record], indent=1)[1:-2] for record in records]
        if objects:
            yield before + ",".join(objects)
            before = ","
    yield "[]" if before == "[" else "\n]"


def stream_csv(columns: Sequence[str], batches: Iterable[Iterable[Record]]) -> Iterator[str]:
    """Yield CSV in pieces, the header and each batch; a hostile log's texts become harmless."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    yield _taken(text)
    for records in batches:
        writer.writerows({key: _safe(value) for key, value in record.items()} for record in records)
        yield _taken(text)


def _safe(value: Any) -> Any:
    return as_cell(visible(value)) if isinstance(value, str) else value


def _taken(text: io.StringIO) -> str:
    content = text.getvalue()
    text.seek(0)
    text.truncate()
    return content
