"""Plots of predictions as HTML files that need no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from ioncast_base.pages.page import bullets, drawn, paragraph, write_page
from ioncast_base.wording import in_words, sentence
from predictor.curve.drawing import curve_figure
from predictor.curve.explanation import explain
from predictor.curve.prediction import Prediction


def write_html(
    prediction: Prediction, path: str | Path, measured: Mapping[int, Sequence[float]] | None = None
) -> None:
    """Write the plot of a prediction as one HTML page that needs no other file.

    If nothing is predicted, the page says why. A file that cannot be written raises an InputError.
    """
    decision, *reasons = explain(prediction)
    own = prediction.own_run
    parts = [
        *([paragraph(sentence(own.in_words))] if own else []),
        paragraph(_best(prediction)),
        paragraph(f"Decision: {decision}"),
        *([_curve(prediction, measured)] if prediction.curve else []),
        bullets("Why", reasons),
        bullets("Warnings", prediction.warnings),
    ]
    title = f"I/O bandwidth of job {prediction.job} on {prediction.system}"
    write_page(path, title=title, parts=parts)


def _best(prediction: Prediction) -> str:
    best = prediction.best
    if best.io_nodes is None:
        return f"No prediction: {best.why}."
    return f"Best: {in_words(best.io_nodes)} ({best.why})."


def _curve(prediction: Prediction, measured: Mapping[int, Sequence[float]] | None) -> str:
    figure = curve_figure(
        prediction.curve,
        best=prediction.best.io_nodes,
        decision=prediction.decision.io_nodes,
        measured=measured,
    )
    return drawn(figure, "Predicted bandwidth by number of I/O nodes")
