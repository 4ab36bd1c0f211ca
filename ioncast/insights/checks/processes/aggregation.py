"""M08, M09, M10, I07: aggregators on compute nodes, and collective calls without any."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ioncast.insights.checks.concerned import worst_files
from ioncast.insights.checks.values import (
    MOST_RANKS,
    Case,
    Find,
    Finding,
    Level,
    Result,
    Unknown,
)
from ioncast.insights.facts.aggregating_ranks import Aggregators
from ioncast.insights.facts.collective_calls import Collectives
from ioncast.insights.facts.interleaving import interleaved_files
from ioncast.insights.facts.values import Bools, Floats, total
from ioncast_base.kinds import OPERATIONS
from summario.runs.hosts import NodeCount


def fewer_aggregators(case: Case) -> Result:
    """M08: fewer aggregators than compute nodes, or some nodes without one."""
    return _only(case, "WARN")


def more_aggregators(case: Case) -> Result:
    """M09: more aggregators than compute nodes."""
    return _only(case, "HIGH")


def one_aggregator_on_each_node(case: Case) -> Result:
    """M10: as many aggregators as compute nodes, one on each."""
    return _only(case, "OK")


def ran_alone(case: Case) -> Finding | None:
    """I07: collective calls ran as independent ones."""
    every, limit = case.collectives, case.thresholds.alike_share
    alone = every.take(every.ran_alone)
    if case.facts.run.processes < 2 or not len(alone):
        return None
    harmful = alone.take(_has_joined_requests(case, alone))
    found = harmful if len(harmful) else alone
    calls, all_calls = total(found.calls), total(every.calls)
    files, place = np.unique(found.file, return_inverse=True)
    of_files = np.bincount(place, found.calls).astype(np.int64)
    count, named = worst_files(case, files, of_files, all_calls)
    return Finding(
        "WARN" if len(harmful) else "INFO",
        numbers={
            "calls": calls,
            "all_calls": all_calls,
            "share": calls / all_calls,
            "files": count,
        },
        thresholds={"alike_share": limit, "small_share": case.thresholds.small_share},
        files=named,
        variant="" if len(harmful) else "rightly",
        at_stake=_time_of(case, harmful) if len(harmful) else None,
    )


def _time_of(case: Case, calls: Collectives) -> Floats:
    """The time of the operations of some collective calls."""
    concerned = np.zeros_like(case.times.seconds, bool)
    concerned[calls.operation, calls.file] = True
    return case.times.spread(np.inf, concerned)


def _has_joined_requests(case: Case, alone: Collectives) -> Bools:
    """Tell for each row whether it has small requests between those of other processes."""
    has_joined_requests = np.zeros(len(alone), bool)
    posix = case.facts.layers["POSIX"]
    for number, operation in enumerate(OPERATIONS):
        requests = posix.of(operation)
        is_small = np.zeros(len(case.facts.files), bool)
        least = case.thresholds.small_share * posix.of_files(requests.requests)
        is_small[posix.used_files] = posix.of_files(requests.small) > least
        joined = is_small & interleaved_files(case.facts, operation)
        has_joined_requests |= (alone.operation == number) & joined[alone.file]
    return has_joined_requests


def _only(case: Case, level: Level) -> Result:
    """Find how the aggregators are placed, if that has a level."""
    placement = _placement(case)
    return (
        placement
        if isinstance(placement, Unknown) or (placement and placement.level == level)
        else None
    )


def _placement(case: Case) -> Result:
    if case.facts.run.processes < 2 or not len(case.collectives.aggregated):
        return None
    found, nodes = case.aggregators, case.facts.nodes
    if found is None:
        return Unknown(
            "the log does not tell the aggregators: it has no whole trace of POSIX (DXT), and no"
            " heat map (HEATMAP) that is mainly of the files with collective calls"
        )
    if nodes is None:
        return Unknown("the number of compute nodes is not known")
    return _compared(found, nodes, case)


def _compared(found: Aggregators, nodes: NodeCount, case: Case) -> Result:
    count = len(found.rank)
    if nodes.number > count:
        return _finding(case, "WARN", found)
    if not nodes.are_all:
        return Unknown("the log names only some of the compute nodes")
    if nodes.number < count:
        # On one node there is no traffic between nodes, and if all processes do, none aggregates.
        is_real = nodes.number > 1 and count < case.facts.run.processes
        return _finding(case, "HIGH", found) if is_real else None
    if found.hosts is not None and len(found.hosts) < count:
        return _finding(case, "WARN", found, variant="uneven")
    if found.hosts is None and count > 1:
        return Unknown("the log does not tell on which compute nodes the aggregators ran")
    return _finding(case, "OK", found)


def _finding(case: Case, level: Level, found: Aggregators, variant: str = "") -> Finding:
    limits, nodes = case.thresholds, case.facts.nodes
    numbers: dict[str, float | str] = {
        "aggregators": len(found.rank),
        "nodes": nodes.number if nodes is not None else 0,
    }
    if variant:
        numbers["empty"] = ", ".join(found.idle_hosts) or "nodes that the trace does not name"
    return Finding(
        level,
        numbers,
        thresholds={
            "aggregator_share": limits.aggregator_share,
            "collective_share": limits.collective_share,
        },
        ranks=tuple(found.rank[:MOST_RANKS].tolist()),
        variant=variant,
    )


FINDERS: Mapping[str, Find] = {
    "M08": fewer_aggregators,
    "M09": more_aggregators,
    "M10": one_aggregator_on_each_node,
    "I07": ran_alone,
}
