"""Slow servers: OSTs and I/O nodes on which files and jobs are slower than elsewhere.

A job counts once on each server. The bandwidths of its files on the server are compared with those
of its other files; if all files use the server, the job is compared with its usual bandwidth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ioncast.diagnosis.normal import (
    Bandwidths,
    Bools,
    Floats,
    Ints,
    Normals,
    Runs,
    medians,
    numbers,
)
from ioncast.insights.facts.slow_osts import FEWEST_FILES
from ioncast.warehouse.usual_values import LIKE_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

# A server is named below this probability, if jobs are slower there by at least this ratio.
_MOST_P, _LEAST_RATIO = 0.01, 1.5
_MOST_NAMED = 20
_TINY = 1e-300


@dataclass(frozen=True)
class SlowServer:
    """A server on which jobs, or the files of few jobs, are slower than elsewhere.

    `here` and `elsewhere` count these jobs or files. `ratio` is the median bandwidth elsewhere by
    that on the server, each relative to its expectation. `p` is the probability that chance makes
    any of the servers as slow (Bonferroni).
    """

    system: str | None
    kind: str
    server: int
    units: Literal["jobs", "files"]
    here: int
    elsewhere: int
    ratio: float
    p: float


@dataclass(frozen=True, eq=False)
class Units:
    """Bandwidths (logarithms, relative to expectations) on servers, with an entry for each server.

    Units are `files` or jobs. All entries of `whole` units have one value, which is that of all
    servers of the unit together.
    """

    kind: Literal["jobs", "files"]
    unit: Ints
    server: Ints
    value: Floats
    is_whole: Bools

    def without(self, server: int) -> Units:
        """Leave out a server, and units whose value may be due to it."""
        here = self.server == server
        kept = ~here & ~(self.is_whole & np.isin(self.unit, self.unit[here]))
        columns = (self.unit[kept], self.server[kept], self.value[kept], self.is_whole[kept])
        return Units(self.kind, *columns)


def slow_servers_of(runs: Runs, normals: Normals, places: pa.Table) -> list[SlowServer]:
    """Name the slow servers of each system, the slowest first.

    Parameters
    ----------
    runs, normals : Runs, Normals
        All runs of a store.
    places : pyarrow.Table
        Rows of the query `files-on-servers`.

    References
    ----------
    The test is that of H. B. Mann and D. R. Whitney (1947), of ranks, so that single outliers do
    not count more than others.
    """
    names = runs.rows["log"].to_pylist()
    number = {log: place for place, log in enumerate(names)}
    run = np.array([number.get(log, -1) for log in places["log"].to_pylist()], np.int64)
    systems = np.array([*runs.rows["system"].to_pylist(), None], dtype=object)[run]
    kinds = places["kind"].to_numpy(zero_copy_only=False)
    found: list[SlowServer] = []
    for system in dict.fromkeys(systems[run >= 0].tolist()):
        for kind in dict.fromkeys(kinds.tolist()):
            rows = np.flatnonzero((run >= 0) & (systems == system) & (kinds == kind))
            units = _units(runs, normals, places.take(rows), run[rows])
            found += slow_of_units(system, kind, units)
    return sorted(found, key=lambda each: (each.p, -each.ratio))


def slow_of_units(system: str | None, kind: str, units: Units) -> Iterator[SlowServer]:
    """Name the slowest server, then the slowest of the others, as long as one is slow."""
    for _ in range(_MOST_NAMED):
        tested = [each for each in _tested(system, kind, units) if each.p < _MOST_P]
        if not tested:
            return
        slowest = min(tested, key=lambda each: (each.p, -each.ratio))
        yield slowest
        units = units.without(slowest.server)


def _tested(system: str | None, kind: str, units: Units) -> Iterator[SlowServer]:
    """Test each server with enough units here and elsewhere that is noticeably slower."""
    # SciPy takes as long to import as all else here.
    from scipy.stats import mannwhitneyu  # noqa: PLC0415

    servers = np.unique(units.server)
    for server in servers.tolist():
        here = units.server == server
        others = units.without(server)
        # A unit counts once, on however many other servers it is.
        elsewhere = medians(others.value, np.unique(others.unit, return_inverse=True)[1])
        counts = int(np.count_nonzero(here)), len(elsewhere)
        if min(counts) < FEWEST_FILES:
            continue
        ratio = float(np.exp(np.median(elsewhere) - np.median(units.value[here])))
        if ratio < _LEAST_RATIO:
            continue
        p = float(mannwhitneyu(units.value[here], elsewhere, alternative="less").pvalue)
        yield SlowServer(
            *(system, kind, server, units.kind, *counts, ratio), min(p * len(servers), 1.0)
        )


def _units(runs: Runs, normals: Normals, places: pa.Table, run: Ints) -> Units:
    """Make jobs the units, or files where there are too few jobs to compare."""
    server = places["server"].to_numpy()
    if not len(places) or places["file"].null_count == len(places):
        return units_of_jobs(runs, run, server, -normals.log_ratio[run], np.ones(len(run), bool))
    moved = numbers(places, "moved_bytes")
    bandwidth = np.log(moved / np.maximum(numbers(places, "seconds"), _TINY))
    # Small files beside large ones are slow anywhere.
    largest = np.zeros(len(runs))
    np.maximum.at(largest, run, moved)
    large = moved * LIKE_BYTES >= largest[run]
    run, server, bandwidth = run[large], server[large], bandwidth[large]
    names = np.array(places["file"].to_pylist(), dtype=str)[large]
    _, file = np.unique(np.char.add(run.astype(str), names), return_inverse=True)
    # A file with several servers counts once in its run.
    _, first = np.unique(file, return_index=True)
    files, sums = (np.bincount(run[first], w, len(runs)) for w in (None, bandwidth[first]))
    if len(np.unique(runs.job[run])) < 2 * FEWEST_FILES:
        value = bandwidth - (sums / np.maximum(files, 1))[run]
        several = files[run] > 1
        whole = np.ones(len(file), bool)
        return Units("files", file[several], server[several], value[several], whole[several])
    pair, of_pair = np.unique(np.stack((run, server)), axis=1, return_inverse=True)
    of_pair = of_pair.ravel()
    here, sum_here = np.bincount(of_pair), np.bincount(of_pair, bandwidth)
    run, server = pair
    others = files[run] - here
    is_whole = others == 0
    contrast = sum_here / here - (sums[run] - sum_here) / np.where(is_whole, 1, others)
    value = np.where(is_whole, -normals.log_ratio[run], contrast)
    return units_of_jobs(runs, run, server, value, is_whole)


def units_of_jobs(
    runs: Bandwidths, run: Ints, server: Ints, value: Floats, is_whole: Bools
) -> Units:
    """Join the logs of a job on a server, which saw the same weather, by their median."""
    known = np.isfinite(value)
    run, server, value, is_whole = run[known], server[known], value[known], is_whole[known]
    pair, group = np.unique(np.stack((runs.job[run], server)), axis=1, return_inverse=True)
    group = group.ravel()
    if not len(group):
        return Units("jobs", pair[0], pair[1], value, is_whole)
    whole = np.bincount(group, is_whole) > 0
    return Units("jobs", pair[0], pair[1], medians(value, group), whole)
