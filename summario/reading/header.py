"""The uncompressed header of a Darshan 3.x log: the map of its contents.

The header maps each module to a compressed region. In every log that Darshan or its converters
write, the regions follow one another without gaps or overlaps up to the end of the file. So a
truncated file or a damaged map is found before anything is decompressed. The layout is that of
darshan-log-format.h of Darshan 3.0 to 3.5.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from typing import Literal

from ioncast_base.errors import DamagedLogError, InputError
from summario.reading.inflate import can_inflate

MAGIC_NUMBER = 6567223
KNOWN_VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
# Longer than any header, so one read is enough.
MAX_HEADER_BYTES = 2048
# The version at the start of older logs, such as "2.06"; Darshan 1 wrote no magic number after it.
_OF_DARSHAN_1_AND_2 = re.compile(rb"([12])\.\d\d\0{4}")
# The number of no compression in the header: a log that is mapped into memory while the job runs.
_UNCOMPRESSED = 2

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
    compression: int
    size: int
    names: Region
    modules: dict[str, Region]
    module_versions: dict[str, int]
    partial_modules: frozenset[str]

    def regions(self) -> list[Region]:
        """List all regions behind the job record, in the order of the file."""
        used = [region for region in (self.names, *self.modules.values()) if region.length]
        return sorted(used, key=lambda region: region.offset)


def parse_header(blob: bytes, where: str) -> Header:
    """Decode the header at the start of a log."""
    if (old := _OF_DARSHAN_1_AND_2.match(blob)) is not None:
        raise InputError(
            f"Darshan {old[1].decode()} wrote this log, which only its own tools read",
            where=where,
            remedy="run the program with Darshan 3: no tool converts older logs",
        )
    byte_order = _byte_order(blob, where)
    version = blob[:8].split(b"\0")[0].decode("ascii", "replace")
    if version not in KNOWN_VERSIONS:
        raise InputError(
            f"Darshan log format {version!r} is not one of {', '.join(KNOWN_VERSIONS)}",
            where=where,
            remedy="install a newer ioncast",
        )
    slots = _slots(version)
    layout = _layout(byte_order, slots)
    if len(blob) < layout.size:
        raise truncated(where)
    _, _, compression, partial, *rest = layout.unpack_from(blob)
    if compression == _UNCOMPRESSED:
        raise InputError(
            "a killed job left this log unfinished",
            where=where,
            remedy="make a log from all unfinished logs of the job with darshan-merge",
        )
    if not can_inflate(compression):
        raise InputError(
            f"the log is compressed with method {compression}, but only zlib and bzip2 can be read",
            where=where,
            remedy="convert it with darshan-convert",
        )
    maps, versions = rest[: 2 + 2 * slots], rest[2 + 2 * slots :]
    module_names = _module_names(version)
    modules, module_versions = {}, {}
    for name, offset, length, number in zip(
        module_names, maps[2::2], maps[3::2], versions, strict=True
    ):
        if length:
            modules[name] = Region(offset, length)
            module_versions[name] = number
    return Header(
        version=version,
        byte_order=byte_order,
        compression=compression,
        size=layout.size,
        names=Region(*maps[:2]),
        modules=modules,
        module_versions=module_versions,
        partial_modules=frozenset(
            name
            for index, name in enumerate(module_names if partial else ())
            if partial >> index & 1
        ),
    )


def check_regions(header: Header, file_bytes: int, where: str) -> None:
    """Reject a log whose regions do not fill the file one after the other."""
    regions = header.regions()
    position = regions[0].offset if regions else file_bytes
    if position < header.size:
        raise inconsistent(where)
    for region in regions:
        if region.offset != position:
            raise inconsistent(where)
        position += region.length
    if position > file_bytes:
        raise truncated(where)
    if position < file_bytes:
        raise DamagedLogError(
            f"{file_bytes - position} bytes follow the last module in the header",
            where=where,
            remedy="fetch the log again",
        )


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


def _slots(version: str) -> int:
    return 64 if version >= "3.41" else 16


@cache
def _layout(byte_order: str, slots: int) -> struct.Struct:
    flag = "7xQ" if slots == 64 else "3xI"
    return struct.Struct(f"{byte_order}8sqB{flag}{2 + 2 * slots}Q{slots}I")


@cache
def _module_names(version: str) -> tuple[str, ...]:
    names, slots = list(MODULES), _slots(version)
    if version < "3.41":
        names.remove("PNETCDF_VAR")
    if version < "3.20":
        names.remove("H5D")
    names = names[:slots]
    return (*names, *(f"module {index}" for index in range(len(names), slots)))


def inconsistent(where: str) -> DamagedLogError:
    """Make the error for a header that contradicts the file."""
    return DamagedLogError(
        "the header's map of the file has gaps or overlaps",
        where=where,
        remedy="fetch the log again",
    )
