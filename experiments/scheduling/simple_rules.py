"""Rules that divide a pool of I/O nodes without a sum, to compare `allocate` with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ioncast_base.knapsack import Choice, JobCurve, possible_choices


def best(jobs: Sequence[JobCurve], pool: int) -> list[int | None]:
    """Give each job, in the order given, its best number of the I/O nodes that are left."""

    def fastest(job: JobCurve, left: int) -> Choice:
        choices = possible_choices(job, left)
        return max(choices, key=lambda choice: (choice.mib_s, -choice.taken))

    return [choice.io_nodes for choice in _in_turn(jobs, pool, fastest)]


def static(jobs: Sequence[JobCurve], pool: int) -> list[int | None]:
    """Give I/O nodes in proportion to compute nodes, rounded down to a number in the job's curve.

    A job that would get 0 gets its smallest number above 0, while enough are left.
    """
    machine_nodes = sum(job.nodes for job in jobs)

    def in_proportion(job: JobCurve, left: int) -> Choice:
        return possible_choices(job, min(job.nodes * pool // machine_nodes, left))[-1]

    chosen = _in_turn(jobs, pool, in_proportion)
    left = pool - sum(choice.taken for choice in chosen)
    for place, job in enumerate(jobs):
        if not chosen[place].taken:
            forwarded = [choice for choice in possible_choices(job, left) if choice.taken]
            chosen[place] = forwarded[0] if forwarded else chosen[place]
            left -= chosen[place].taken
    return [choice.io_nodes for choice in chosen]


def equal(jobs: Sequence[JobCurve], pool: int) -> list[int | None]:
    """Give each job the same number, rounded down to a number in its curve."""
    return [possible_choices(job, pool // len(jobs))[-1].io_nodes for job in jobs]


def _in_turn(
    jobs: Sequence[JobCurve], pool: int, choose: Callable[[JobCurve, int], Choice]
) -> list[Choice]:
    """Let each job choose among the I/O nodes that the jobs before it left."""
    chosen = []
    for job in jobs:
        chosen.append(choose(job, pool))
        pool -= chosen[-1].taken
    return chosen
