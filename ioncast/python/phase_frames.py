"""Phases as a frame that can be edited, and the phases of such a frame."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from math import inf, isclose
from typing import Any

import pandas as pd

from ioncast_base.errors import InputError
from ioncast_base.sizes import integral
from predictor.what_if.changes import of_size, scaled
from summario.phases.tables import from_record, parts_of_text, text_of_parts
from summario.phases.values import Part, Phase

# Columns of `summario.phases.tables` with another name than the attribute of a phase.
_NAMES_IN_TABLES = {
    "start_seconds": "start",
    "end_seconds": "end",
    "operation": "type",
    "io_time_seconds": "time",
    "file_access": "files",
    "metadata_seconds": "metadata_time",
    "elapsed_seconds": "elapsed",
    "largest_process_bytes": "largest_process",
    "largest_node_bytes": "largest_node",
}
_ATTRIBUTES = [field for field in fields(Phase) if field.name != "parts"]
_NEEDED = [field.name for field in _ATTRIBUTES if field.default is MISSING]
_AT_REQUESTS = [field.name for field in _ATTRIBUTES].index("requests") + 1
_OF_REQUESTS = ("request_bytes", "request_sizes")
PHASE_COLUMNS = (
    *(field.name for field in _ATTRIBUTES[:_AT_REQUESTS]),
    *_OF_REQUESTS,
    *(field.name for field in _ATTRIBUTES[_AT_REQUESTS:]),
)
"""Attributes of `Phase`; `request_bytes` is the mean, and `request_sizes` has SIZExREQUESTS."""
WHERE = "the frame of phases"
# Somebody may have rounded a size.
_ROUNDED = 1e-3


def frame_of_phases(phases: Iterable[Phase]) -> pd.DataFrame:
    """Make a frame with `PHASE_COLUMNS`, a row for each phase."""
    return pd.DataFrame([_row(phase) for phase in phases], columns=list(PHASE_COLUMNS))


def _row(phase: Phase) -> dict[str, Any]:
    # Reads at the end of a file move no bytes and are in no part.
    without_bytes = phase.requests - sum(part.requests for part in phase.parts)
    rest = [Part(without_bytes, 0)] if phase.parts and without_bytes else []
    return {
        **{field.name: getattr(phase, field.name) for field in _ATTRIBUTES},
        "request_bytes": phase.bytes / phase.requests if phase.requests else None,
        "request_sizes": text_of_parts([*phase.parts, *rest]),
    }


def phases_of_frame(frame: pd.DataFrame) -> tuple[Phase, ...]:
    """Read the phases of a frame that somebody may have edited.

    `request_sizes` tells the requests of the log. If `request_bytes` differs from them, all bytes
    move in requests of this size. If `requests` differs, all have the same size. If only `bytes`
    differs, there are more or fewer requests of the sizes of the log.

    Raises
    ------
    InputError
        When a column is missing, a row is no phase, or its cells contradict each other.
    """
    missing = [name for name in _NEEDED if name not in frame]
    if missing:
        raise InputError(
            f"column {missing[0]!r} is missing", where=WHERE, remedy="edit that of `ioncast.phases`"
        )
    columns = [str(name) for name in frame]
    cells = zip(*(frame[name].tolist() for name in frame), strict=True)
    rows = [dict(zip(columns, row, strict=True)) for row in cells]
    return tuple(_phase(row, place) for place, row in enumerate(rows))


def _phase(row: Mapping[str, Any], place: int) -> Phase:
    known = {name: None if _is_missing(value) else value for name, value in row.items()}
    try:
        return _edited(known)
    except InputError as error:
        raise InputError(error.what, where=f"{WHERE}, row {place}") from error
    except (ValueError, TypeError, ArithmeticError, KeyError) as error:
        raise InputError(f"not a phase: {error}", where=f"{WHERE}, row {place}") from error


def _edited(row: Mapping[str, Any]) -> Phase:
    """Read the phase of the log, and change its requests to those of the row."""
    moved, requests = _count(row, "bytes"), _count(row, "requests")
    if moved is None:
        raise InputError("bytes is missing")
    size = None if row.get("request_bytes") is None else float(row["request_bytes"])
    if size is not None and not 0 < size < inf:
        raise InputError(f"request_bytes is {size}, not a number above 0")
    sizes = parts_of_text(str(row.get("request_sizes") or ""), moved, requests or 0)
    parts = [part for part in sizes if part.bytes]
    if not parts:
        return from_record(_record(row, moved, requests or 0, ()))
    moved_before = sum(part.bytes for part in parts)
    requests_before = sum(part.requests for part in sizes)
    phase = from_record(_record(row, moved_before, requests_before, parts))
    if size is not None and isclose(size, moved_before / requests_before):
        size = None
    if requests == requests_before:
        requests = None
    if size and requests and not isclose(size * requests, moved, rel_tol=_ROUNDED):
        raise InputError("requests × request_bytes is not bytes; change only one of them")
    if moved < 1:
        raise InputError("a phase without bytes is no phase; remove the row")
    if size:
        return of_size(phase, size, moved)
    if requests:
        return of_size(phase, moved / requests, moved)
    if moved == moved_before:
        return phase
    if len(parts) == 1:
        return of_size(phase, moved_before / requests_before, moved)
    return scaled(phase, moved / moved_before)


def _record(
    row: Mapping[str, Any], moved: int, requests: int, parts: Iterable[Part]
) -> dict[str, Any]:
    """Name the cells as `from_record` does."""
    record = {
        _NAMES_IN_TABLES.get(field.name, field.name): row.get(field.name) for field in _ATTRIBUTES
    }
    record["rank"] = "all" if row["rank"] is None else row["rank"]
    sizes = [{"requests": part.requests, "bytes": part.bytes} for part in parts]
    return record | {"bytes": moved, "requests": requests, "parts": sizes}


def _count(row: Mapping[str, Any], name: str) -> int | None:
    """Read a count; pandas writes whole numbers beside missing ones as fractions."""
    value = integral(row[name])
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InputError(f"{name} is {value}, not a whole number from 0 on")
    return value


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or value != value  # noqa: PLR0124 - NaN
