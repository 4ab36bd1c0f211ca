"""The jobs of a queue."""

from __future__ import annotations

from typing import NamedTuple


class QueuedJob(NamedTuple):
    """A job as Slurm's accounting knows it; all times count from the same moment.

    Jobs of one application do the same I/O. Its start, its number, its cores, the name of its curve
    and its bytes are None if unknown.
    """

    submit_s: float
    run_s: float
    limit_s: float
    nodes: int
    application: str
    start_s: float | None = None
    job_id: int | None = None
    cores: int | None = None
    curve: str | None = None
    bytes: float | None = None
