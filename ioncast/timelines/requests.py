"""The requests of a run with their times: from its trace, else from its heat maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.selection import system_file_ids
from summario.reading.dxt import DXT_MODULES
from summario.reading.file_ids import is_among
from summario.reading.heatmap import Heatmap, heatmaps_of
from summario.reading.log import DarshanLog
from summario.reading.operations import UNKNOWN_OFFSET, Operations, operations_of
from summario.runs.logs_of_run import Run
from summario.runs.stacking import stacked

TIMELINE_MODULES = (*DXT_MODULES.values(), "HEATMAP")


@dataclass(frozen=True)
class TimedRequests:
    """The requests of a run.

    Attributes
    ----------
    operations : Operations
        A row for each request. From a heat map a row is a bin of a rank in which bytes moved, and
        files, offsets and hosts are unknown.
    bin_seconds : float or None
        The length of the heat map's bins; None for a trace.
    """

    operations: Operations
    nprocs: int
    bin_seconds: float | None


def timed_requests(
    run: Run, *, files: str | None = None, all_files: bool = False
) -> TimedRequests | None:
    """Read the requests of a run whose logs were read with `TIMELINE_MODULES`.

    Parameters
    ----------
    files : str, optional
        A pattern such as "*.h5": only requests of files whose path it matches, from a trace.
    all_files : bool
        Whether system files and standard streams count too, in a trace.

    Returns
    -------
    TimedRequests or None
        None if the logs have neither a trace with requests nor a heat map.
    """
    if is_traced(run):
        tables = [_traced(log, files, all_files=all_files) for log in run.logs]
        found = stacked(run, tables)
        if len(found) or files is not None:
            return TimedRequests(found, run.nprocs, None)
    heatmaps = [heatmaps_of(log) for log in run.logs]
    if files is not None or not any(heatmaps):
        return None
    widths = [each.bin_seconds for of_log in heatmaps for each in of_log.values()]
    tables = [_of_heatmaps(of_log) for of_log in heatmaps]
    return TimedRequests(stacked(run, tables), run.nprocs, max(widths))


def is_traced(run: Run) -> bool:
    """Whether a log of a run has a trace."""
    return any(DXT_MODULES.values() & log.header.modules.keys() for log in run.logs)


def select(
    requests: TimedRequests,
    ranks: Sequence[tuple[int, int]] | None = None,
    from_s: float | None = None,
    until_s: float | None = None,
) -> TimedRequests:
    """Keep the requests of ranges of ranks that overlap a time, in seconds since the start."""
    if ranks is None and from_s is None and until_s is None:
        return requests
    table = requests.operations
    keep = np.ones(len(table), np.bool_)
    if ranks is not None:
        among = [(table.rank >= first) & (table.rank <= last) for first, last in ranks]
        keep &= np.any(among, axis=0)
    if from_s is not None:
        keep &= table.end_seconds >= from_s
    if until_s is not None:
        keep &= table.start_seconds <= until_s
    return replace(requests, operations=table.take(keep))


def _traced(log: DarshanLog, files: str | None, *, all_files: bool) -> Operations:
    table = operations_of(log)
    if not all_files:
        table = table.take(~is_among(table.file_id, system_file_ids(log)))
    if files is None:
        return table
    matching = [file_id for file_id, path in log.names.items() if fnmatchcase(path, files)]
    return table.take(is_among(table.file_id, np.array(sorted(matching), np.uint64)))


def _of_heatmaps(heatmaps: dict[tuple[str, str], Heatmap]) -> Operations:
    """Make a row for each bin of a rank in which bytes moved."""
    columns = [np.concatenate(column) for column in zip(*_bins(heatmaps), strict=True)]
    if not columns:
        columns = [np.zeros(0) for _ in range(6)]
    api, operation, rank, length, start, end = columns
    nothing = np.zeros(len(rank), np.int64)
    return Operations(
        api=api.astype(np.int8),
        operation=operation.astype(np.int8),
        file_id=nothing.astype(np.uint64),
        rank=rank.astype(np.int64),
        offset=nothing + UNKNOWN_OFFSET,
        length=length.astype(np.int64),
        start_seconds=start.astype(np.float64),
        end_seconds=end.astype(np.float64),
        host=nothing.astype(np.int32),
        hosts=("",),
    )


def _bins(heatmaps: dict[tuple[str, str], Heatmap]) -> Iterator[tuple[np.ndarray, ...]]:
    for (api, operation), heatmap in heatmaps.items():
        row, place = np.nonzero(heatmap.bytes)
        yield (
            np.full(len(row), APIS.index(api)),
            np.full(len(row), OPERATIONS.index(operation)),
            heatmap.rank[row],
            heatmap.bytes[row, place],
            place * heatmap.bin_seconds,
            (place + 1) * heatmap.bin_seconds,
        )
