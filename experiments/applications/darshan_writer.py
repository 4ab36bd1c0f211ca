"""Writes Darshan logs through libdarshan-util, the library of Darshan's own tools.

The library makes the layout of the file, its compression and its checksums; this module only fills
in the records. It loads the library from the `darshan` wheel without importing the wheel.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Literal

from summario.reading.pydarshan import library_path

CounterModule = Literal["POSIX", "MPI-IO", "STDIO"]
HeatmapModule = Literal["POSIX", "MPIIO", "STDIO"]
DxtModule = Literal["DXT_POSIX", "DXT_MPIIO"]
Segment = tuple[int, int, float, float]
"""Offset and length in bytes, start and end in seconds."""

_EXE_LENGTH = 3015
_METADATA_LENGTH = 1024
_NAME_LENGTH = 4096
_HOSTNAME_LENGTH = 64

_ZLIB = 0
# Number and version of each module as Darshan 3.5.0 writes it, in the order of a log.
_MODULES = {
    "POSIX": (1, 4),
    "MPI-IO": (2, 3),
    "STDIO": (9, 2),
    "DXT_POSIX": (10, 1),
    "DXT_MPIIO": (11, 2),
    "HEATMAP": (15, 1),
}
# Readers know heatmaps by these ids, which are not hashes of the names.
_HEATMAP_IDS = {
    "heatmap:POSIX": 16592106915301738621,
    "heatmap:MPIIO": 3668870418325792824,
    "heatmap:STDIO": 3989511027826779520,
}


@dataclass(frozen=True)
class Record:
    """The counters of one file for one rank, or for all (rank -1); missing counters are 0."""

    module: CounterModule
    path: str
    rank: int
    counters: Mapping[str, int] = field(default_factory=dict)
    fcounters: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Heatmap:
    """The bytes that one rank read and wrote through one module in each bin of time."""

    module: HeatmapModule
    rank: int
    bin_width_seconds: float
    write_bins: Sequence[int]
    read_bins: Sequence[int]

    @property
    def name(self) -> str:
        """Name of the heatmap's record in the log's table of file names."""
        return f"heatmap:{self.module}"


@dataclass(frozen=True)
class Dxt:
    """Every request of one rank to one file."""

    module: DxtModule
    path: str
    rank: int
    hostname: str
    writes: Sequence[Segment] = ()
    reads: Sequence[Segment] = ()


def write_log(
    path: Path,
    *,
    nprocs: int,
    records: Sequence[Record] = (),
    names: Iterable[str] | None = None,
    jobid: int = 4242,
    uid: int = 1000,
    exe: str = "application",
    start: tuple[int, int] = (1_700_000_000, 0),
    end: tuple[int, int] = (1_700_000_100, 0),
    mounts: Sequence[tuple[str, str]] = (("/", "ext4"),),
    partial_modules: Iterable[str] = (),
    heatmaps: Sequence[Heatmap] = (),
    dxt: Sequence[Dxt] = (),
    metadata: str = "lib_ver=3.5.0\n",
) -> Path:
    """Write a log, and replace an existing file.

    Parameters
    ----------
    path : Path
        Path of the log.
    names : iterable of str, optional
        Names that get a name record; by default those of all records.
    start, end : tuple of int
        Seconds and nanoseconds since the epoch.
    mounts : sequence of (path, type)
        File systems; without any, libdarshan-util cannot read `exe` back.
    partial_modules : iterable of str
        Modules that ran out of memory, by Darshan's names.

    Returns
    -------
    Path
        `path`.

    Raises
    ------
    KeyError
        If Darshan has no such counter or module.
    ValueError
        If a text is longer than its place in the log.
    MissingPyDarshanError
        If PyDarshan is not installed.
    OSError
        If libdarshan-util fails; it prints its reason to the standard error.
    """
    job = _job(nprocs, jobid, uid, start, end, metadata)
    mount_table = _mount_table(mounts, exe)
    name_records = [
        _name_record(name) for name in (_names(records, heatmaps, dxt) if names is None else names)
    ]
    module_records = [
        *((record.module, _record_bytes(record)) for record in records),
        *((trace.module, _dxt_bytes(trace)) for trace in dxt),
        *(("HEATMAP", _heatmap_bytes(heatmap)) for heatmap in heatmaps),
    ]
    # The library writes the parts of a log in order, and fails if it would have to go back.
    module_records.sort(key=lambda item: _MODULES[item[0]])
    partial_flag = sum(1 << _MODULES[module][0] for module in set(partial_modules))

    library = _library()
    with _created(path, partial_flag) as log:
        _check("job", library.darshan_log_put_job(log, ctypes.byref(job)))
        _check("exe", library.darshan_log_put_exe(log, exe.encode()))
        _check("mounts", library.darshan_log_put_mounts(log, mount_table, len(mounts)))
        for name_record in name_records:
            table = _NameTable(name_record=name_record)
            _check("name", library.darshan_log_put_namehash(log, ctypes.byref(table)))
        for module, data in module_records:
            number, version = _MODULES[module]
            _check(module, library.darshan_log_put_mod(log, number, data, len(data), version))
    return path


def check_writer() -> None:
    """Check that logs can be written here.

    Raises
    ------
    MissingPyDarshanError
        If PyDarshan is not installed.
    """
    _library()


def record_id(name: str) -> int:
    """Id of a file or heatmap in its records."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return _HEATMAP_IDS.get(name, int.from_bytes(digest, "little"))


