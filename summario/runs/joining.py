"""Rules that tell which logs belong to one run of an application.

Darshan writes one log for all processes of MPI_COMM_WORLD. Without MPI every process writes its
own log, under the id of the job. The id comes from the scheduler's variable such as SLURM_JOB_ID;
without one it is a process id, and forked processes have the id of their first parent
(`darshan_core_initialize` in darshan-core.c).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ioncast_base.errors import NotOneRunError
from ioncast_base.limits import LONGEST_SECONDS
from ioncast_base.visible_text import visible
from summario.reading.job import DarshanJob

Join = Literal["steps", "job"]
JOINS: tuple[Join, ...] = ("steps", "job")
# The path and the type of a mounted file system.
Mount = tuple[str, str]

# Schedulers and the kernel use ids again. No job waits so long between two of its programs.
_LONGEST_GAP_SECONDS = 7 * 86400.0
# A mount of one of these types is a part of the system. Other file systems, such as / and NFS, are
# mounted at the same path on many systems.
_PARALLEL_FILE_SYSTEMS = frozenset(["lustre", "gpfs", "beegfs", "panfs", "pvfs2", "ceph"])


@dataclass
class _Group:
    """Logs that belong together so far: their places in the list, times and file systems."""

    first_start: float
    members: list[int] = field(default_factory=list)
    latest_start: float = 0.0
    latest_end: float = 0.0
    mounts: frozenset[Mount] = frozenset()

    def add(self, place: int, job: DarshanJob, mounts: frozenset[Mount]) -> None:
        self.members.append(place)
        self.latest_start = job.start_seconds
        self.latest_end = max(self.latest_end, job.start_seconds, job.end_seconds)
        self.mounts |= mounts


def runs_among(jobs: Sequence[DarshanJob], join: Join) -> list[list[int]]:
    """Group logs by run.

    Logs of one run have the same job id and user, and come from the same system as far as they
    tell: logs that name parallel file systems have one of them in common. With "steps" they also
    overlap in time, directly or through other logs. With "job" they may follow each other.
    """
    by_job: dict[tuple[int, int], list[int]] = {}
    for place, job in enumerate(jobs):
        by_job.setdefault((job.id, job.uid), []).append(place)
    runs = [
        run
        for places in by_job.values()
        for run in _runs_of_job(sorted(places, key=lambda at: jobs[at].start_seconds), jobs, join)
    ]
    return sorted(runs, key=min)


def one_run(jobs: Sequence[DarshanJob], names: Sequence[str], join: Join, remedy: str) -> None:
    """Raise NotOneRunError, which names two logs and the reason, if logs are not of one run."""
    runs = runs_among(jobs, join)
    first, *others = (run[0] for run in runs)
    if others:
        one, other = jobs[first], jobs[others[0]]
        if one.id != other.id:
            why = f"their job ids are {one.id} and {other.id}"
        elif one.uid != other.uid:
            why = f"their user ids are {one.uid} and {other.uid}"
        elif not _is_same_system(_parallel_mounts(one), _parallel_mounts(other)):
            why = "their parallel file systems differ"
        elif join == "steps":
            why = "they do not overlap in time"
        else:
            why = "there is more than a week between them"
        error = NotOneRunError(
            f"not a log of the run of {visible(names[first])}: {why}",
            where=names[others[0]],
            remedy=remedy,
        )
        error.runs = tuple(map(tuple, runs))
        raise error


def told_apart(job: DarshanJob) -> DarshanJob:
    """Keep only the facts that `runs_among` needs, because a command has them of all logs."""
    mounts = "\n".join(f"{type_}\t{path}" for path, type_ in sorted(_parallel_mounts(job)))
    return replace(job, executable="", mount_table=mounts)


def _runs_of_job(places: Iterable[int], jobs: Sequence[DarshanJob], join: Join) -> list[list[int]]:
    """Group the logs of one job, which are sorted by start."""
    groups: list[_Group] = []
    growing: list[_Group] = []
    for place in places:
        job = jobs[place]
        mounts = _parallel_mounts(job)
        growing = [group for group in growing if _continues(group, job, join)]
        group = next((group for group in growing if _is_same_system(group.mounts, mounts)), None)
        if group is None:
            group = _Group(job.start_seconds, latest_end=job.end_seconds)
            groups.append(group)
            growing.append(group)
        group.add(place, job, mounts)
    return [group.members for group in groups]


def _continues(group: _Group, job: DarshanJob, join: Join) -> bool:
    if job.start_seconds - group.first_start > LONGEST_SECONDS:
        # One of the two starts is damaged.
        return False
    if join == "job":
        return job.start_seconds <= group.latest_end + _LONGEST_GAP_SECONDS
    # Before Darshan 3.4.1 times are whole seconds. So a program that starts in the second in which
    # another one ends is the next one; programs that start in the same second run side by side.
    return job.start_seconds < group.latest_end or job.start_seconds == group.latest_start


def _is_same_system(known: frozenset[Mount], mounts: frozenset[Mount]) -> bool:
    return not known or not mounts or bool(known & mounts)


def _parallel_mounts(job: DarshanJob) -> frozenset[Mount]:
    return frozenset(mount for mount in job.mounts() if mount[1] in _PARALLEL_FILE_SYSTEMS)
