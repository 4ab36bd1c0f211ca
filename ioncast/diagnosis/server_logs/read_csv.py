"""Reads a CSV of samples, for logs that no other reader knows."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from ioncast.diagnosis.server_logs.sample_rows import (
    KINDS,
    Column,
    ImportSettings,
    ServerName,
    lines_of,
    sample_tables,
    server_name,
)
from ioncast_base.errors import InputError
from ioncast_base.visible_text import from_cell, visible

_NEEDED = ("kind", "server", "time_start", "time_end")
_VALUES = ("read_bytes", "written_bytes", "operations", "cpu_percent")
_KNOWN = ("system", *_NEEDED, *_VALUES)
_ROWS_AT_ONCE = 100_000
_Row = tuple[ServerName, float, float, list[float]]


def read_csv(paths: Sequence[Path], settings: ImportSettings) -> Iterator[pa.Table]:
    """Read rows with kind, server, time_start, time_end, and any of the columns of values.

    A time is Unix seconds, or ISO 8601 with a zone, or without one in the zone of `settings`.
    """
    [path] = paths
    lines = lines_of(path, settings)
    _, header = next(lines, (1, ""))
    try:
        names = [name.strip() for name in next(csv.reader([header.lstrip("\ufeff")]), [])]
    except csv.Error as error:
        raise InputError(visible(error), where=str(path), line=1) from error
    values = [name for name in _VALUES if name in names]
    is_known = set(names) <= set(_KNOWN) and len(set(names)) == len(names)
    if not is_known or not set(_NEEDED) <= set(names) or not values:
        what = (
            f"the columns must be {', '.join(_NEEDED)}, at least one of {', '.join(_VALUES)},"
            " each once, and no others but system"
        )
        raise InputError(what, where=str(path), line=1)
    rows: list[_Row] = []
    for number, line in lines:
        if line.strip():
            try:
                rows.append(_row(names, values, line, settings, str(path)))
            except (ValueError, OverflowError, csv.Error) as error:
                raise InputError(visible(error), where=str(path), line=number) from error
        if len(rows) == _ROWS_AT_ONCE:
            yield from _tables(rows, values, str(path))
            rows = []
    yield from _tables(rows, values, str(path))


def _row(
    names: Sequence[str], values: Sequence[str], line: str, settings: ImportSettings, where: str
) -> _Row:
    [cells] = csv.reader([line])
    row: Mapping[str, str] = {
        name: from_cell(cell.strip()) for name, cell in zip(names, cells, strict=True)
    }
    if row["kind"] not in KINDS:
        raise ValueError(f"kind is {row['kind'][:80]!r}, and must be one of {', '.join(KINDS)}")
    start, end = (_seconds(row[name], settings) for name in ("time_start", "time_end"))
    numbers = [float(row[name]) if row[name] else np.nan for name in values]
    return server_name(row["server"], row["kind"], where), start, end, numbers


def _seconds(text: str, settings: ImportSettings) -> float:
    try:
        return float(text)
    except ValueError:
        time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    if time.tzinfo is None and settings.zone is None:
        raise ValueError(f"{text} has no zone: write +00:00 after it, or say --tz")
    return (time if time.tzinfo else time.replace(tzinfo=settings.zone)).timestamp()


def _tables(rows: Iterable[_Row], values: Sequence[str], where: str) -> Iterator[pa.Table]:
    servers, starts, ends, numbers = zip(*rows, strict=True) if rows else ((), (), (), ())
    places = {server: place for place, server in enumerate(dict.fromkeys(servers))}
    times = np.array([starts, ends], np.float64)
    if not np.isfinite(times).all() or (np.abs(times) > 1e12).any():
        raise InputError("a time is not a number", where=where)
    start_us, end_us = np.rint(times * 1e6).astype(np.int64)
    cells = np.array(numbers, np.float64).reshape(-1, len(values))
    yield from sample_tables(
        list(places),
        np.array([places[server] for server in servers], np.int64),
        end_us,
        {name: Column(cells[:, n], start_us) for n, name in enumerate(values)},
        where,
    )
