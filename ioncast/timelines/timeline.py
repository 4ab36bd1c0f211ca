"""The time line of a run as values: spans by api, operation and class, phases, and remarks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ioncast.timelines.colours import Colouring, classes_of, servers_of
from ioncast.timelines.requests import TimedRequests
from ioncast.timelines.spans import MOST_SPANS, Bools, Spans, rows_of, spans_of, units_of_a_row
from ioncast_base.kinds import APIS, OPERATIONS, Api
from summario.lustre_components import LustreComponents
from summario.reading.operations import Operations
from summario.requests.trace_phases import TracePhases, are_too_many, trace_phases
from summario.requests.trailing import Trailing, trailing_writes

# The style sheet has so many rules.
MOST_CAUSES = 5

_TRACED: tuple[Api, ...] = ("MPIIO", "POSIX")
# More shades hide the requests.
MOST_PHASES = 1_000
_FEWEST_ROWS = 16
# Of a second: Darshan's clocks are not better.
_DIGITS = 6


class NamedCause(NamedTuple):
    """The check that finds a cause of slow I/O."""

    code: str
    title: str


@dataclass(frozen=True)
class DrawnSpans:
    """The spans of one api, operation and class of requests."""

    api: str
    operation: str
    name: str
    spans: Spans


@dataclass(frozen=True)
class Shade:
    """A phase of one api: its times, and the ranks that ended last and first, with their ends."""

    api: str
    operation: str
    start_seconds: float
    end_seconds: float
    bytes: int
    requests: int
    ranks: int
    slowest_rank: int
    fastest_rank: int
    fastest_end_seconds: float
    stragglers: int


@dataclass(frozen=True)
class TimelineOfRun:
    """A time line, few enough values for a page.

    Attributes
    ----------
    bin_seconds : float or None
        The length of the heat map's bins; None for a trace.
    units_of_a_row : int
        The ranks that share a row, or the bytes of the file.
    is_by_offset : bool
        Whether rows are bytes of a file instead of ranks.
    more_phases : int
        The number of phases that are left out of `phases`.
    causes : tuple of NamedCause
        The causes whose requests the bits of `Spans.named` tell.
    """

    nprocs: int
    requests: int
    bytes: int
    bin_seconds: float | None
    units_of_a_row: int
    is_by_offset: bool
    colouring: Colouring
    more_phases: int
    causes: tuple[NamedCause, ...]
    spans: tuple[DrawnSpans, ...]
    phases: tuple[Shade, ...]
    trailing: Trailing | None


def timeline_of(
    requests: TimedRequests,
    *,
    colouring: Colouring = "operation",
    lustre: LustreComponents | None = None,
    causes: Mapping[NamedCause, Bools] | None = None,
    phases: Mapping[Api, TracePhases] | None = None,
    is_by_offset: bool = False,
    is_whole: bool = True,
    most: int = MOST_SPANS,
    most_phases: int = MOST_PHASES,
) -> TimelineOfRun:
    """Make the time line of requests.

    Parameters
    ----------
    lustre : LustreComponents, optional
        The layouts of files, which tell the servers of requests.
    causes : mapping of NamedCause to array of bool, optional
        For each cause the requests that it names.
    phases : mapping of Api to TracePhases, optional
        The phases of these requests, if they are known already.
    is_by_offset : bool
        Whether rows are bytes of a file, for requests of one file with known offsets.
    is_whole : bool
        Whether these are all requests of the run; only of all it is known which writes trail.
    most, most_phases : int
        The most spans of each api and operation, and the most phases; the longest count.
    """
    table, named = requests.operations, dict(causes or {})
    place, number = table.rank, requests.nprocs
    if is_by_offset:
        place, number = table.offset, int((table.offset + table.length).max(initial=0))
    classes = list(classes_of(table, colouring, lustre))
    most = max(most // max(len(classes), 1), 1)
    units = units_of_a_row(number)
    rows = -(-number // units)
    ost = None if lustre is None else servers_of(table, lustre)
    spans = _drawn(table, rows_of(place, units), ost, classes, [*named.values()], most)
    # Rather fewer rows than bins so long that pauses vanish.
    while rows > _FEWEST_ROWS and any(each.spans.is_coarse for each in spans):
        rows, units = rows // 2, units * 2
        spans = _drawn(table, rows_of(place, units), ost, classes, [*named.values()], most)
    shades: list[Shade] = []
    trailing = None
    if requests.bin_seconds is None:
        shades = list(_shades(phases or _phases(table)))
        trailing = trailing_writes(table) if is_whole else None
    longest = sorted(shades, key=lambda shade: shade.start_seconds - shade.end_seconds)
    kept = set(longest[:most_phases])
    return TimelineOfRun(
        nprocs=requests.nprocs,
        requests=len(table),
        bytes=int(table.length.sum()),
        bin_seconds=requests.bin_seconds,
        units_of_a_row=units,
        is_by_offset=is_by_offset,
        colouring=colouring,
        more_phases=len(shades) - len(kept),
        causes=tuple(named),
        spans=tuple(spans),
        phases=tuple(shade for shade in shades if shade in kept),
        trailing=trailing,
    )


def _drawn(
    table: Operations,
    row: NDArray[np.int64],
    ost: NDArray[np.int64] | None,
    classes: Sequence[tuple[str, Bools]],
    masks: Sequence[Bools],
    most: int,
) -> list[DrawnSpans]:
    """Make the spans of each api, operation and class that has requests, MPI-IO first."""
    found = []
    for api in sorted(APIS, key=lambda api: api != "MPIIO"):
        for operation in OPERATIONS:
            of_kind = table.api == APIS.index(api)
            of_kind &= table.operation == OPERATIONS.index(operation)
            for name, mask in classes:
                rows = np.flatnonzero(of_kind & mask)
                if len(rows):
                    named = [each[rows] for each in masks]
                    servers = None if ost is None else ost[rows]
                    spans = spans_of(table.take(rows), row[rows], most, named, servers)
                    found.append(DrawnSpans(api, operation, name, spans))
    return found


def _phases(table: Operations) -> dict[Api, TracePhases]:
    return {api: trace_phases(table, api) for api in _TRACED}


def _shades(phases: Mapping[Api, TracePhases]) -> Iterator[Shade]:
    """Describe phases, MPI-IO first; of an api with too many phases none."""
    for api in _TRACED:
        found = phases[api]
        if are_too_many(found) or len(found) > MOST_PHASES:
            continue
        for phase in found:
            ends = phase.ranks.end_seconds
            yield Shade(
                api,
                phase.operation,
                phase.start_seconds,
                phase.end_seconds,
                phase.bytes,
                phase.requests,
                len(ends),
                phase.slowest_rank,
                phase.fastest_rank,
                float(ends.min()),
                len(phase.stragglers),
            )


def to_record(timeline: TimelineOfRun) -> dict[str, Any]:
    """Write a time line as values of JSON, with a list for each column of spans."""
    return {
        **{name: getattr(timeline, name) for name in _PLAIN},
        "causes": list(timeline.causes),
        "spans": [
            {
                **{name: getattr(each, name) for name in _NAMES},
                "bin_seconds": each.spans.bin_seconds,
                **{name: _rounded(getattr(each.spans, name)) for name in _COLUMNS},
            }
            for each in timeline.spans
        ],
        "phases": [asdict(phase) for phase in timeline.phases],
        "trailing": None if timeline.trailing is None else asdict(timeline.trailing),
    }


def from_record(record: Mapping[str, Any]) -> TimelineOfRun:
    """Read a time line that `to_record` wrote."""
    return TimelineOfRun(
        **{name: record[name] for name in _PLAIN},
        causes=tuple(NamedCause(*each) for each in record["causes"]),
        spans=tuple(
            DrawnSpans(
                **{name: each[name] for name in _NAMES},
                spans=_spans(each),
            )
            for each in record["spans"]
        ),
        phases=tuple(Shade(**phase) for phase in record["phases"]),
        trailing=None if record["trailing"] is None else Trailing(**record["trailing"]),
    )


_NAMES = ("api", "operation", "name")
_COLUMNS = (
    *("row", "start_seconds", "end_seconds", "requests", "bytes", "offset"),
    *("ost", "named"),
)
_PLAIN = (
    *("nprocs", "requests", "bytes", "bin_seconds"),
    *("units_of_a_row", "is_by_offset", "colouring", "more_phases"),
)


def _spans(record: Mapping[str, Any]) -> Spans:
    columns: dict[str, Any] = {name: np.array(record[name]) for name in _COLUMNS}
    return Spans(**columns, bin_seconds=record["bin_seconds"])


def _rounded(column: NDArray[Any]) -> list[Any]:
    rounded: list[Any] = np.round(column, _DIGITS).tolist()
    return rounded
