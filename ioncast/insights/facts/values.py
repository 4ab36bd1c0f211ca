"""`Facts`: a run as columns for each file and each record of a layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, Api, Operation
from ioncast_base.limits import MOST_BYTES
from summario.lustre_components import LustreComponents
from summario.reading.heatmap import Heatmap
from summario.reading.operations import Operations
from summario.reading.records import Records
from summario.runs.hosts import NodeCount

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# The modules of DAOS, whose I/O no layer contains.
DAOS_MODULES = ("DFS", "DAOS")

# A file's highest layer comes first: MPI-IO calls POSIX, and so does STDIO.
HIGHEST_FIRST: tuple[Api, ...] = ("MPIIO", "STDIO", "POSIX")


@dataclass(frozen=True)
class Requests:
    """The requests of one operation; each array has an entry for each record of a layer.

    `consecutive` requests start where the one before them ended, `sequential` ones at or after that
    place; zeros for MPI-IO and STDIO. At most `first` requests can be neither (see
    `summario.phases.streams.first_accesses`), and `random` requests surely are neither: requests -
    sequential - first, at least 0.

    `small` (below 1 MiB) and `histogram` (10 bins, `summario.reading.layouts.SIZE_BINS`) are zeros
    for STDIO, which has no histogram. `independent`, `collective`, `split` and `nonblocking` calls
    are zeros for other layers than MPI-IO. `seconds` are of all processes of the record together.
    """

    requests: Ints
    bytes: Ints
    consecutive: Ints
    sequential: Ints
    first: Ints
    random: Ints
    small: Ints
    histogram: Ints
    independent: Ints
    collective: Ints
    split: Ints
    nonblocking: Ints
    seconds: Floats


@dataclass(frozen=True)
class Layer:
    """The records of one api, a row for each (file, rank), without files that do not count.

    `file` is a row in `Facts.files`, `rank` the process of the run, -1 if Darshan reduced all to
    one record, and `first_rank` the process that is rank 0 in the record's log (0 for one log).
    `processes` is 1, or all of its log. `metadata_seconds` (open, close, stat, seek and so on) are
    of all these together. `order` sorts the rows by file; each of `used_files` begins there at
    `first_row` (see `of_files`).
    """

    api: Api
    records: Records
    file: Ints
    rank: Ints
    first_rank: Ints
    processes: Ints
    reads: Requests
    writes: Requests
    metadata_seconds: Floats
    order: Ints
    first_row: Ints

    def __len__(self) -> int:
        return len(self.file)

    def of(self, operation: Operation) -> Requests:
        """Select the requests of an operation."""
        return self.reads if operation == "read" else self.writes

    def has(self, counter: str) -> bool:
        """Whether the log's version of Darshan has a counter, such as "FSYNCS"."""
        return f"{self.api}_{counter}" in self.records.columns

    def count(self, counter: str) -> Ints:
        """Read a counter without its api's name; 0 for numbers that no run has, or if not known."""
        return possible(self.records.integer(f"{self.api}_{counter}"))

    def seconds(self, counter: str) -> Floats:
        """Read a floating-point counter without its api's name; 0 where it is not a number."""
        found = self.records.real(f"{self.api}_{counter}")
        return np.where(np.isfinite(found), found, 0.0)

    @property
    def used_files(self) -> Ints:
        """The files that have records, ascending."""
        return self.file[self.order][self.first_row]

    @property
    def is_reduced(self) -> Bools:
        """Whether Darshan reduced the records of all processes to this one."""
        return self.rank < 0

    def of_files(self, values: NDArray[Any], combine: np.ufunc = np.add) -> NDArray[Any]:
        """Combine the values of the rows of each of `used_files`, by default as a sum."""
        if not len(self):
            return values[:0]
        found: NDArray[Any] = combine.reduceat(values[self.order], self.first_row)
        return found

    def file_processes(self) -> Ints:
        """Count the processes of each of `used_files`."""
        processes: Ints = self.of_files(self.processes)
        return processes

    def file_is_shared(self) -> Bools:
        """Whether each of `used_files` was used by several processes."""
        return self.file_processes() > 1


