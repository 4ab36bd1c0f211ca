"""The requests of MPI-IO files in a trace: their order, and the processes that made them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.merge import FilePhases
from summario.phases.pauses import has_trace, traced_by_file
from summario.phases.stacks import Stack
from summario.phases.streams import Floats, Ints, changes
from summario.reading.operations import UNKNOWN_OFFSET, Operations


class Traced:
    """The traced requests to some files (record ids), which are decoded when they are asked for."""

    def __init__(self, stack: Stack, files: NDArray[np.uint64]) -> None:
        self._stack = stack
        self._files = files
        self._found: dict[int, dict[tuple[str, str, int], Operations]] = {}

    def may_have(self, files: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Tell which files are of runs with a trace."""
        with_trace = np.array([has_trace(run) for run in self._stack.runs])
        found: NDArray[np.bool_] = with_trace[self._stack.runs_of(files)]
        return found

    def _by_file(self, place: int) -> dict[tuple[str, str, int], Operations]:
        """Decode the requests of a run."""
        if place not in self._found:
            files = self._files[self._stack.runs_of(self._files) == place]
            run = self._stack.runs[place]
            self._found[place] = traced_by_file(run, self._stack.ids_of(files))
        return self._found[place]

    def _requests(self, table: FilePhases, row: int) -> Operations | None:
        """Find the requests of a row; None if the trace lacks some."""
        kind = APIS[table.api[row]], OPERATIONS[table.operation[row]]
        file = table.file_id[row : row + 1]
        [place], [id_] = self._stack.runs_of(file).tolist(), self._stack.ids_of(file).tolist()
        found = self._by_file(place).get((*kind, id_))
        if found is None or len(found) != table.requests[row]:
            return None
        return found if found.length.sum() == table.bytes[row] else None

    def bytes_of_processes(self, posix: FilePhases, rows: Ints) -> Floats | None:
        """Add up the bytes that each process of a run moved in some rows; None if some lack."""
        [place] = self._stack.runs_of(posix.file_id[rows[:1]]).tolist()
        total = np.zeros(self._stack.runs[place].nprocs)
        for row in rows.tolist():
            if (requests := self._requests(posix, row)) is None:
                return None
            total += np.bincount(requests.rank, requests.length, minlength=len(total))
        return total

    def order(self, mpiio: FilePhases, row: int, threshold: float) -> tuple[str, int] | None:
        """Tell a row's order in each process, and its number of blocks; None without offsets."""
        found = self._requests(mpiio, row)
        if found is None or (found.offset == UNKNOWN_OFFSET).any():
            return None
        # A stable sort, because the requests are sorted by start.
        found = found.take(np.argsort(found.rank, kind="stable"))
        gaps = (found.offset[1:] - found.offset[:-1] - found.length[:-1])[~changes(found.rank)[1:]]
        enough, consecutive = (1 - threshold) * len(gaps), int(np.count_nonzero(gaps == 0))
        blocks = len(found) - consecutive
        if consecutive >= enough:
            return "contiguous", blocks
        return "sequential" if np.count_nonzero(gaps >= 0) >= enough else "random", blocks
