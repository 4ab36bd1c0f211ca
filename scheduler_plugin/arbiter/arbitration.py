"""The arbiter's plan, a pure function: how many I/O nodes each waiting job gets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ioncast_base.knapsack import JobCurve, Share, allocate
from ioncast_base.wording import in_digits
from scheduler_plugin.arbiter.placement import Names, PlacedJob
from scheduler_plugin.marks import Mark, mark_of
from scheduler_plugin.settings import ArbitrateSettings
from scheduler_plugin.slurm.jobs import Job
from scheduler_plugin.slurm.licence_limits import Limits
from scheduler_plugin.slurm.licences import licence_count, with_licence

# The service stores a decision a second or two after it was made, or later if it is down for a
# while. After this time a job is released without a curve.
CURVE_PATIENCE_S = 60
# Reasons of jobs that could start if they had I/O nodes. Jobs with other reasons, such as
# Dependency, may wait forever whatever they get.
_IN_LINE = frozenset({"None", "Resources", "Priority", "Licenses"})

Curves = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class _Pool:
    """The licence that stands for an I/O node, and Slurm's limits on it."""

    limits: Limits

    def count(self, job: Job) -> int:
        """Licences that a job has or asks for; at most the whole pool, whatever its text says."""
        return min(licence_count(job.licenses, self.limits.licence) or 0, self.limits.total)

    def possible(self, job: Job, curves: Curves) -> Mapping[int, float]:
        """The part of a job's curve that Slurm's limits allow."""
        most = self.limits.of_job(job.partition, job.qos, job.account, job.user)
        return {n: mib_s for n, mib_s in _curve(job, curves).items() if n <= most}


@dataclass(frozen=True)
class Change:
    """New values for a waiting job."""

    job: Job
    licenses: str
    is_release: bool
    why: str


def plan(
    jobs: Sequence[Job],
    curves: Curves,
    limits: Limits,
    settings: ArbitrateSettings,
    now_s: float,
) -> list[Change]:
    """Divide the I/O nodes that running jobs leave free among waiting jobs with a decision.

    A plan for the result of a plan changes nothing. No job stays held: a job that gets no I/O
    nodes now is released with its smallest number and waits for them in Slurm's own order.
    """
    of = _Pool(limits)
    waiting = [job for job in jobs if _is_ours(job, now_s)]
    held = {job.id for job in waiting if _is_held(job, now_s)}
    begun = _begun_arrays(jobs)
    # Sorted by values that a release does not change, so that the next plan sees the same order.
    known = sorted(
        (
            job
            for job in _first_in_line(waiting, settings.machine_nodes)
            if of.possible(job, curves) and _can_be_changed(job, begun)
        ),
        key=lambda job: (job.submitted_s or 0, job.id),
    )
    running = [job for job in jobs if job.is_running and of.count(job)]
    weights = _weights(known, settings)
    allocation = allocate(
        [
            *(_running(job, of) for job in running),
            *(_waiting(job, job.id in held, curves, of, weights[job.id]) for job in known),
        ],
        # Running jobs have more than the pool after an admin made it smaller.
        max(limits.total, sum(map(of.count, running))),
        objective=settings.objective,
        minimum_gain=settings.minimum_gain,
    )
    shares = {share.id: share for share in allocation.shares}
    changes: list[Change] = []
    for job in waiting:
        share = shares.get(str(job.id))
        if share is not None:
            changes += _given(job, share, job.id in held, curves, of)
        elif job.id in held and _is_known_by_now(job, curves, now_s):
            changes.append(release_as_decided(job, _why_alone(job, curves, of)))
    return changes


def releases(jobs: Sequence[Job], now_s: float) -> list[Change]:
    """Release all jobs that the arbiter holds, because it ends."""
    return [release_as_decided(job, "the arbiter ends") for job in jobs if _is_held(job, now_s)]


def release_as_decided(job: Job, why: str) -> Change:
    """Release a job with the licences that it has already."""
    return Change(job, job.licenses, True, f"as decided: {why}")


def decisions_of(jobs: Sequence[Job], now_s: float) -> list[str]:
    """Ids of the decisions whose curves a plan needs, the newest first.

    The service stores decisions in the order in which it made them. If the newest one can be read,
    all older ones can be read after it. In the other order a plan could have the curve of a new
    job and lack that of an older one.
    """
    last_first = sorted(jobs, key=lambda job: (job.submitted_s or 0, job.id), reverse=True)
    marks = [mark for job in last_first if _is_ours(job, now_s) and (mark := _mark(job))]
    return list(dict.fromkeys(mark.decision_id for mark in marks))


