"""The aggregators of a run: the processes that make the POSIX requests of collective calls."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioncast.insights.facts.collective_calls import Collectives
from ioncast.insights.facts.values import Facts, Ints
from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.streams import changes
from summario.reading.dxt import DXT_MODULES

_POSIX = APIS.index("POSIX")


@dataclass(frozen=True)
class Aggregators:
    """The aggregators of all files with collective calls, ascending; None for unknown `hosts`."""

    rank: Ints
    hosts: frozenset[str] | None
    idle_hosts: tuple[str, ...] = ()


def aggregators_of(
    facts: Facts,
    collectives: Collectives,
    *,
    least_share: float = 0.01,
    collective_share: float = 0.9,
) -> Aggregators | None:
    """Find the aggregators in the trace of POSIX, or else in its heat map; None without enough.

    An aggregator moves at least `least_share` of a file's bytes: another process may write the
    header, for example. If a hundred or more share a file, half of their mean is enough. At least
    `collective_share` of the files' bytes must be in the trace, or they must have this share of
    the bytes in the heat map, which contains all files.
    """
    theirs = collectives.aggregated
    if not len(theirs):
        return None
    of_trace = _of_trace(facts, theirs, least_share, collective_share)
    return of_trace or _of_heatmaps(facts, theirs, least_share, collective_share)


def _of_trace(
    facts: Facts, collectives: Collectives, least_share: float, collective_share: float
) -> Aggregators | None:
    trace = facts.trace
    if trace is None or facts.run.is_partial(DXT_MODULES["POSIX"]):
        return None
    trace = trace.take(trace.api == _POSIX)
    row = np.searchsorted(facts.files.id, trace.file_id)
    # A file and an operation as one number, to look them up together.
    wanted = np.sort(len(OPERATIONS) * collectives.file + collectives.operation)
    key = len(OPERATIONS) * row + trace.operation
    place = np.minimum(np.searchsorted(wanted, key), len(wanted) - 1)
    theirs = wanted[place] == key
    of_files = trace.take(theirs)
    moved = of_files.length.sum(dtype=np.float64)
    if not moved or moved < collective_share * collectives.posix_bytes.sum(dtype=np.float64):
        return None
    rank = _busy(place[theirs], of_files.rank, of_files.length, least_share)
    aggregator = np.minimum(np.searchsorted(rank, of_files.rank), len(rank) - 1)
    host = of_files.host[rank[aggregator] == of_files.rank]
    hosts = frozenset(trace.hosts[index] for index in np.unique(host).tolist())
    return Aggregators(rank, hosts, tuple(name for name in trace.hosts if name not in hosts))


def _of_heatmaps(
    facts: Facts, collectives: Collectives, least_share: float, collective_share: float
) -> Aggregators | None:
    ranks = []
    for index in np.unique(collectives.operation).tolist():
        heatmap = facts.heatmaps.get(("POSIX", OPERATIONS[index]))
        if heatmap is None:
            return None
        moved = heatmap.bytes.sum(axis=1)
        own = collectives.posix_bytes[collectives.operation == index].sum(dtype=np.float64)
        if not own or own < collective_share * moved.sum(dtype=np.float64):
            return None
        ranks.append(_busy(np.zeros_like(moved), heatmap.rank, moved, least_share))
    return Aggregators(np.unique(np.concatenate(ranks)), None)


def _busy(file: Ints, rank: Ints, moved: Ints, least_share: float) -> Ints:
    """List the processes that moved enough of the bytes of one of the files, ascending."""
    order = np.lexsort((rank, file))
    first = np.flatnonzero(changes(file[order], rank[order]))
    file, rank = file[order][first], rank[order][first]
    of_ranks = np.add.reduceat(moved[order], first, dtype=np.float64)
    of_files = np.bincount(file, of_ranks)
    busy = np.bincount(file, of_ranks > 0)
    least = np.minimum(least_share * of_files, of_files / np.maximum(2 * busy, 1))
    found: Ints = np.unique(rank[(of_ranks > 0) & (of_ranks >= least[file])])
    return found
