"""Computes Darshan's counters from the requests that the bundled ranks noted.

The counters mean the same as in Darshan 3.5's POSIX and MPI-IO modules. Counters of things that
the ranks do not note (alignment, strides, heatmaps) stay 0.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.applications.darshan_writer import CounterModule, Record, write_log

# Upper edge in bytes, inclusive, of each bar of Darshan's histogram of request sizes, and the end
# of its counter's name.
_SIZE_BINS = (
    (100, "0_100"),
    (1 << 10, "100_1K"),
    (10 << 10, "1K_10K"),
    (100 << 10, "10K_100K"),
    (1 << 20, "100K_1M"),
    (4 << 20, "1M_4M"),
    (10 << 20, "4M_10M"),
    (100 << 20, "10M_100M"),
    (1 << 30, "100M_1G"),
    (math.inf, "1G_PLUS"),
)
# Darshan lists so many of the most common request sizes.
_COMMON_SIZES = 4


@dataclass(frozen=True)
class Request:
    """One request: offset and size in bytes, start and end in seconds."""

    offset: int
    size: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class FileUse:
    """The I/O of one process on one file, opened once; times are seconds since the job's start.

    Attributes
    ----------
    path : str
        Path of the file.
    rank : int
        Number of the process.
    api : {"POSIX", "MPIIO"}
        The interface; MPI-IO calls are collective.
    operation : {"write", "read"}
        Operation of all requests.
    opened_s, closed_s : (float, float)
        Start and end of the calls that open and close the file.
    requests : tuple of Request
        The requests in their order; at least one.
    """

    path: str
    rank: int
    api: Literal["POSIX", "MPIIO"]
    operation: Literal["write", "read"]
    opened_s: tuple[float, float]
    closed_s: tuple[float, float]
    requests: tuple[Request, ...]

    @property
    def bytes(self) -> int:
        """Bytes of all requests."""
        return sum(request.size for request in self.requests)

    @property
    def transfer_time_s(self) -> float:
        """Time spent in requests."""
        return sum(request.end_s - request.start_s for request in self.requests)

    @property
    def meta_time_s(self) -> float:
        """Time spent opening and closing."""
        return sum(end - start for start, end in (self.opened_s, self.closed_s))


def write_counters_log(
    path: Path,
    uses: Iterable[FileUse],
    *,
    tasks: int,
    program: str,
    started_s: float,
    run_time_s: float,
    scratch: Path,
) -> Path:
    """Write the Darshan log of a run; its metadata say that ioncast wrote it.

    Parameters
    ----------
    path : Path
        Path of the log.
    uses : iterable of FileUse
        One for each file and process.
    tasks : int
        Number of processes of the job.
    program : str
        Name of the program that ran.
    started_s, run_time_s : float
        Start of the job in seconds since the epoch, and its run time in seconds.
    scratch : Path
        Mount point of the file system.

    Returns
    -------
    Path
        `path`.
    """
    return write_log(
        path,
        nprocs=tasks,
        records=records(uses, tasks),
        exe=program,
        start=_seconds_and_nanoseconds(started_s),
        end=_seconds_and_nanoseconds(started_s + run_time_s),
        mounts=((str(scratch), "fuse.glusterfs"), ("/", "ext4")),
        metadata="lib_ver=3.5.0\nwritten_by=ioncast\n",
    )


def records(uses: Iterable[FileUse], tasks: int) -> list[Record]:
    """Count as Darshan does: a file that all processes use has one record, of rank -1.

    Parameters
    ----------
    uses : iterable of FileUse
        One for each file and process.
    tasks : int
        Number of processes of the job.

    Returns
    -------
    list of Record
        Ordered by file, then by rank.
    """
    by_file: dict[str, list[FileUse]] = {}
    for use in uses:
        by_file.setdefault(use.path, []).append(use)
    return [
        record
        for of_file in by_file.values()
        for record in (
            [_reduced(of_file)]
            if len(of_file) == tasks > 1
            else [_record([use], use.rank) for use in of_file]
        )
    ]


def size_bin(size_bytes: int) -> str:
    """Find the bar of Darshan's histogram of request sizes that counts a request.

    Parameters
    ----------
    size_bytes : int
        Size of the request.

    Returns
    -------
    str
        The end of the counter's name.

    Examples
    --------
    >>> size_bin(1024), size_bin(1025)
    ('100_1K', '1K_10K')
    """
    return next(name for edge, name in _SIZE_BINS if size_bytes <= edge)


def _reduced(uses: Sequence[FileUse]) -> Record:
    """Reduce the records of all ranks to one, with the fastest and the slowest rank."""
    record = _record(uses, rank=-1)
    prefix = uses[0].api
    times = [use.transfer_time_s + use.meta_time_s for use in uses]
    extremes = {
        "FASTEST": min(range(len(uses)), key=times.__getitem__),
        "SLOWEST": max(range(len(uses)), key=times.__getitem__),
    }
    counters, fcounters = dict(record.counters), dict(record.fcounters)
    for which, index in extremes.items():
        counters[f"{prefix}_{which}_RANK"] = uses[index].rank
        counters[f"{prefix}_{which}_RANK_BYTES"] = uses[index].bytes
        fcounters[f"{prefix}_F_{which}_RANK_TIME"] = times[index]
    fcounters[f"{prefix}_F_VARIANCE_RANK_TIME"] = statistics.pvariance(times)
    fcounters[f"{prefix}_F_VARIANCE_RANK_BYTES"] = statistics.pvariance(
        [float(use.bytes) for use in uses]
    )
    return Record(record.module, record.path, -1, counters, fcounters)


def _record(uses: Sequence[FileUse], rank: int) -> Record:
    """Sum the I/O of some ranks on one file."""
    api, operation = uses[0].api, uses[0].operation
    module: CounterModule = "POSIX" if api == "POSIX" else "MPI-IO"
    counters = _order_counters(uses) if api == "POSIX" else _collective_counters(uses)
    counters |= _size_counters(uses)
    slowest = max(
        (request for use in uses for request in use.requests),
        key=lambda request: request.end_s - request.start_s,
    )
    verb = operation.upper()
    counters[f"{api}_MAX_{verb}_TIME_SIZE"] = slowest.size
    fcounters = {
        f"F_MAX_{verb}_TIME": slowest.end_s - slowest.start_s,
        f"F_{verb}_TIME": sum(use.transfer_time_s for use in uses),
        "F_META_TIME": sum(use.meta_time_s for use in uses),
        "F_OPEN_START_TIMESTAMP": min(use.opened_s[0] for use in uses),
        "F_OPEN_END_TIMESTAMP": max(use.opened_s[1] for use in uses),
        f"F_{verb}_START_TIMESTAMP": min(use.requests[0].start_s for use in uses),
        f"F_{verb}_END_TIMESTAMP": max(use.requests[-1].end_s for use in uses),
        "F_CLOSE_START_TIMESTAMP": min(use.closed_s[0] for use in uses),
        "F_CLOSE_END_TIMESTAMP": max(use.closed_s[1] for use in uses),
    }
    named = {f"{api}_{name}": value for name, value in fcounters.items()}
    return Record(module, uses[0].path, rank, counters, named)


def _order_counters(uses: Sequence[FileUse]) -> dict[str, int]:
    """Count POSIX opens and requests, and the consecutive and sequential requests among them."""
    verbs, moved = _plural(uses)
    consecutive = sequential = 0
    for use in uses:
        # Darshan starts as if byte 0 had been accessed before.
        lasts = itertools.chain([0], (r.offset + r.size - 1 for r in use.requests))
        for last, request in zip(lasts, use.requests, strict=False):
            consecutive += request.offset == last + 1
            sequential += request.offset > last
    return {
        "POSIX_OPENS": len(uses),
        f"POSIX_{verbs}": sum(len(use.requests) for use in uses),
        f"POSIX_CONSEC_{verbs}": consecutive,
        f"POSIX_SEQ_{verbs}": sequential,
        f"POSIX_BYTES_{moved}": sum(use.bytes for use in uses),
        f"POSIX_MAX_BYTE_{moved}": max(
            request.offset + request.size - 1 for use in uses for request in use.requests
        ),
    }


def _collective_counters(uses: Sequence[FileUse]) -> dict[str, int]:
    verbs, moved = _plural(uses)
    return {
        "MPIIO_COLL_OPENS": len(uses),
        f"MPIIO_COLL_{verbs}": sum(len(use.requests) for use in uses),
        f"MPIIO_BYTES_{moved}": sum(use.bytes for use in uses),
    }


def _plural(uses: Sequence[FileUse]) -> tuple[str, str]:
    return ("WRITES", "WRITTEN") if uses[0].operation == "write" else ("READS", "READ")


def _size_counters(uses: Sequence[FileUse]) -> dict[str, int]:
    """Count the requests by size: Darshan's histogram and the four most common sizes."""
    api = uses[0].api
    kind = uses[0].operation.upper() + ("_AGG" if api == "MPIIO" else "")
    sizes = Counter(request.size for use in uses for request in use.requests)
    counters: Counter[str] = Counter()
    for size, count in sizes.items():
        counters[f"{api}_SIZE_{kind}_{size_bin(size)}"] += count
    for number, (size, count) in enumerate(sizes.most_common(_COMMON_SIZES), start=1):
        counters[f"{api}_ACCESS{number}_ACCESS"] = size
        counters[f"{api}_ACCESS{number}_COUNT"] = count
    return dict(counters)


def _seconds_and_nanoseconds(time_s: float) -> tuple[int, int]:
    seconds = math.floor(time_s)
    return seconds, int((time_s - seconds) * 1e9)
