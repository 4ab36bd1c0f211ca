"""Whether the processes of a phase call fsync: never, at the end, or after each write.

A POSIX record has a file's fsync and fdatasync, also of its STDIO stream and of MPI_File_sync.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.merge import FilePhases
from summario.phases.stacks import Stack
from summario.phases.streams import MODULE_OF_API, MOST, Floats, Ints, changes, opens_of
from summario.reading.file_ids import is_among, values_of_files

_FSYNCS = {"POSIX": ("POSIX_FSYNCS", "POSIX_FDSYNCS"), "MPI-IO": ("MPIIO_SYNCS",)}
_WORDS = (None, "none", "end", "each")


def fsyncs_of(
    file_phases: FilePhases, group: Ints, stack: Stack, threshold: float
) -> list[str | None]:
    """Tell when each group of rows calls fsync: "none", "end", "each"; None if it is not known."""
    fsyncs = _fsyncs(file_phases, stack)
    if not fsyncs.any():
        return ["none"] * (int(group.max()) + 1)

    def total(values: Floats | Ints) -> Floats:
        return np.bincount(group, values).astype(np.float64, copy=False)

    calls, processes = total(fsyncs), total(file_phases.processes)
    in_pieces = total(file_phases.processes * _pieces(file_phases))
    # A file with two calls after each write must not hide another one without any.
    after_writes = total(np.minimum(fsyncs, file_phases.counted))
    is_enough = calls >= (1 - threshold) * processes
    code = np.select(
        [
            calls == 0,
            # Comes before "each": one fsync after the only write of a process is an end.
            is_enough & (calls <= (1 + threshold) * in_pieces),
            after_writes >= (1 - threshold) * total(file_phases.counted),
        ],
        [_WORDS.index("none"), _WORDS.index("end"), _WORDS.index("each")],
    )
    several = is_enough & (code == _WORDS.index(None))
    if several.any():
        before_closes = calls <= (1 + threshold) * total(_opens(file_phases, stack))
        code[several & before_closes] = _WORDS.index("end")
    return [_WORDS[index] for index in code.tolist()]


def _fsyncs(file_phases: FilePhases, stack: Stack) -> Floats:
    """Count the fsyncs of each row's file; 0 for a read, NaN if the log does not tell."""
    ids, in_mpiio = file_phases.file_id, file_phases.api == APIS.index("MPIIO")
    calls = _calls(stack, "POSIX", ids)
    unknown = file_phases.partial | _of_logs_that_lack_posix(file_phases, stack)
    if in_mpiio.any():
        # Files that ROMIO does not reach by POSIX have no POSIX record.
        known = [records.ids for records in stack.records("POSIX")]
        of_mpiio = ids[in_mpiio]
        unknown[in_mpiio] |= ~is_among(of_mpiio, np.concatenate([ids[:0], *known]))
        calls[in_mpiio] = np.maximum(calls[in_mpiio], _calls(stack, "MPI-IO", of_mpiio))
    calls[unknown] = np.nan
    calls[file_phases.operation == OPERATIONS.index("read")] = 0
    return calls


def _of_logs_that_lack_posix(file_phases: FilePhases, stack: Stack) -> NDArray[np.bool_]:
    """Tell which rows are from a log without POSIX records, or where some are missing."""
    lacking = np.array(
        ["POSIX" not in log.records or log.records["POSIX"].partial for log in stack.logs]
    )
    of_logs = np.zeros(len(file_phases), bool)
    if lacking.any():
        of_logs[file_phases.member_row[lacking[file_phases.member_log]]] = True
    return of_logs


def _calls(stack: Stack, module: str, wanted: NDArray[np.uint64]) -> Floats:
    """Count the calls of fsync of each wanted file; NaN if a number is impossible."""
    totals = np.zeros(len(wanted))
    for records in stack.records(module):
        for name in _FSYNCS[module]:
            counts = records.integer(name)
            if counts.any():
                totals += values_of_files(_possible(counts), records.ids, wanted, np.add, without=0)
    return totals


def _possible(counts: Ints) -> Floats:
    return np.where((counts >= 0) & (counts <= MOST), counts, np.nan)


def _opens(file_phases: FilePhases, stack: Stack) -> Floats:
    """Count the opens of each row's file in its api."""
    opens = np.zeros(len(file_phases))
    for index, api in enumerate(APIS):
        rows = file_phases.api == index
        for records in stack.records(MODULE_OF_API[api]) if rows.any() else ():
            of_table = _possible(opens_of(records, api))
            wanted = file_phases.file_id[rows]
            opens[rows] += values_of_files(of_table, records.ids, wanted, np.add, without=0)
    return opens


def _pieces(file_phases: FilePhases) -> Ints:
    """Count the pieces of each row's file with the same api and operation."""
    columns = (file_phases.api, file_phases.operation, file_phases.file_id)
    order = np.lexsort(columns)
    new = changes(*(column[order] for column in columns))
    piece = np.empty(len(order), np.int64)
    piece[order] = new.cumsum() - 1
    pieces: Ints = np.bincount(piece)[piece]
    return pieces
