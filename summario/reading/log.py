"""Reading of a Darshan log to one array of records for each module.

Everything is decompressed and decoded in this process, within a limit of bytes, and compared with
the header, the layout of its module and the job's ranks. So a damaged log is an error and never a
shorter list.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from ioncast_base.errors import DamagedLogError, InputError
from summario.reading.apmpi import MODULE as APMPI
from summario.reading.apmpi import inflate_hosts
from summario.reading.header import (
    MAX_HEADER_BYTES,
    Header,
    Region,
    check_regions,
    parse_header,
    truncated,
)
from summario.reading.inflate import (
    InflateError,
    TooLargeError,
    inflate_joined,
    inflate_together,
    most_inflated_bytes,
)
from summario.reading.job import DarshanJob, parse_job
from summario.reading.layouts import COUNTER_MODULES
from summario.reading.names import parse_names
from summario.reading.packed import unpacked
from summario.reading.records import Records, parse_records, unreadable

# The records of the phases: damage to them is an error.
RECORD_MODULES = ("POSIX", "MPI-IO", "STDIO")
TRACE_MODULES = ("HEATMAP", "DXT_POSIX", "DXT_MPIIO")
PHASE_MODULES = (*RECORD_MODULES, *TRACE_MODULES)
MAX_BYTES = 2 << 30
_Data = TypeVar("_Data")


@dataclass(frozen=True)
class DarshanLog:
    """A Darshan log, read and checked, with sentences about partial and unreadable modules.

    `records` has the modules with counters; `traces` raw data of all others that were read, such as
    HEATMAP and DXT, but of APMPI only the host names. `names` has paths by record id; some ids have
    no path.
    """

    path: str
    job: DarshanJob
    records: dict[str, Records]
    traces: dict[str, bytes]
    names: dict[int, str]
    header: Header
    warnings: tuple[str, ...]


def read_log(
    path: str | Path, max_bytes: int = MAX_BYTES, modules: Collection[str] = PHASE_MODULES
) -> DarshanLog:
    """Read a Darshan 3.x log of at most `max_bytes`, compressed or not.

    Of `modules`, those that the log does not have are left out. A damaged module is left out with a
    warning, or is an error if it is in `RECORD_MODULES`.

    Raises
    ------
    InputError
        When the file cannot be opened or is not a Darshan log.
    DamagedLogError
        When its contents contradict its header, or it holds more than `max_bytes`.

    Examples
    --------
    >>> log = read_log("tests/summario/fixtures/single-a.darshan")
    >>> log.job.nprocs, sorted(log.records)
    (32, ['POSIX'])
    """
    with opened_log(path) as file:
        return decode_log(file, str(path), max_bytes, modules)


@contextmanager
def opened_log(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a log's file for a block; see `read_log` for the errors."""
    path, where = Path(path), str(path)
    try:
        if stat.S_ISFIFO(path.stat().st_mode):
            raise InputError("a pipe, not a file", where=where, remedy="give a .darshan file")
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InputError(error.strerror or str(error), where=where) from error


def decode_log(
    file: IO[bytes],
    where: str,
    max_bytes: int = MAX_BYTES,
    modules: Collection[str] = PHASE_MODULES,
) -> DarshanLog:
    """Read a Darshan 3.x log from an open file, also one made by gzip, as `read_log` does."""
    file = unpacked(file, where, max_bytes)
    file_bytes = file.seek(0, os.SEEK_END)
    file.seek(0)
    header = parse_header(file.read(MAX_HEADER_BYTES), where)
    check_regions(header, file_bytes, where)
    if file_bytes > max_bytes:
        raise _too_large(where)
    regions = header.regions()
    job_end = regions[0].offset if regions else file_bytes
    job_region = Region(header.size, job_end - header.size)
    job = parse_job(header, _compressed(file, job_region, where), where)
    names = parse_names(header, _compressed(file, header.names, where), where)
    left = most_inflated_bytes(file_bytes, max_bytes)
    wanted = [module for module in header.modules if module in modules]
    records, traces, unread = _read_modules(file, header, wanted, job.nprocs, left, where)
    return DarshanLog(
        path=where,
        job=job,
        records=records,
        traces=traces,
        names=names,
        header=header,
        warnings=(
            *partial_warnings(header),
            *(f"the {module} data cannot be read and is not used" for module in unread),
        ),
    )


def _read_modules(
    file: IO[bytes],
    header: Header,
    modules: Iterable[str],
    nprocs: int,
    max_bytes: int,
    where: str,
) -> tuple[dict[str, Records], dict[str, bytes], list[str]]:
    """Read modules: those with counters, the raw data of others, and the names of damaged ones."""
    records: dict[str, Records] = {}
    traces: dict[str, bytes] = {}
    unread = []
    for module in modules:
        content = _compressed(file, header.modules[module], where)
        try:
            if module in COUNTER_MODULES:
                data = _inflated(inflate_together, module, content, header, max_bytes, where)
                records[module] = parse_records(module, data, header, nprocs, where)
                max_bytes -= len(data)
            else:
                inflated = inflate_hosts if module == APMPI else inflate_joined
                traces[module] = _inflated(inflated, module, content, header, max_bytes, where)
                max_bytes -= len(traces[module])
        except InputError:
            if module in RECORD_MODULES:
                raise
            unread.append(module)
    return records, traces, unread


def partial_warnings(header: Header) -> list[str]:
    """Say which modules of phases lack records."""
    return [
        f"Darshan marked the {module} data as partial: it ran out of memory and left records out"
        for module in sorted(header.partial_modules & set(RECORD_MODULES))
    ]


def _inflated(
    inflated: Callable[[bytes, int, int], _Data],
    module: str,
    content: bytes,
    header: Header,
    max_bytes: int,
    where: str,
) -> _Data:
    try:
        return inflated(content, header.compression, max_bytes)
    except TooLargeError as error:
        raise _too_large(where) from error
    except InflateError as error:
        raise unreadable(module, where) from error


def _compressed(file: IO[bytes], region: Region, where: str) -> bytes:
    if not region.length:
        # Its offset means nothing, and may be too large to seek to.
        return b""
    file.seek(region.offset)
    content = file.read(region.length)
    if len(content) < region.length:
        raise truncated(where)
    return content


def _too_large(where: str) -> DamagedLogError:
    return DamagedLogError(
        "the log holds more bytes than can be read",
        where=where,
        remedy="use the log of another run",
    )
