"""I01, I06: an allocation unlike the decision, and too little I/O to matter."""

from __future__ import annotations

from collections.abc import Mapping

from ioncast.insights.checks.values import Case, Find, Finding, IoNodesOfRun, Result, Unknown
from ioncast.insights.facts.process_times import METADATA
from ioncast.insights.facts.values import DAOS_MODULES, Floats, share


def other_allocation(case: Case) -> Finding | None:
    """I01: the job had another number of I/O nodes than the decision gives it, if one was asked."""
    allocation = case.allocation
    if allocation is None or allocation.io_nodes == allocation.decided:
        return None
    return Finding(
        "WARN",
        numbers={
            "io_nodes": allocation.io_nodes,
            "decided": allocation.decided,
            "expected_mib_s": allocation.expected_mib_s,
            "decided_mib_s": allocation.decided_mib_s,
        },
        at_stake=_time_of_allocation(case, allocation),
    )


def _time_of_allocation(case: Case, allocation: IoNodesOfRun) -> Floats | None:
    """The data time that the expected bandwidths of both numbers differ by."""
    if not 0 < allocation.expected_mib_s <= allocation.decided_mib_s:
        return None
    time = case.times.seconds * (1 - allocation.expected_mib_s / allocation.decided_mib_s)
    time[METADATA] = 0
    return time


def little_io(case: Case) -> Result:
    """I06: even the process with most I/O time spends little of the run time in I/O."""
    facts, limit = case.facts, case.thresholds.io_time_share
    seconds = case.times.io_seconds
    part = share(seconds, case.times.run_seconds)
    if part is None or part >= limit or not facts.layers:
        return None
    if facts.is_incomplete:
        return Unknown("records are missing, because Darshan's memory was full")
    if facts.run.has(*DAOS_MODULES):
        return Unknown("the log has I/O through DAOS, whose time does not count here")
    if "POSIX" in facts.layers and facts.layers["POSIX"].count("MMAPS").any():
        return Unknown("files are mapped into memory (mmap), and Darshan does not see that I/O")
    return Finding(
        "INFO",
        numbers={"seconds": seconds, "run_seconds": facts.run.run_seconds, "share": part},
        thresholds={"io_time_share": limit},
    )


FINDERS: Mapping[str, Find] = {"I01": other_allocation, "I06": little_io}
