"""The values that extraction returns."""

from __future__ import annotations

from dataclasses import dataclass

from ioncast_base.kinds import Kind


@dataclass(frozen=True)
class Part:
    """The requests of one size in a phase.

    Attributes
    ----------
    requests : int
        How many there were.
    bytes : int
        What they moved together.
    """

    requests: int
    bytes: int

    @property
    def request_bytes(self) -> float:
        """Bytes per request; a mean where the log does not know the sizes apart."""
        return self.bytes / self.requests


@dataclass(frozen=True)
class Phase:
    """I/O of one kind: one api, operation, spatiality and file access.

    Times are seconds since the job's start. `io_time_seconds` is the time the slowest
    process spent in I/O calls, which is at most the phase's duration.

    Attributes
    ----------
    job : int or str
        Darshan's job id, or what a table calls the job.
    start_seconds, end_seconds : float
        First and last moment of I/O.
    operation : str
        "read" or "write".
    rank : int or None
        The process, where it was a single one.
    processes : int
        How many processes took part.
    nprocs : int or None
        How many the job has; None where the source does not say.
    bytes, requests : int
        What was moved, in how many calls.
    io_time_seconds : float
        The longest I/O time of a process.
    api : str
        "POSIX", "MPIIO" or "STDIO".
    spatiality : str
        "contiguous", "sequential" or "random"; MPI-IO: "collective" or "unknown".
    file_access : str
        "shared" or "unique".
    n_files : int
        Number of files.
    mode_processes : int
        The most frequent number of processes per file.
    parts : tuple of Part
        The requests by size, most bytes first; the bytes add up to `bytes`.
    partial : bool
        Darshan left records of this api out.
    log : str
        The log it was found in.
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

    @property
    def kind(self) -> Kind:
        """Operation, api, spatiality and file access."""
        return Kind(self.operation, self.api, self.spatiality, self.file_access)

    @property
    def ranks(self) -> int | str:
        """SummarIO's `rank` column: a rank, a number of ranks, or "all"."""
        if self.rank is not None:
            return self.rank
        return "all" if self.processes == self.nprocs else self.processes
