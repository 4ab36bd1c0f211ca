"""What a queue consists of, and queues that nobody submitted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

# What makes jobs of a synthetic queue differ from each other, and from other queues.
MEAN_RUN_S = 3600.0
APPLICATIONS = 100
# Users ask for more time than their jobs need.
LIMIT_FACTOR = 2.0


class Job(NamedTuple):
    """A job as an accounting database knows it.

    Attributes
    ----------
    submit_s : float
        When it was submitted; seconds since any moment that is the same for all.
    run_s : float
        How long it ran.
    limit_s : float
        How long it was allowed to run.
    nodes : int
        Compute nodes.
    application : str
        What it ran; jobs of one application do the same I/O.
    curve : str or None
        The name of the curve that its I/O follows, if that is known.
    bytes : float or None
        What it read and wrote, if that is known.
    """

    submit_s: float
    run_s: float
    limit_s: float
    nodes: int
    application: str
    curve: str | None = None
    bytes: float | None = None


def poisson_queue(count: int, *, load: float, machine_nodes: int, seed: int) -> list[Job]:
    """Jobs that come independently of each other.

    Sizes are powers of two up to half of the machine, each as likely; run times are
    exponential with a mean of an hour; each job is of one of a hundred applications.

    Parameters
    ----------
    count : int
        How many jobs.
    load : float
        Which share of the machine they would keep busy: nodes times run time that come, over
        nodes times time.
    machine_nodes : int
        Compute nodes of the machine.
    seed : int
        The same one gives the same queue.

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
