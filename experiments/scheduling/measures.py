"""What a replay says of a policy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from experiments.scheduling.replay import Schedule
from experiments.scheduling.replayed_machine import Machine
from experiments.scheduling.workload import Floats, Ints, Workload

# A job of a second that waited for a minute would say more than all others.
SHORTEST_RUN_S = 10.0


@dataclass(frozen=True)
class Measures:
    """How a policy did with a queue; means and percentiles are over all of its jobs.

    Attributes
    ----------
    policy : str
        The policy's name.
    jobs : int
        How many ran.
    bandwidth_mib_s : float
        The global bandwidth: what all jobs read and wrote, over the sum of the times that their
        I/O took.
    io_mean_s, io_median_s, io_p90_s : float
        How long the I/O of a job took.
    waiting_mean_s, waiting_median_s, waiting_p90_s : float
        From submission to start.
    turnaround_mean_s : float
        From submission to end.
    slowdown_mean : float
        From submission to end, over the recorded run time or 10 s, whichever is longer: the
        same divisor with every policy.
    held_up_share : float
        Jobs that would have started earlier, had there been more I/O nodes: their compute nodes
        were free, and nothing else was in their way.
    makespan_s : float
        From the first submission to the last end.
    nodes_used, pool_used : float
        The share of compute nodes and I/O nodes that jobs had in the makespan.
    """

    policy: str
    jobs: int
    bandwidth_mib_s: float
    io_mean_s: float
    io_median_s: float
    io_p90_s: float
    waiting_mean_s: float
    waiting_median_s: float
    waiting_p90_s: float
    turnaround_mean_s: float
    slowdown_mean: float
    held_up_share: float
    makespan_s: float
    nodes_used: float
    pool_used: float


def measure(policy: str, work: Workload, schedule: Schedule, machine: Machine) -> Measures:
    """Sum up a replay."""
    waiting_s = schedule.start_s - work.submit_s
    turnaround_s = schedule.end_s - work.submit_s
    run_s = schedule.end_s - schedule.start_s
    makespan_s = float(schedule.end_s.max() - work.submit_s.min())
    slowdown = turnaround_s / np.maximum(work.recorded_s, SHORTEST_RUN_S)
    io_s = float(schedule.io_s.sum())
    return Measures(
        policy=policy,
        jobs=len(work),
        bandwidth_mib_s=float(work.moved_mib.sum()) / io_s if io_s else 0.0,
        io_mean_s=float(schedule.io_s.mean()),
        io_median_s=float(np.median(schedule.io_s)),
        io_p90_s=float(np.quantile(schedule.io_s, 0.9)),
        waiting_mean_s=float(waiting_s.mean()),
        waiting_median_s=float(np.median(waiting_s)),
        waiting_p90_s=float(np.quantile(waiting_s, 0.9)),
        turnaround_mean_s=float(turnaround_s.mean()),
        slowdown_mean=float(slowdown.mean()),
        held_up_share=float(schedule.held_up.mean()),
        makespan_s=makespan_s,
        nodes_used=float(work.nodes @ run_s) / (machine.nodes * makespan_s),
        pool_used=float(schedule.io_nodes @ run_s) / (machine.pool * makespan_s),
    )


def in_use(start_s: Floats, end_s: Floats, counts: Ints, edges_s: Floats) -> Floats:
    """How many were in use on average between one moment and the next.

    Parameters
    ----------
    start_s, end_s : array of float
        From when to when each job had them.
    counts : array of int
        How many it had.
    edges_s : array of float, ascending
        Moments.

    Returns
    -------
    array of float
        One less than there are moments.

    Examples
    --------
    >>> start, end = np.array([0.0, 1.0]), np.array([2.0, 4.0])
    >>> in_use(start, end, np.array([2, 4]), np.array([0.0, 2.0, 4.0])).tolist()
    [4.0, 4.0]
    """
    times = np.concatenate([start_s, end_s])
    order = np.argsort(times, kind="stable")
    times = times[order]
    level = np.cumsum(np.concatenate([counts, -counts])[order])
    used = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
    # Outside of all times nothing is in use, which is what interpolation takes it for.
    found: Floats = np.diff(np.interp(edges_s, times, used)) / np.diff(edges_s)
    return found
