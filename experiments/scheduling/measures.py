"""Measures of a replay: bandwidth, waiting, slowdown, and the use of the machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioncast.worth.replay import Schedule
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.workload import Floats, Ints, Workload

# The slowdown takes shorter jobs for jobs of this length: otherwise a job of a second that waits
# for a minute would outweigh all others in the mean.
SHORTEST_RUN_S = 10.0


@dataclass(frozen=True)
class Measures:
    """Measures of one policy; means and percentiles are over all jobs of the queue.

    Attributes
    ----------
    policy : str
        The policy's name.
    jobs : int
        Number of jobs.
    bandwidth_mib_s : float
        The global bandwidth: the bytes of all jobs over the sum of their I/O times.
    io_mean_s, io_median_s, io_p90_s : float
        I/O time of a job.
    waiting_mean_s, waiting_median_s, waiting_p90_s : float
        Time from submission to start.
    turnaround_mean_s : float
        Time from submission to end.
    slowdown_mean : float
        Time from submission to end, over the recorded run time or 10 s, whichever is longer.
        The divisor of a job is the same with every policy.
    held_up_share : float
        Share of jobs that waited for I/O nodes only, at any time: their compute nodes were
        free, and nothing else held them up.
    makespan_s : float
        Time from the first submission to the last end.
    nodes_used, pool_used : float
        Share of the compute nodes and of the I/O nodes that jobs held during the makespan.
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
    """Compute the measures of a replay."""
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
    """Average number of nodes in use between one moment and the next.

    Parameters
    ----------
    start_s, end_s : array of float
        Start and end of each job.
    counts : array of int
        Number of nodes of each job.
    edges_s : array of float, ascending
        Moments.

    Returns
    -------
    array of float
        One average for each pair of neighbouring moments.

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
    # Before the first start and after the last end nothing is in use. There, np.interp repeats the
    # outermost values, so their differences are 0.
    found: Floats = np.diff(np.interp(edges_s, times, used)) / np.diff(edges_s)
    return found
