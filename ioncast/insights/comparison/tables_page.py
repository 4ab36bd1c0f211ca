"""Tables of runs as an HTML page that needs no network, with figures of sizes and times."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

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
from ioncast_base.offline_pages import bullets, heading, paragraph, table, write_page

_STYLE = """
th:nth-child(2), td:nth-child(2) { text-align: left; }
mark { background: #ffe8a3; color: inherit; font-weight: 600; }
"""


def write_html(runs: Sequence[Characterisation], path: str | Path, tolerance: float) -> None:
    """Write a page of at least one run; above `MOST_SIDE_BY_SIDE` a row each, and no figures."""
    title = "I/O of one run" if len(runs) == 1 else f"I/O of {len(runs)} runs"
    parts = _side_by_side(runs, tolerance) if len(runs) <= MOST_SIDE_BY_SIDE else _overview(runs)
    write_page(path, title=title, parts=[*parts, *_files(runs, tolerance)], style=_STYLE)


def _side_by_side(runs: Sequence[Characterisation], tolerance: float) -> Iterator[str | go.Figure]:
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
                    yield figure
            if compared.name == "time":
                yield from time_figures(compared, names)
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
    return table([_escaped(row) for row in filled(rows)], is_html=True)


def _escaped(row: Mapping[str, str]) -> dict[str, str]:
    return {
        html.escape(name): f"<mark>{html.escape(text)}</mark>"
        if isinstance(text, Marked)
        else html.escape(text)
        for name, text in row.items()
    }
