"""PyDarshan (the package `darshan`), loaded only when it is asked for, and not always there.

Its reports become logs, so the extraction takes them like logs that ioncast decoded itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from ioncast_base.errors import DamagedLogError, InputError
from ioncast_base.limits import LARGEST_COUNT
from summario.reading.dxt import DXT_MODULES, FIRST_WITH_THREAD
from summario.reading.header import Header, Region
from summario.reading.job import DarshanJob
from summario.reading.layouts import layout_of, newest_version
from summario.reading.log import RECORD_MODULES, DarshanLog, partial_warnings
from summario.reading.records import Records, parse_records

# The layouts of darshan-heatmap-log-format.h and, without a thread id, darshan-dxt-log-format.h.
_HEATMAP_HEAD = struct.Struct("<Qqdq2Q")
_DXT_HEAD = struct.Struct("<Qqq64s2q")
_REQUEST = struct.Struct("<2q2d")
_MODULES = (*RECORD_MODULES, *DXT_MODULES.values())
_REQUEST_FIELDS = ("offset", "length", "start_time", "end_time")


class MissingPyDarshanError(InputError):
    """PyDarshan is not installed, or lacks its library; `purpose` is the work that needs it."""

    def __init__(self, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs PyDarshan, which is not installed",
            remedy="use Python 3.12 or older and install ioncast's extra `darshan`",
        )


def library_path(purpose: str) -> str:
    """Find libdarshan-util, the library in PyDarshan's wheel, without importing PyDarshan."""
    package = find_spec("darshan")
    if package is not None and package.origin is not None:
        # The tool that makes wheels for Linux puts libraries into a folder beside the package.
        for library in Path(package.origin).parents[1].glob("darshan.libs/libdarshan-util*"):
            return str(library)
    raise MissingPyDarshanError(purpose)


def import_pydarshan(purpose: str) -> Any:
    """Import PyDarshan, which takes a second."""
    try:
        return import_module("darshan")
    except (ImportError, RuntimeError) as error:
        # Without its library it raises a RuntimeError.
        raise MissingPyDarshanError(purpose) from error


def log_of_report(report: Any, where: str | None = None) -> DarshanLog:
    """Make a log from a report of one log by PyDarshan; the README has an example ("From Python").

    The log holds what the report holds: without the files that its filter left out, and without
    the records whose file has no name. Modules of phases that the report has not read yet are read
    into it. The report's records are arrays (`dtype="numpy"`, the default) or frames.

    Raises
    ------
    InputError
        When the report is not of one log, or is closed before a module was read.
    DamagedLogError
        When a record has an impossible rank.
    """
    where = str(report.filename) if where is None else where
    header, job = _header(report, where), _job(report, where)
    _read_modules(report, where)
    unread = [
        module for module in _MODULES if module in report.modules and not _has(report, module)
    ]
    warnings = [
        *partial_warnings(header),
        *(
            f"PyDarshan gives no records of the {module} data; read the log with ioncast's reader"
            for module in unread
        ),
    ]
    traces = {
        module: _dxt_bytes(report.records[module])
        for module in DXT_MODULES.values()
        if _has(report, module)
    }
    try:
        traces["HEATMAP"] = _heatmap_bytes(report, where)
    except ValueError as error:
        # PyDarshan rejects heat maps whose processes have bins of different widths.
        warnings.append(f"PyDarshan cannot read the HEATMAP data, so they are not used: {error}")
    return DarshanLog(
        path=where,
        job=job,
        records={
            module: _records(report.records[module], module, header, job.nprocs, where)
            for module in RECORD_MODULES
            if _has(report, module)
        },
        traces=traces,
        names=dict(report.name_records),
        header=header,
        warnings=tuple(warnings),
    )


def _header(report: Any, where: str) -> Header:
    if "job" not in report.metadata:
        raise InputError(
            "the report is not of one log", where=where, remedy="give the reports one by one"
        )
    modules = report.modules
    versions = {name: module["ver"] for name, module in modules.items()}
    # libdarshan-util converts records to its newest version; `_dxt_bytes` writes no thread ids.
    versions |= {name: newest_version(name) for name in RECORD_MODULES if name in modules}
    versions |= {
        name: min(versions[name], FIRST_WITH_THREAD[name] - 1)
        for name in DXT_MODULES.values()
        if name in modules
    }
    return Header(
        version=report.metadata["job"]["log_ver"],
        byte_order="<",
        compression=0,
        size=0,
        names=Region(0, 0),
        modules={name: Region(0, module["len"]) for name, module in modules.items()},
        module_versions=versions,
        partial_modules=frozenset(name for name in modules if modules[name]["partial_flag"]),
    )


