"""Measures of policies, for people to read."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.scheduling.measures import Measures
from ioncast_base.wording import in_digits


def table(results: Sequence[Measures]) -> list[dict[str, str]]:
    """One row for each policy, with units in the names of columns."""
    return [
        {
            "policy": result.policy,
            "global MiB/s": f"{result.bandwidth_mib_s:,.1f}",
            "I/O s": in_digits(result.io_mean_s),
            "p90": in_digits(result.io_p90_s),
            "waiting h": in_digits(result.waiting_mean_s / 3600),
            "p90 ": in_digits(result.waiting_p90_s / 3600),
            "turnaround h": in_digits(result.turnaround_mean_s / 3600),
            "slowdown": in_digits(result.slowdown_mean),
            "held up": f"{result.held_up_share:.1%}",
            "makespan h": in_digits(result.makespan_s / 3600),
            "nodes used": f"{result.nodes_used:.1%}",
            "pool used": f"{result.pool_used:.1%}",
        }
        for result in results
    ]
