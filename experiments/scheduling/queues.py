"""The jobs of a queue, and synthetic queues."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# Run times of a synthetic queue, and the number of applications that its jobs belong to.
MEAN_RUN_S = 3600.0
APPLICATIONS = 100
# Time limit of a job over its run time: users ask for more time than their jobs need.
LIMIT_FACTOR = 2.0


class Job(NamedTuple):
    """A job as Slurm's accounting knows it.

    Attributes
    ----------
    submit_s : float
        Time of submission, in seconds since a moment that is the same for all jobs.
    run_s : float
        Run time in seconds.
    limit_s : float
        Time limit in seconds.
    nodes : int
        Number of compute nodes.
    application : str
        Name of the application; jobs of one application do the same I/O.
    curve : str or None
        Name of the curve that its I/O follows; None if unknown.
    bytes : float or None
        Bytes that it reads and writes; None if unknown.
    """

    submit_s: float
    run_s: float
    limit_s: float
    nodes: int
    application: str
    curve: str | None = None
    bytes: float | None = None


def poisson_queue(count: int, *, load: float, machine_nodes: int, seed: int) -> list[Job]:
    """Make a synthetic queue whose jobs arrive independently of each other (a Poisson process).

    Sizes are powers of two up to half of the machine, all equally likely. Run times are
    exponential with a mean of an hour. Each job belongs to one of a hundred applications.

    Parameters
    ----------
    count : int
        Number of jobs.
    load : float
        Share of the machine that the jobs would keep busy: compute nodes times run time of the
        jobs that arrive, over compute nodes of the machine times time.
    machine_nodes : int
        Compute nodes of the machine.
    seed : int
        Seed of the random numbers; the same seed gives the same queue.

    Examples
    --------
    >>> [job.nodes for job in poisson_queue(4, load=0.8, machine_nodes=16, seed=1)]
    [1, 1, 8, 8]
    """
    random = np.random.default_rng(seed)
    sizes = 2 ** np.arange(max(machine_nodes // 2, 1).bit_length())
    rate = load * machine_nodes / (sizes.mean() * MEAN_RUN_S)
    submits = np.cumsum(random.exponential(1 / rate, count)).tolist()
    runs = random.exponential(MEAN_RUN_S, count).tolist()
    nodes = random.choice(sizes, count).tolist()
    applications = random.integers(APPLICATIONS, size=count).tolist()
    return [
        Job(submit, run, LIMIT_FACTOR * run, size, f"application {number}")
        for submit, run, size, number in zip(submits, runs, nodes, applications, strict=True)
    ]
