"""The report of a validation as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ioncast_base.pages.figures import (
    Bars,
    Figure,
    Panel,
    Points,
    Series,
    categories,
    from_zero,
    rows,
    side_by_side,
)
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page
from predictor.curve.decision import TOLERANCE
from predictor.curve.drawing import IO_NODES, LINE, RUNS, by_io_nodes, expected
from predictor.validation.against_reruns import SPLITS, Comparison
from predictor.validation.box_plots import EXPLANATION, Distributions, box_plot
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

_FLOOR, _BENCHMARK = "var(--other)", "var(--text)"
# Two bars in a row: the part of the row that they fill, and its pixels.
_BARS, _ROW = 0.5, 64


def bandwidth_figure(result: Validated) -> Figure:
    """Draw an application's predicted curve, and its reruns beside its benchmark as boxes."""
    order = sorted({*result.expected, *result.reruns})
    benchmark = {n: runs for n, runs in result.benchmark.items() if n in order}
    distributions = [
        Distributions("benchmark", benchmark, _BENCHMARK, "ring", False, is_bandwidth=True),
        Distributions("reruns", result.reruns, RUNS, "cross", True, is_bandwidth=True),
    ]
    return by_io_nodes(expected(result.expected), order, box_plot(distributions, order))


def error_figure(prediction: Comparison, floor: Comparison) -> Figure:
    """Draw the errors of single reruns by number of I/O nodes, beside the noise floor."""
    order = sorted(prediction.run_errors)
    distributions = [
        Distributions(PREDICTION, prediction.run_errors, LINE, "circle", is_filled=True),
        Distributions(FLOOR, floor.run_errors, _FLOOR, "ring", is_filled=False),
    ]
    return _errors(order, box_plot(distributions, order), "error of each rerun")


def halves_figure(result: Validated) -> Figure:
    """Draw the errors of random halves of the reruns, and the error of the prediction as marks."""
    order = sorted(result.errors_of_halves)
    errors = [result.prediction.cell_errors[n][0] for n in order]
    halves = Distributions("random halves", result.errors_of_halves, _FLOOR, None, is_filled=False)
    marks = Points(PREDICTION, LINE, range(len(order)), errors, "diamond")
    return _errors(order, [*box_plot([halves], order), marks], "error of the mean")


def _errors(order: Sequence[int], series: Sequence[Series], title: str) -> Figure:
    values = from_zero(series, title, "{:.0%}".format)
    return Figure([Panel(categories(list(map(str, order)), IO_NODES), values, series)])


def kind_figure(kinds: Sequence[KindError]) -> Figure:
    """Draw the mean error by kind of phase, beside the noise floor."""
    errors: dict[tuple[str, str], list[float | None]] = {
        (PREDICTION, LINE): [kind.error for kind in kinds],
        (FLOOR, _FLOOR): [kind.noise_floor for kind in kinds],
    }
    series = []
    for place, ((name, colour), values) in enumerate(errors.items()):
        offset, width = side_by_side(2, place, _BARS)
        at = [row + offset for row in range(len(kinds))]
        hints = [f"{name}, of {kind.reruns:.1f} reruns" for kind in kinds]
        texts = ["" if value is None else f"{value:.1%}" for value in values]
        series.append(Bars(name, colour, at, values, (), width, hints, texts))
    axis = from_zero(series, "mean error", "{:.0%}".format, room=1.15)
    return Figure([rows([str(one.kind) for one in kinds], axis, series, row=_ROW, width=_BARS)])


def write_html(
    results: Sequence[Validated], path: str | Path, *, system: str, warnings: Sequence[str]
) -> None:
    """Write the report of at least one application as one HTML page.

    The page needs no other file. A failure leaves the old file, and raises an InputError.
    """
    parts = [
        _ERRORS,
        table(error_rows(results)),
        _DECISIONS,
        table(decision_rows(results)),
        DUNN,
        *_sections(results),
        bullets("Warnings", warnings),
    ]
    write_page(path, title=f"Predictions and reruns on {system}", parts=parts)


def _sections(results: Sequence[Validated]) -> Iterator[str]:
    if rows := source_rows(results):
        yield heading("Where the mean error comes from") + _SOURCES + table(rows)
    if kinds := kind_errors(results):
        yield heading("Error by kind of phase") + _KINDS
        yield drawn(kind_figure(kinds), "Mean error by kind of phase")
    if len(results) > 1 and kinds:
        yield heading("Error by number of I/O nodes, all applications")
        yield drawn(error_figure(*pooled(results)), _ERRORS_DRAWN)
    for result in results:
        yield heading(result.application)
        yield drawn(bandwidth_figure(result), f"Bandwidth of {result.application}")
        yield paragraph(EXPLANATION)
        if result.prediction.run_errors:
            yield table(curve_cells(result))
            yield drawn(error_figure(result.prediction, result.floor), _ERRORS_DRAWN)
        if result.errors_of_halves:
            yield HALVES
            yield drawn(halves_figure(result), "Errors of random halves of the reruns")


def curve_cells(result: Validated) -> list[dict[str, Any]]:
    """Make the rows of a curve without the application, which the heading above it names."""
    return [
        {name: value for name, value in row.items() if name != "application"}
        for row in curve_rows([result])
    ]


_ERRORS_DRAWN = "Errors of single reruns by number of I/O nodes"
_ERRORS = paragraph(
    "Error: |Bw − Ba| / Ba for each rerun Ba, with Bw the predicted mean. Noise floor: the "
    "same error if an application's own repetitions predict each other. No prediction can be "
    "much better."
)
_DECISIONS = paragraph(
    "Regret: the share of bandwidth that is lost with the number of I/O nodes predicted best "
    f"(within {TOLERANCE:.0%}: with the fewest whose predicted mean is that near the best). "
    "Kendall's tau: 1 if the predicted curve orders the numbers of I/O nodes as the measured "
    "curve does. Four of five reruns should be in p10 to p90."
)
DUNN = paragraph(
    "Dunn's p: how often chance alone would set reruns and benchmark as far apart as they "
    "are. Below 0.05 they differ, be it by much or little. A larger value does not prove that "
    "they are the same, above all with few runs."
)
HALVES = paragraph(
    "Random halves: the error if the mean of one random half of the reruns predicts the mean "
    f"of the other, over {SPLITS} random splits. The same runs are that far apart by chance. "
    "Halves as far: the share of splits with an error at least as high as that of the "
    "prediction."
)
_SOURCES = paragraph(
    "Noise: the error of repetitions as predictions of each other. The other error is "
    "attributed to parts of phases that no benchmark resembles (missing pattern), to parts "
    "for which another benchmark stands in (poor match), and to drift between the reruns. The "
    "rest is unexplained."
)
_KINDS = paragraph(
    "A rerun counts for each kind in proportion to the kind's share of its predicted time."
)
