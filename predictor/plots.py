"""Plots of predictions, as HTML files that need no network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

from ioncast_errors import InputError
from predictor.prediction import Prediction

_LINE, _BAND, _MEASURED = "#1f5f8b", "rgba(31, 95, 139, 0.18)", "#c1440e"


def curve_figure(
    prediction: Prediction, measured: Mapping[int, Sequence[float]] | None = None
) -> go.Figure:
    """Draw a predicted curve with its interval, and measured runs as points.

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
    figure.add_scatter(
        x=names + names[::-1],
        y=[band.p90 for band in bands] + [band.p10 for band in bands][::-1],
        mode="lines",
        fill="toself",
        fillcolor=_BAND,
        line={"width": 0},
        hoverinfo="skip",
        name="predicted, p10 to p90",
    )
    figure.add_scatter(
        x=names,
        y=[band.mean for band in bands],
        mode="lines+markers",
        line={"color": _LINE},
        marker={
            "size": [
                14 if point.io_nodes == prediction.best.io_nodes else 7
                for point in prediction.curve
            ]
        },
        name="predicted mean (large: best)",
        hovertemplate="%{x} I/O nodes: %{y:.1f} MiB/s<extra></extra>",
    )
    runs = [(str(n), value) for n, values in (measured or {}).items() for value in values]
    if runs:
        figure.add_scatter(
            x=[n for n, _ in runs],
            y=[value for _, value in runs],
            mode="markers",
            marker={"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": _MEASURED}},
            name="measured runs",
            hovertemplate="%{x} I/O nodes: %{y:.1f} MiB/s<extra></extra>",
        )
    figure.update_layout(
        title=f"Predicted I/O bandwidth of job {prediction.job} on {prediction.system}",
        xaxis={"title": "I/O nodes (0: direct access)", "type": "category"},
        yaxis={"title": "bandwidth, MiB/s", "rangemode": "tozero"},
        template="plotly_white",
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom"},
    )
    return figure


def write_html(figure: go.Figure, path: str | Path) -> None:
    """Write a figure as one HTML file with everything it needs inside."""
    try:
        html = figure.to_html(
            include_plotlyjs=True, default_height="95vh", config={"responsive": True}
        )
        Path(path).write_text(html, encoding="utf-8")
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
