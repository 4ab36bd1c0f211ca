"""Replays a queue: first come, first served, with EASY backfill.

A job needs its compute nodes and its I/O nodes from its start to its end. If there are not enough
for the first job in the queue, it gets a reservation: the time at which, by the time limits of the
running jobs, there will be enough of both. Jobs behind it start now if that does not delay it.

References
----------
.. [1] D. Lifka: "The ANL/IBM SP scheduling system", JSSPP 1995: EASY backfill.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf

import numpy as np

from ioncast.worth.policy import Policy, SimulatedArbiter
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.workload import Floats, Ints, Workload

# Number of jobs behind the first that backfill looks at: Slurm's default for bf_max_job_test.
DEPTH = 500
_JOBS_BETWEEN_REPORTS = 1000


@dataclass(frozen=True, eq=False)
class Schedule:
    """The start, end and I/O of each job; arrays have one element for each job, by submission.

    `held_up` tells whether it waited for I/O nodes only, at any time.
    """

    start_s: Floats
    end_s: Floats
    io_nodes: Ints
    io_s: Floats
    held_up: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def replay(
    work: Workload,
    machine: Machine,
    policy: Policy,
    progress: Callable[[int], object] = lambda jobs: None,
    arbiter: SimulatedArbiter | None = None,
) -> Schedule:
    """Replay all jobs of a queue; no job is larger than the machine.

    `progress` is called now and then with the number of jobs that started since the last call. An
    arbiter of another replay with the same machine and believed curves saves time.
    """
    if policy.arbitrates and arbiter is None:
        arbiter = SimulatedArbiter(work.believed, machine)
    replayed = _Replay(work, machine, policy, progress, arbiter)
    replayed.run()
    return Schedule(
        start_s=np.array(replayed.start_s),
        end_s=np.array(replayed.end_s),
        io_nodes=np.array(replayed.io_nodes, dtype=np.int64),
        io_s=np.array(replayed.io_s),
        held_up=np.array(replayed.held_up),
    )


class _Replay:
    """The state of a machine with a queue.

    It is kept in lists, because reading single numbers is several times faster from lists than
    from arrays.
    """

    def __init__(
        self,
        work: Workload,
        machine: Machine,
        policy: Policy,
        progress: Callable[[int], object],
        arbiter: SimulatedArbiter | None,
    ) -> None:
        count = len(work)
        self.submit_s: list[float] = work.submit_s.tolist()
        self.limit_s: list[float] = work.limit_s.tolist()
        self.nodes: list[int] = work.nodes.tolist()
        self.curve: list[int] = work.curve.tolist()
        self.compute_s: list[float] = work.compute_s.tolist()
        self.moved_mib: list[float] = work.moved_mib.tolist()
        self.mib_s = [curve.mib_s for curve in work.curves]
        self.io_nodes: list[int] = policy.asks(work, machine).tolist()
        self.arbiter = arbiter if policy.arbitrates else None
        self.progress = progress
        self.start_s, self.end_s, self.io_s = [0.0] * count, [0.0] * count, [0.0] * count
        self.held_up = [False] * count
        self.free_nodes, self.free_io_nodes = machine.nodes, machine.pool
        # Running jobs in the order of their ends, and in the order of their time limits.
        self.running: list[tuple[float, int]] = []
        self.limits: list[tuple[float, int]] = []
        # The first jobs of the queue, which backfill looks at; `next` is the first job behind them.
        self.front: list[int] = []
        self.next = self.submitted = 0
        self.started = 0

    def run(self) -> None:
        """Go from event to event: jobs end, arrive and start."""
        count = len(self.submit_s)
        while self.submitted < count or self.running:
            coming_s = self.submit_s[self.submitted] if self.submitted < count else inf
            now_s = min(coming_s, self.running[0][0]) if self.running else coming_s
            # A job that arrives behind those that backfill looks at changes nothing.
            is_news = len(self.front) <= DEPTH
            while self.running and self.running[0][0] <= now_s:
                self._end(heappop(self.running)[1])
                is_news = True
            while self.submitted < count and self.submit_s[self.submitted] <= now_s:
                self.submitted += 1
            if is_news:
                self._start_those_that_can(now_s)
        self.progress(self.started % _JOBS_BETWEEN_REPORTS)

    def _end(self, job: int) -> None:
        self.free_nodes += self.nodes[job]
        self.free_io_nodes += self.io_nodes[job]
        del self.limits[bisect_left(self.limits, (self.start_s[job] + self.limit_s[job], job))]

    def _start_those_that_can(self, now_s: float) -> None:
        starting: list[int] = []
        self._look_further()
        while self.front and self._fits(self.front[0]):
            starting.append(self.front.pop(0))
            self._take(starting[-1], now_s)
            self._look_further()
        spare_io_nodes = self.free_io_nodes
        if self.front:
            spare_io_nodes = self._backfill(now_s, starting)
        if starting:
            if self.arbiter:
                self._arbitrate(self.arbiter, starting, min(self.free_io_nodes, spare_io_nodes))
            self._begin(starting)

    def _look_further(self) -> None:
        while len(self.front) <= DEPTH and self.next < self.submitted:
            self.front.append(self.next)
            self.next += 1

    def _fits(self, job: int) -> bool:
        return self.nodes[job] <= self.free_nodes and self.io_nodes[job] <= self.free_io_nodes

    def _take(self, job: int, now_s: float) -> None:
        self.start_s[job] = now_s
        self.free_nodes -= self.nodes[job]
        self.free_io_nodes -= self.io_nodes[job]
        insort(self.limits, (now_s + self.limit_s[job], job))

    def _backfill(self, now_s: float, starting: list[int]) -> int:
        """Start jobs that do not delay the first; return the I/O nodes that its start leaves."""
        first = self.front[0]
        self.held_up[first] |= self.nodes[first] <= self.free_nodes
        reserved_s, spare_nodes, spare_io_nodes = self._reservation(first, now_s)
        if not self.free_nodes:
            return spare_io_nodes
        # A replay spends most of its time here, so this loop does without calls.
        nodes, io_nodes, limit_s, held_up = self.nodes, self.io_nodes, self.limit_s, self.held_up
        free_nodes, free_io_nodes = self.free_nodes, self.free_io_nodes
        longest_s = reserved_s - now_s
        found: list[int] = []
        for job in self.front[1:]:
            if nodes[job] > free_nodes:
                continue
            if limit_s[job] <= longest_s:
                if io_nodes[job] > free_io_nodes:
                    held_up[job] = True
                    continue
            elif nodes[job] > spare_nodes:
                continue
            elif io_nodes[job] > free_io_nodes or io_nodes[job] > spare_io_nodes:
                held_up[job] = True
                continue
            else:
                spare_nodes -= nodes[job]
                spare_io_nodes -= io_nodes[job]
            free_nodes -= nodes[job]
            free_io_nodes -= io_nodes[job]
            found.append(job)
        for job in found:
            self.front.remove(job)
            self._take(job, now_s)
        starting += found
        return spare_io_nodes

    def _reservation(self, job: int, now_s: float) -> tuple[float, int, int]:
        """Time at which there is enough for a job, and the nodes and I/O nodes left free then."""
        spare_nodes = self.free_nodes - self.nodes[job]
        spare_io_nodes = self.free_io_nodes - self.io_nodes[job]
        reserved_s = inf
        for limit_s, other in self.limits:
            if limit_s > reserved_s:
                break
            spare_nodes += self.nodes[other]
            spare_io_nodes += self.io_nodes[other]
            if reserved_s == inf and spare_nodes >= 0 and spare_io_nodes >= 0:
                # A job that is over its limit may end at any time, so the time is not in the past.
                reserved_s = max(limit_s, now_s)
        return reserved_s, spare_nodes, spare_io_nodes

    def _arbitrate(self, arbiter: SimulatedArbiter, starting: list[int], free: int) -> None:
        given = arbiter.divide([self.curve[job] for job in starting], free)
        for job, io_nodes in zip(starting, given, strict=True):
            self.free_io_nodes -= io_nodes - self.io_nodes[job]
            self.io_nodes[job] = io_nodes

    def _begin(self, starting: list[int]) -> None:
        """Compute I/O time and end of the jobs that start now."""
        for job in starting:
            bandwidth_mib_s = self.mib_s[self.curve[job]][self.io_nodes[job]]
            self.io_s[job] = self.moved_mib[job] / bandwidth_mib_s
            self.end_s[job] = self.start_s[job] + self.compute_s[job] + self.io_s[job]
            heappush(self.running, (self.end_s[job], job))
            self.started += 1
            if self.started % _JOBS_BETWEEN_REPORTS == 0:
                self.progress(_JOBS_BETWEEN_REPORTS)
