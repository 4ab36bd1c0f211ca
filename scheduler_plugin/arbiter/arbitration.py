"""What the arbiter changes: how many I/O nodes each waiting job gets, seen together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ioncast_base.allocation.dividing import JobCurve, Share, allocate
from scheduler_plugin.marks import Mark, mark_of, without_hold
from scheduler_plugin.settings import ArbitrateSettings
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licences import licence_count, with_licence

# Decisions are stored a second or two after they were made; a service that is away comes back.
_CURVE_PATIENCE_S = 60
_HOLDS_LICENCES = frozenset({"RUNNING", "SUSPENDED", "COMPLETING"})
# Others wait for something that no I/O node gives them, and may do so for ever.
_IN_LINE = frozenset({"None", "Resources", "Priority", "Licenses"})
# Of jobs that ran, were put back into the queue and are held since: job_requeued_in_held_state,
# launch_failed_requeued_held, JobHoldMaxRequeue.
_HELD_AGAIN = "requeue"

Curves = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class _Pool:
    """A licence and how many of it Slurm has."""

    licence: str
    total: int

    def count(self, job: Job) -> int:
        """How many a job has or asks for; never more than there are, whatever its text says."""
        return min(licence_count(job.licenses, self.licence) or 0, self.total)


@dataclass(frozen=True)
class Change:
    """A job that waits, as it is to be.

    Attributes
    ----------
    job : Job
        As it is.
    licenses, admin_comment : str
        What these are to be.
    is_release : bool
        Whether its hold ends.
    why : str
        In a few words.
    """

    job: Job
    licenses: str
    admin_comment: str
    is_release: bool
    why: str


def plan(
    jobs: Sequence[Job],
    curves: Curves,
    pool: int,
    licence: str,
    settings: ArbitrateSettings,
    now_s: float,
) -> list[Change]:
    """Share what running jobs leave of the pool among jobs that wait and were decided by us.

    Planned again on what came of it, nothing is to be changed any more. No job stays held: one that
    gets none now waits in Slurm's own order for the fewest that it can do with.

    Parameters
    ----------
    jobs : sequence of Job
        All that Slurm knows.
    curves : mapping of str to mapping of int to float
        By decision, expected MiB/s by number of I/O nodes; empty where nothing is known.
    pool : int
        How many licences there are.
    licence : str
        Their name.
    settings : ArbitrateSettings
        The site's.
    now_s : float
        Seconds since 1970.
    """
    of = _Pool(licence, pool)
    waiting = [job for job in jobs if _is_ours(job)]
    begun = _begun_arrays(jobs)
    # In an order that does not change as they are released.
    known = sorted(
        (
            job
            for job in _first_in_line(waiting, settings.machine_nodes)
            if _curve(job, curves) and _can_be_changed(job, begun)
        ),
        key=lambda job: (job.submitted_s or 0, job.id),
    )
    running = [job for job in jobs if job.state in _HOLDS_LICENCES and of.count(job)]
    weights = _weights(known, settings)
    allocation = allocate(
        [
            *(_running(job, of) for job in running),
            *(_waiting(job, curves, of, weights[job.id]) for job in known),
        ],
        # Fewer licences than before may have been configured.
        max(pool, sum(map(of.count, running))),
        policy=settings.policy,
        floor=settings.floor,
        minimum_gain=settings.minimum_gain,
        machine_nodes=settings.machine_nodes,
    )
    shares = {share.id: share for share in allocation.shares}
    changes: list[Change] = []
    for job in waiting:
        share = shares.get(str(job.id))
        if share is not None:
            changes += _given(job, share, curves, of, settings.policy)
        elif _is_held(job) and _is_known_by_now(job, curves, now_s):
            is_known = _curve(job, curves)
            why = "it is not its turn to share" if is_known else "nothing is known of it"
            changes.append(as_decided(job, why))
    return changes


def releases(jobs: Sequence[Job]) -> list[Change]:
    """End all holds, for when nobody will be there to end them."""
    return [
        as_decided(job, "the arbiter ends")
        for job in jobs
        if job.state == "PENDING" and _is_held(job)
    ]


def as_decided(job: Job, why: str) -> Change:
    """The end of a hold, with the licences that the job has."""
    return Change(job, job.licenses, without_hold(job.admin_comment), True, f"as decided: {why}")


def decisions_of(jobs: Sequence[Job]) -> list[str]:
    """The decisions whose curves a plan rests on, the last one first.

    They are stored soon after they were made. If one is asked for and found, those made before it
    are found afterwards; the other way round a job would share without one that came earlier.
    """
    last_first = sorted(jobs, key=lambda job: (job.submitted_s or 0, job.id), reverse=True)
    marks = [mark for job in last_first if _is_ours(job) and (mark := _mark(job))]
    return list(dict.fromkeys(mark.decision_id for mark in marks))


def _mark(job: Job) -> Mark | None:
    return mark_of(job.admin_comment)


def _is_held(job: Job) -> bool:
    """Whether it is held by us; jobs that others hold are theirs to release."""
    mark = _mark(job)
    is_held = job.is_held and _HELD_AGAIN not in job.reason.lower()
    return is_held and mark is not None and mark.is_held


def _is_ours(job: Job) -> bool:
    return (
        job.state == "PENDING"
        and _mark(job) is not None
        and (_is_held(job) or (not job.is_held and job.reason in _IN_LINE))
    )


def _begun_arrays(jobs: Sequence[Job]) -> set[int | None]:
    """Arrays of which tasks run: Slurm changes their licences together with those that wait."""
    return {job.array_job_id for job in jobs if job.state != "PENDING" and not job.has_ended}


def _can_be_changed(job: Job, begun: set[int | None]) -> bool:
    """Whether Slurm takes another number; not beside alternatives, as ``a:1|b:1``."""
    return job.id not in begun and "|" not in job.licenses


def _first_in_line(jobs: Sequence[Job], machine_nodes: int | None) -> list[Job]:
    """Jobs in Slurm's order, as many as the machine could run at once.

    To share I/O nodes with those behind them would leave them idle.
    """
    in_line = sorted(
        jobs, key=lambda job: (_is_held(job), -(job.priority or 0), job.submitted_s or 0, job.id)
    )
    if machine_nodes is None:
        return in_line
    first: list[Job] = []
    for job in in_line:
        machine_nodes -= job.nodes or 1
        if first and machine_nodes < 0:
            break
        first.append(job)
    return first


def _curve(job: Job, curves: Curves) -> Mapping[int, float]:
    mark = _mark(job)
    return curves.get(mark.decision_id, {}) if mark else {}


def _is_known_by_now(job: Job, curves: Curves, now_s: float) -> bool:
    mark = _mark(job)
    is_there = mark is not None and mark.decision_id in curves
    return is_there or now_s > (job.submitted_s or 0) + _CURVE_PATIENCE_S


def _weights(jobs: Sequence[Job], settings: ArbitrateSettings) -> dict[int, float]:
    """What jobs count by; one that is held has no priority, and counts as those in the middle."""
    if settings.weight == "nodes":
        return {job.id: float(job.nodes or 1) for job in jobs}
    if settings.weight == "none":
        return {job.id: 1.0 for job in jobs}
    priorities = [job.priority for job in jobs if job.priority]
    middle = median(priorities) if priorities else 1.0
    return {job.id: float(job.priority or middle) for job in jobs}


def _running(job: Job, pool: _Pool) -> JobCurve:
    return JobCurve(str(job.id), job.nodes or 1, {}, current=pool.count(job), is_fixed=True)


def _waiting(job: Job, curves: Curves, pool: _Pool, weight: float) -> JobCurve:
    # One that is held was not told a number yet that it could be moved away from.
    current = None if _is_held(job) else pool.count(job)
    return JobCurve(str(job.id), job.nodes or 1, _curve(job, curves), weight, current)


def _given(job: Job, share: Share, curves: Curves, pool: _Pool, policy: str) -> Iterator[Change]:
    io_nodes, why = share.io_nodes, f"{policy}, {share.expected_mib_s:.4g} MiB/s expected"
    if io_nodes is None:
        if not _is_held(job):
            return
        io_nodes, why = min(_curve(job, curves)), f"{policy}, none are left now"
    if _is_held(job) or pool.count(job) != io_nodes:
        licenses = with_licence(job.licenses, pool.licence, io_nodes)
        yield Change(job, licenses, without_hold(job.admin_comment), _is_held(job), why)
