"""The report of a validation as one HTML page that needs no network."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

import plotly.graph_objects as go

from ioncast_base.offline_pages import TABLE_STYLE, bullets, drawn, table, write_page
from predictor.composition.decision import TOLERANCE
from predictor.composition.drawing import PRINTED, X_AXIS, Y_AXIS, interval, runs
from predictor.validation.against_reruns import Comparison
from predictor.validation.result_tables import (
    FLOOR,
    KindError,
    Validated,
    curve_rows,
    decision_rows,
    error_rows,
    kind_errors,
    pooled,
    source_rows,
)

_FLOOR = "#8c8c8c"
# Pixels: of a figure, of a bar with its label, of what is around bars.
_HEIGHT, _BAR, _AROUND = 380, 64, 150


def curve_figure(result: Validated) -> go.Figure:
    """Draw an application's predicted curve with its interval, and its reruns as points."""
    figure = go.Figure()
    names = [str(n) for n in sorted(result.expected)]
    expected = [result.expected[n] for n in sorted(result.expected)]
    figure.add_trace(
        interval(names, [point.p10 for point in expected], [point.p90 for point in expected])
    )
    figure.add_scatter(
        x=names,
        y=[point.mean for point in expected],
        mode="lines+markers",
        line={"color": PRINTED.line},
        name="predicted mean",
        hovertemplate="%{x} I/O nodes: %{y:.1f} MiB/s<extra></extra>",
    )
    figure.add_trace(runs(result.reruns, "reruns"))
    order = [str(n) for n in sorted({*result.expected, *result.reruns})]
    return _laid_out(
        figure,
        xaxis=X_AXIS | {"categoryorder": "array", "categoryarray": order},
        yaxis=Y_AXIS,
    )


def error_figure(prediction: Comparison, floor: Comparison) -> go.Figure:
    """Draw the errors of single reruns by number of I/O nodes, beside the noise floor's."""
    figure = go.Figure()
    for errors, name, colour in (
        (prediction.run_errors, "prediction", PRINTED.line),
        (floor.run_errors, FLOOR, _FLOOR),
    ):
        figure.add_box(
            x=[str(n) for n, values in errors.items() for _ in values],
            y=[value for values in errors.values() for value in values],
            name=name,
            marker={"color": colour, "size": 4},
            boxpoints="all",
            jitter=0.4,
            pointpos=0,
        )
    return _laid_out(
        figure,
        boxmode="group",
        xaxis=X_AXIS
        | {"categoryorder": "array", "categoryarray": [str(n) for n in prediction.run_errors]},
        yaxis={"title": "error of each rerun", "tickformat": ".0%", "rangemode": "tozero"},
    )


def kind_figure(kinds: Sequence[KindError]) -> go.Figure:
    """Draw the mean error by kind of phase, beside the noise floor's."""
    figure = go.Figure()
    labels = [str(one.kind).replace(" ", "<br>", 1) for one in kinds]
    for values, name, colour in (
        ([kind.error for kind in kinds], "prediction", PRINTED.line),
        ([kind.noise_floor for kind in kinds], FLOOR, _FLOOR),
    ):
        figure.add_bar(
            x=values,
            y=labels,
            orientation="h",
            name=name,
            marker={"color": colour},
            customdata=[kind.reruns for kind in kinds],
            hovertemplate="%{x:.1%} of %{customdata:.1f} reruns<extra>" + name + "</extra>",
        )
    return _laid_out(
        figure,
        height=len(kinds) * _BAR + _AROUND,
        barmode="group",
        xaxis={"title": "mean error", "tickformat": ".0%", "rangemode": "tozero"},
        yaxis={"autorange": "reversed", "automargin": True},
    )


def write_html(
    results: Sequence[Validated], path: str | Path, *, system: str, warnings: Sequence[str]
) -> None:
    """Write the report as one HTML page with everything it needs inside.

    Parameters
    ----------
    results : sequence of Validated
        At least one.
    path : str or Path
        The page; about 5 MB, most of it Plotly. It is there as a whole or as it was before.
    system : str
        The system.
    warnings : sequence of str
        What limits the results.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    write_page(
        path,
        title=f"Predictions and reruns on {system}",
        body=_BODY.substitute(
            tolerance=f"{TOLERANCE:.0%}",
            errors=table(error_rows(results)),
            decisions=table(decision_rows(results)),
            sections="\n".join(_sections(results)),
            warnings=bullets("Warnings", warnings),
        ),
        style=TABLE_STYLE,
    )


def _sections(results: Sequence[Validated]) -> Iterator[str]:
    """What follows the summary; the first figure brings Plotly."""
    plotly = True
    if rows := source_rows(results):
        yield f"<h2>Where the mean error comes from</h2>{_SOURCES}{table(rows)}"
    if kinds := kind_errors(results):
        yield f"<h2>Error by kind of phase</h2>{_KINDS}{drawn(kind_figure(kinds), plotly)}"
        plotly = False
    if len(results) > 1 and kinds:
        figure = error_figure(*pooled(results))
        yield f"<h2>Error by number of I/O nodes, all applications</h2>{drawn(figure, plotly)}"
    for result in results:
        yield f"<h2>{html.escape(result.application)}</h2>{drawn(curve_figure(result), plotly)}"
        plotly = False
        if result.prediction.run_errors:
            yield drawn(error_figure(result.prediction, result.floor), plotly)
            yield table(
                [
                    {name: value for name, value in row.items() if name != "application"}
                    for row in curve_rows([result])
                ]
            )


def _laid_out(figure: go.Figure, height: int = _HEIGHT, **layout: Any) -> go.Figure:
    return figure.update_layout(
        height=height,
        template="plotly_white",
        margin={"t": 10, "r": 10, "l": 60, "b": 60},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        **layout,
    )


_BODY = Template("""\
<p>Error: |Bw &minus; Ba| / Ba of each rerun Ba from the predicted mean Bw. Noise floor: the same
where an application's own repetitions predict each other, so what is reachable.</p>
$errors
<p>Regret: the share of bandwidth lost by running with the predicted best number of I/O nodes
(within $tolerance: with the fewest whose predicted mean is so near the best). Kendall's tau: 1
where the predicted curve orders the numbers of I/O nodes as the measured one does. Four fifths
of the reruns should be in p10 to p90. Dunn's p, where it is below 0.05, says that reruns and
benchmark differ.</p>
$decisions
$sections
$warnings""")
_SOURCES = """\
<p>Noise: what repetitions are off from each other. The rest is put down to parts of phases that
no benchmark resembles, to those that another benchmark stands in for, and to drift while the
reruns ran; the others leave it unexplained.</p>"""
_KINDS = "<p>A rerun counts for each kind by the kind's share of its predicted time.</p>"
