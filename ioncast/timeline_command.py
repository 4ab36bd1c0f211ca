"""`ioncast timeline`: draw which ranks read and wrote when."""

from __future__ import annotations

import re

import click

from ioncast.timeline.figure import SPAN_COLUMNS, drawn_spans, span_rows
from ioncast.timeline.requests import TIMELINE_MODULES, select, timed_requests
from ioncast_base.command_options import warn
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ioncast_base.visible_text import visible
from predictor.curve.asking import read_run
from summario.phases.streamed import stream_csv

_RANKS = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


@click.command(
    epilog="""\b
Examples:
  ioncast timeline app.darshan --html timeline.html
  ioncast timeline app.darshan --html timeline.html --ranks 0-63 --from 10 --to 20
  ioncast timeline app.darshan --files '*.h5' --csv requests.csv
"""
)
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path())
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Write a page.")
@click.option("--csv", "table", metavar="FILE", type=click.Path(), help="Write what is drawn.")
@click.option("--ranks", metavar="RANKS", help="Only these ranks, such as 0-63 or 0,8,16-23.")
@click.option("--files", metavar="PATTERN", help="Only files with such a path, such as '*.h5'.")
@click.option("--from", "from_s", type=float, metavar="S", help="Only from this second on.")
@click.option("--to", "until_s", type=float, metavar="S", help="Only until this second.")
@click.option("--all-files", is_flag=True, help="Also count system files and standard streams.")
def timeline(
    logs: tuple[str, ...],
    page: str | None,
    table: str | None,
    ranks: str | None,
    files: str | None,
    from_s: float | None,
    until_s: float | None,
    all_files: bool,
) -> None:
    """Draw which ranks read and wrote when: MPI-IO above POSIX.

    LOG is a Darshan log, or the logs of one run. The requests come from its trace (DXT), else from
    its heat maps, which tell bins of time in which bytes moved. Phases of a trace are shaded, with
    the rank that ended last. More than 5,000 requests of an operation are joined to spans in which
    a rank is busy.
    """
    if page is None and table is None:
        raise InputError("a time line is a file", remedy="say --html FILE or --csv FILE")
    selected = None if ranks is None else _ranks(ranks)
    run = read_run(logs, "steps", "and times of requests", TIMELINE_MODULES)
    for warning in run.warnings:
        warn(warning)
    found = timed_requests(run, files=files, all_files=all_files)
    if found is None:
        raise InputError(
            "there is no trace, and no heat map" if files is None else "only a trace tells files",
            where=visible(run.name),
            remedy="set DXT_ENABLE_IO_TRACE while the program runs",
        )
    found = select(found, selected, from_s, until_s)
    for warning in found.operations.warnings:
        warn(warning)
    drawn = drawn_spans(found)
    if not drawn:
        raise InputError("no request is selected", where=visible(run.name), remedy="select more")
    if page is not None:
        # Only the page needs Jinja.
        from ioncast.timeline.page import write_html  # noqa: PLC0415

        write_html(page, run, found, drawn)
    if table is not None:
        write_file(table, "".join(stream_csv(SPAN_COLUMNS, [list(span_rows(drawn, found.nprocs))])))


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
