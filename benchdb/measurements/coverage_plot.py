"""The coverage as a heat map, in an HTML file that needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from string import Template
from textwrap import wrap
from typing import Any

import plotly.graph_objects as go

from benchdb.measurements.cells import OUTLIER_RULE
from benchdb.measurements.coverage import Cell, CoverageRow, blocks, summarise
from ioncast_base.offline_pages import heading, laid_out, paragraph, write_page
from ioncast_base.wording import counted, in_digits, in_words

# From light to dark, so that colour-blind readers can read it.
_COLOURS = ("#fff7bc", "#fec44f", "#d95f0e", "#7f2704")
_ONE_REPETITION, _MISSING = "#c6dbef", "#c9c9c9"
_LARGEST_SPREAD = 0.5
# Plotly has one colour scale for a figure, so its first fifth is for cells without a spread.
_MISSING_SHADE, _ONE_REPETITION_SHADE = 0.05, 0.15
_NO_SPREAD_SHADE, _SPREAD_SHADES = 0.2, 0.8
_SCALE = [
    (0, _MISSING),
    (0.1, _MISSING),
    (0.1, _ONE_REPETITION),
    (_NO_SPREAD_SHADE, _ONE_REPETITION),
    *(
        (_NO_SPREAD_SHADE + _SPREAD_SHADES * (i / (len(_COLOURS) - 1)), colour)
        for i, colour in enumerate(_COLOURS)
    ),
]
# Few enough rows that the header with the numbers of I/O nodes stays visible.
_ROWS_OF_A_PART = 20
# A page with more rows is slow in a browser.
_MOST_ROWS = 1000
# Heights in pixels: label of a row, its cells, the space below it, header of a figure.
_LABEL, _CELLS, _SPACE, _HEADER = 18, 24, 6, 30
_ROW = _LABEL + _CELLS + _SPACE
# Width in characters.
_HOVER_WIDTH = 40
# Height in pixels. Plotly shows no hover texts in a lower figure, because they do not fit.
_SMALLEST_HEIGHT = 240


def coverage_figure(rows: Sequence[CoverageRow]) -> go.Figure:
    """Draw the cells of some configurations of one system and engine."""
    columns = range(len(rows[0].cells))
    height = len(rows) * _ROW
    below = max(_SMALLEST_HEIGHT - _HEADER - height, 0)
    figure = go.Figure()
    figure.add_heatmap(
        x=list(columns),
        y=_edges(len(rows)),
        z=_strips([[_shade(cell) for cell in row.cells] for row in rows], None),
        text=_strips([[_text(cell) for cell in row.cells] for row in rows], ""),
        hovertext=_strips([[_hover(row, cell) for cell in row.cells] for row in rows], ""),
        texttemplate="%{text}",
        textfont={"size": 12},
        hoverinfo="text",
        hoverongaps=False,
        colorscale=_SCALE,
        zmin=0,
        zmax=1,
        showscale=False,
        xgap=2,
    )
    # Labels as points: with labels of the axis, Plotly would hide the numbers of I/O nodes.
    figure.add_scatter(
        x=[-0.5] * len(rows),
        y=[i * _ROW + _LABEL / 2 for i in range(len(rows))],
        text=[html.escape(_label(row)) for row in rows],
        mode="text",
        textposition="middle right",
        textfont={"size": 11},
        hoverinfo="skip",
    )
    return laid_out(
        figure,
        height=_HEADER + height + below,
        margin={"t": _HEADER, "r": 0, "l": 0, "b": below},
        xaxis={
            "range": [-0.5, len(columns) - 0.5],
            "tickvals": list(columns),
            "ticktext": [f"<b>{cell.io_nodes}</b>" for cell in rows[0].cells],
            "ticklabelstandoff": 4,
            "side": "top",
            "fixedrange": True,
            "showgrid": False,
            "zeroline": False,
        },
        yaxis={"range": [height, 0], "fixedrange": True, "visible": False},
    )


def write_html(
    rows: Sequence[CoverageRow], path: str | Path, *, now: datetime, stale_after: str
) -> None:
    """Write the heat map as one HTML page of about 5 MB that needs no other files.

    The page shows the first thousand rows, and says how many it leaves out. An error leaves an
    earlier page as it was, and is an InputError.
    """
    left_out = max(len(rows) - _MOST_ROWS, 0)
    key = _KEY.substitute(
        when=now.strftime("%Y-%m-%d %H:%M %Z"),
        largest=f"{_LARGEST_SPREAD:.0%}",
        missing=_MISSING,
        one=_ONE_REPETITION,
        rule=html.escape(OUTLIER_RULE),
        stale_after=html.escape(stale_after),
    )
    cut = f"The first {_MOST_ROWS} configurations; {left_out} more are in the table."
    parts = [key, *([paragraph(cut)] if left_out else []), *_parts(rows)]
    write_page(
        path,
        title="Coverage of the benchmark database",
        parts=parts if rows else [key, paragraph("No measurements.")],
        style=_STYLE.substitute(colours=", ".join(_COLOURS)),
    )


def _parts(rows: Sequence[CoverageRow]) -> Iterator[str | go.Figure]:
    """The heading of each group of rows, followed by its figures."""
    room = _MOST_ROWS
    for system, engine, block in blocks(rows):
        yield heading(f"{system}, {engine}") + paragraph(str(summarise(block)))
        shown = block[:room]
        room -= len(shown)
        for start in range(0, len(shown), _ROWS_OF_A_PART):
            yield coverage_figure(shown[start : start + _ROWS_OF_A_PART])


def _edges(rows: int) -> list[int]:
    """The upper edges of the strips of all rows (label, cells, space), then the lowest edge."""
    strips = (0, _LABEL, _LABEL + _CELLS)
    return [i * _ROW + strip for i in range(rows) for strip in strips] + [rows * _ROW]


def _strips(values: Sequence[list[Any]], empty: object) -> list[list[Any]]:
    """The values of each row's cells, between empty strips for its label and space."""
    nothing = [empty] * len(values[0])
    return [strip for row in values for strip in (nothing, row, nothing)]


