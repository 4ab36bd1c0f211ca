"""What Slurm says of a job, as the watch remembers it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import TypeVar

from scheduler_plugin.marks import mark_of
from scheduler_plugin.slurm import Job, licence_count
from scheduler_plugin.watch.state import JobRun

_Value = TypeVar("_Value")

_POOL = re.compile(r"\bpool=(?P<pool>[^\s,]+)|\bcapacity=(?P<capacity>[0-9]{1,9})\b")


def job_runs(
    jobs: Iterable[Job], licence: str, now_s: float, *, are_accounted: bool = False
) -> list[JobRun]:
    """The runs of jobs that have begun.

    Darshan's logs of a heterogeneous job are all of its first component, whichever wrote them:
    what differs among the components is not known of them.

    Parameters
    ----------
    jobs : iterable of Job
        As Slurm tells of them.
    licence : str
        What an I/O node is called: a licence, or the pool of a burst buffer.
    now_s : float
        Unix time: when a job ended of which Slurm does not say it.
    are_accounted : bool
        Whether slurmdbd tells of them. It may know of no licences and knows of no burst buffers, so
        a job that names none is not one that had none.
    """
    components: defaultdict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.started_s and job.state != "PENDING":
            components[job.het_job_id or job.id].append(job)
    named = named_io_nodes if are_accounted else io_nodes_of
    return [
        _job_run(
            next((job for job in found if job.id == first), found[0]),
            found,
            _common([named(each, licence) for each in found]),
            now_s,
        )
        for first, found in components.items()
    ]


def _job_run(job: Job, components: list[Job], io_nodes: int | None, now_s: float) -> JobRun:
    marks = [mark_of(each.admin_comment) for each in components]
    return JobRun(
        id=job.het_job_id or job.id,
        started_s=job.started_s or 0,
        ended_s=(job.ended_s or now_s) if job.has_ended else None,
        user=_text(job.user),
        name=_text(job.name),
        nodes=_common([each.nodes or None for each in components]),
        io_nodes=io_nodes,
        decision_id=_common([mark.decision_id if mark else None for mark in marks]),
    )


def _text(text: str) -> str:
    """Without the half characters that JSON can hold and nothing else takes."""
    return text.encode(errors="replace").decode()


def _common(values: list[_Value]) -> _Value | None:
    """What is the same for all; None where there are others."""
    return values[0] if values.count(values[0]) == len(values) else None


def io_nodes_of(job: Job, licence: str) -> int | None:
    """How many I/O nodes a job really had; None where nobody knows.

    A job that names none has none where ioncast decided so. On a job that ioncast does not know,
    nothing tells how the site treated it.
    """
    named = named_io_nodes(job, licence)
    return 0 if named is None and mark_of(job.admin_comment) else named


def named_io_nodes(job: Job, licence: str) -> int | None:
    """How many I/O nodes a job's licences or burst buffer name; None where they name none."""
    count = licence_count(job.licenses, licence)
    return _capacity(job.burst_buffer, licence) if count is None else count


def _capacity(burst_buffer: str, pool: str) -> int | None:
    """How much of a pool a job asks for, as in ``#BB_LUA pool=ionode capacity=4``."""
    for line in burst_buffer.splitlines():
        said = {match.lastgroup: match[0].partition("=")[2] for match in _POOL.finditer(line)}
        if said.get("pool") == pool and "capacity" in said:
            return int(said["capacity"])
    return None
