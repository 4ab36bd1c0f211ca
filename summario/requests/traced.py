"""The requests of MPI-IO files in a trace: their order, and the processes that made them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.merge import FilePhases
from summario.phases.pauses import traced_by_file
from summario.phases.streams import Floats, Ints, changes
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.runs.logs_of_run import Run


class Traced:
    """The traced requests to some files (record ids), which are decoded when they are asked for."""

    def __init__(self, run: Run, files: NDArray[np.uint64]) -> None:
        self._run = run
        self._files = files

    @cached_property
    def _by_file(self) -> dict[tuple[str, str, int], Operations]:
        return traced_by_file(self._run, self._files)

    def _requests(self, table: FilePhases, row: int) -> Operations | None:
        """Find the requests of a row; None if the trace lacks some."""
        kind = APIS[table.api[row]], OPERATIONS[table.operation[row]]
        found = self._by_file.get((*kind, int(table.file_id[row])))
        if found is None or len(found) != table.requests[row]:
            return None
        return found if found.length.sum() == table.bytes[row] else None

    def bytes_of_processes(self, posix: FilePhases, rows: Ints) -> Floats | None:
        """Add up the bytes that each process moved in some rows; None if the trace lacks some."""
        total = np.zeros(self._run.nprocs)
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
