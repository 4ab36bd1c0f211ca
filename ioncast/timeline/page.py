"""The time line as an HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ioncast.timeline.figure import DrawnSpans, timeline_figure
from ioncast.timeline.requests import TimedRequests
from ioncast_base.kinds import Api
from ioncast_base.pages.page import drawn, paragraph, table, write_page
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_digits, size
from summario.requests.trace_phases import TracePhase, are_too_many, trace_phases
from summario.runs.logs_of_run import Run

_TRACED: tuple[Api, ...] = ("MPIIO", "POSIX")
_MOST_ROWS = 200


def write_html(
    path: str | Path, run: Run, requests: TimedRequests, found: Sequence[DrawnSpans]
) -> None:
    """Write the time line of a run as one page.

    Parameters
    ----------
    requests : TimedRequests
        At least one request of the run.
    found : sequence of DrawnSpans
        Their spans, from `drawn_spans`.

    Raises
    ------
    InputError
        If the page cannot be written.
    """
    phases = list(_phases(requests)) if requests.bin_seconds is None else []
    title = f"Time line of job {run.first.id}: {visible(run.program)}"
    figure = timeline_figure(requests, found, phases)
    parts = [
        paragraph(_said(requests, found)),
        drawn(figure, "Ranks by time: reads and writes"),
        *([table([_row(phase) for phase in phases[:_MOST_ROWS]], texts=2)] if phases else []),
    ]
    write_page(path, title=title, parts=parts)


def _phases(requests: TimedRequests) -> Iterator[TracePhase]:
    """Find the phases of a trace; of an api with too many phases none."""
    for api in _TRACED:
        found = trace_phases(requests.operations, api)
        if not are_too_many(found):
            yield from found


def _said(requests: TimedRequests, found: Sequence[DrawnSpans]) -> str:
    operations = requests.operations
    what = counted(len(operations), "request")
    if requests.bin_seconds is not None:
        what = (
            f"{counted(len(operations), 'bin')} of {in_digits(requests.bin_seconds)} s of a rank in"
            " which bytes moved, from the heat maps, because the log has no trace"
        )
    said = f"{what}, {size(float(operations.length.sum()))}."
    if len({each.operation for each in found}) > 1:
        said += " Reads are above writes in each row."
    longest = max(each.spans.bin_seconds for each in found)
    if longest and requests.bin_seconds is None:
        said += f" Requests less than {in_digits(longest)} s apart are joined."
    ranks = found[0].spans.ranks_of_a_row
    return f"{said} A row has {counted(ranks, 'rank')}." if ranks > 1 else said


def _row(phase: TracePhase) -> dict[str, object]:
    return {
        "api": phase.api,
        "operation": phase.operation,
        "start s": f"{phase.start_seconds:.3f}",
        "end s": f"{phase.end_seconds:.3f}",
        "size": size(phase.bytes),
        "requests": f"{phase.requests:,}",
        "ranks": f"{len(phase.ranks.rank):,}",
        "slowest rank": phase.slowest_rank,
        "fastest rank": phase.fastest_rank,
        "stragglers": len(phase.stragglers),
    }