def _job(report: Any, where: str) -> DarshanJob:
    job = report.metadata["job"]
    if not 1 <= job["nprocs"] <= LARGEST_COUNT:
        raise DamagedLogError(
            f"PyDarshan finds {job['nprocs']} processes in the job record",
            where=where,
            remedy="read it with ioncast's reader",
        )
    return DarshanJob(
        id=job["jobid"],
        uid=job["uid"],
        nprocs=job["nprocs"],
        start_seconds=job["start_time_sec"] + job["start_time_nsec"] / 1e9,
        end_seconds=job["end_time_sec"] + job["end_time_nsec"] / 1e9,
        executable=report.metadata["exe"].strip(),
        mount_table="\n".join(f"{type_}\t{path}" for path, type_ in report.mounts),
        library_version=job["metadata"].get("lib_ver", ""),
    )


def _read_modules(report: Any, where: str) -> None:
    """Let the report read the names and the modules that it has not read yet."""
    if not report.name_records_read and report.log is not None:
        report.read_name_records()
    for module in _MODULES:
        if module not in report.modules or module in report.records:
            continue
        _require_open(report, module, where)
        if module in RECORD_MODULES:
            report.mod_read_all_records(module)
        else:
            report.mod_read_all_dxt_records(module)


def _has(report: Any, module: str) -> bool:
    """Whether the report has records of a module; one with frames has None in their place."""
    records = report.records.get(module, ())
    return len(records) > 0 and (module not in RECORD_MODULES or records[0]["counters"] is not None)


def _require_open(report: Any, module: str, where: str) -> None:
    if report.log is None:
        raise InputError(
            f"the report is closed, and its {module} data were not read",
            where=where,
            remedy="read them before you close it",
        )


def _records(records: Any, module: str, header: Header, nprocs: int, where: str) -> Records:
    # A report with frames has one pair of them for a module.
    frames = records[0] if isinstance(records, list) else _frames(records, where)
    layout = layout_of(module, newest_version(module))
    columns = {} if layout is None else layout.columns
    words = np.empty((len(frames["counters"]), 2 + len(columns)), np.int64)
    words[:, 0] = frames["counters"]["id"].to_numpy(np.uint64).view(np.int64)
    words[:, 1] = frames["counters"]["rank"].to_numpy(np.int64)
    for name, column in columns.items():
        if name in frames["counters"]:
            # PyDarshan makes them numbers of another kind where one of them is a large id.
            words[:, column] = frames["counters"][name].to_numpy().astype(np.int64)
        else:
            words[:, column] = frames["fcounters"][name].to_numpy(np.float64).view(np.int64)
    data = words.astype("<i8", copy=False).reshape(-1).view(np.uint8)
    return parse_records(module, data, header, nprocs, where)


def _frames(records: Any, where: str) -> Any:
    if isinstance(records[0]["counters"], dict):
        raise InputError(
            'the report was read with dtype="dict"', where=where, remedy='use dtype="numpy"'
        )
    return records.to_df()


def _dxt_bytes(records: Iterable[Any]) -> bytes:
    parts = []
    for record in records:
        writes, reads = (
            list(_requests(record[f"{operation}_segments"])) for operation in ("write", "read")
        )
        host = record["hostname"].encode()
        parts.append(_DXT_HEAD.pack(record["id"], record["rank"], 0, host, len(writes), len(reads)))
        parts += [_REQUEST.pack(*request) for request in (*writes, *reads)]
    return b"".join(parts)


def _requests(table: Any) -> Iterator[tuple[int, int, float, float]]:
    """Yield the requests of a list of dictionaries, or of a frame."""
    rows = table if isinstance(table, list) else table.to_dict("records")
    for row in rows:
        offset, length, start, end = (row[name] for name in _REQUEST_FIELDS)
        yield offset, length, start, end


def _heatmap_bytes(report: Any, where: str) -> bytes:
    if "HEATMAP" not in report.modules:
        return b""
    if not report.heatmaps:
        _require_open(report, "HEATMAP", where)
        report.read_all_heatmap_records()
    ids = {name: id_ for id_, name in report.name_records.items()}
    parts = []
    for module, heatmap in report.heatmaps.items():
        # A heat map whose name a filter left out counts also the files that it left out.
        if (id_ := ids.get(f"heatmap:{module}")) is None:
            continue
        for rank, write in heatmap._data["write"].items():
            width, read = heatmap._bin_width_seconds, heatmap._data["read"][rank]
            parts.append(_HEATMAP_HEAD.pack(id_, rank, width, len(write), 0, 0))
            parts += [bins.astype("<i8").tobytes() for bins in (write, read)]
    return b"".join(parts)
