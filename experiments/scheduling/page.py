"""The report of a replay as one HTML page that needs no network."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go

from experiments.scheduling.measure_tables import table as measures_table
from experiments.scheduling.measures import Measures, in_use
from experiments.scheduling.policies import POLICIES
from experiments.scheduling.replay import Schedule
from experiments.scheduling.replayed_machine import Machine
from experiments.scheduling.workload import Workload
from ioncast_base.offline_pages import bullets, heading, laid_out, table, write_page
from ioncast_base.wording import in_digits

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
    return laid_out(figure, yaxis={"title": "global bandwidth, MiB/s", "rangemode": "tozero"})


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
    scale = "log" if is_logarithmic else "linear"
    return laid_out(
        figure,
        barmode="group",
        yaxis={"title": "waiting, hours", "type": scale, "rangemode": "nonnegative"},
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
    return laid_out(
        figure,
        xaxis={"title": "hours since the first submission"},
        yaxis={"title": f"I/O nodes in use, of {machine.pool}", "rangemode": "tozero"},
    )


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
    told = _MACHINE.substitute(
        queue=html.escape(queue),
        nodes=f"{machine.nodes:,}",
        pool=f"{machine.pool:,}",
        direct="may" if machine.direct else "may not",
    )
    parts = [
        told,
        table(measures_table(results)),
        _MEASURES,
        bullets("What a job gets", meanings),
        _ASSUMED,
        heading("Global bandwidth"),
        bandwidth_figure(results),
        heading("Waiting"),
        waiting_figure(results),
        heading("I/O nodes in use"),
        pool_figure(work, schedules, machine),
    ]
    write_page(path, title="A queue with a pool of I/O nodes", parts=parts)


_MACHINE = Template("""\
<p>$queue; compute nodes: $nodes; I/O nodes: $pool.
best and mckp $direct choose direct access.</p>""")
_MEASURES = """\
<p>Global bandwidth: all bytes over the sum of the times that the jobs' I/O takes. Waiting: from
submission to start; turnaround: to the end. Slowdown: turnaround over the recorded run time, of at
least 10 s. Held up: jobs that would have started earlier, had there been more I/O nodes. The 90th
percentile (p90) stands beside its mean.</p>"""
_ASSUMED = """\
<p>A job keeps its compute nodes and I/O nodes from start to end and waits where either is
missing: first come, first served, with EASY backfill. What jobs do for I/O is assumed where the
queue does not tell: measured curves, drawn by user and job name, and a share of the recorded run
time, which is taken to hold with static allocation.</p>"""
