"""Interference as a page: who disturbs whom, times alone and together, and bytes by time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ioncast.warehouse.interference import Interference, Server, bytes_by_time
from ioncast.warehouse.interference_texts import alone_text, names_of, sentences, server_text
from ioncast.warehouse.survey_texts import cell
from ioncast_base.pages import figures
from ioncast_base.pages.page import bullets, drawn, write_page
from ioncast_base.wording import duration

_COLUMNS = 60
_MIB = 1 << 20
# Two bars fill more of a row.
_GROUP, _ROW = 0.56, 76


def write_interference(path: str | Path, found: Interference) -> None:
    """Write the page of some jobs."""
    parts = [bullets("Who disturbs whom", list(sentences(found)))]
    title = "Run time and largest server time, alone and together"
    parts.append(drawn(_times(found), title))
    for server in found.bottlenecks:
        parts.append(drawn(_by_time(found, server), f"Bytes at {server_text(server)}"))
    write_page(path, title="Interference", parts=parts)


def _times(found: Interference) -> figures.Figure:
    """Draw figure 20 of Kim et al. (2014): times alone and together."""
    names, times = names_of(found), []
    for run in found.runs:
        alone, name = run.alone, names[run.log]
        how = f", alone: {alone_text(alone)}" if alone else ""
        before = (alone.seconds, alone.server_seconds) if alone else (None, None)
        times += [
            (f"{name}, run time{how}", before[0], run.seconds),
            (f"{name}, largest server time", before[1], run.server_seconds),
        ]
    labels, *seconds = zip(*times, strict=True)
    series = []
    for place, (name, ends) in enumerate(zip(("alone", "together"), seconds, strict=True)):
        shift, width = figures.side_by_side(2, place, _GROUP)
        at = [number + shift for number in range(len(labels))]
        texts = [duration(end) if end is not None else "unknown" for end in ends]
        colour = figures.kind_colour(place)
        series.append(figures.Bars(name, colour, at, ends, width=width, labels=texts))
    axis = figures.from_zero(series, "seconds", room=1.3)
    return figures.Figure([figures.rows(labels, axis, series, row=_ROW, width=_GROUP)])


def _by_time(found: Interference, server: Server) -> figures.Figure:
    """Draw the bandwidth of each application at a server."""
    names, uses = names_of(found), [use for use in found.uses if use.server == server]
    start_us, end_us = min(use.start_us for use in uses), max(use.end_us for use in uses)
    edges_us = np.linspace(start_us, end_us, _COLUMNS + 1)
    seconds = (end_us - start_us) / 1e6
    width = seconds / _COLUMNS
    at = ((np.arange(_COLUMNS) + 0.5) * width).tolist()
    lines = []
    for place, use in enumerate(uses):
        mib_s = (bytes_by_time(use.requests, edges_us) / (width * _MIB)).tolist()
        lines.append(figures.Line(names[use.log], figures.kind_colour(place), at, mib_s))
    across = figures.numbers(0, seconds, f"seconds since {cell('start_us', start_us)} UTC")
    values = figures.from_zero(lines, f"MiB/s at {server_text(server)}")
    return figures.Figure([figures.Panel(across, values, lines)])
