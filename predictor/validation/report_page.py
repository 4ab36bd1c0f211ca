"""The report of a validation as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

import plotly.graph_objects as go

from ioncast_base.offline_pages import bullets, heading, laid_out, table, write_page
from predictor.curve.decision import TOLERANCE
from predictor.curve.drawing import PRINTED, Y_AXIS, by_io_nodes, expected
from predictor.validation.against_reruns import SPLITS, Comparison
from predictor.validation.box_plots import EXPLANATION, Series, box_plot
from predictor.validation.result_tables import (
    FLOOR,
    PREDICTION,
    KindError,
    Validated,
    curve_rows,
    decision_rows,
    error_rows,
    kind_errors,
    pooled,
    source_rows,
)

_FLOOR, _BENCHMARK = "#6b6b6b", "#333333"
_PER_CENT = {"tickformat": ".0%", "rangemode": "tozero"}
# Heights in pixels: a bar with its label, and the space around all bars.
_BAR, _AROUND = 64, 150


def bandwidth_figure(result: Validated) -> go.Figure:
    """Draw an application's predicted curve, and its reruns beside its benchmark as boxes."""
    series = [
        Series("benchmark", result.benchmark, _BENCHMARK, "circle-open", False, is_bandwidth=True),
        Series("reruns", result.reruns, PRINTED.runs, "x-thin-open", True, is_bandwidth=True),
    ]
    figure = go.Figure([*expected(result.expected), *box_plot(series)])
    order = sorted({*result.expected, *result.reruns})
    return laid_out(figure, boxmode="group", xaxis=by_io_nodes(order), yaxis=Y_AXIS)


def error_figure(prediction: Comparison, floor: Comparison) -> go.Figure:
    """Draw the errors of single reruns by number of I/O nodes, beside the noise floor."""
    series = [
        Series(PREDICTION, prediction.run_errors, PRINTED.line, "circle", is_filled=True),
        Series(FLOOR, floor.run_errors, _FLOOR, "circle-open", is_filled=False),
    ]
    return laid_out(
        go.Figure(box_plot(series)),
        boxmode="group",
        xaxis=by_io_nodes(prediction.run_errors),
        yaxis=_PER_CENT | {"title": "error of each rerun"},
    )


def halves_figure(result: Validated) -> go.Figure:
    """Draw the errors of random halves of the reruns, and the error of the prediction as marks."""
    errors = {n: result.prediction.cell_errors[n][0] for n in result.errors_of_halves}
    halves = Series("random halves", result.errors_of_halves, _FLOOR, "", is_filled=False)
    figure = go.Figure(box_plot([halves]))
    figure.add_scatter(
        x=[str(n) for n in errors],
        y=list(errors.values()),
        mode="markers",
        name=PREDICTION,
        marker={"symbol": "diamond", "size": 10, "color": PRINTED.line},
    )
    return laid_out(
        figure,
        boxmode="group",
        xaxis=by_io_nodes(errors),
        yaxis=_PER_CENT | {"title": "error of the mean"},
    )


def kind_figure(kinds: Sequence[KindError]) -> go.Figure:
    """Draw the mean error by kind of phase, beside the noise floor."""
    figure = go.Figure()
    labels = [str(one.kind).replace(" ", "<br>", 1) for one in kinds]
    for values, name, colour in (
        ([kind.error for kind in kinds], PREDICTION, PRINTED.line),
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
    return laid_out(
        figure,
        height=len(kinds) * _BAR + _AROUND,
        barmode="group",
        xaxis=_PER_CENT | {"title": "mean error"},
        yaxis={"autorange": "reversed", "automargin": True},
    )


def write_html(
    results: Sequence[Validated], path: str | Path, *, system: str, warnings: Sequence[str]
) -> None:
    """Write the report of at least one application as one HTML page of about 5 MB.

    The page needs no other file. A failure leaves the old file, and raises an InputError.
    """
    parts = [
        _ERRORS,
        table(error_rows(results)),
        _DECISIONS.substitute(tolerance=f"{TOLERANCE:.0%}"),
        table(decision_rows(results)),
        DUNN,
        *_sections(results),
        bullets("Warnings", warnings),
    ]
    write_page(path, title=f"Predictions and reruns on {system}", parts=parts)


def _sections(results: Sequence[Validated]) -> Iterator[str | go.Figure]:
    if rows := source_rows(results):
        yield heading("Where the mean error comes from") + _SOURCES + table(rows)
    if kinds := kind_errors(results):
        yield heading("Error by kind of phase") + _KINDS
        yield kind_figure(kinds)
    if len(results) > 1 and kinds:
        yield heading("Error by number of I/O nodes, all applications")
        yield error_figure(*pooled(results))
    for result in results:
        yield heading(result.application)
        yield bandwidth_figure(result)
        yield EXPLANATION
        if result.prediction.run_errors:
            yield table(curve_cells(result))
            yield error_figure(result.prediction, result.floor)
        if result.errors_of_halves:
            yield HALVES
            yield halves_figure(result)


def curve_cells(result: Validated) -> list[dict[str, Any]]:
    """Make the rows of a curve without the application, which the heading above it names."""
    return [
        {name: value for name, value in row.items() if name != "application"}
        for row in curve_rows([result])
    ]


_ERRORS = """\
<p>Error: |Bw &minus; Ba| / Ba for each rerun Ba, with Bw the predicted mean. Noise floor: the same
error if an application's own repetitions predict each other. No prediction can be much
better.</p>"""
_DECISIONS = Template("""\
<p>Regret: the share of bandwidth that is lost with the number of I/O nodes predicted best (within
$tolerance: with the fewest whose predicted mean is that near the best). Kendall's tau: 1 if the
predicted curve orders the numbers of I/O nodes as the measured curve does. Four of five reruns
should be in p10 to p90.</p>""")
DUNN = """\
<p>Dunn's p: how often chance alone would set reruns and benchmark as far apart as they are. Below
0.05 they differ, be it by much or little. A larger value does not prove that they are the same,
above all with few runs.</p>"""
HALVES = f"""\
<p>Random halves: the error if the mean of one random half of the reruns predicts the mean of the
other, over {SPLITS} random splits. The same runs are that far apart by chance. Halves as far: the
share of splits with an error at least as high as that of the prediction.</p>"""
_SOURCES = """\
<p>Noise: the error of repetitions as predictions of each other. The other error is attributed to
parts of phases that no benchmark resembles (missing pattern), to parts for which another
benchmark stands in (poor match), and to drift between the reruns. The rest is unexplained.</p>"""
_KINDS = (
    "<p>A rerun counts for each kind in proportion to the kind's share of its predicted time.</p>"
)
