"""`ioncast timeline`: draw which ranks read and wrote when."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
import numpy as np

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.named_requests import named_requests, paths_of
from ioncast.timeline.colours import COLOURINGS, Colouring
from ioncast.timeline.figure import SPAN_COLUMNS, span_rows
from ioncast.timeline.requests import (
    TIMELINE_MODULES,
    TimedRequests,
    is_traced,
    select,
    timed_requests,
)
from ioncast.timeline.timeline import MOST_CAUSES, TimelineOfRun, timeline_of
from ioncast_base.command_options import warn
from ioncast_base.errors import InputError
from ioncast_base.files import whole_file, write_file
from ioncast_base.visible_text import visible
from summario.phases.extract import extract_run
from summario.phases.streamed import stream_csv
from summario.phases.tables import to_record
from summario.reading.log import PHASE_MODULES
from summario.runs.given_run import read_run
from summario.runs.logs_of_run import Run

if TYPE_CHECKING:
    from ioncast_base.pages.figures import Figure

_MODULES = tuple(dict.fromkeys((*TIMELINE_MODULES, *PHASE_MODULES, *FACT_MODULES)))
_RANKS = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")
_WITHOUT = "there is no trace, and no heat map"
_TRACE_IT = "set DXT_ENABLE_IO_TRACE while the program runs"


@dataclass(frozen=True)
class _View:
    """The selected part of a run, and how it is drawn."""

    ranks: list[tuple[int, int]] | None
    files: str | None
    from_s: float | None
    until_s: float | None
    all_files: bool
    colouring: Colouring
    is_by_offset: bool


@click.command(
    epilog="""\b
Examples:
  ioncast timeline app.darshan --html timeline.html
  ioncast timeline app.darshan --html timeline.html --ranks 0-63 --from 10 --to 20
  ioncast timeline app.darshan --files '*.h5' --csv requests.csv
  ioncast timeline slow.darshan --with fast.darshan --colour size --html both.html
  ioncast timeline app.darshan --perfetto app.json
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Write a page.")
@click.option("--csv", "table", metavar="FILE", type=click.Path(), help="Write what is drawn.")
@click.option("--svg", metavar="FILE", type=click.Path(), help="Write a picture as SVG.")
@click.option("--png", metavar="FILE", type=click.Path(), help="Write a picture as PNG.")
@click.option(
    "--perfetto",
    metavar="FILE",
    type=click.Path(),
    help="Write every request as a trace that ui.perfetto.dev shows.",
)
@click.option("--with", "other", metavar="LOG", type=click.Path(), help="Draw this run below.")
@click.option(
    "--colour",
    "colouring",
    type=click.Choice(COLOURINGS),
    default=COLOURINGS[0],
    show_default=True,
    help="The meaning of colours: the operation, the size of requests, their order in the file,"
    " the compute node, or the server (OST).",
)
@click.option("--offsets", is_flag=True, help="Draw the file with most bytes by offset.")
@click.option("--ranks", metavar="RANKS", help="Only these ranks, such as 0-63 or 0,8,16-23.")
@click.option("--files", metavar="PATTERN", help="Only files with such a path, such as '*.h5'.")
@click.option("--from", "from_s", type=float, metavar="S", help="Only from this second on.")
@click.option("--to", "until_s", type=float, metavar="S", help="Only until this second.")
@click.option("--all-files", is_flag=True, help="Also count system files and standard streams.")
def timeline(
    logs: tuple[str, ...],
    page: str | None,
    table: str | None,
    svg: str | None,
    png: str | None,
    perfetto: str | None,
    other: str | None,
    colouring: Colouring,
    offsets: bool,
    ranks: str | None,
    files: str | None,
    from_s: float | None,
    until_s: float | None,
    all_files: bool,
) -> None:
    """Draw which ranks read and wrote when: MPI-IO above POSIX.

    LOG is a Darshan log, or the logs of one run. The requests come from its trace (DXT), else from
    its heat maps, which tell bins of time in which bytes moved; without both the phases are drawn.
    Phases of a trace are shaded, with the ranks that ended last and first. More than 5,000 requests
    of an operation are joined to spans in which a rank is busy. The page can be zoomed, and shows
    the requests that a cause of slow I/O names.
    """
    if not (page or table or svg or png or perfetto):
        raise InputError(
            "a time line is a file", remedy="say --html FILE, or another option with a file"
        )
    view = _View(
        None if ranks is None else _ranks(ranks),
        files,
        from_s,
        until_s,
        all_files,
        colouring,
        offsets,
    )
    run = _read(logs)
    case = Case(facts_of(run, all_files=all_files)) if is_traced(run) else None
    found = _requests(run, view, case)
    if found is None:
        _draw_phases(run, page if not (table or svg or png or perfetto or other) else None)
        return
    drawn = _timeline(run, found, view, case)
    if page or svg or png:
        timelines = {"": drawn}
        if other is not None:
            second = _read((other,))
            requests = _requests(second, view, None)
            if requests is None:
                raise InputError(_WITHOUT, where=visible(second.name), remedy=_TRACE_IT)
            timelines = {"First run": drawn, "Second run": _timeline(second, requests, view, None)}
        if page is not None:
            _write_page(page, run, timelines, case)
        if svg or png:
            _write_pictures(svg, png, run, timelines)
    elif other is not None:
        raise InputError("only a page or a picture has two runs", where="--with")
    if table is not None:
        write_file(table, "".join(stream_csv(SPAN_COLUMNS, [list(span_rows(drawn))])))
    if perfetto is not None:
        from ioncast.timeline.perfetto import write_perfetto  # noqa: PLC0415

        write_perfetto(perfetto, found, paths_of(run))


