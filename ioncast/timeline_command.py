"""`ioncast timeline`: draw which ranks read and wrote when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from ioncast.insights.checks.values import Case
from ioncast.insights.facts.gathering import facts_of
from ioncast.named_requests import paths_of
from ioncast.timeline_of_run import (
    DRAWN_MODULES,
    TRACE_IT,
    WITHOUT,
    TimelineView,
    ranks_of_text,
    requests_in_view,
    timeline_in_view,
    title_of_run,
)
from ioncast.timelines.colours import COLOURINGS, Colouring
from ioncast.timelines.figure import SPAN_COLUMNS, span_rows
from ioncast.timelines.timeline import MOST_CAUSES, TimelineOfRun
from ioncast_base.command_options import warn
from ioncast_base.errors import InputError
from ioncast_base.files import whole_file, write_file
from ioncast_base.visible_text import visible
from summario.phases.extract import extract_run
from summario.phases.streamed import stream_csv
from summario.phases.tables import to_record
from summario.runs.given_run import read_run
from summario.runs.logs_of_run import Run

if TYPE_CHECKING:
    from ioncast_base.pages.figures import Figure


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
    view = TimelineView(
        None if ranks is None else ranks_of_text(ranks, "--ranks"),
        files,
        from_s,
        until_s,
        all_files,
        colouring,
        offsets,
    )
    run, case = _read(logs, view)
    found = requests_in_view(run, view, case, warn)
    if found is None:
        if view.selects or table or svg or png or perfetto or other:
            raise InputError(WITHOUT, where=visible(run.name), remedy=TRACE_IT)
        _draw_phases(run, page)
        return
    drawn = timeline_in_view(run, found, view, case, MOST_CAUSES)
    if page or svg or png:
        timelines = {"": drawn}
        if other is not None:
            timelines = {"First run": drawn, "Second run": _second(other, view)}
        if page is not None:
            _write_page(page, run, timelines, case)
        if svg or png:
            _write_pictures(svg, png, run, timelines)
    elif other is not None:
        raise InputError("only a page or a picture has two runs", where="--with")
    if table is not None:
        write_file(table, "".join(stream_csv(SPAN_COLUMNS, [list(span_rows(drawn))])))
    if perfetto is not None:
        from ioncast.timelines.perfetto import write_perfetto  # noqa: PLC0415

        write_perfetto(perfetto, found, paths_of(run))


def _read(logs: tuple[str, ...], view: TimelineView) -> tuple[Run, Case]:
    run = read_run(logs, "steps", "and times of requests", DRAWN_MODULES)
    for warning in run.warnings:
        warn(warning)
    return run, Case(facts_of(run, all_files=view.all_files))


def _second(log: str, view: TimelineView) -> TimelineOfRun:
    run, case = _read((log,), view)
    found = requests_in_view(run, view, case, warn)
    if found is None:
        raise InputError(WITHOUT, where=visible(run.name), remedy=TRACE_IT)
    return timeline_in_view(run, found, view, case, 0)


def _write_page(page: str, run: Run, timelines: Mapping[str, TimelineOfRun], case: Case) -> None:
    # Only the page needs Jinja.
    from ioncast.show.timeline import timeline_shown, write_timeline  # noqa: PLC0415

    are_alike = bool(case.collectives.ran_alone.any())
    write_timeline(page, title_of_run(run), timeline_shown(timelines, are_alike=are_alike))


def _write_pictures(
    svg: str | None, png: str | None, run: Run, timelines: Mapping[str, TimelineOfRun]
) -> None:
    from ioncast.timelines.figure import timeline_figure  # noqa: PLC0415
    from ioncast_base.pages.rendering import in_light_colours  # noqa: PLC0415
    from ioncast_base.pages.svg import picture  # noqa: PLC0415

    drawn = in_light_colours(picture(timeline_figure(timelines), title_of_run(run)))
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
    assert page is not None  # noqa: S101
    from ioncast.show.figures import timelines_figure  # noqa: PLC0415
    from ioncast_base.pages.page import drawn, paragraph, write_page  # noqa: PLC0415

    phases = extract_run(run).phases
    if not phases:
        raise InputError("the log has no I/O", where=visible(run.name))
    figure: Figure = timelines_figure({"": [to_record(phase) for phase in phases]})
    said = f"The phases of the run, because {WITHOUT}. To see requests, {TRACE_IT}."
    write_page(
        page, title=title_of_run(run), parts=[paragraph(said), drawn(figure, "Phases by time")]
    )