def placing_of(
    jobs: Sequence[Job],
    changes: Sequence[Change],
    curves: Curves,
    programs: Mapping[str, str],
    licence: str,
    names: Mapping[int, Names],
    now_s: float,
) -> list[PlacedJob]:
    """Running jobs with named I/O nodes, and the waiting jobs that get some, in Slurm's order.

    Parameters
    ----------
    programs : mapping of str to str
        Names of programs by decision.
    names : mapping of int to tuple of str
        The I/O nodes of running jobs.
    """
    licenses = {change.job.id: change.licenses for change in changes}
    waiting = [job for job in jobs if _is_in_line(job) or _is_held(job, now_s)]
    running = [job for job in jobs if job.is_running and job.id in names]
    found = []
    for job in (*running, *_first_in_line(waiting, None)):
        count = licence_count(licenses.get(job.id, job.licenses), licence) or 0
        mark, curve = _mark(job), _curve(job, curves)
        program = programs.get(mark.decision_id) if mark else None
        key = (program, job.tasks) if program and job.tasks else None
        found.append(PlacedJob(job.id, count, curve.get(count, 0.0), key, names.get(job.id, ())))
    return [job for job in found if job.io_nodes]


def decisions_of_running(jobs: Sequence[Job]) -> dict[str, int]:
    """The Unix times at which running jobs were submitted, by the ids of their decisions."""
    running = [job for job in jobs if job.is_running]
    return {mark.decision_id: job.submitted_s or 0 for job in running if (mark := _mark(job))}


def _mark(job: Job) -> Mark | None:
    return mark_of(job.admin_comment)


def _is_held(job: Job, now_s: float) -> bool:
    """Whether the arbiter holds the job; it must not release a job that somebody else holds."""
    mark = _mark(job)
    if mark is None or mark.held_until_s is None or not job.is_waiting:
        return False
    # Another begin time, or a real hold, is of its user or of an admin.
    return not job.is_held and job.begins_s == mark.held_until_s > now_s


def _is_in_line(job: Job) -> bool:
    return job.is_waiting and not job.is_held and job.reason in _IN_LINE


def _is_ours(job: Job, now_s: float) -> bool:
    # Slurm 24.11 names the reason BeginTime only some time after a user has set another time.
    is_in_line = _is_in_line(job) and (job.begins_s or 0) <= now_s
    return _mark(job) is not None and (is_in_line or _is_held(job, now_s))


def _begun_arrays(jobs: Sequence[Job]) -> set[int | None]:
    """Ids of arrays with running tasks: Slurm would change their licences with the waiting ones."""
    return {job.array_job_id for job in jobs if job.is_running}


def _can_be_changed(job: Job, begun: set[int | None]) -> bool:
    """Whether Slurm accepts another number; it does not beside alternatives such as ``a:1|b:1``."""
    return job.id not in begun and "|" not in job.licenses


def _first_in_line(jobs: Sequence[Job], machine_nodes: int | None) -> list[Job]:
    """The first jobs in Slurm's order, as many as the machine can run at once.

    I/O nodes for the jobs behind them would be idle.
    """
    in_line = sorted(jobs, key=lambda job: (-(job.priority or 0), job.submitted_s or 0, job.id))
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


def _why_alone(job: Job, curves: Curves, pool: _Pool) -> str:
    """Why a job does not share I/O nodes with the others."""
    if not _curve(job, curves):
        return "its decision has no curve"
    if not pool.possible(job, curves):
        return "Slurm's limits are below its smallest number"
    return "it is not its turn to share"


def _is_known_by_now(job: Job, curves: Curves, now_s: float) -> bool:
    """Whether the job's decision was read, or is not worth waiting for any longer."""
    mark = _mark(job)
    was_read = mark is not None and mark.decision_id in curves
    return was_read or now_s > (job.submitted_s or 0) + CURVE_PATIENCE_S


def _weights(jobs: Sequence[Job], settings: ArbitrateSettings) -> dict[int, float]:
    """Weight of each job by its id; a job without a priority gets the median of the others."""
    if settings.weight == "nodes":
        return {job.id: float(job.nodes or 1) for job in jobs}
    if settings.weight == "none":
        return {job.id: 1.0 for job in jobs}
    priorities = [job.priority for job in jobs if job.priority]
    middle = median(priorities) if priorities else 1.0
    return {job.id: float(job.priority or middle) for job in jobs}


def _running(job: Job, pool: _Pool) -> JobCurve:
    return JobCurve(str(job.id), job.nodes or 1, {}, current=pool.count(job), is_fixed=True)


def _waiting(job: Job, is_held: bool, curves: Curves, pool: _Pool, weight: float) -> JobCurve:
    # The user of a held job has seen no number yet, so moving away from it needs no minimum gain.
    current = None if is_held else pool.count(job)
    return JobCurve(str(job.id), job.nodes or 1, pool.possible(job, curves), weight, current)


def _given(job: Job, share: Share, is_held: bool, curves: Curves, pool: _Pool) -> Iterator[Change]:
    expected = in_digits(share.expected_mib_s or 0, 4)
    io_nodes, why = share.io_nodes, f"shared, {expected} MiB/s expected"
    if io_nodes is None:
        if not is_held:
            return
        io_nodes, why = min(pool.possible(job, curves)), "no I/O nodes are free now"
    if is_held or pool.count(job) != io_nodes:
        licenses = with_licence(job.licenses, pool.limits.licence, io_nodes)
        yield Change(job, licenses, is_held, why)
