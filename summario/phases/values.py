"""`Phase`, `Part` and `Extraction`: the result of the extraction."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ioncast_base.kinds import Kind
from summario.runs.hosts import NodeCount

# In a random order at most this share of the requests follows the request before them, ...
_FOLLOWING = 0.2
# ... or the share by chance and so many standard deviations.
_DEVIATIONS = 3


@dataclass(frozen=True)
class Part:
    """The requests of one size in a phase; `bytes` is for all of them together."""

    requests: int
    bytes: int

    @property
    def request_bytes(self) -> float:
        """Bytes per request; a mean if the log does not tell the sizes apart."""
        return self.bytes / self.requests


@dataclass(frozen=True)
class Phase:
    """I/O of one kind: one operation, api, spatiality and file access.

    Times are seconds since the job's start. `io_time_seconds` is the time that the slowest
    process spent in I/O calls; it is at most the phase's duration. None means not known, except
    for `rank`.

    Attributes
    ----------
    job : int or str
        Darshan's job id, or the job's name in a table.
    rank : int or None
        The rank of the process, if only one took part.
    processes, nprocs : int, int or None
        The processes that took part, and all processes of the job.
    bytes, requests : int
        The moved bytes, and the number of read or write calls; 0 if the source does not tell.
    spatiality : str
        "contiguous", "sequential" or "random"; MPI-IO: "collective" or "unknown".
    file_access : str
        "shared" or "unique".
    mode_processes : int
        The most frequent number of processes per file.
    parts : tuple of Part
        The requests by size, most bytes first. Their bytes add up to `bytes`; none if the number
        of requests is not known.
    partial : bool
        Whether the log lacks records of this api or of these files.
    metadata_seconds : float or None
        The longest time of a process in metadata calls (open, close, stat, seek and others) of
        the phase's files.
    fsync : str or None
        Whether the processes call fsync: "none", once at the "end", or after "each" request. A read
        has "none".
    order : str or None
        The order of the requests: "contiguous", "sequential" or "random".
        With POSIX and STDIO it is the spatiality, but a "random" one is not known if many requests
        follow one another: there are two orders, or blocks of requests in random order. A
        collective phase is "contiguous" if each process has a block of the file, and "sequential"
        if the processes' requests interleave.
    block_requests : float or None
        The mean number of requests of a process that follow one another in a file (a block).
    aggregators, amplification : int or None, float or None
        Of a collective phase: the processes that called POSIX, and the bytes that they moved there,
        per byte that the phase asked for.
    elapsed_seconds : float or None
        The time from the first open or access of the phase's files to their last access or close,
        without longer pauses.
    largest_process_bytes, largest_node_bytes, nodes : int or None
        By a trace: the bytes of the process, and of the compute node, that moves most, and the
        number of compute nodes that took part, by their host names.
    """

    job: int | str
    start_seconds: float
    end_seconds: float
    operation: str
    rank: int | None
    processes: int
    nprocs: int | None
    bytes: int
    io_time_seconds: float
    api: str
    requests: int
    spatiality: str
    file_access: str
    n_files: int
    mode_processes: int
    parts: tuple[Part, ...]
    partial: bool = False
    log: str = ""
    metadata_seconds: float | None = None
    fsync: str | None = None
    order: str | None = None
    block_requests: float | None = None
    aggregators: int | None = None
    amplification: float | None = None
    elapsed_seconds: float | None = None
    largest_process_bytes: int | None = None
    largest_node_bytes: int | None = None
    nodes: int | None = None

    def __post_init__(self) -> None:
        order = self.order if self.api == "MPIIO" else self.spatiality
        if order == "random" and self._has_blocks:
            order = None
        object.__setattr__(self, "order", order)

    @property
    def _has_blocks(self) -> bool:
        """Whether more requests follow one another than in a random order of the requests.

        With n requests of each process, a share of 1/n does so by chance.
        """
        if not (self.block_requests and self.requests):
            return False
        following = 1 - 1 / self.block_requests
        by_chance = min(self.processes / self.requests, 1)
        deviation = math.sqrt(by_chance / self.requests)
        return following > max(_FOLLOWING, by_chance + _DEVIATIONS * deviation)

    @property
    def kind(self) -> Kind:
        """Operation, api, spatiality and file access."""
        return Kind(self.operation, self.api, self.spatiality, self.file_access)

    @property
    def is_mostly_metadata(self) -> bool:
        """Whether metadata calls take longer than reads and writes."""
        return self.metadata_seconds is not None and self.metadata_seconds > self.io_time_seconds

    @property
    def ranks(self) -> int | str:
        """SummarIO's `rank` column: a rank, a number of ranks, or "all"."""
        if self.rank is not None:
            return self.rank
        return "all" if self.processes == self.nprocs else self.processes


@dataclass(frozen=True)
class Extraction:
    """The phases of a job, and warnings about data that they lack.

    `nodes` is None if the source names no compute nodes, `job` if the source is a CSV; a log
    without phases has its job's id too.
    """

    phases: tuple[Phase, ...]
    warnings: tuple[str, ...] = ()
    nodes: NodeCount | None = None
    job: int | str | None = None