def _read(logs: tuple[str, ...]) -> Run:
    run = read_run(logs, "steps", "and times of requests", _MODULES)
    for warning in run.warnings:
        warn(warning)
    return run


def _requests(run: Run, view: _View, case: Case | None) -> TimedRequests | None:
    """The requests that are drawn; None if only phases are known."""
    trace = case.facts.trace if case else None
    if trace is not None and view.files is None and case and not case.facts.is_incomplete:
        # Decoding takes time and memory. A trace has no other files than complete records.
        found: TimedRequests | None = TimedRequests(trace, run.nprocs, None)
    else:
        found = timed_requests(run, files=view.files, all_files=view.all_files)
    if found is None or (view.is_by_offset and found.bin_seconds is not None):
        if view.files is not None or view.is_by_offset:
            what = "only a trace tells files and offsets"
            raise InputError(what, where=visible(run.name), remedy=_TRACE_IT)
        return None
    found = select(found, view.ranks, view.from_s, view.until_s)
    for warning in found.operations.warnings:
        warn(warning)
    if view.is_by_offset and len(found.operations):
        found = _largest_file(found)
    if not len(found.operations):
        raise InputError("no request is selected", where=visible(run.name), remedy="select more")
    return found


def _largest_file(requests: TimedRequests) -> TimedRequests:
    table = requests.operations
    ids, place = np.unique(table.file_id, return_inverse=True)
    largest = np.bincount(place, table.length).argmax()
    return replace(requests, operations=table.take(table.file_id == ids[largest]))


def _timeline(run: Run, found: TimedRequests, view: _View, case: Case | None) -> TimelineOfRun:
    return timeline_of(
        found,
        colouring=view.colouring,
        lustre=case.facts.lustre if case else None,
        causes=named_requests(run_checks(case), found.operations, run, MOST_CAUSES)
        if case
        else None,
        phases=case.trace_phases if case and found.operations is case.facts.trace else None,
        is_by_offset=view.is_by_offset,
    )


def _write_page(
    page: str, run: Run, timelines: Mapping[str, TimelineOfRun], case: Case | None
) -> None:
    # Only the page needs Jinja.
    from ioncast.show.timeline import timeline_shown, write_timeline  # noqa: PLC0415

    are_alike = case is not None and bool(case.collectives.ran_alone.any())
    write_timeline(page, _title(run), timeline_shown(timelines, are_alike=are_alike))


def _write_pictures(
    svg: str | None, png: str | None, run: Run, timelines: Mapping[str, TimelineOfRun]
) -> None:
    from ioncast.timeline.figure import timeline_figure  # noqa: PLC0415
    from ioncast_base.pages.rendering import in_light_colours  # noqa: PLC0415
    from ioncast_base.pages.svg import picture  # noqa: PLC0415

    drawn = in_light_colours(picture(timeline_figure(timelines), _title(run)))
    if svg is not None:
        write_file(svg, drawn)
    if png is not None:
        try:
            from resvg_py import svg_to_bytes  # noqa: PLC0415
        except ImportError as error:
            raise InputError(
                "PNG needs resvg-py", where="--png", remedy="pip install 'ioncast[png]', or --svg"
            ) from error
        with whole_file(png) as place:
            place.write_bytes(bytes(svg_to_bytes(svg_string=drawn)))


def _draw_phases(run: Run, page: str | None) -> None:
    """Draw the phases, which every log has."""
    if page is None:
        raise InputError(_WITHOUT, where=visible(run.name), remedy=_TRACE_IT)
    from ioncast.show.figures import timelines_figure  # noqa: PLC0415
    from ioncast_base.pages.page import drawn, paragraph, write_page  # noqa: PLC0415

    phases = extract_run(run).phases
    if not phases:
        raise InputError("the log has no I/O", where=visible(run.name))
    figure: Figure = timelines_figure({"": [to_record(phase) for phase in phases]})
    said = f"The phases of the run, because {_WITHOUT}. To see requests, {_TRACE_IT}."
    write_page(page, title=_title(run), parts=[paragraph(said), drawn(figure, "Phases by time")])


def _title(run: Run) -> str:
    return f"Time line of job {run.first.id}: {visible(run.program)}"


def _ranks(text: str) -> list[tuple[int, int]]:
    """Read ranges of ranks such as "0-63,128"."""
    ranges = []
    for part in text.split(","):
        match = _RANKS.fullmatch(part.strip())
        if match is None:
            what = f"{visible(part)!r} is no range of ranks"
            raise InputError(what, where="--ranks", remedy="say 0-63")
        ranges.append((int(match[1]), int(match[2] or match[1])))
    return ranges
