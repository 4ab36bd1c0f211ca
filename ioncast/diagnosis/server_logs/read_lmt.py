"""Reads LMT's tables from SQLite: running counters of OSTs and MDSs, and loads of processors.

Source: pytokio's `connectors/lmtdb.py`. A time is local, without a zone, and ends its interval.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.diagnosis.server_logs.counters import Reading, differences
from ioncast.diagnosis.server_logs.sample_rows import (
    DIRECTIONS,
    METADATA_OPERATIONS,
    Column,
    ImportSettings,
    Ints,
    sample_tables,
    server_name,
)
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

_ROWS_AT_ONCE = 200_000
_NAMES = ", ".join(f"'{name}'" for name in METADATA_OPERATIONS)
_OPERATIONS = (
    "(select MDS_ID, TS_ID, sum(SAMPLES) as SAMPLES from MDS_OPS_DATA where OPERATION_ID in"
    f" (select OPERATION_ID from OPERATION_INFO where OPERATION_NAME in ({_NAMES}))"
    " group by MDS_ID, TS_ID)"
)
_BYTES = {"read_bytes": "READ_BYTES", "written_bytes": "WRITE_BYTES"}
_LOAD = {"cpu_percent": "PCT_CPU"}


class _Table(NamedTuple):
    """A table of samples, the table and column with the servers' names, and columns of ours."""

    kind: str
    rows: str
    id: str
    names: str
    name: str
    columns: Mapping[str, str]


# TOKIO names metadata servers by their hosts too.
_TABLES = (
    _Table("OST", "OST_DATA", "OST_ID", "OST_INFO", "OST_NAME", _BYTES),
    _Table("OSS", "OSS_DATA", "OSS_ID", "OSS_INFO", "HOSTNAME", _LOAD),
    _Table("MDS", "MDS_DATA", "MDS_ID", "MDS_INFO", "HOSTNAME", _LOAD),
    _Table("MDS", _OPERATIONS, "MDS_ID", "MDS_INFO", "HOSTNAME", {"operations": "SAMPLES"}),
)


class _Times(NamedTuple):
    """The times in µs of ids, which ascend, and the usual step."""

    ids: Ints
    times_us: Ints
    step_us: int


def read_lmt(paths: Sequence[Path], settings: ImportSettings) -> Iterator[pa.Table]:
    """Read a database of LMT, for which `settings` have a time zone."""
    [path] = paths
    where = str(path)
    if settings.zone is None:
        raise InputError(
            "the times of LMT are local times without a zone",
            where=where,
            remedy="say the zone of the servers, such as --tz America/Los_Angeles",
        )
    try:
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda text: text.decode("utf-8", "replace")
            times = _times(database, settings.zone, where)
            for table in _TABLES:
                yield from _rows(database, table, times, where, settings)
    except sqlite3.Error as error:
        what = f"these are not the tables of LMT: {visible(error)}"
        raise InputError(what, where=where) from error
    except (TypeError, ValueError, OverflowError) as error:
        what = f"a table of LMT has an impossible value: {visible(error)}"
        raise InputError(what, where=where) from error


def _times(database: sqlite3.Connection, zone: ZoneInfo, where: str) -> _Times:
    rows = database.execute("select TS_ID, TIMESTAMP from TIMESTAMP_INFO order by TS_ID")
    ids, times = [], []
    latest = float("-inf")
    for number, text in rows:
        local = datetime.fromisoformat(text).replace(tzinfo=zone)
        seconds = local.timestamp()
        if seconds <= latest:
            # When summer ends, an hour of local times comes twice.
            seconds = local.replace(fold=1).timestamp()
        latest = max(latest, seconds)
        ids.append(number)
        times.append(round(seconds * 1e6))
    if len(ids) < 2 or (np.diff(times) <= 0).any():
        raise InputError("the times of LMT's TIMESTAMP_INFO do not ascend", where=where)
    return _Times(np.array(ids), np.array(times), round(float(np.median(np.diff(times)))))


def _rows(
    database: sqlite3.Connection,
    table: _Table,
    times: _Times,
    where: str,
    settings: ImportSettings,
) -> Iterator[pa.Table]:
    names = dict(database.execute(f"select {table.id}, {table.name} from {table.names}"))
    servers = [server_name(str(name), table.kind, where) for name in names.values()]
    places = {number: place for place, number in enumerate(names)}
    last: dict[tuple[int, str], Reading | None] = {}
    cursor = database.execute(
        f"select {table.id}, TS_ID, {', '.join(table.columns.values())} from {table.rows}"
        f" order by {table.id}, TS_ID"
    )
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        cells = np.array(rows, np.float64)
        known = np.isin(cells[:, 0], list(places)) & np.isin(cells[:, 1], times.ids)
        cells = cells[known]
        if not len(cells):
            continue
        time_us = times.times_us[np.searchsorted(times.ids, cells[:, 1])]
        edges = np.append(np.flatnonzero(np.diff(cells[:, 0], prepend=np.nan) != 0), len(cells))
        parts = [slice(*ends) for ends in pairwise(edges.tolist())]
        columns = {
            name: _column(
                name,
                [(int(cells[p.start, 0]), time_us[p], cells[p, 2 + n]) for p in parts],
                last,
                times.step_us,
            )
            for n, name in enumerate(table.columns)
        }
        _forget_gaps(last)
        server = np.array([places[number] for number in cells[:, 0].astype(np.int64).tolist()])
        yield from sample_tables(servers, server, time_us, columns, where)
        settings.progress(float(server[-1] + 1) / len(servers))


def _forget_gaps(last: dict[tuple[int, str], Reading | None]) -> None:
    """Forget a reading before the newest one of its server.

    The rows of the other direction since then are written, so they cannot be cut any more.
    """
    for (number, name), reading in last.items():
        newest = max(
            (each.time_us for one in DIRECTIONS if (each := last.get((number, one)))), default=0
        )
        if reading and name in DIRECTIONS and reading.time_us < newest:
            last[number, name] = None


def _column(
    name: str,
    parts: list[tuple[int, Ints, NDArray[Any]]],
    last: dict[tuple[int, str], Reading | None],
    step_us: int,
) -> Column:
    """Subtract counters server by server; a load is of the step before its time."""
    found = []
    for number, time_us, values in parts:
        if name == "cpu_percent":
            found.append(Column(values, time_us - step_us))
            continue
        column, last[number, name] = differences(time_us, values, last.get((number, name)))
        found.append(column)
    return Column(*(np.concatenate(each) for each in zip(*found, strict=True)))
