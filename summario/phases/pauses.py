"""Step 5 of the extraction: split records at pauses that only Darshan's traces show.

A file that is used again and again has one record. If the log has DXT segments or a HEATMAP (bytes
over time), the record is split where no rank moved bytes for longer than the time distance.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.wording import counted, in_digits
from summario.phases.merge import FilePhases, rows_between
from summario.phases.pieces import Pieces, split_at_windows, split_by_requests, with_pieces
from summario.phases.stacks import Stack
from summario.phases.streams import Floats, Ints, Streams, changes
from summario.phases.windows import Windows, bins_of, first_after_pauses, windows_between
from summario.reading.dxt import DXT_MODULES
from summario.reading.file_ids import is_among
from summario.reading.heatmap import Heatmap, heatmaps_of
from summario.reading.log import DarshanLog
from summario.reading.operations import Operations, operations_of
from summario.runs.logs_of_run import Run
from summario.runs.stacking import stacked

# A piece has all members and parts of its row, so a file that 10,000 processes use between 10,000
# pauses would need gigabytes. Darshan's heat maps have 200 bins, and so no more than 100 pauses.
_MOST_PIECES = 101
_ALWAYS_AFFORDABLE = 4_000_000


@dataclass(frozen=True)
class SplitRows:
    """Rows that are split at pauses, with warnings of each run."""

    file_phases: FilePhases
    warnings: tuple[tuple[str, ...], ...]


class _Found(NamedTuple):
    """The pieces of rows that are split, and warnings."""

    pieces: list[Pieces]
    warnings: tuple[str, ...]


def split_at_pauses(
    file_phases: FilePhases, stack: Stack, streams: Streams, time_distance: float
) -> SplitRows:
    """Split rows at pauses of more than `time_distance` seconds, exactly if DXT has all requests.

    Otherwise a row's requests are divided by the HEATMAP's bytes before and after each pause. Rows
    of several runs are sorted by run.
    """
    is_long = file_phases.end - file_phases.start > time_distance
    file_phases = replace(file_phases, shown=~is_long)
    warnings: list[tuple[str, ...]] = [()] * len(stack.runs)
    pieces: list[Pieces] = []
    for place, first, end, of_run in _runs_with_traces(file_phases, is_long, stack, streams):
        rows = rows_between(file_phases, first, end)
        ids = stack.ids_of(rows.file_id)
        found = _pieces_of_run(rows, ids, stack.runs[place], of_run, time_distance)
        pieces += [each.further(first) for each in found.pieces]
        warnings[place] = found.warnings
    return SplitRows(with_pieces(file_phases, pieces, time_distance), tuple(warnings))


def _runs_with_traces(
    file_phases: FilePhases, is_long: NDArray[np.bool_], stack: Stack, streams: Streams
) -> Iterator[tuple[int, int, int, Streams]]:
    """Yield runs with long rows and traces: their places, first rows and ends, and streams."""
    run = stack.runs_of(file_phases.file_id)
    places = [
        place
        for place in np.unique(run[is_long]).tolist()
        if any(log.traces for log in stack.runs[place].logs)
    ]
    if places and stack.has_several:
        streams = streams.take(np.argsort(streams.log, kind="stable"))
    of_streams = stack.runs_of_logs(streams.log)
    for place in places:
        first, end = np.searchsorted(run, (place, place + 1)).tolist()
        yield place, first, end, streams.between(*np.searchsorted(of_streams, (place, place + 1)))


def _pieces_of_run(
    file_phases: FilePhases,
    ids: NDArray[np.uint64],
    run: Run,
    streams: Streams,
    time_distance: float,
) -> _Found:
    """Split the rows of a run, whose files have record ids, and mark the rows that stay whole."""
    [long_rows] = (~file_phases.shown).nonzero()
    # A row with all requests in the trace needs no heat map.
    traced = _completely_traced(run, file_phases, ids, long_rows)
    file_phases.shown[list(traced)] = True
    pieces, whole = _split_traced(file_phases, traced, time_distance)
    rest = np.array([row for row in long_rows.tolist() if row not in traced], np.int64)
    heatmaps = [heatmaps_of(log) for log in run.logs] if len(rest) else []
    blurred: dict[int, float] = {}
    for kind in dict.fromkeys(itertools.chain.from_iterable(heatmaps)):
        rows = rest[_are_of(file_phases, kind)[rest]]
        of_kind = [of_log.get(kind) for of_log in heatmaps]
        logs = streams.log[_are_of(streams, kind)] if len(run.logs) > 1 else np.zeros(1, np.int64)
        if not len(rows) or not _have_all(logs, of_kind):
            continue
        bins = bins_of(of_kind, run.delays_seconds)
        file_phases.shown[rows] = bins.bin_seconds <= time_distance
        windows = windows_between(bins, time_distance)
        if windows is not None:
            windows = _without_others(windows, file_phases, streams, kind)
            found, too_many = _split_at_windows(file_phases, rows, windows)
            pieces += found
            whole += too_many
        if bins.bin_seconds > time_distance:
            several = rows[file_phases.requests[rows] > 1]
            blurred |= dict.fromkeys(file_phases.file_id[several].tolist(), bins.bin_seconds)
    warnings = [*_unseen_pauses(blurred, time_distance)]
    if whole:
        warnings.append(
            f"{counted(whole, 'file')} with too many pauses are not split at them, so their phases"
            " contain pauses"
        )
    # Without a row that needs them no heat maps were read.
    pairs = zip(run.logs, heatmaps, strict=False)
    if any(log.traces.get("HEATMAP") and not of_log for log, of_log in pairs):
        warnings.append("the HEATMAP data are damaged and not used, so pauses may be missing")
    return _Found(pieces, tuple(warnings))


def _have_all(logs: Ints, heatmaps: Sequence[Heatmap | None]) -> bool:
    """Whether all logs with bytes have a heat map; another one may move bytes in a pause."""
    return all(heatmaps[log] is not None for log in np.unique(logs).tolist())


def _split_traced(
    file_phases: FilePhases, traced: Mapping[int, Operations], time_distance: float
) -> tuple[list[Pieces], int]:
    """Split rows at the pauses of their requests; also count those with too many pauses."""
    firsts = {
        index: first_after_pauses(requests.start_seconds, requests.end_seconds, time_distance)
        for index, requests in traced.items()
    }
    rows = np.array([index for index, first in firsts.items() if len(first) > 1], np.int64)
    pieces = np.array([len(firsts[index]) for index in rows.tolist()], np.int64)
    are_affordable = _are_affordable(file_phases, rows, pieces)
    file_phases.shown[rows[~are_affordable]] = False
    split = [
        split_by_requests(index, traced[index], firsts[index])
        for index in rows[are_affordable].tolist()
    ]
    return split, len(rows) - len(split)


def _split_at_windows(
    file_phases: FilePhases, rows: Ints, windows: Windows
) -> tuple[list[Pieces], int]:
    """Split rows at the pauses of a heat map; also count those with too many pauses."""
    first, last = windows.first_and_last(file_phases.start[rows], file_phases.end[rows])
    rows, pieces = rows[first < last], (last - first + 1)[first < last]
    few = rows[_are_affordable(file_phases, rows, pieces)]
    split = list(split_at_windows(file_phases, few, windows))
    are_whole = np.zeros(len(file_phases), bool)
    are_whole[rows] = True
    for found in split:
        are_whole[found.row] = False
    file_phases.shown[are_whole] = False
    return split, len(rows) - len(few)


def _are_affordable(file_phases: FilePhases, rows: Ints, pieces: Ints) -> NDArray[np.bool_]:
    """Tell which rows can be split into so many pieces; those of few members come first."""
    size = np.bincount(file_phases.member_row, minlength=len(file_phases))
    size += np.bincount(file_phases.part_row, minlength=len(file_phases))
    cost = size[rows] * pieces
    order = np.argsort(cost, kind="stable")
    affordable = np.zeros(len(rows), bool)
    affordable[order] = np.cumsum(cost[order]) <= max(_ALWAYS_AFFORDABLE, _MOST_PIECES * size.sum())
    return affordable


def _unseen_pauses(blurred: Mapping[int, float], time_distance: float) -> Iterator[str]:
    """Warn of files with pauses that may be shorter than the bins of the heat map, in seconds."""
    if blurred:
        seconds = f"{in_digits(max(blurred.values()))} s"
        yield (
            f"pauses shorter than {seconds} cannot be seen in {counted(len(blurred), 'file')},"
            f" although the time distance is {in_digits(time_distance)} s: Darshan's heat map of"
            f" this run has bins of {seconds}, and no DXT trace has all requests of these files"
        )


def _without_others(
    windows: Windows, file_phases: FilePhases, streams: Streams, kind: tuple[str, str]
) -> Windows:
    """Subtract the bytes of files that were used in only one window."""

    def window(times: Floats) -> Ints:
        return np.searchsorted(windows.starts, times, side="right") - 1

    spanning = _are_of(file_phases, kind)
    spanning &= window(file_phases.start) != window(file_phases.end)
    others = _are_of(streams, kind) & ~is_among(streams.file_id, file_phases.file_id[spanning])
    others &= streams.end <= windows.ends[window(streams.start)]
    inside = window(streams.start[others])
    lone = np.bincount(inside, streams.bytes[others], minlength=len(windows.starts))
    return replace(windows, moved=np.maximum(windows.moved - lone, 0))


def _are_of(table: FilePhases | Streams, kind: tuple[str, str]) -> NDArray[np.bool_]:
    api, operation = APIS.index(kind[0]), OPERATIONS.index(kind[1])
    is_of_kind: NDArray[np.bool_] = (table.api == api) & (table.operation == operation)
    return is_of_kind


def _completely_traced(
    run: Run, file_phases: FilePhases, ids: NDArray[np.uint64], rows: Ints
) -> dict[int, Operations]:
    """Find the rows whose requests were all traced; a full buffer has only the first ones."""
    by_file = traced_by_file(run, ids[rows])
    if not by_file:
        return {}
    completely_traced = {}
    for row in rows.tolist():
        kind = APIS[file_phases.api[row]], OPERATIONS[file_phases.operation[row]]
        traced = by_file.get((*kind, int(ids[row])))
        if (
            traced is not None
            and len(traced) == file_phases.requests[row]
            and traced.length.sum() == file_phases.bytes[row]
        ):
            completely_traced[row] = traced
    return completely_traced


def has_trace(run: Run) -> bool:
    """Whether a log of a run has DXT data."""
    return any(log.traces.keys() & DXT_MODULES.values() for log in run.logs)


def traced_requests(run: Run, file_ids: NDArray[np.uint64]) -> Operations:
    """Decode the traced requests of a run to some files, of modules whose buffer was not full."""
    return stacked(run, [_of_whole_traces(log, file_ids) for log in run.logs])


def traced_by_file(
    run: Run, file_ids: NDArray[np.uint64]
) -> dict[tuple[str, str, int], Operations]:
    """Decode the traced requests to some files by (api, operation, file id), sorted by start."""
    if not has_trace(run):
        return {}
    traced = traced_requests(run, file_ids)
    if not len(traced):
        return {}
    by = (traced.start_seconds, traced.file_id, traced.operation, traced.api)
    traced = traced.take(np.lexsort(by))
    new = changes(traced.api, traced.operation, traced.file_id)
    edges = [*np.flatnonzero(new).tolist(), len(traced)]
    return {
        (APIS[rows.api[0]], OPERATIONS[rows.operation[0]], int(rows.file_id[0])): rows
        for rows in (traced.take(slice(*pair)) for pair in itertools.pairwise(edges))
    }


def _of_whole_traces(log: DarshanLog, file_ids: NDArray[np.uint64]) -> Operations:
    """Decode the traced requests to some files, of modules whose buffer was not full."""
    traced = operations_of(log, file_ids)
    partial = [DXT_MODULES.get(api) in log.header.partial_modules for api in APIS]
    return traced.take(~np.array(partial)[traced.api]) if any(partial) else traced
