"""Plots of predictions, as HTML files that need no network."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

from benchdb.pages import bullets, write_page
from predictor.composition import Point
from predictor.explanation import explain
from predictor.prediction import Prediction
from predictor.wording import in_words

LINE, _BAND, _RUNS = "#1f5f8b", "rgba(31, 95, 139, 0.18)", "#c1440e"
_BEST, _DECISION = "#1f5f8b", "#d98200"
# A filled marker is something that was seen; an open one is not.
_SYMBOLS = {"measured": "circle", "model": "circle-open"}
_MEANINGS = {"measured": "all of it measured", "model": "the model fills in"}


def curve_figure(
    prediction: Prediction, measured: Mapping[int, Sequence[float]] | None = None
) -> go.Figure:
    """Draw a predicted curve with its interval and decision, and measured runs as points.

    Parameters
    ----------
    prediction : Prediction
        What to draw.
    measured : mapping of int to sequence of float, optional
        Bandwidth in MiB/s of the application's own runs by number of I/O nodes.
    """
    figure = go.Figure()
    names = [str(point.io_nodes) for point in prediction.curve]
    bands = [point.bandwidth_mib_s for point in prediction.curve]
    add_interval(figure, names, [band.p10 for band in bands], [band.p90 for band in bands])
    figure.add_scatter(
        x=names,
        y=[band.mean for band in bands],
        mode="lines",
        line={"color": LINE},
        hoverinfo="skip",
        name="predicted mean",
    )
    for basis, meaning in _MEANINGS.items():
        points = [point for point in prediction.curve if point.basis == basis]
        _mark(figure, points, meaning, symbol=_SYMBOLS[basis], size=9, color=LINE)
    best, decided = prediction.best.io_nodes, prediction.decision.io_nodes
    both = "best, and decision" if best == decided else "best"
    at_best, at_decided = (
        [point for point in prediction.curve if point.io_nodes == n] for n in (best, decided)
    )
    _mark(figure, at_best, both, symbol="circle-open", size=19, color=_BEST)
    if best != decided:
        _mark(figure, at_decided, "decision", symbol="square-open", size=19, color=_DECISION)
    if measured:
        add_runs(figure, measured, "measured runs")
    figure.update_layout(
        xaxis={"title": "I/O nodes (0: direct access)", "type": "category"},
        yaxis={"title": "bandwidth, MiB/s", "rangemode": "tozero"},
        template="plotly_white",
        margin={"t": 10, "r": 20, "l": 70, "b": 60},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
    )
    return figure


def _mark(
    figure: go.Figure,
    points: Sequence[Point],
    name: str,
    *,
    symbol: str,
    size: int,
    color: str,
) -> None:
    if points:
        figure.add_scatter(
            x=[str(point.io_nodes) for point in points],
            y=[point.bandwidth_mib_s.mean for point in points],
            mode="markers",
            marker={
                "symbol": symbol,
                "size": size,
                "color": color,
                "line": {"width": 2, "color": color},
            },
            name=name,
            hovertemplate=f"%{{x}} I/O nodes: %{{y:.1f}} MiB/s<extra>{name}</extra>",
        )


def add_interval(figure: go.Figure, names: list[str], p10: list[float], p90: list[float]) -> None:
    """Draw an interval of bandwidth as a band."""
    figure.add_scatter(
        x=names + names[::-1],
        y=p90 + p10[::-1],
        mode="lines",
        fill="toself",
        fillcolor=_BAND,
        line={"width": 0},
        hoverinfo="skip",
        name="predicted, p10 to p90",
    )


def add_runs(figure: go.Figure, runs: Mapping[int, Sequence[float]], name: str) -> None:
    """Draw the bandwidth of runs by number of I/O nodes as points."""
    figure.add_scatter(
        x=[str(n) for n, values in sorted(runs.items()) for _ in values],
        y=[value for _, values in sorted(runs.items()) for value in values],
        mode="markers",
        marker={"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": _RUNS}},
        name=name,
        hovertemplate="%{x} I/O nodes: %{y:.1f} MiB/s<extra></extra>",
    )


def write_html(
    prediction: Prediction, path: str | Path, measured: Mapping[int, Sequence[float]] | None = None
) -> None:
    """Write the plot of a prediction as one HTML page with everything it needs inside.

    Parameters
    ----------
    prediction, measured
        As for `curve_figure`.
    path : str or Path
        The page; about 5 MB, most of it Plotly. Where nothing is predicted it says why.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    plot = _plot(curve_figure(prediction, measured)) if prediction.curve else ""
    decision, *reasons = explain(prediction)
    lines = [_best(prediction), f"Decision: {decision}"]
    told = "".join(f"<p>{html.escape(line)}</p>\n" for line in lines)
    write_page(
        path,
        title=f"I/O bandwidth of job {prediction.job} on {prediction.system}",
        body=f"{told}{plot}\n{bullets('Why', reasons)}{bullets('Warnings', prediction.warnings)}",
    )


def _plot(figure: go.Figure) -> str:
    text: str = figure.to_html(
        full_html=False,
        include_plotlyjs=True,
        default_height="70vh",
        config={"responsive": True, "displayModeBar": False},
    )
    return text


def _best(prediction: Prediction) -> str:
    best = prediction.best
    if best.io_nodes is None:
        return f"No prediction: {best.why}."
    return f"Best: {in_words(best.io_nodes)} ({best.why})."
