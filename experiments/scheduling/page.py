"""The report of a comparison of policies, as one HTML page that needs no network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from string import Template

import numpy as np
import plotly.graph_objects as go

from experiments.scheduling.comparison import PoliciesCompared
from experiments.scheduling.measures import SHORTEST_RUN_S, Measures, in_use
from experiments.scheduling.policies import POLICIES
from experiments.scheduling.printing import described, table_rows
from ioncast_base.offline_pages import bullets, heading, laid_out, table, write_page
from ioncast_base.wording import in_digits

_MOMENTS = 120
_MEAN, _P90 = "#1f5f8b", "#a9c4d8"
# Okabe and Ito's colours, which colour-blind people can tell apart too.
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
    """Draw how long jobs wait: the mean, and the time that one job in ten exceeds."""
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
    # Where the pool is too small for a policy, jobs wait a thousand times as long as with others.
    is_logarithmic = min(map(min, hours.values())) > 0
    scale = "log" if is_logarithmic else "linear"
    return laid_out(
        figure,
        barmode="group",
        yaxis={"title": "waiting, hours", "type": scale, "rangemode": "nonnegative"},
    )


def pool_figure(compared: PoliciesCompared) -> go.Figure:
    """Draw the number of I/O nodes in use, by the time since the first submission."""
    work, schedules = compared.work, compared.schedules
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
        yaxis={"title": f"I/O nodes in use, of {compared.settings.pool}", "rangemode": "tozero"},
    )


def write_html(path: str | Path, compared: PoliciesCompared) -> None:
    """Write the report as one HTML page with everything it needs inside.

    Parameters
    ----------
    path : str or Path
        The page; about 5 MB, most of it Plotly. A failure leaves an older page as it was.
    compared : PoliciesCompared
        The replays.

    Raises
    ------
    InputError
        If the page cannot be written.
    """
    settings, measures = compared.settings, compared.measures
    machine = _MACHINE.substitute(
        queue=html.escape(described(compared)),
        nodes=f"{settings.nodes:,}",
        pool=f"{settings.pool:,}",
        direct="may" if settings.direct else "may not",
    )
    meanings = [f"{name}: {POLICIES[name].meaning}" for name in compared.schedules]
    parts = [
        machine,
        table(table_rows(measures)),
        _MEASURES,
        bullets("The I/O nodes of a job", meanings),
        _ASSUMPTIONS,
        heading("Global bandwidth"),
        bandwidth_figure(measures),
        heading("Waiting"),
        waiting_figure(measures),
        heading("I/O nodes in use"),
        pool_figure(compared),
    ]
    write_page(path, title="A queue with a pool of I/O nodes", parts=parts)


_MACHINE = Template("""\
<p>$queue; compute nodes: $nodes; I/O nodes: $pool.
best and mckp $direct choose direct access.</p>""")
_MEASURES = f"""\
<p>Global bandwidth: the bytes of all jobs over the sum of their I/O times. Waiting: time from
submission to start; turnaround: to the end. Slowdown: turnaround over the recorded run time, or
over {SHORTEST_RUN_S:g} s for shorter jobs. Held up: jobs that waited for I/O nodes only, at any
time. p90: the 90th percentile of the measure before it.</p>"""
_ASSUMPTIONS = """\
<p>A job keeps its compute nodes and I/O nodes from start to end, and waits while either are
missing: first come, first served, with EASY backfill. If the queue does not tell the I/O of a job,
it is assumed: a measured curve and a share of the recorded run time, both drawn by user and job
name. The recorded run times are taken as those with static allocation.</p>"""
