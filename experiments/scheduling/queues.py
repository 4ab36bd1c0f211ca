"""Synthetic queues."""

from __future__ import annotations

import numpy as np

from ioncast.worth.queued_jobs import QueuedJob

# Run times of a synthetic queue, and the number of applications that its jobs belong to.
MEAN_RUN_S = 3600.0
APPLICATIONS = 100
# Time limit of a job over its run time: users ask for more time than their jobs need.
LIMIT_FACTOR = 2.0


def poisson_queue(count: int, *, load: float, machine_nodes: int, seed: int) -> list[QueuedJob]:
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
        QueuedJob(submit, run, LIMIT_FACTOR * run, size, f"application {number}")
        for submit, run, size, number in zip(submits, runs, nodes, applications, strict=True)
    ]