@cache
def counter_names(module: CounterModule) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of a module's integer and floating-point counters, in Darshan's order."""
    prefix = module.replace("-", "").lower()
    return _exported(f"{prefix}_counter_names"), _exported(f"{prefix}_f_counter_names")


def _exported(table: str) -> tuple[str, ...]:
    more_than_enough = ctypes.c_char_p * 256
    names = (name.decode() for name in more_than_enough.in_dll(_library(), table) if name)
    return tuple(takewhile(lambda name: not name.endswith("_NUM_INDICES"), names))


class _Job(ctypes.Structure):
    _fields_ = (
        ("uid", ctypes.c_int64),
        ("start_seconds", ctypes.c_int64),
        ("start_nanoseconds", ctypes.c_int64),
        ("end_seconds", ctypes.c_int64),
        ("end_nanoseconds", ctypes.c_int64),
        ("nprocs", ctypes.c_int64),
        ("jobid", ctypes.c_int64),
        ("metadata", ctypes.c_char * _METADATA_LENGTH),
    )


class _Mount(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_char * _EXE_LENGTH),
        ("path", ctypes.c_char * _EXE_LENGTH),
    )


class _NameTable(ctypes.Structure):
    """A hash table (uthash) of one name; the library only follows `next`, so the rest stays 0."""

    _fields_ = (
        ("name_record", ctypes.c_char_p),
        ("table", ctypes.c_void_p),
        ("previous", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
        ("bucket_previous", ctypes.c_void_p),
        ("bucket_next", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("key_length", ctypes.c_uint),
        ("hash", ctypes.c_uint),
    )


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(library_path("writing a Darshan log"))
    log, text, number, struct_ = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_void_p
    library.darshan_log_create.restype = log
    library.darshan_log_create.argtypes = [text, number, number]
    library.darshan_log_put_job.argtypes = [log, struct_]
    library.darshan_log_put_exe.argtypes = [log, text]
    library.darshan_log_put_mounts.argtypes = [log, struct_, number]
    library.darshan_log_put_namehash.argtypes = [log, struct_]
    library.darshan_log_put_mod.argtypes = [log, number, text, number, number]
    library.darshan_log_close.argtypes = [log]
    library.darshan_log_close.restype = None
    return library


@contextmanager
def _created(path: Path, partial_flag: int) -> Iterator[int]:
    """Open a new log; at the end, write its header and make the file writable."""
    path.unlink(missing_ok=True)
    log = _library().darshan_log_create(str(path).encode(), _ZLIB, partial_flag)
    if log is None:
        path.unlink(missing_ok=True)
        msg = f"libdarshan-util cannot create {path}"
        raise OSError(msg)
    try:
        yield log
    finally:
        _library().darshan_log_close(log)
    path.chmod(0o644)


def _check(what: str, status: int) -> None:
    if status != 0:
        msg = f"libdarshan-util cannot write {what}"
        raise OSError(msg)


def _job(
    nprocs: int, jobid: int, uid: int, start: tuple[int, int], end: tuple[int, int], metadata: str
) -> _Job:
    # Leave room for the newline that the library may add, and for the final NUL.
    _require_room("metadata", metadata, _METADATA_LENGTH - 1)
    return _Job(uid, *start, *end, nprocs, jobid, metadata.encode())


def _mount_table(mounts: Sequence[tuple[str, str]], exe: str) -> ctypes.Array[_Mount]:
    lines = (f"\n{kind}\t{path}" for path, kind in mounts)
    _require_room("exe and mounts", exe + "".join(lines), _EXE_LENGTH)
    return (_Mount * len(mounts))(*(_Mount(kind.encode(), path.encode()) for path, kind in mounts))


def _names(
    records: Iterable[Record], heatmaps: Iterable[Heatmap], dxt: Iterable[Dxt]
) -> Iterable[str]:
    """Names of everything that has a record, once each, in the order of first use."""
    return dict.fromkeys(
        [
            *(record.path for record in records),
            *(trace.path for trace in dxt),
            *(heatmap.name for heatmap in heatmaps),
        ]
    )


def _name_record(name: str) -> bytes:
    _require_room("name", name, _NAME_LENGTH)
    return struct.pack("<Q", record_id(name)) + name.encode() + b"\0"


def _record_bytes(record: Record) -> bytes:
    names, float_names = counter_names(record.module)
    return (
        struct.pack("<Qq", record_id(record.path), record.rank)
        + _values_bytes("q", names, record.counters)
        + _values_bytes("d", float_names, record.fcounters)
    )


def _values_bytes(kind: str, names: Sequence[str], values: Mapping[str, float]) -> bytes:
    unknown = values.keys() - set(names)
    if unknown:
        raise KeyError(*sorted(unknown))
    return struct.pack(f"<{len(names)}{kind}", *(values.get(name, 0) for name in names))


def _heatmap_bytes(heatmap: Heatmap) -> bytes:
    n_bins = len(heatmap.write_bins)
    if len(heatmap.read_bins) != n_bins:
        msg = f"{n_bins} write bins but {len(heatmap.read_bins)} read bins"
        raise ValueError(msg)
    # Darshan writes its whole structure, with two pointers that mean nothing in a log.
    head = (record_id(heatmap.name), heatmap.rank, heatmap.bin_width_seconds, n_bins, 0, 0)
    return struct.pack(f"<QqdqQQ{2 * n_bins}q", *head, *heatmap.write_bins, *heatmap.read_bins)


def _dxt_bytes(trace: Dxt) -> bytes:
    _require_room("hostname", trace.hostname, _HOSTNAME_LENGTH)
    head = struct.pack(
        f"<Qqq{_HOSTNAME_LENGTH}sqq",
        record_id(trace.path),
        trace.rank,
        0,
        trace.hostname.encode(),
        len(trace.writes),
        len(trace.reads),
    )
    return head + b"".join(
        struct.pack("<qqdd", *segment) for segment in (*trace.writes, *trace.reads)
    )


def _require_room(what: str, text: str, length: int) -> None:
    """Check that a text with its final NUL fits into `length` bytes."""
    size = len(text.encode())
    if size >= length:
        msg = f"{what}: {size} bytes, but Darshan has room for {length - 1}"
        raise ValueError(msg)
