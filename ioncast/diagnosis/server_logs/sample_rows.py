"""Rows of the table `server_samples`, from arrays of what servers moved in intervals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.diagnosis.server_logs.common_intervals import Intervals, on_common_intervals
from ioncast.warehouse.schema import SCHEMAS
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SCHEMA = SCHEMAS["server_samples"]
DIRECTIONS = ("read_bytes", "written_bytes")
KINDS = ("OST", "OSS", "MDT", "MDS", "ION", "FS")
# The years 2001 to 2099: other times are damage, or seconds since a server started.
EARLIEST_S, LATEST_S = 1_000_000_000, 4_102_444_800
# Metadata operations as LMT, TOKIO and Lustre's job_stats all count them.
METADATA_OPERATIONS = (
    *("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename"),
    *("getattr", "setattr", "getxattr", "statfs"),
)
_LUSTRE_NAME = re.compile(r"(?:(.+)-)?(OST|MDT)([0-9a-fA-F]{4})(?:_UUID)?", re.ASCII)
_LONGEST_NAME, _LONGEST_LINE = 255, 1 << 20


@dataclass(frozen=True)
class ImportSettings:
    """The time zone of local times, and a function that gets the share of a file that was read."""

    zone: ZoneInfo | None = None
    progress: Callable[[float], object] = lambda share: None


class Column(NamedTuple):
    """Values of intervals, NaN where they are missing, and the starts of the intervals in µs."""

    values: Floats
    start_us: Ints


class ServerName(NamedTuple):
    """A server: the file system if its name has one, and a number in decimal digits or a name."""

    file_system: str | None
    kind: str
    server: str


def server_name(name: str, kind: str, where: str) -> ServerName:
    """Read the name of a server, such as scratch-OST000a, whose number is hexadecimal: 10."""
    if found := _LUSTRE_NAME.fullmatch(name):
        return ServerName(found[1], found[2], str(int(found[3], 16)))
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"{visible(name[:_LONGEST_NAME])!r} is not the name of a server", where=where
        )
    return ServerName(None, kind, str(int(name)) if name.isascii() and name.isdigit() else name)


def sample_tables(
    servers: Sequence[ServerName],
    server: Ints,
    end_us: Ints,
    columns: Mapping[str, Column],
    where: str,
) -> Iterator[pa.Table]:
    """Make rows of intervals, without those that have no value.

    Parameters
    ----------
    servers : sequence of ServerName
        All servers.
    server, end_us : array of int64, shape (n,)
        The index of each interval's server, and the end of the interval.
    columns : mapping of str to Column
        The values, shape (n,), by the names of columns. Negative values, and such that no server
        has, count as missing. If reads and writes of a server start at different times, its rows
        are cut so that they have common intervals; other columns become rows of their own.
    where : str
        The file, for errors.

    Raises
    ------
    InputError
        If a time is not plausible.
    """
    known = {name: _possible(column.values) for name, column in columns.items()}
    is_cut = _is_cut(server, columns)
    if is_cut.any():
        yield _cut_table(servers, server, end_us, known, columns, is_cut, where)
        known |= {name: np.where(is_cut, np.nan, known[name]) for name in DIRECTIONS}
    latest = np.full(len(server), np.iinfo(np.int64).min)
    for name, (_, starts) in columns.items():
        latest = np.where(np.isnan(known[name]), latest, np.maximum(latest, starts))
    together = {
        name: np.where(starts == latest, known[name], np.nan)
        for name, (_, starts) in columns.items()
    }
    yield _table(servers, server, latest, end_us, together, where)
    for name, (_, starts) in columns.items():
        alone = np.where(starts == latest, np.nan, known[name])
        if not np.isnan(alone).all():
            yield _table(servers, server, starts, end_us, {name: alone}, where)


def lines_of(path: Path, settings: ImportSettings) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1; the text may be larger than memory."""
    size = max(path.stat().st_size, 1)
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST_LINE):
            number += 1
            if len(line) == _LONGEST_LINE:
                raise InputError("the line is longer than 1 MiB", where=str(path), line=number)
            if number % 10_000 == 0:
                settings.progress(file.tell() / size)
            yield number, line.decode("utf-8", "replace").rstrip("\r\n")


def _is_cut(server: Ints, columns: Mapping[str, Column]) -> NDArray[np.bool_]:
    """Find the rows of servers that miss a sample in one direction only."""
    if not all(name in columns for name in DIRECTIONS):
        return np.zeros(len(server), bool)
    reads, writes = (columns[name].start_us for name in DIRECTIONS)
    return np.isin(server, server[reads != writes])


def _cut_table(
    servers: Sequence[ServerName],
    server: Ints,
    end_us: Ints,
    known: Mapping[str, Floats],
    columns: Mapping[str, Column],
    is_cut: NDArray[np.bool_],
    where: str,
) -> pa.Table:
    intervals = {}
    for name in DIRECTIONS:
        rows = is_cut & ~np.isnan(known[name])
        starts, ends = columns[name].start_us[rows], end_us[rows]
        _check_times(starts, ends, where)
        intervals[name] = Intervals(server[rows], starts, ends, known[name][rows])
    return _table(servers, *on_common_intervals(intervals), where)


def _check_times(start_us: Ints, end_us: Ints, where: str) -> None:
    if len(start_us) and not (
        start_us.min() >= EARLIEST_S * 1e6
        and end_us.max() <= LATEST_S * 1e6
        and (start_us < end_us).all()
    ):
        what = "a time is not between 2001 and 2099, or an interval ends before it starts"
        raise InputError(what, where=where, remedy="times are seconds since 1970 (UTC)")


def _possible(values: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where((values >= 0) & (values < 2**63), values, np.nan)


def _table(
    servers: Sequence[ServerName],
    server: Ints,
    start_us: Ints,
    end_us: Ints,
    columns: Mapping[str, Floats],
    where: str,
) -> pa.Table:
    has_value = ~np.all([np.isnan(values) for values in columns.values()], axis=0)
    server, start_us, end_us = server[has_value], start_us[has_value], end_us[has_value]
    _check_times(start_us, end_us, where)
    arrays: dict[str, pa.Array] = {
        name: pa.array([getattr(each, name) for each in servers], pa.string()).take(
            pa.array(server)
        )
        for name in ServerName._fields
    }
    arrays |= {"time_start_us": pa.array(start_us), "time_end_us": pa.array(end_us)}
    for name, values in columns.items():
        is_count = SCHEMA.field(name).type == pa.int64()
        numbers = np.rint(values[has_value]) if is_count else values[has_value]
        is_missing = np.isnan(numbers)
        numbers = np.where(is_missing, 0, numbers)
        arrays[name] = pa.array(numbers.astype(np.int64) if is_count else numbers, mask=is_missing)
    return pa.Table.from_arrays(
        [
            arrays[field.name] if field.name in arrays else pa.nulls(len(server), field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )
