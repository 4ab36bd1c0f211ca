"""The time line as a figure: MPI-IO above POSIX, ranks by time, reads above writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ioncast.timeline.requests import TimedRequests
from ioncast.timeline.spans import Spans, rows_for, spans_of
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.pages.figures import (
    Axis,
    Band,
    Bars,
    Figure,
    Panel,
    Points,
    Series,
    numbers,
    round_ticks,
    visible_ends,
)
from ioncast_base.wording import counted, in_digits, size
from summario.phases.streams import MODULE_OF_API
from summario.requests.trace_phases import TracePhase

_COLOURS = {"read": "var(--kind-0)", "write": "var(--kind-1)"}
# The places of reads and writes in the row of a rank, and their width: of both, and of one alone.
_OFFSETS, _WIDTH, _WIDTH_ALONE = {"read": -0.22, "write": 0.22}, 0.4, 0.7
_PIXELS_OF_A_ROW, _LOWEST, _HIGHEST = 14, 110, 420
# The columns of `span_rows`; times are seconds since the job's start.
SPAN_COLUMNS = (
    *("api", "operation", "first_rank", "last_rank"),
    *("start", "end", "requests", "bytes"),
)


@dataclass(frozen=True)
class DrawnSpans:
    """The spans of one api and operation."""

    api: str
    operation: str
    spans: Spans


def drawn_spans(requests: TimedRequests) -> list[DrawnSpans]:
    """Make the spans of each api and operation that has requests, MPI-IO first."""
    table, ranks_of_a_row = requests.operations, rows_for(requests.nprocs)
    found = []
    for api in sorted(APIS, key=lambda api: api != "MPIIO"):
        for operation in OPERATIONS:
            of_kind = table.take(
                (table.api == APIS.index(api)) & (table.operation == OPERATIONS.index(operation))
            )
            if len(of_kind):
                found.append(DrawnSpans(api, operation, spans_of(of_kind, ranks_of_a_row)))
    return found


def timeline_figure(
    requests: TimedRequests, found: Sequence[DrawnSpans], phases: Sequence[TracePhase]
) -> Figure:
    """Draw spans on a common time axis, with phases as shades and their slowest ranks as marks."""
    start = min(float(each.spans.start_seconds.min()) for each in found)
    end = max(float(each.spans.end_seconds.max()) for each in found)
    seconds = numbers(start, max(end, start + 1e-6), "seconds since the start")
    ranks = _ranks(requests.nprocs)
    rows = round(ranks.high - ranks.low)
    height = min(max(rows * _PIXELS_OF_A_ROW, _LOWEST), _HIGHEST)
    is_alone = len({each.operation for each in found}) == 1
    panels = []
    for api in dict.fromkeys(each.api for each in found):
        of_api = [phase for phase in phases if phase.api == api]
        series: list[Series] = [
            *_shades(of_api, ranks),
            *(
                _bars(each, requests.nprocs, seconds, is_alone=is_alone)
                for each in found
                if each.api == api
            ),
            *_marks(of_api, rows_for(requests.nprocs)),
        ]
        across = replace(ranks, title=f"{MODULE_OF_API[api]}: rank")
        panels.append(Panel(across, seconds, series, height, is_lying=True))
    return Figure(panels)


def span_rows(found: Sequence[DrawnSpans], nprocs: int) -> Iterator[Mapping[str, object]]:
    """Describe each span as a row for programs."""
    for each in found:
        spans = each.spans
        last = np.minimum((spans.row + 1) * spans.ranks_of_a_row, nprocs) - 1
        columns = (spans.start_seconds, spans.end_seconds, spans.requests, spans.bytes)
        for row, last_rank, start, end, requests, moved in zip(
            spans.row.tolist(), last.tolist(), *(column.tolist() for column in columns), strict=True
        ):
            yield dict(
                zip(
                    SPAN_COLUMNS,
                    (
                        *(each.api, each.operation, row * spans.ranks_of_a_row, last_rank),
                        *(start, end, requests, moved),
                    ),
                    strict=True,
                )
            )


def _ranks(nprocs: int) -> Axis:
    ranks_of_a_row = rows_for(nprocs)
    rows = -(-nprocs // ranks_of_a_row)
    named = [rank for rank in round_ticks(0, nprocs - 1) if rank % 1 == 0] or [0.0]
    ticks = {rank / ranks_of_a_row: f"{rank:,.0f}" for rank in named}
    return Axis("rank", -0.5, rows - 0.5, ticks, has_grid=False)


def _bars(drawn: DrawnSpans, nprocs: int, seconds: Axis, *, is_alone: bool) -> Bars:
    spans, operation = drawn.spans, drawn.operation
    starts = spans.start_seconds.tolist()
    columns = (spans.row, spans.start_seconds, spans.end_seconds, spans.requests, spans.bytes)
    return Bars(
        f"{operation}s",
        _COLOURS[operation],
        (spans.row + (0 if is_alone else _OFFSETS[operation])).tolist(),
        visible_ends(starts, spans.end_seconds.tolist(), seconds.high - seconds.low),
        starts,
        _WIDTH_ALONE if is_alone else _WIDTH,
        hints=[
            _hint(operation, _ranks_of(row, spans.ranks_of_a_row, nprocs), *values)
            for row, *values in zip(*(column.tolist() for column in columns), strict=True)
        ],
    )


def _ranks_of(row: int, ranks_of_a_row: int, nprocs: int) -> str:
    first, beyond = row * ranks_of_a_row, min((row + 1) * ranks_of_a_row, nprocs)
    return f"ranks {first:,} to {beyond - 1:,}" if beyond > first + 1 else f"rank {first:,}"


def _hint(operation: str, ranks: str, start: float, end: float, requests: int, moved: int) -> str:
    return (
        f"{ranks}: {counted(requests, operation)}, {size(moved)}\n{start:.4f} to {end:.4f} s,"
        f" {in_digits(end - start)} s"
    )


def _shades(phases: Sequence[TracePhase], ranks: Axis) -> list[Band]:
    ends = [ranks.low, ranks.high]
    return [
        Band("phase", "var(--band)", ends, [phase.start_seconds] * 2, [phase.end_seconds] * 2)
        for phase in phases
    ]


def _marks(phases: Sequence[TracePhase], ranks_of_a_row: int) -> list[Points]:
    if not phases:
        return []
    rows = [phase.slowest_rank // ranks_of_a_row for phase in phases]
    hints = [
        f"rank {phase.slowest_rank:,} ended last, {phase.end_seconds:.4f} s" for phase in phases
    ]
    ends = [phase.end_seconds for phase in phases]
    name = "slowest rank of a phase"
    return [Points(name, "var(--text)", rows, ends, "triangle", 7, hints)]
