"""The jobs of a queue."""

from __future__ import annotations

from typing import NamedTuple


class QueuedJob(NamedTuple):
    """A job as Slurm's accounting knows it.

    Attributes
    ----------
    submit_s : float
        Time of submission, in seconds since a moment that is the same for all jobs.
    run_s : float
        Run time in seconds.
    limit_s : float
        Time limit in seconds.
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
