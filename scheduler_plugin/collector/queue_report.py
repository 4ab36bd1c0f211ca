"""The queue of Slurm as the watch reports it: I/O nodes in use, waiting jobs, the arbiter."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ioncast_base.errors import InputError
from scheduler_plugin.arbiter.heartbeat import HEARTBEAT_S, beat_at
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licences import Licence, licence_count

# Slurm's reason of a job that waits for licences alone.
_LICENSES = "Licenses"


@dataclass(frozen=True)
class SlurmQueue:
    """The fields of `POST /v1/queue`, which explains them."""

    system: str
    io_nodes: int
    in_use: int
    waiting: int
    for_io_nodes: int
    arbiter_works: bool | None


def queue_report(
    system: str,
    jobs: Sequence[Job],
    licences: Iterable[Licence],
    *,
    licence: str,
    arbiter_works: bool | None,
) -> SlurmQueue:
    """Count waiting jobs and the I/O nodes in use; without the licence there are no I/O nodes.

    Slurm lists the waiting tasks of an array as one job, and each component of a heterogeneous job.
    """
    waiting = [job for job in jobs if job.is_waiting]
    short = [
        job for job in waiting if job.reason == _LICENSES and licence_count(job.licenses, licence)
    ]
    found = next((each for each in licences if each.name == licence), Licence(licence, 0, 0))
    return SlurmQueue(
        system, found.total, found.used, _number(waiting), _number(short), arbiter_works
    )


def _number(jobs: Iterable[Job]) -> int:
    """Count jobs; the components of a heterogeneous job are one."""
    return len({job.het_job_id or job.id for job in jobs})


def does_arbiter_work(heartbeat: str) -> bool | None:
    """Whether the heartbeat counts for the plugin; None if the site has no arbiter."""
    try:
        return abs(time.time() - beat_at(heartbeat)) < HEARTBEAT_S
    except FileNotFoundError:
        return None
    except (OSError, InputError):
        return False
