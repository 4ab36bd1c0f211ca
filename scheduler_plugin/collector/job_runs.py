"""Runs of jobs, as the watch stores them, made from Slurm's jobs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import TypeVar

from scheduler_plugin.collector.state import JobRun
from scheduler_plugin.marks import mark_of
from scheduler_plugin.slurm import Job, licence_count

_Value = TypeVar("_Value")

_DAY_S = 86_400.0


def job_runs(
    jobs: Iterable[Job], licence: str, now_s: float, *, are_accounted: bool = False
) -> list[JobRun]:
    """Runs of the jobs that have started.

    The components of a heterogeneous job are one run: all their logs have the id of the first
    component, which has the decision and the I/O nodes. If another component names I/O nodes too,
    their number is unknown for the run. So are numbers of nodes and tasks that differ between
    components. slurmdbd lists a job that was put back into the queue once for each run.

    Parameters
    ----------
    are_accounted : bool
        Whether the jobs come from slurmdbd. It does not always know the licences, so
        the I/O nodes of a job that names none are unknown.
    """
    started = [job for job in jobs if job.started_s and not job.is_waiting]
    times_started: Counter[int] = Counter()
    components: defaultdict[tuple[int, int], list[Job]] = defaultdict(list)
    for job in sorted(started, key=lambda job: job.started_s or 0):
        components[job.het_job_id or job.id, times_started[job.id]].append(job)
        times_started[job.id] += 1
    runs = []
    for (first, _), parts in components.items():
        leader = next((job for job in parts if job.id == first), parts[0])
        others = [licence_count(part.licenses, licence) for part in parts if part is not leader]
        io_nodes = None if any(others) else io_nodes_of(leader, licence, is_accounted=are_accounted)
        runs.append(_job_run(leader, parts, io_nodes, now_s))
    return runs


def _job_run(job: Job, components: list[Job], io_nodes: int | None, now_s: float) -> JobRun:
    mark = mark_of(job.admin_comment)
    return JobRun(
        id=job.het_job_id or job.id,
        started_s=job.started_s or 0,
        ended_s=_end_of(job, now_s) if job.has_ended else None,
        user=_text(job.user),
        name=_text(job.name),
        nodes=_common([component.nodes or None for component in components]),
        io_nodes=io_nodes,
        decision_id=mark.decision_id if mark else None,
        tasks=_common([component.tasks or None for component in components]),
        submitted_s=job.submitted_s,
    )


def _end_of(job: Job, now_s: float) -> float:
    """The end of a job; now if it is unknown, or if Slurm's clock was days ahead at the end."""
    ended_s = job.ended_s or now_s
    return now_s if (job.started_s or 0) <= now_s < ended_s - _DAY_S else ended_s


def _text(text: str) -> str:
    """Replace lone surrogates, which JSON can hold but UTF-8 cannot encode."""
    return text.encode(errors="replace").decode()


def _common(values: list[_Value]) -> _Value | None:
    """The value, if all are equal; None otherwise."""
    return values[0] if values.count(values[0]) == len(values) else None


def io_nodes_of(job: Job, licence: str, *, is_accounted: bool = False) -> int | None:
    """Number of I/O nodes that a job really had; None if unknown.

    A job that names no I/O nodes had 0 if ioncast decided on it. Otherwise the site may have
    given it some in another way, or slurmdbd does not know its licences.
    """
    count = licence_count(job.licenses, licence)
    has_none = count is None and not is_accounted and mark_of(job.admin_comment) is not None
    return 0 if has_none else count
