"""The uncompressed header of a Darshan 3.x log, the job record and the file names.

The header maps each module to a compressed region of the file. In every log that Darshan or its
converters write, these regions follow one another without gaps or overlaps up to the end of the
file. So a truncated file or a damaged map is found before anything is decompressed. The layout is
that of darshan-log-format.h of Darshan 3.0 to 3.5.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from typing import Literal

from ioncast_base.errors import DamagedLogError, InputError

MAGIC_NUMBER = 6567223
KNOWN_VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
# Longer than any header, so one read is enough.
MAX_HEADER_BYTES = 2048

# Modules by index in format 3.41. Earlier formats lack some of them (see `_module_names`).
MODULES = (
    "NULL",
    "POSIX",
    "MPI-IO",
    "H5F",
    "H5D",
    "PNETCDF_FILE",
    "PNETCDF_VAR",
    "BG/Q",
    "LUSTRE",
    "STDIO",
    "DXT_POSIX",
    "DXT_MPIIO",
    "MDHIM",
    "APXC",
    "APMPI",
    "HEATMAP",
    "DFS",
    "DAOS",
)
_METADATA_BYTES = 1024
_MAX_JOB_BYTES = 64 << 10
_MAX_NAMES_BYTES = 256 << 20
_MAX_NAMES = 4_000_000
_NAME_RECORD = re.compile(rb"(.{8})([^\0]*)\0", re.DOTALL)
_CHUNK_BYTES = 64 << 10
_ZLIB = 0


@dataclass(frozen=True)
class Region:
    """The place of a module's compressed records: `offset` and `length` in bytes."""

    offset: int
    length: int


@dataclass(frozen=True)
class Header:
    """The header of a log, which tells where its contents are."""

    version: str
    byte_order: Literal["<", ">"]
    size: int
    names: Region
    modules: dict[str, Region]
    module_versions: dict[str, int]
    partial_modules: frozenset[str]

    def regions(self) -> list[Region]:
        """List all regions behind the job record, in the order of the file."""
        used = [region for region in (self.names, *self.modules.values()) if region.length]
        return sorted(used, key=lambda region: region.offset)


@dataclass(frozen=True)
class Job:
    """The job record: `nprocs` processes, times in seconds since the epoch."""

    id: int
    uid: int
    nprocs: int
    start_seconds: float
    end_seconds: float
    executable: str


def parse_header(blob: bytes, where: str) -> Header:
    """Decode the header at the start of a log.

    Parameters
    ----------
    blob : bytes
        The first `MAX_HEADER_BYTES` of the file, or all of it.
    where : str
        The file's name, for errors.

    Raises
    ------
    InputError
        When this is not a Darshan log, or a log of an unknown version or compression.
    DamagedLogError
        When the file ends within the header.
    """
    byte_order = _byte_order(blob, where)
    version = blob[:8].split(b"\0")[0].decode("ascii", "replace")
    if version not in KNOWN_VERSIONS:
        raise InputError(
            f"Darshan log format {version!r} is not one of {', '.join(KNOWN_VERSIONS)}",
            where=where,
            remedy="convert the log with darshan-convert",
        )
    slots = 64 if version >= "3.41" else 16
    flag = "7xQ" if version >= "3.41" else "3xI"
    layout = struct.Struct(f"{byte_order}8sqB{flag}{2 + 2 * slots}Q{slots}I")
    if len(blob) < layout.size:
        raise truncated(where)
    _, _, compression, partial, *rest = layout.unpack_from(blob)
    if compression != _ZLIB:
        raise InputError(
            "the log is not compressed with zlib, the only method that can be read",
            where=where,
            remedy="convert it with darshan-convert",
        )
    maps, versions = rest[: 2 + 2 * slots], rest[2 + 2 * slots :]
    modules, module_versions, partial_modules = {}, {}, set()
    for index, name in enumerate(_module_names(version, slots)):
        region = Region(*maps[2 + 2 * index : 4 + 2 * index])
        if region.length:
            modules[name] = region
            module_versions[name] = versions[index]
        if partial >> index & 1:
            partial_modules.add(name)
    return Header(
        version=version,
        byte_order=byte_order,
        size=layout.size,
        names=Region(*maps[:2]),
        modules=modules,
        module_versions=module_versions,
        partial_modules=frozenset(partial_modules),
    )


def check_regions(header: Header, file_bytes: int, where: str) -> None:
    """Reject a log whose regions do not fill the file one after the other."""
    regions = header.regions()
    position = regions[0].offset if regions else file_bytes
    if position < header.size:
        raise _inconsistent(where)
    for region in regions:
        if region.offset != position:
            raise _inconsistent(where)
        position += region.length
    if position > file_bytes:
        raise truncated(where)
    if position < file_bytes:
        raise DamagedLogError(
            f"{file_bytes - position} bytes follow the last module in the header",
            where=where,
            remedy="fetch the log again",
        )