def possible(values: Ints) -> Ints:
    """Replace counts that no run has by 0; Darshan writes -1 for a count that it does not know."""
    return np.where((values < 0) | (values > MOST_BYTES), 0, values)


def total(values: NDArray[Any]) -> int:
    """Add up counts exactly, however many and large."""
    if values.sum(dtype=np.float64) < MOST_BYTES:
        return int(values.sum())
    return sum(values.ravel().tolist())


def share(part: float, whole: float) -> float | None:
    """Divide; None if there is nothing to divide by, because then no statement is possible."""
    return part / whole if whole else None


@dataclass(frozen=True)
class Files:
    """A table with a row for each file of the application, or of the system if asked for.

    Numbers are at `api` (an index into `APIS`), the highest layer that the application used. A path
    may have any characters, and is "file ID" if the log has none. An extent is the highest offset
    that was read or written, plus 1; 0 where nothing was.
    """

    id: NDArray[np.uint64]
    path: tuple[str, ...]
    api: NDArray[np.int8]
    bytes_read: Ints
    bytes_written: Ints
    read_extent_bytes: Ints
    written_extent_bytes: Ints
    processes: Ints

    def __len__(self) -> int:
        return len(self.path)

    @property
    def bytes(self) -> Ints:
        """All moved bytes, at the highest layer."""
        return self.bytes_read + self.bytes_written

    @property
    def extent_bytes(self) -> Ints:
        """The size of each file as far as the log tells: the highest offset plus 1."""
        return np.maximum(self.read_extent_bytes, self.written_extent_bytes)

    def highest(self, layer: Layer) -> Bools:
        """Tell for each row of a layer whether it is the highest layer of its file."""
        found: Bools = self.api[layer.file] == APIS.index(layer.api)
        return found


@dataclass(frozen=True)
class Module:
    """A module of a log: its name, the version of its format, and whether records are missing."""

    name: str
    version: int
    is_partial: bool


@dataclass(frozen=True)
class RunFacts:
    """A run's job record, of the earliest log if there are several.

    Times since the epoch are the earliest start and the latest end. `darshan` is its version, or
    the version of the log's format if that is not known.
    """

    name: str
    job_id: int
    uid: int
    processes: int
    start_seconds: float
    end_seconds: float
    command: str
    darshan: str
    modules: tuple[Module, ...]
    mounts: tuple[tuple[str, str], ...]

    @property
    def run_seconds(self) -> float:
        """The run time in seconds, never negative; 0 if the log has impossible times."""
        return max(self.end_seconds - self.start_seconds, 0.0)

    def has(self, *modules: str) -> bool:
        """Whether a log of the run has one of these modules."""
        return any(module.name in modules for module in self.modules)

    def is_partial(self, *modules: str) -> bool:
        """Whether Darshan left out records of one of these modules."""
        return any(module.is_partial and module.name in modules for module in self.modules)


@dataclass(frozen=True)
class FileFacts:
    """The files of a run, and the layers that have their records; or those of a stack of runs."""

    files: Files
    layers: Mapping[Api, Layer]


@dataclass(frozen=True)
class Facts(FileFacts):
    """The facts of a run, which tables, comparisons and checks are made from.

    `libraries` has the records of H5F, H5D, PNETCDF_FILE and PNETCDF_VAR of all logs. `trace` is
    None without DXT, or if it was not read. `heatmaps`, by api and operation, are only of a run
    with one log and contain all files. `lustre` has the layouts of the first log with any.
    """

    run: RunFacts
    libraries: Mapping[str, Records]
    nodes: NodeCount | None
    trace: Operations | None
    heatmaps: Mapping[tuple[str, str], Heatmap]
    lustre: LustreComponents | None
    warnings: tuple[str, ...]

    @property
    def is_incomplete(self) -> bool:
        """Whether Darshan ran out of memory and left out records of a layer."""
        return self.run.is_partial("POSIX", "MPI-IO", "STDIO")
