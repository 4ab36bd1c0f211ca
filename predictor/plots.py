"""Plots of predictions, as HTML files that need no network."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import plotly.graph_objects as go

from benchdb.pages import write_page
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
        xaxis={"title": "I/O nodes (0: direct access)", "type": "category"},
        yaxis={"title": "bandwidth, MiB/s", "rangemode": "tozero"},
        template="plotly_white",
        margin={"t": 10, "r": 20, "l": 70, "b": 60},
        legend={"orientation": "h", "y": -0.2, "yanchor": "top"},
    )
    return figure


def write_html(
    prediction: Prediction, path: str | Path, measured: Mapping[int, Sequence[float]] | None = None
) -> None:
    """Write the plot of a prediction as one HTML page with everything it needs inside.

    Parameters
    ----------
    prediction, measured
        As for `curve_figure`.
    path : str or Path
        The page; about 5 MB, most of it Plotly.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    plot = curve_figure(prediction, measured).to_html(
        full_html=False, include_plotlyjs=True, default_height="70vh", config={"responsive": True}
    )
    best = f"Best: {prediction.best.io_nodes} I/O nodes ({prediction.best.why})"
    warnings = "".join(f"<li>{html.escape(warning)}</li>" for warning in prediction.warnings)
    write_page(
        path,
        title=f"I/O bandwidth of job {prediction.job} on {prediction.system}",
        body=f"<p>{html.escape(best)}</p>\n{plot}\n<ul>{warnings}</ul>",
    )
