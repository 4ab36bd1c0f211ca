"""The coverage as a heat map, in an HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from benchdb.measurements.cells import OUTLIER_RULE
from benchdb.measurements.coverage import CoverageRow, blocks, summarise
from ioncast_base.pages.rendering import environment, write_template

TEMPLATES = Path(__file__).parent / "templates"
# A page with more rows is slow in a browser.
_MOST_ROWS = 1000


def write_html(
    rows: Sequence[CoverageRow], path: str | Path, *, now: datetime, stale_after: str
) -> None:
    """Write the heat map as one HTML page that needs no other files.

    The page shows the first thousand rows, and says how many it leaves out. An error leaves an
    earlier page as it was, and is an InputError.
    """
    write_template(
        path,
        "coverage.html",
        environment(TEMPLATES),
        blocks=list(_shown(rows)),
        left_out=max(len(rows) - _MOST_ROWS, 0),
        most=_MOST_ROWS,
        now=now,
        rule=OUTLIER_RULE,
        stale_after=stale_after,
    )


def _shown(
    rows: Sequence[CoverageRow],
) -> Iterator[tuple[str, str, Sequence[CoverageRow], str]]:
    """Yield each group of rows with its system, its engine and a sentence about all of it."""
    room = _MOST_ROWS
    for system, engine, block in blocks(rows):
        if room > 0:
            yield system, engine, block[:room], str(summarise(block))
        room -= len(block)
