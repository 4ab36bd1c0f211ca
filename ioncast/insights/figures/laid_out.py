"""Figures as plain JSON for Plotly, with the layout that those of all pages share."""

from __future__ import annotations

from typing import Any

Figure = dict[str, Any]

# Pixels.
HEIGHT = 340
LEGEND = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}
_MARGIN = {"t": 10, "r": 10, "l": 10, "b": 10}


def figure(traces: list[dict[str, Any]], *, height: int = HEIGHT, **layout: Any) -> Figure:
    """Make a figure of its traces; `height` is in pixels."""
    return {
        "data": traces,
        "layout": {"height": height, "margin": _MARGIN, "legend": LEGEND, **layout},
    }
