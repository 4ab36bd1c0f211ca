"""Replay a queue with one policy after the other, and measure each replay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from experiments.scheduling.measures import Measures, measure
from ioncast.worth.policy import Policy
from ioncast.worth.replay import Schedule, replay
from ioncast.worth.replayed_machine import Machine
from ioncast.worth.workload import Workload


@dataclass(frozen=True)
class Settings:
    """The settings of a comparison, as the JSON output names them.

    Attributes
    ----------
    queue : str or None
        The file with the queue; None for a synthetic queue.
    load : float or None
        The load of a synthetic queue; None for a queue from a file.
    seed : int
        Seed of everything that is drawn at random.
    nodes, pool : int
        Compute nodes and I/O nodes of the machine.
    direct : bool
        Whether jobs may go without I/O nodes.
    io_share : tuple of float
        The least and the largest share of I/O in run times.
    system : str or None
        The system whose curves are used; None for the shipped testbed.
    """

    queue: str | None
    load: float | None
    seed: int
    nodes: int
    pool: int
    direct: bool
    io_share: tuple[float, float]
    system: str | None

    @property
    def machine(self) -> Machine:
        """The machine that the queue is replayed on."""
        return Machine(self.nodes, self.pool, self.direct)


@dataclass(frozen=True, eq=False)
class PoliciesCompared:
    """The replays of one queue, one for each policy.

    Attributes
    ----------
    settings : Settings
        The settings of the comparison.
    work : Workload
        The queue with its I/O.
    schedules : dict of str to Schedule
        Schedule by policy.
    measures : list of Measures
        Measures of the schedules, in the same order.
    """

    settings: Settings
    work: Workload
    schedules: dict[str, Schedule]
    measures: list[Measures]


def compare_policies(
    settings: Settings,
    work: Workload,
    policies: Sequence[Policy],
    progress: Callable[[int], object] = lambda jobs: None,
) -> PoliciesCompared:
    """Replay a queue with each policy.

    Parameters
    ----------
    settings : Settings
        The machine to replay on, with all that is said about the comparison.
    work : Workload
        The queue with its I/O.
    policies : sequence of Policy
        The policies to compare.
    progress : callable
        Called now and then with the number of jobs that started since the last call, over
        all policies.
    """
    machine = settings.machine
    schedules = {policy.name: replay(work, machine, policy, progress) for policy in policies}
    measures = [measure(name, work, found, machine) for name, found in schedules.items()]
    return PoliciesCompared(settings, work, schedules, measures)
