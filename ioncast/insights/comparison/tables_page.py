"""Tables of runs as an HTML page that needs no network, with figures of sizes and times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup

from ioncast.insights.comparison.aligned_text import (
    MOST_SIDE_BY_SIDE,
    command_texts,
    differences,
    files_of,
    filled,
)
from ioncast.insights.comparison.comparing import compare
from ioncast.insights.comparison.in_words import missing_texts, short_names
from ioncast.insights.comparison.job_rows import job_rows
from ioncast.insights.comparison.shown import Marked, Texts, overview_rows, shown_rows
from ioncast.insights.comparison.table_figures import size_figures, time_figures
from ioncast.insights.tables.characterising import Characterisation
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page


def write_html(runs: Sequence[Characterisation], path: str | Path, tolerance: float) -> None:
    """Write a page of at least one run; above `MOST_SIDE_BY_SIDE` a row each, and no figures."""
    title = "I/O of one run" if len(runs) == 1 else f"I/O of {len(runs)} runs"
    parts = _side_by_side(runs, tolerance) if len(runs) <= MOST_SIDE_BY_SIDE else _overview(runs)
    write_page(path, title=title, parts=[*parts, *_files(runs, tolerance)])


def _side_by_side(runs: Sequence[Characterisation], tolerance: float) -> Iterator[str]:
    names, tables = short_names(runs), compare(runs, tolerance)
    yield from map(paragraph, command_texts(runs))
    yield bullets("Differences", differences(runs, tolerance))
    yield heading("Job")
    yield _table(list(job_rows(runs, names, tolerance)))
    for compared in tables:
        rows = list(shown_rows(compared, names))
        if rows:
            yield heading(compared.title)
            if compared.name == "histograms":
                for title, figure in size_figures(compared, names):
                    yield heading(title, 3)
                    yield drawn(figure, title)
            if compared.name == "time":
                for figure in time_figures(compared, names):
                    yield drawn(figure, "Seconds of a process in each layer")
            yield _table(rows)
    yield bullets("Not recorded", missing_texts(runs))


def _overview(runs: Sequence[Characterisation]) -> Iterator[str]:
    yield _table(list(overview_rows(runs)))


def _files(runs: Sequence[Characterisation], tolerance: float) -> Iterator[str]:
    for title, rows, more in files_of(runs, tolerance):
        yield heading(title)
        yield _table(rows)
        yield paragraph(more)


def _table(rows: Sequence[Texts]) -> str:
    return table([dict(_marked(row)) for row in filled(rows)], texts=2)


def _marked(row: Texts) -> Iterator[tuple[str, str]]:
    for name, text in row.items():
        yield name, Markup("<mark>{}</mark>").format(text) if isinstance(text, Marked) else text
