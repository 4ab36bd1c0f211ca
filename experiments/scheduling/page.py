"""The report of a comparison of policies, as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.scheduling.comparison import PoliciesCompared
from experiments.scheduling.measures import SHORTEST_RUN_S, Measures, in_use
from experiments.scheduling.printing import described, table_rows
from ioncast.worth.policies import POLICIES
from ioncast_base.pages.figures import (
    Bars,
    Figure,
    Line,
    Panel,
    from_zero,
    kind_colour,
    logarithmic,
    numbers,
    rows,
    side_by_side,
)
from ioncast_base.pages.page import bullets, drawn, heading, paragraph, table, write_page
from ioncast_base.wording import in_digits

_MOMENTS = 120
_MEAN, _P90 = "var(--line)", "var(--other)"
_COLOURS = {policy: kind_colour(place) for place, policy in enumerate(POLICIES)}
# Two bars in a row: the part of the row that they fill, and its pixels.
_BARS, _ROW = 0.5, 64


def bandwidth_figure(results: Sequence[Measures]) -> Figure:
    """Draw each policy's global bandwidth."""
    values = [result.bandwidth_mib_s for result in results]
    bars = Bars(
        *("global bandwidth", _MEAN, range(len(results)), values),
        width=0.34,
        labels=[f"{value:.1f}" for value in values],
    )
    axis = from_zero([bars], "global bandwidth, MiB/s", room=1.15)
    return Figure([rows([result.policy for result in results], axis, [bars])], has_legend=False)


def waiting_figure(results: Sequence[Measures]) -> Figure:
    """Draw how long jobs wait: the mean, and the time that one job in ten exceeds."""
    hours = {
        "mean": [result.waiting_mean_s / 3600 for result in results],
        "90th percentile": [result.waiting_p90_s / 3600 for result in results],
    }
    bars = []
    for place, ((name, values), colour) in enumerate(
        zip(hours.items(), (_MEAN, _P90), strict=True)
    ):
        offset, width = side_by_side(2, place, _BARS)
        at, texts = [row + offset for row in range(len(results))], list(map(in_digits, values))
        bars.append(Bars(name, colour, at, values, width=width, labels=texts))
    # Where the pool is too small for a policy, jobs wait a thousand times as long as with others.
    least = min(map(min, hours.values()))
    most = max(map(max, hours.values()))
    title = "waiting, hours"
    axis = logarithmic(least / 2, most * 4, title) if least > 0 else from_zero(bars, title)
    return Figure([rows([result.policy for result in results], axis, bars, row=_ROW, width=_BARS)])


def pool_figure(compared: PoliciesCompared) -> Figure:
    """Draw the number of I/O nodes in use, by the time since the first submission."""
    work, schedules = compared.work, compared.schedules
    first_s = float(work.submit_s.min())
    last_s = max(float(schedule.end_s.max()) for schedule in schedules.values())
    edges_s = np.linspace(first_s, last_s, _MOMENTS + 1)
    hours = ((edges_s[:-1] + edges_s[1:] - 2 * first_s) / 2 / 3600).tolist()
    lines = [
        Line(
            name,
            _COLOURS[name],
            hours,
            in_use(schedule.start_s, schedule.end_s, schedule.io_nodes, edges_s).tolist(),
        )
        for name, schedule in schedules.items()
    ]
    across = numbers(0, (last_s - first_s) / 3600, "hours since the first submission")
    values = from_zero(lines, f"I/O nodes in use, of {compared.settings.pool}")
    return Figure([Panel(across, values, lines)])


def write_html(path: str | Path, compared: PoliciesCompared) -> None:
    """Write the report as one HTML page with everything it needs inside.

    Parameters
    ----------
    path : str or Path
        The page. A failure leaves an older page as it was.
    compared : PoliciesCompared
        The replays.

    Raises
    ------
    InputError
        If the page cannot be written.
    """
    settings, measures = compared.settings, compared.measures
    machine = (
        f"{described(compared)}; compute nodes: {settings.nodes:,}; I/O nodes: {settings.pool:,}."
        f" best and mckp {'may' if settings.direct else 'may not'} choose direct access."
    )
    meanings = [f"{name}: {POLICIES[name].meaning}" for name in compared.schedules]
    parts = [
        paragraph(machine),
        table(table_rows(measures)),
        _MEASURES,
        bullets("The I/O nodes of a job", meanings),
        _ASSUMPTIONS,
        heading("Global bandwidth"),
        drawn(bandwidth_figure(measures), "Global bandwidth by policy"),
        heading("Waiting"),
        drawn(waiting_figure(measures), "Waiting by policy"),
        heading("I/O nodes in use"),
        drawn(pool_figure(compared), "I/O nodes in use over time"),
    ]
    write_page(path, title="A queue with a pool of I/O nodes", parts=parts)


_MEASURES = paragraph(
    "Global bandwidth: the bytes of all jobs over the sum of their I/O times. Waiting: time "
    "from submission to start; turnaround: to the end. Slowdown: turnaround over the recorded "
    f"run time, or over {SHORTEST_RUN_S:g} s for shorter jobs. Held up: jobs that waited for "
    "I/O nodes only, at any time. p90: the 90th percentile of the measure before it."
)
_ASSUMPTIONS = paragraph(
    "A job keeps its compute nodes and I/O nodes from start to end, and waits while either "
    "are missing: first come, first served, with EASY backfill. If the queue does not tell "
    "the I/O of a job, it is assumed: a measured curve and a share of the recorded run time, "
    "both drawn by user and job name. The recorded run times are taken as those with static "
    "allocation."
)
