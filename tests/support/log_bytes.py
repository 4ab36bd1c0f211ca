"""Writes Darshan logs of any byte order and module version, from the data of their modules.

`experiments.applications.darshan_writer` writes logs through libdarshan-util, so only in the byte
order of this machine and with the module versions of that library.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.applications.darshan_writer import Dxt, Heatmap, record_id
from summario.reading.header import MAGIC_NUMBER, MODULES, parse_header

_SLOTS = 64
_START_SECONDS = 1_700_000_000
# Version, magic number, compression and partial flags stand before the map of format 3.41.
_MAP_OFFSET = 32
_METADATA = b"lib_ver=3.5.0\n".ljust(1024, b"\0")
_COMMAND = b"application\next4\t/\0"


def write_modules(
    path: Path,
    modules: Mapping[str, tuple[int, bytes]],
    *,
    nprocs: int,
    byte_order: str = "<",
    names: Iterable[str] = (),
    partial: Iterable[str] = (),
    run_seconds: float = 100,
) -> Path:
    """Write a log of format 3.41; `modules` maps a name to its version and its data."""
    seconds, nanoseconds = divmod(round(run_seconds * 10**9), 10**9)
    end = (_START_SECONDS + seconds, nanoseconds)
    job = struct.pack(f"{byte_order}7q", 1000, _START_SECONDS, 0, *end, nprocs, 4242)
    job_region = zlib.compress(job + _METADATA + _COMMAND)
    name_records = (
        struct.pack(f"{byte_order}Q", record_id(name)) + name.encode() + b"\0" for name in names
    )
    regions = [zlib.compress(b"".join(name_records))]
    places = [(0, 0)] * _SLOTS
    versions = [0] * _SLOTS
    header = struct.Struct(f"{byte_order}8sqB7xQ{2 + 2 * _SLOTS}Q{_SLOTS}I")
    names_at = header.size + len(job_region)
    for name in sorted(modules, key=MODULES.index):
        version, data = modules[name]
        index = MODULES.index(name)
        at = names_at + sum(map(len, regions))
        regions.append(zlib.compress(data))
        places[index], versions[index] = (at, len(regions[-1])), version
    flags = sum(1 << MODULES.index(name) for name in partial)
    map_of_file = [number for place in ((names_at, len(regions[0])), *places) for number in place]
    head = header.pack(b"3.41", MAGIC_NUMBER, 0, flags, *map_of_file, *versions)
    path.write_bytes(head + job_region + b"".join(regions))
    return path


def without_zeros(log: bytes) -> bytes:
    """Remove zeros in front of the job record, which Darshan's own readers cannot read.

    Some MPI-IO libraries write them. Other bytes, and so all counters, stay as they are.
    """
    header = parse_header(log, "this log")
    job_region = log[header.size : header.names.offset]
    n_zeros = len(job_region) - len(job_region.lstrip(b"\0"))
    if n_zeros == 0:
        return log
    places = struct.Struct(f"{header.byte_order}{2 * (1 + _SLOTS)}Q")
    map_of_file = list(places.unpack_from(log, _MAP_OFFSET))
    map_of_file[::2] = [offset - n_zeros if offset else 0 for offset in map_of_file[::2]]
    end = _MAP_OFFSET + places.size
    return (
        log[:_MAP_OFFSET]
        + places.pack(*map_of_file)
        + log[end : header.size]
        + log[header.size + n_zeros :]
    )


def dxt_bytes(records: Iterable[Dxt], *, byte_order: str = "<", threads: bool = False) -> bytes:
    """Write the records of a DXT module; with `threads`, each request has a thread id at its end.

    DXT_POSIX has thread ids from version 2 on, DXT_MPIIO from version 3 on.
    """
    head = struct.Struct(f"{byte_order}Qqq64s2q")
    request = struct.Struct(f"{byte_order}2q2d{'Q' if threads else ''}")
    thread = (140_000_000_000_001,) if threads else ()
    return b"".join(
        head.pack(
            record_id(record.path),
            record.rank,
            0,
            record.hostname.encode(),
            len(record.writes),
            len(record.reads),
        )
        + b"".join(request.pack(*segment, *thread) for segment in (*record.writes, *record.reads))
        for record in records
    )


def heatmap_bytes(heatmaps: Iterable[Heatmap], *, byte_order: str = "<") -> bytes:
    """Write the records of the HEATMAP module; its log also needs their names."""
    data = b""
    for heatmap in heatmaps:
        bins = (*heatmap.write_bins, *heatmap.read_bins)
        head = (record_id(heatmap.name), heatmap.rank, heatmap.bin_width_seconds)
        # Behind the number of bins are two pointers, which mean nothing in a log.
        layout = struct.Struct(f"{byte_order}Qqdq2Q{len(bins)}q")
        data += layout.pack(*head, len(heatmap.write_bins), 0, 0, *bins)
    return data


@dataclass(frozen=True)
class Component:
    """A component of a file's layout on Lustre: stripe size, its OSTs, its extent."""

    size: int
    osts: Sequence[int]
    start: int = 0
    end: int = -1
    pattern: int = 0
    flags: int = 16
    mirror: int = 0
    pool: str = ""


def lustre_bytes_1(
    path: str, rank: int, size: int, osts: Sequence[int], *, byte_order: str = "<"
) -> bytes:
    """Write a record of version 1 on a file system of 248 OSTs and 5 metadata servers."""
    head = (record_id(path), rank, 248, 5, osts[0] if osts else -1, size, len(osts))
    return struct.pack(f"{byte_order}Q6q{len(osts)}q", *head, *osts)


def lustre_bytes_2(
    path: str, rank: int, components: Sequence[Component], *, byte_order: str = "<"
) -> bytes:
    """Write a record of version 2."""
    osts = [ost for each in components for ost in each.osts]
    head = struct.pack(f"{byte_order}Q3q", record_id(path), rank, len(components), len(osts))
    numbers = struct.Struct(f"{byte_order}7q16s")
    listed = (
        numbers.pack(
            each.size,
            len(each.osts),
            each.pattern,
            each.flags,
            each.start,
            each.end,
            each.mirror,
            each.pool.encode(),
        )
        for each in components
    )
    return head + b"".join(listed) + struct.pack(f"{byte_order}{len(osts)}q", *osts)
