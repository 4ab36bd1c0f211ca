"""The report of a replay as one HTML page that needs no network."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import plotly.graph_objects as go

from experiments.scheduling.measure_tables import table as measures_table
from experiments.scheduling.measures import Measures, in_use
from experiments.scheduling.policies import POLICIES
from experiments.scheduling.replay import Schedule
from experiments.scheduling.replayed_machine import Machine
from experiments.scheduling.workload import Workload
from ioncast_base.offline_pages import TABLE_STYLE, bullets, drawn, table, write_page
from ioncast_base.wording import in_digits

# Pixels.
_HEIGHT = 340
_MOMENTS = 120
_MEAN, _P90 = "#1f5f8b", "#a9c4d8"
# Told apart also by those who see fewer colours (Okabe and Ito).
_COLOURS = dict(
    zip(POLICIES, ("#e69f00", "#56b4e9", "#cc79a7", "#d55e00", "#0072b2", "#8c8c8c"), strict=True)
)


def bandwidth_figure(results: Sequence[Measures]) -> go.Figure:
    """Draw each policy's global bandwidth."""
    figure = go.Figure()
    figure.add_bar(
        x=[result.policy for result in results],
        y=[result.bandwidth_mib_s for result in results],
        marker={"color": [_COLOURS[result.policy] for result in results]},
        text=[f"{result.bandwidth_mib_s:.1f}" for result in results],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{x}: %{y:.1f} MiB/s<extra></extra>",
    )
    return _laid_out(figure, "global bandwidth, MiB/s", rangemode="tozero")


def waiting_figure(results: Sequence[Measures]) -> go.Figure:
    """Draw how long jobs wait: what is usual, and what one in ten exceeds."""
    figure = go.Figure()
    names = [result.policy for result in results]
    hours = {
        "mean": [result.waiting_mean_s / 3600 for result in results],
        "90th percentile": [result.waiting_p90_s / 3600 for result in results],
    }
    for (name, values), colour in zip(hours.items(), (_MEAN, _P90), strict=True):
        figure.add_bar(
            x=names,
            y=values,
            name=name,
            marker={"color": colour},
            text=[in_digits(value) for value in values],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x}: %{y:.3g} h<extra>" + name + "</extra>",
        )
    # A policy that the pool is too small for makes jobs wait a thousand times as long.
    is_logarithmic = min(map(min, hours.values())) > 0
    return _laid_out(
        figure,
        "waiting, hours",
        barmode="group",
        type="log" if is_logarithmic else "linear",
        rangemode="nonnegative",
    )


def pool_figure(work: Workload, schedules: Mapping[str, Schedule], machine: Machine) -> go.Figure:
    """Draw how many I/O nodes jobs have, by the time since the first submission."""
    figure = go.Figure()
    first_s = float(work.submit_s.min())
    last_s = max(float(schedule.end_s.max()) for schedule in schedules.values())
    edges_s = np.linspace(first_s, last_s, _MOMENTS + 1)
    for name, schedule in schedules.items():
        used = in_use(schedule.start_s, schedule.end_s, schedule.io_nodes, edges_s)
        figure.add_scatter(
            x=(edges_s[:-1] + edges_s[1:] - 2 * first_s) / 2 / 3600,
            y=used,
            mode="lines",
            name=name,
            line={"color": _COLOURS[name]},
            hovertemplate="%{y:.1f} after %{x:.1f} h<extra>" + name + "</extra>",
        )
    figure.update_xaxes(title="hours since the first submission")
    return _laid_out(figure, f"I/O nodes in use, of {machine.pool}", rangemode="tozero")


def write_html(
    path: str | Path,
    queue: str,
    work: Workload,
    schedules: Mapping[str, Schedule],
    results: Sequence[Measures],
    machine: Machine,
) -> None:
    """Write the report as one HTML page with everything it needs inside.

    Parameters
    ----------
    path : str or Path
        The page; about 5 MB, most of it Plotly. It is there as a whole or as it was before.
    queue : str
        What was replayed, in words.
    work : Workload
        The queue.
    schedules : mapping of str to Schedule
        By policy.
    results : sequence of Measures
        One of each policy.
    machine : Machine
        Where it was replayed.

    Raises
    ------
    InputError
        When it cannot be written.
    """
    meanings = [f"{name}: {POLICIES[name].meaning}" for name in schedules]
    body = _BODY.substitute(
        queue=html.escape(queue),
        nodes=f"{machine.nodes:,}",
        pool=f"{machine.pool:,}",
        direct="may" if machine.direct else "may not",
        results=table(measures_table(results)),
        meanings=bullets("What a job gets", meanings),
        bandwidth=drawn(bandwidth_figure(results), plotly=True),
        waiting=drawn(waiting_figure(results)),
        in_use=drawn(pool_figure(work, schedules, machine)),
    )
    write_page(path, title="A queue with a pool of I/O nodes", body=body, style=TABLE_STYLE)


def _laid_out(
    figure: go.Figure, y_title: str, *, barmode: str | None = None, **y_axis: Any
) -> go.Figure:
    return figure.update_layout(
        height=_HEIGHT,
        template="plotly_white",
        margin={"t": 30, "r": 10, "l": 70, "b": 50},
        legend={"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        dragmode=False,
        barmode=barmode,
        yaxis={"title": y_title, **y_axis},
    )


_BODY = Template("""\
<p>$queue; compute nodes: $nodes; I/O nodes: $pool.
best and mckp $direct choose direct access.</p>
$results
<p>Global bandwidth: all bytes over the sum of the times that the jobs' I/O takes. Waiting: from
submission to start; turnaround: to the end. Slowdown: turnaround over the recorded run time, of at
least 10 s. Held up: jobs that would have started earlier, had there been more I/O nodes. The 90th
percentile (p90) stands beside its mean.</p>
$meanings<p>A job keeps its compute nodes and I/O nodes from start to end and waits where either is
missing: first come, first served, with EASY backfill. What jobs do for I/O is assumed where the
queue does not tell: measured curves, drawn by user and job name, and a share of the recorded run
time, which is taken to hold with static allocation.</p>
<h2>Global bandwidth</h2>
$bandwidth
<h2>Waiting</h2>
$waiting
<h2>I/O nodes in use</h2>
$in_use""")