def parse_job(header: Header, region: bytes, where: str) -> Job:
    """Decode the job record.

    Parameters
    ----------
    header : Header
        The log's header.
    region : bytes
        All bytes between the header and the next region, compressed. Some MPI-IO libraries
        write zeros in front of the stream. Darshan's own reader stops there; this function
        skips them.
    where : str
        The file's name, for errors.
    """
    streams = _inflate(region.lstrip(b"\0"), _MAX_JOB_BYTES, "job record", where)
    if len(streams) != 1:
        # One process writes one stream. More streams belong to modules that a damaged map lacks.
        raise _inconsistent(where)
    [record] = streams
    with_nanoseconds = header.version >= "3.41"
    fields = struct.Struct(f"{header.byte_order}{7 if with_nanoseconds else 5}q")
    if len(record) < fields.size + _METADATA_BYTES:
        raise DamagedLogError(
            "the job record is too short", where=where, remedy="fetch the log again"
        )
    values = fields.unpack_from(record)
    if with_nanoseconds:
        uid, start, start_ns, end, end_ns, nprocs, job_id = values
    else:
        uid, start, end, nprocs, job_id = values
        start_ns = end_ns = 0
    if nprocs < 1:
        raise DamagedLogError(
            f"the job record counts {nprocs} processes", where=where, remedy="fetch the log again"
        )
    command = record[fields.size + _METADATA_BYTES :].split(b"\n")[0].split(b"\0")[0]
    return Job(
        id=job_id,
        uid=uid,
        nprocs=nprocs,
        start_seconds=start + start_ns / 1e9,
        end_seconds=end + end_ns / 1e9,
        executable=command.decode("utf-8", "replace").strip(),
    )


def parse_names(header: Header, region: bytes, where: str) -> dict[int, str]:
    """Decode the names of the files behind the record ids.

    Parameters
    ----------
    header : Header
        The log's header.
    region : bytes
        The region of the names, compressed.
    where : str
        The file's name, for errors.
    """
    data = b"".join(_inflate(region, _MAX_NAMES_BYTES, "file names", where))
    records = _split_names_3_00(header, data) if header.version == "3.00" else _split_names(data)
    if records is None:
        raise _unreadable("file names", where)
    ids = struct.unpack(f"{header.byte_order}{len(records)}Q", b"".join(id_ for id_, _ in records))
    texts = b"\0".join(name for _, name in records).decode("utf-8", "replace").split("\0")
    names = dict(zip(ids, texts, strict=False))
    if len(names) < len(records):
        # Each process writes the ids, but some write empty names; do not let these win.
        names |= {id_: text for id_, text in zip(ids, texts, strict=True) if text}
    return names


def _split_names(data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Split records of an id and a name that ends with a zero; None for other bytes."""
    if data.count(0) > _MAX_NAMES:
        return None
    records: list[tuple[bytes, bytes]] = _NAME_RECORD.findall(data)
    return records if sum(9 + len(name) for _, name in records) == len(data) else None


def _split_names_3_00(header: Header, data: bytes) -> list[tuple[bytes, bytes]] | None:
    """Split records of an id, the length of a name and the name; None for other bytes."""
    length = struct.Struct(f"{header.byte_order}I")
    records: list[tuple[bytes, bytes]] = []
    position = 0
    while position + 12 <= len(data) and len(records) < _MAX_NAMES:
        end = position + 12 + length.unpack_from(data, position + 8)[0]
        records.append((data[position : position + 8], data[position + 12 : end]))
        position = end
    return records if position == len(data) else None


def truncated(where: str) -> DamagedLogError:
    """Make the error for a file that is shorter than its header says."""
    return DamagedLogError(
        "the log is truncated", where=where, remedy="fetch it again, or use the log of another run"
    )


def _byte_order(blob: bytes, where: str) -> Literal["<", ">"]:
    if len(blob) >= 16:
        if struct.unpack_from("<q", blob, 8)[0] == MAGIC_NUMBER:
            return "<"
        if struct.unpack_from(">q", blob, 8)[0] == MAGIC_NUMBER:
            return ">"
    raise InputError("not a Darshan log", where=where, remedy="give a .darshan file")


def _module_names(version: str, slots: int) -> list[str]:
    names = list(MODULES)
    if version < "3.41":
        names.remove("PNETCDF_VAR")
    if version < "3.20":
        names.remove("H5D")
    names = names[:slots]
    return names + [f"module {index}" for index in range(len(names), slots)]


def _inflate(region: bytes, max_bytes: int, what: str, where: str) -> list[bytes]:
    """Decompress a region, with a zlib stream for each process that wrote to it."""
    streams: list[bytes] = []
    position = 0
    while position < len(region):
        stream = zlib.decompressobj()
        pieces: list[bytes] = []
        while not stream.eof and position < len(region):
            chunk = region[position : position + _CHUNK_BYTES]
            try:
                pieces.append(stream.decompress(chunk, max_bytes + 1))
            except zlib.error as error:
                raise _unreadable(what, where) from error
            max_bytes -= len(pieces[-1])
            if max_bytes < 0:
                raise _unreadable(what, where)
            position += len(chunk) - len(stream.unused_data)
        if not stream.eof:
            raise _unreadable(what, where)
        streams.append(b"".join(pieces))
    return streams


def _unreadable(what: str, where: str) -> DamagedLogError:
    return DamagedLogError(
        f"the {what} cannot be decompressed", where=where, remedy="fetch the log again"
    )


def _inconsistent(where: str) -> DamagedLogError:
    return DamagedLogError(
        "the header's map of the file has gaps or overlaps",
        where=where,
        remedy="fetch the log again",
    )
