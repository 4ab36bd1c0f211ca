"""The time line as a figure: MPI-IO above POSIX, ranks by time, reads above writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ioncast.timelines.colours import UNKNOWN_OST, server_name
from ioncast.timelines.timeline import MOST_CAUSES, DrawnSpans, Shade, TimelineOfRun
from ioncast_base.pages.figures import (
    Axis,
    Band,
    Bars,
    Figure,
    Panel,
    Points,
    Series,
    kind_colour,
    numbers,
    round_ticks,
)
from ioncast_base.wording import counted, in_digits, size
from summario.phases.streams import MODULE_OF_API
from summario.reading.operations import UNKNOWN_OFFSET

_COLOURS = {"read": "var(--kind-0)", "write": "var(--kind-1)"}
# The places of reads and writes in a row, and their width: of both, and of one alone.
_OFFSETS, _WIDTH, _WIDTH_ALONE = {"read": -0.22, "write": 0.22}, 0.4, 0.7
_MOST_TICKS = 5
# The style sheet has so many colours.
_COLOURED = 8
_PIXELS_OF_A_ROW, _LOWEST, _HIGHEST = 14, 110, 420
# The columns of `span_rows`; times are seconds since the job's start.
SPAN_COLUMNS = (
    *("api", "operation", "class", "first_rank", "last_rank"),
    *("start", "end", "requests", "bytes", "offset"),
)


def timeline_figure(timelines: Mapping[str, TimelineOfRun]) -> Figure:
    """Draw spans on a common time axis, with phases as shades, and marks at ranks' last ends.

    Parameters
    ----------
    timelines : mapping of str to TimelineOfRun
        Time lines below each other, by the names of their runs; an only one needs no name.
    """
    every = [each.spans for timeline in timelines.values() for each in timeline.spans]
    start = min((float(each.start_seconds.min()) for each in every if len(each)), default=0.0)
    end = max((float(each.end_seconds.max()) for each in every if len(each)), default=0.0)
    least = max(1e-6, 1e-9 * abs(start))
    seconds = numbers(start, max(end, start + least), "seconds since the start")
    places: dict[str, int] = {}
    panels = [
        panel
        for name, timeline in timelines.items()
        for panel in _panels(name, timeline, replace(seconds, title=""), places)
    ]
    return Figure([*panels[:-1], *(replace(panel, values=seconds) for panel in panels[-1:])])


def _panels(
    run: str, timeline: TimelineOfRun, seconds: Axis, places: dict[str, int]
) -> Iterator[Panel]:
    """Draw a panel for each api; `places` has the places of classes in the list of colours."""
    rows = _rows(timeline)
    number = round(rows.high - rows.low)
    height = min(max(number * _PIXELS_OF_A_ROW, _LOWEST), _HIGHEST)
    is_alone = len({each.operation for each in timeline.spans}) == 1
    for api in dict.fromkeys(each.api for each in timeline.spans):
        phases = [phase for phase in timeline.phases if phase.api == api]
        series: list[Series] = [
            *_shades(phases, rows),
            *(
                _bars(each, timeline, _colour(each, places), is_alone=is_alone)
                for each in timeline.spans
                if each.api == api
            ),
            *([] if timeline.is_by_offset else _marks(phases, timeline.units_of_a_row)),
        ]
        what = "offset" if timeline.is_by_offset else "rank"
        title = ": ".join(filter(None, (run, MODULE_OF_API[api], what)))
        yield Panel(replace(rows, title=title), seconds, series, height, is_lying=True)


def span_rows(timeline: TimelineOfRun) -> Iterator[Mapping[str, object]]:
    """Describe each span as a row for programs."""
    for each in timeline.spans:
        spans = each.spans
        columns = (spans.start_seconds, spans.end_seconds, spans.requests, spans.bytes)
        for row, offset, *values in zip(
            *(column.tolist() for column in (spans.row, spans.offset, *columns)), strict=True
        ):
            first, last = (None, None) if timeline.is_by_offset else _ranks_of(row, timeline)
            if timeline.bin_seconds is not None:
                # A bin of a heat map has any number of requests.
                values[2] = None
            told = (each.api, each.operation, each.name, first, last, *values)
            begin = row * timeline.units_of_a_row if timeline.is_by_offset else None
            known = begin if offset == UNKNOWN_OFFSET else offset
            yield dict(zip(SPAN_COLUMNS, (*told, known), strict=True))


def _rows(timeline: TimelineOfRun) -> Axis:
    """Make the axis of ranks, or of offsets."""
    units = timeline.units_of_a_row
    if timeline.is_by_offset:
        last = max((int(each.spans.row.max(initial=0)) for each in timeline.spans), default=0)
        extent = (last + 1) * units
        # A power of two is a round size.
        step = 1 << max(extent // _MOST_TICKS, 1).bit_length()
        ticks = {offset / units: size(offset) for offset in range(0, extent, step)}
        return Axis("offset", -0.5, last + 0.5, ticks, has_grid=False)
    rows = -(-timeline.nprocs // units)
    named = [rank for rank in round_ticks(0, timeline.nprocs - 1) if rank % 1 == 0] or [0.0]
    ticks = {rank / units: f"{rank:,.0f}" for rank in named}
    return Axis("rank", -0.5, rows - 0.5, ticks, has_grid=False)


def _colour(drawn: DrawnSpans, places: dict[str, int]) -> str:
    if not drawn.name:
        return _COLOURS[drawn.operation]
    place = places.setdefault(drawn.name, len(places))
    return kind_colour(place) if place < _COLOURED else "var(--other)"


def _bars(drawn: DrawnSpans, timeline: TimelineOfRun, colour: str, *, is_alone: bool) -> Bars:
    spans, operation = drawn.spans, drawn.operation
    columns = (
        *(spans.start_seconds, spans.end_seconds, spans.requests, spans.bytes),
        *(spans.offset, spans.ost),
    )
    return Bars(
        drawn.name or f"{operation}s",
        colour,
        (spans.row + (0 if is_alone else _OFFSETS[operation])).tolist(),
        spans.end_seconds.tolist(),
        spans.start_seconds.tolist(),
        _WIDTH_ALONE if is_alone else _WIDTH,
        hints=[
            _hint(drawn, _place(row, timeline), timeline.bin_seconds is not None, *values)
            for row, *values in zip(
                spans.row.tolist(), *(column.tolist() for column in columns), strict=True
            )
        ],
        kinds=[_kinds(named) for named in spans.named.tolist()] if timeline.causes else (),
    )


def _kinds(named: int) -> str:
    """The classes of a bar, by which the style sheet fades the bars that a cause does not name."""
    return " ".join(f"c{place}" for place in range(MOST_CAUSES) if named >> place & 1)


def _ranks_of(row: int, timeline: TimelineOfRun) -> tuple[int, int]:
    """The first and the last rank of a row."""
    units = timeline.units_of_a_row
    return row * units, min((row + 1) * units, timeline.nprocs) - 1


def _place(row: int, timeline: TimelineOfRun) -> str:
    if timeline.is_by_offset:
        return f"from {size(row * timeline.units_of_a_row)} on"
    first, last = _ranks_of(row, timeline)
    return f"ranks {first:,} to {last:,}" if last > first else f"rank {first:,}"


def _hint(
    drawn: DrawnSpans,
    place: str,
    is_binned: bool,
    start: float,
    end: float,
    requests: int,
    moved: int,
    offset: int,
    ost: int,
) -> str:
    at = "" if offset == UNKNOWN_OFFSET else f" at {offset:,}"
    at += "" if ost == UNKNOWN_OST else f", {server_name(ost)}"
    what = f"{drawn.operation}s" if is_binned else counted(requests, drawn.operation)
    lines = [
        f"{place}: {what}, {size(moved)}{at}",
        f"{start:.4f} to {end:.4f} s, {in_digits(end - start)} s",
        drawn.name,
    ]
    return "\n".join(filter(None, lines))


def _shades(phases: Sequence[Shade], rows: Axis) -> list[Band]:
    ends = [rows.low, rows.high]
    return [
        Band("phase", "var(--band)", ends, [phase.start_seconds] * 2, [phase.end_seconds] * 2)
        for phase in phases
    ]


def _marks(phases: Sequence[Shade], ranks_of_a_row: int) -> Iterator[Points]:
    """Mark the ends of the slowest and of the fastest rank of each phase with several ranks."""
    several = [phase for phase in phases if phase.ranks > 1]
    if not several:
        return
    yield Points(
        "slowest rank of a phase",
        "var(--text)",
        [phase.slowest_rank // ranks_of_a_row for phase in several],
        [phase.end_seconds for phase in several],
        "triangle",
        7,
        [f"rank {phase.slowest_rank:,} ended last, {phase.end_seconds:.4f} s" for phase in several],
    )
    yield Points(
        "fastest rank",
        "var(--text)",
        [phase.fastest_rank // ranks_of_a_row for phase in several],
        [phase.fastest_end_seconds for phase in several],
        "ring",
        6,
        [
            f"rank {phase.fastest_rank:,} ended first, {phase.fastest_end_seconds:.4f} s"
            for phase in several
        ],
    )