def _shade(cell: Cell) -> float:
    if cell.missing:
        return _MISSING_SHADE
    if cell.spread is None:
        return _ONE_REPETITION_SHADE
    return _NO_SPREAD_SHADE + _SPREAD_SHADES * min(cell.spread / _LARGEST_SPREAD, 1)


def _label(row: CoverageRow) -> str:
    """Id, IOR options and size of a configuration."""
    options = " ".join(row.config.to_args())
    tasks, nodes = (count or "?" for count in (row.config.tasks, row.config.nodes))
    return f"{row.id}: {options} ({tasks} on {nodes})"


def _text(cell: Cell) -> str:
    return "–" if cell.missing else f"{cell.repetitions} <b>{cell.marks}</b>"


def _hover(row: CoverageRow, cell: Cell) -> str:
    lines = [
        f"<b>{in_words(cell.io_nodes)}: {counted(cell.repetitions, 'repetition')}</b>",
        *(html.escape(line) for line in wrap(_label(row), _HOVER_WIDTH)),
    ]
    if cell.set_apart:
        lines.append(f"{cell.set_apart} more set apart")
    if cell.mean_mib_s is not None and cell.median_mib_s is not None:
        mean, median = in_digits(cell.mean_mib_s, 4), in_digits(cell.median_mib_s, 4)
        lines.append(f"mean {mean} MiB/s, median {median}")
    if cell.spread is not None:
        lines.append(f"spread {cell.spread:.1%} (coefficient of variation)")
    if cell.outliers_mib_s:
        values = ", ".join(in_digits(value, 4) for value in cell.outliers_mib_s)
        lines += [f"outliers: {values} MiB/s", *wrap(f"by {OUTLIER_RULE}", _HOVER_WIDTH)]
    if cell.bimodal:
        lines.append("bimodal")
    if cell.newest:
        lines.append(f"newest {cell.newest:%Y-%m-%d}{', stale' if cell.stale else ''}")
    return "<br>".join(lines)


_STYLE = Template("""\
.key { display: flex; flex-wrap: wrap; gap: 0.3rem 1.2rem; align-items: center; }
.key i { display: inline-block; height: 0.9em; width: 1.6em; vertical-align: -0.1em; }
.key i.scale { width: 8em; background: linear-gradient(to right, $colours); }
""")
_KEY = Template("""\
<p>$when. Each row is a configuration with its id, its IOR options, and its processes on compute
nodes. Each column is a number of I/O nodes. Each cell shows its number of repetitions.</p>
<div class="key">
<span>spread (coefficient of variation) 0% <i class="scale"></i> $largest and more</span>
<span><i style="background: $one"></i> one repetition</span>
<span><i style="background: $missing"></i> – missing</span>
<span><b>b</b> bimodal</span>
<span><b>s</b> stale: the newest is older than $stale_after</span>
<span><b>*</b> outliers: $rule</span>
</div>""")
