"""The names of I/O nodes for waiting jobs, a pure function: who shares an I/O node with whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

# A round must not wait long for an exact answer. Its time grows with the jobs and with the groups
# of jobs that can meet on an I/O node. The limit of a second is the solver's alone.
MOST_EXACT = 12
_MOST_GROUPS = 2000
_LONGEST_S = 1.0
# Both are more than all costs of pairs that were not measured, which are shares of their sum.
_DISTURBING = 1000.0
_SLOW = 10.0

Program = tuple[str, int]
Names = tuple[str, ...]


@dataclass(frozen=True)
class PlacedJob:
    """A job that has or wants named I/O nodes.

    Attributes
    ----------
    io_nodes : int
        The number that it gets.
    load_mib_s : float
        Its expected bandwidth.
    program : tuple of str and int, or None
        The program and its number of processes; None if it is not known.
    names : tuple of str
        The I/O nodes of a running job; empty for a waiting one.
    """

    id: int
    io_nodes: int
    load_mib_s: float
    program: Program | None = None
    names: Names = ()


@dataclass(frozen=True)
class Sharing:
    """How jobs may share I/O nodes.

    Attributes
    ----------
    io_nodes : tuple of str
        Names of all I/O nodes, those to be given first in front.
    jobs_each : int
        Jobs that may have the same I/O node.
    disturbing : frozenset
        Pairs of programs, as sets, of which one was measured to disturb the other.
    slow : frozenset of str
        Names of slow I/O nodes, which are used last.
    """

    io_nodes: Names
    jobs_each: int
    disturbing: frozenset[frozenset[Program]] = frozenset()
    slow: frozenset[str] = frozenset()

    def cost(self, one: PlacedJob, other: PlacedJob, whole_mib_s: float) -> float:
        """The cost of an I/O node that two jobs share.

        Pairs without a measurement cost the product of their loads, so that large ones do not meet.
        """
        is_known = one.program is not None and other.program is not None
        is_measured = is_known and {one.program, other.program} in self.disturbing
        measured = _DISTURBING if is_measured else 0.0
        return measured + one.load_mib_s * other.load_mib_s / whole_mib_s**2


def placed(jobs: Sequence[PlacedJob], sharing: Sharing) -> dict[int, Names]:
    """Name the I/O nodes of the waiting jobs for which there is room, the first ones first.

    Parameters
    ----------
    jobs : sequence of PlacedJob
        Running jobs, and waiting ones in the order in which they start.

    Returns
    -------
    dict of int to tuple of str
        Names by id of the waiting job. The sum of the costs of all pairs on all I/O nodes is the
        lowest one for up to 12 waiting jobs, unless too many groups of them can meet.
    """
    held = _Held.of(jobs, sharing)
    waiting = [job for job in jobs if not job.names]
    room, free, fitting = held.room(), len(held.free()), []
    for job in waiting:
        # Slurm may start small jobs before a large one that waits for more room.
        if job.io_nodes <= min(room, free):
            room -= job.io_nodes
            fitting.append(job)
    found = held.greedy(fitting)
    if len(fitting) <= MOST_EXACT and held.total(found) > 0:
        found = held.exact(fitting) or found
    return {job.id: found[job.id] for job in fitting if job.id in found}


@dataclass(frozen=True)
class _Held:
    """The I/O nodes with the running jobs on each, and the costs of pairs."""

    sharing: Sharing
    on: Mapping[str, tuple[PlacedJob, ...]]
    jobs: Mapping[int, PlacedJob]
    whole_mib_s: float

    @classmethod
    def of(cls, jobs: Sequence[PlacedJob], sharing: Sharing) -> _Held:
        slow_last = sorted(dict.fromkeys(sharing.io_nodes), key=lambda name: name in sharing.slow)
        on = {name: tuple(job for job in jobs if name in job.names) for name in slow_last}
        whole_mib_s = sum(job.load_mib_s for job in jobs) or 1.0
        return cls(sharing, on, {job.id: job for job in jobs}, whole_mib_s)

    def free(self) -> list[str]:
        return [name for name, jobs in self.on.items() if len(jobs) < self.sharing.jobs_each]

    def room(self) -> int:
        """The number of I/O nodes that can still be given, each as often as jobs may share it."""
        return sum(max(self.sharing.jobs_each - len(jobs), 0) for jobs in self.on.values())

    def is_slow(self, name: str) -> bool:
        return name in self.sharing.slow

    def costs(self, group: Sequence[PlacedJob], *, is_slow: bool) -> float:
        """The cost of the jobs on one I/O node."""
        pairs = combinations(group, 2)
        shared = sum(self.sharing.cost(one, other, self.whole_mib_s) for one, other in pairs)
        # The jobs with least bandwidth get the slow I/O nodes.
        slow = sum(_SLOW * (1 + job.load_mib_s / self.whole_mib_s) for job in group if is_slow)
        return shared + slow

    def total(self, names: Mapping[int, Names]) -> float:
        """The cost of all I/O nodes, more than that of the running jobs alone."""
        groups = {name: list(jobs) for name, jobs in self.on.items()}
        for job, chosen in names.items():
            for name in chosen:
                groups[name].append(self.jobs[job])
        return sum(
            self.costs(groups[name], is_slow=self.is_slow(name))
            - self.costs(jobs, is_slow=self.is_slow(name))
            for name, jobs in self.on.items()
        )

    def greedy(self, waiting: Sequence[PlacedJob]) -> dict[int, Names]:
        """Place one job after the other, large ones first; a job without room gets no names."""
        groups = {name: list(self.on[name]) for name in self.free()}
        found: dict[int, Names] = {}
        for job in sorted(waiting, key=lambda job: -job.load_mib_s):
            free = [name for name in groups if len(groups[name]) < self.sharing.jobs_each]
            added = {
                name: self.costs([*groups[name], job], is_slow=self.is_slow(name))
                - self.costs(groups[name], is_slow=self.is_slow(name))
                for name in free
            }
            chosen = sorted(free, key=lambda name: (added[name], len(groups[name])))
            if len(chosen) >= job.io_nodes:
                found[job.id] = tuple(chosen[: job.io_nodes])
                for name in found[job.id]:
                    groups[name].append(job)
        return found

    def exact(self, waiting: Sequence[PlacedJob]) -> dict[int, Names]:
        """Find the lowest cost with an integer program; empty if that takes more than a second.

        I/O nodes with the same running jobs are alike, if all or none are slow. So the unknowns are
        the numbers of these I/O nodes on which a group of waiting jobs meets.
        """
        alike: dict[tuple[tuple[PlacedJob, ...], bool], list[str]] = {}
        for name in self.free():
            alike.setdefault((self.on[name], self.is_slow(name)), []).append(name)
        rooms = [self.sharing.jobs_each - len(running) for running, _ in alike]
        if sum(_count_of_groups(len(waiting), room) for room in rooms) > _MOST_GROUPS:
            return {}

        # The import takes long: the arbiter does it at its start, other commands never.
        import numpy as np  # noqa: PLC0415
        from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415

        columns = [
            (kind, group)
            for kind, room in zip(alike, rooms, strict=True)
            for group in _groups(waiting, room)
        ]
        costs = np.array(
            [self.costs([*jobs, *group], is_slow=slow) for (jobs, slow), group in columns]
        )
        rows = [[kind == each for kind, _ in columns] for each in alike]
        rows += [[job in group for _, group in columns] for job in waiting]
        sums = np.array([*map(len, alike.values()), *(job.io_nodes for job in waiting)])
        answer = milp(
            costs,
            integrality=np.ones(len(columns)),
            bounds=Bounds(0, np.inf),
            constraints=LinearConstraint(np.array(rows, float), sums, sums),
            options={"time_limit": _LONGEST_S},
        )
        if not answer.success:
            return {}
        found: dict[int, Names] = {job.id: () for job in waiting}
        left = {kind: iter(names) for kind, names in alike.items()}
        counts = Counter(dict(enumerate(np.rint(answer.x).astype(int).tolist())))
        # Groups of jobs come first, so that the I/O nodes at the end stay free.
        for place in sorted(counts, key=lambda place: not columns[place][1]):
            kind, group = columns[place]
            for _ in range(counts[place]):
                name = next(left[kind])
                for job in group:
                    found[job.id] += (name,)
        return found


def _groups(jobs: Sequence[PlacedJob], most: int) -> Iterator[tuple[PlacedJob, ...]]:
    """All groups of up to `most` jobs, the empty one too."""
    for size in range(most + 1):
        yield from combinations(jobs, size)


def _count_of_groups(jobs: int, most: int) -> int:
    return sum(comb(jobs, size) for size in range(most + 1))
