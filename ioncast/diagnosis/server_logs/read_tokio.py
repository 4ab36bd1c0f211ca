"""Reads TOKIO's HDF5 files, of today and the older H5LMT, in pieces.

Sources: pytokio's `connectors/hdf5.py` and `timeseries.py`. The name of a dataset tells whether it
has counts or rates, because the attribute `units` is wrong in public files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.diagnosis.server_logs.sample_rows import (
    DIRECTIONS,
    METADATA_OPERATIONS,
    Column,
    Floats,
    ImportSettings,
    Ints,
    ServerName,
    sample_tables,
    server_name,
)
from ioncast_base.errors import InputError, require_package
from ioncast_base.visible_text import visible

if TYPE_CHECKING:
    import h5py

_CELLS_AT_ONCE = 1_000_000
# Three years in steps of 5 s, and more servers than any file system has.
_MOST_STEPS, _MOST_SERVERS = 20_000_000, 100_000
_DAMAGED = (OSError, KeyError, ValueError, TypeError, RuntimeError, AttributeError, OverflowError)


class _Source(NamedTuple):
    """Datasets that are added up in a column; rates are per second, gauges hold at a time."""

    kind: str
    column: str
    unit: str
    names: tuple[str, ...]


_COUNTS, _RATES, _GAUGE = "counts", "rates", "gauge"
_GROUPS: Mapping[str, Sequence[_Source]] = {
    "datatargets": (
        _Source("OST", "read_bytes", _COUNTS, ("readbytes",)),
        _Source("OST", "read_bytes", _RATES, ("readrates",)),
        _Source("OST", "written_bytes", _COUNTS, ("writebytes",)),
        _Source("OST", "written_bytes", _RATES, ("writerates",)),
        _Source("OST", "operations", _COUNTS, ("readops", "writeops")),
        _Source("OST", "operations", _RATES, ("readoprates", "writeoprates")),
    ),
    "dataservers": (_Source("OSS", "cpu_percent", _GAUGE, ("cpuload",)),),
    "mdservers": (_Source("MDS", "cpu_percent", _GAUGE, ("cpuload",)),),
    "mdtargets": (
        _Source("MDS", "operations", _COUNTS, tuple(f"{n}s" for n in METADATA_OPERATIONS)),
        _Source("MDS", "operations", _RATES, tuple(f"{n}rates" for n in METADATA_OPERATIONS)),
    ),
}
# The datasets of H5LMT with the attribute that names their servers. Rows are servers.
_OLD_DATASETS = (
    ("OSTReadGroup/OSTBulkReadDataSet", "OSTNames", "OST", "read_bytes"),
    ("OSTWriteGroup/OSTBulkWriteDataSet", "OSTNames", "OST", "written_bytes"),
    ("OSSCPUGroup/OSSCPUDataSet", "OSSNames", "OSS", "cpu_percent"),
)
_OLD_STEPS, _OLD_MISSING = "FSStepsGroup/FSStepsDataSet", "FSMissingGroup/FSMissingDataSet"


class _Series(NamedTuple):
    """Datasets of the same servers and times, for a column of rows."""

    source: _Source
    datasets: tuple[h5py.Dataset, ...]
    servers: tuple[ServerName, ...]
    times: str


def read_tokio(paths: Sequence[Path], settings: ImportSettings) -> Iterator[pa.Table]:
    """Read an HDF5 file of TOKIO."""
    [path] = paths
    require_package("h5py", str(path))
    import h5py  # noqa: PLC0415

    try:
        with h5py.File(path) as file:
            rows = _old_rows if _OLD_STEPS in file else _rows
            yield from rows(file, str(path), settings)
    except _DAMAGED as error:
        what = f"this HDF5 file cannot be read: {visible(str(error))}"
        raise InputError(what, where=str(path)) from error


def _rows(file: h5py.File, where: str, settings: ImportSettings) -> Iterator[pa.Table]:
    series = [each for group in _GROUPS for each in _series_of(file, group, where)]
    if not series:
        raise InputError("this HDF5 file has no data of servers as TOKIO writes them", where=where)
    together: dict[tuple[str, bool, tuple[ServerName, ...]], list[_Series]] = {}
    for each in series:
        key = each.times, each.source.unit == _GAUGE, each.servers
        together.setdefault(key, []).append(each)
    for alike in together.values():
        yield from _rows_of_series(file, alike, where, settings)


def _series_of(file: h5py.File, group: str, where: str) -> Iterator[_Series]:
    for source in _GROUPS[group]:
        found = [file[f"{group}/{name}"] for name in source.names if f"{group}/{name}" in file]
        by_servers: dict[tuple[str, tuple[ServerName, ...]], list[h5py.Dataset]] = {}
        for each in found:
            servers = _servers(each.attrs["columns"], source.kind, where)
            times = _text(each.attrs.get("timestamps", "timestamps"))
            times = times if times in file else f"{group}/{times}"
            by_servers.setdefault((times, servers), []).append(each)
        for (times, servers), datasets in by_servers.items():
            yield _Series(source, tuple(datasets), servers, times)


def _servers(names: Any, kind: str, where: str) -> tuple[ServerName, ...]:
    if len(names) > _MOST_SERVERS:
        raise InputError(f"{len(names):,} servers are too many", where=where)
    return tuple(server_name(_text(each), kind, where) for each in names)


def _text(name: Any) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _edges_us(steps: h5py.Dataset, where: str) -> Ints:
    """Read the starts of rows, and the end of the last one."""
    if not 2 <= len(steps) <= _MOST_STEPS:
        raise InputError(f"{len(steps):,} time steps are too few or too many", where=where)
    starts = steps[:].astype(np.float64)
    if not np.isfinite(starts).all() or not (np.diff(starts) > 0).all() or starts[-1] > 1e10:
        raise InputError("the times of the steps do not ascend", where=where)
    edges = np.append(starts, starts[-1] + np.median(np.diff(starts)))
    return np.rint(edges * 1e6).astype(np.int64)


def _rows_of_series(
    file: h5py.File, series: Sequence[_Series], where: str, settings: ImportSettings
) -> Iterator[pa.Table]:
    edges_us = _edges_us(file[series[0].times], where)
    servers, is_gauge = series[0].servers, series[0].source.unit == _GAUGE
    shape = len(edges_us) - 1, len(servers)
    for each in (dataset for one in series for dataset in one.datasets):
        if each.shape != shape:
            raise InputError(f"{each.name} has not a row a time and a column a server", where=where)
    at_once = max(_CELLS_AT_ONCE // max(len(servers), 1), 1)
    gaps = [_Gaps(edges_us[0], len(servers)) for _ in series]
    for first in range(0, shape[0], at_once):
        edges = edges_us[first : first + at_once + 1]
        starts, ends = edges[:-1], edges[1:]
        if is_gauge:
            # A gauge is of the step before its time, as LMT has it.
            before = edges_us[first - 1] if first else 2 * edges_us[0] - edges_us[1]
            starts, ends = np.append(before, starts[:-1]), starts
        seconds = (ends - starts)[:, np.newaxis] / 1e6
        columns: dict[str, Column] = {}
        for each, of_column in zip(series, gaps, strict=True):
            cells = _cells(each, slice(first, first + at_once))
            if each.source.unit == _COUNTS:
                found = of_column.spread(cells, starts, ends)
            else:
                values = cells * seconds if each.source.unit == _RATES else cells
                found = Column(values, np.broadcast_to(starts[:, np.newaxis], cells.shape))
            columns.setdefault(
                each.source.column, Column(found.values.ravel(), found.start_us.ravel())
            )
        server = np.tile(np.arange(len(servers)), len(ends))
        yield from sample_tables(servers, server, np.repeat(ends, len(servers)), columns, where)
        of_bytes = [
            gap for each, gap in zip(series, gaps, strict=True) if each.source.column in DIRECTIONS
        ]
        for gap in of_bytes:
            gap.forget_before(np.max([each.end_us for each in of_bytes], axis=0))
        settings.progress((first + len(ends)) / shape[0])


def _cells(series: _Series, rows: slice) -> Floats:
    """Add up datasets; -0.0 marks a missing value, and 0.0 is a value."""
    total = np.zeros(1)
    for dataset in series.datasets:
        values = dataset[rows].astype(np.float64)
        total = total + np.where((values == 0) & np.signbit(values), np.nan, values)
    return total


class _Gaps:
    """The missing rows of each server so far, whose bytes the next known row has."""

    def __init__(self, start_us: int, servers: int) -> None:
        self.end_us = np.full(servers, start_us)
        # Nobody knows how long a gap at the beginning of a file has lasted before.
        self._is_known = np.zeros(servers, bool)

    def spread(self, cells: Floats, starts: Ints, ends: Ints) -> Column:
        """Start each known row at the end of the known one before it."""
        known = ~np.isnan(cells)
        last = np.where(known, np.arange(len(cells))[:, np.newaxis], -1)
        last = np.maximum.accumulate(last, axis=0)
        before = np.vstack((np.full((1, cells.shape[1]), -1), last[:-1]))
        start_us = np.where(before < 0, self.end_us, ends[before])
        has_start = (before >= 0) | self._is_known | (start_us == starts[:, np.newaxis])
        is_any = last[-1] >= 0
        self.end_us = np.where(is_any, ends[last[-1]], self.end_us)
        self._is_known |= is_any
        return Column(np.where(has_start, cells, np.nan), start_us)

    def forget_before(self, newest_us: Ints) -> None:
        """Forget the beginning of gaps of servers that have newer rows in the other direction.

        These rows are written, so they cannot be cut any more.
        """
        self._is_known &= self.end_us >= newest_us


def _old_rows(file: h5py.File, where: str, settings: ImportSettings) -> Iterator[pa.Table]:
    """Read H5LMT: rates, row t for the step before t, so that the first row is empty."""
    ends = _edges_us(file[_OLD_STEPS], where)[:-1]
    starts = np.append(2 * ends[0] - ends[1], ends[:-1])
    found = [each for each in _OLD_DATASETS if each[0] in file]
    if not found:
        raise InputError("this H5LMT file has no data of servers", where=where)
    for number, (_, of_names) in enumerate(groupby(found, key=lambda each: each[1])):
        datasets = list(of_names)
        servers = [
            _servers(file[name].attrs[attribute], kind, where)
            for name, attribute, kind, _ in datasets
        ]
        for name, *_ in datasets:
            if file[name].shape != (len(servers[0]), len(ends)) or servers.count(servers[0]) != len(
                servers
            ):
                raise InputError(f"{name} has not a row a server and a column a time", where=where)
        at_once = max(_CELLS_AT_ONCE // max(len(servers[0]), 1), 1)
        for first in range(0, len(ends), at_once):
            part = slice(first, first + at_once)
            columns = {
                column: _old_column(file, name, column, part, starts, ends)
                for name, _, _, column in datasets
            }
            server = np.tile(np.arange(len(servers[0])), len(ends[part]))
            of_rows = np.repeat(ends[part], len(servers[0]))
            yield from sample_tables(servers[0], server, of_rows, columns, where)
            settings.progress((number + (first + at_once) / len(ends)) / len(found))


def _old_column(
    file: h5py.File, name: str, column: str, part: slice, starts: Ints, ends: Ints
) -> Column:
    values: NDArray[np.float64] = file[name][:, part].T.astype(np.float64)
    if column != "cpu_percent":
        values *= (ends - starts)[part][:, np.newaxis] / 1e6
        if part.start == 0:
            values[0] = np.nan
        if _OLD_MISSING in file and file[_OLD_MISSING].shape == file[name].shape:
            values[file[_OLD_MISSING][:, part].T != 0] = np.nan
    start_us = np.broadcast_to(starts[part][:, np.newaxis], values.shape)
    return Column(values.ravel(), start_us.ravel())
