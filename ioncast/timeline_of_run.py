"""The time line of a run: the selected part of it, its requests, and the causes that name some."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case
from ioncast.insights.facts.gathering import FACT_MODULES
from ioncast.named_requests import named_requests, requests_of
from ioncast.timelines.colours import COLOURINGS, Colouring
from ioncast.timelines.requests import TIMELINE_MODULES, TimedRequests, select
from ioncast.timelines.timeline import TimelineOfRun, timeline_of
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from summario.reading.log import PHASE_MODULES
from summario.reading.operations import UNKNOWN_OFFSET
from summario.runs.logs_of_run import Run

# The modules to read the logs of a run with.
DRAWN_MODULES = tuple(dict.fromkeys((*TIMELINE_MODULES, *PHASE_MODULES, *FACT_MODULES)))
WITHOUT = "there is no trace, and no heat map"
TRACE_IT = "set DXT_ENABLE_IO_TRACE while the program runs"
_RANKS = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


@dataclass(frozen=True)
class TimelineView:
    """The selected part of a run, and how it is drawn."""

    ranks: list[tuple[int, int]] | None = None
    files: str | None = None
    from_s: float | None = None
    until_s: float | None = None
    all_files: bool = False
    colouring: Colouring = COLOURINGS[0]
    is_by_offset: bool = False

    @property
    def needs_trace(self) -> bool:
        """Whether a heat map does not tell it."""
        is_coloured = self.colouring != COLOURINGS[0]
        return self.is_by_offset or self.files is not None or is_coloured

    @property
    def selects(self) -> bool:
        """Whether it is a part of the run."""
        parts = (self.ranks, self.files, self.from_s, self.until_s)
        return self.is_by_offset or any(each is not None for each in parts)


def requests_in_view(
    run: Run, view: TimelineView, case: Case, warn: Callable[[str], object]
) -> TimedRequests | None:
    """Select the requests that are drawn; None if only phases are known.

    Parameters
    ----------
    warn : callable
        Gets a sentence about each limit of the trace.

    Raises
    ------
    InputError
        When nothing is selected, or the log does not tell what the view asks for.
    """
    found = requests_of(run, case, view.files, all_files=view.all_files)
    if view.needs_trace and (found is None or found.bin_seconds is not None):
        what = "only a trace tells files, offsets, sizes, orders, compute nodes and servers"
        raise InputError(what, where=visible(run.name), remedy=TRACE_IT)
    if found is None:
        return None
    for warning in found.operations.warnings:
        warn(warning)
    found = select(found, view.ranks, view.from_s, view.until_s)
    if view.is_by_offset:
        found = _largest_file(found, run)
    if not len(found.operations):
        raise InputError("no request is selected", where=visible(run.name), remedy="select more")
    return found


def _largest_file(requests: TimedRequests, run: Run) -> TimedRequests:
    """Keep the requests of the file with most bytes whose offsets are known."""
    table = requests.operations
    table = table.take(table.offset != UNKNOWN_OFFSET)
    if not len(table):
        raise InputError("the trace has no offsets", where=visible(run.name))
    ids, place = np.unique(table.file_id, return_inverse=True)
    largest = np.bincount(place, table.length).argmax()
    return replace(requests, operations=table.take(table.file_id == ids[largest]))


def timeline_in_view(
    run: Run, requests: TimedRequests, view: TimelineView, case: Case, most_causes: int
) -> TimelineOfRun:
    """Arrange the requests of `requests_in_view`, with the largest causes that name some."""
    causes = {}
    if most_causes and requests.bin_seconds is None:
        causes = named_requests(run_checks(case), requests.operations, run, most_causes)
    return timeline_of(
        requests,
        colouring=view.colouring,
        lustre=case.facts.lustre,
        causes=causes,
        phases=case.trace_phases if requests.operations is case.facts.trace else None,
        is_by_offset=view.is_by_offset,
        is_whole=not view.selects,
    )


def title_of_run(run: Run) -> str:
    """Name the time line of a run."""
    return f"Time line of job {run.first.id}: {visible(run.program)}"


def ranks_of_text(text: str, where: str) -> list[tuple[int, int]]:
    """Read ranges of ranks such as "0-63,128"."""
    ranges = []
    for part in text.split(","):
        match = _RANKS.fullmatch(part.strip())
        if match is None:
            what = f"{visible(part)!r} is no range of ranks"
            raise InputError(what, where=where, remedy="say 0-63")
        ranges.append((int(match[1]), int(match[2] or match[1])))
    return ranges
