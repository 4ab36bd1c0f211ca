"""Pairs of applications of which one is slower while the other one runs on the same server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
# fleet.md: a pair is named after so many jobs together and apart, and below this p.
_FEWEST, _MOST_P = 5, 0.01
# Draws end after so many as slow ones, because a larger p needs fewer draws (Besag and Clifford,
# 1991), and at once they take at most so many values.
_ENOUGH, _MOST_DRAWS, _MOST_VALUES = 20, 100_000, 2_000_000
_VARIANT = ("system", "user_id", "program", "processes")


@dataclass(frozen=True)
class DisturbingPair:
    """A variant of an application in jobs together with another one (`by_`), and in jobs apart.

    `places` is "server" if both used the same server at the same time, and "file system" if the
    servers of some jobs are unknown. Bandwidths are geometric means of jobs. `p` is of a
    permutation test that jobs together are not slower, with Holm's correction for the pairs.
    """

    system: str | None
    user_id: int | None
    program: str
    processes: int
    by_user_id: int | None
    by_program: str
    by_processes: int
    places: str
    together: int
    apart: int
    together_mib_s: float
    apart_mib_s: float
    p: float

    @property
    def is_disturbing(self) -> bool:
        """Whether chance is an unlikely reason for the slower jobs."""
        return self.p < _MOST_P


def pairs_of(places: pa.Table, program: str | None = None) -> list[DisturbingPair]:
    """Test all pairs with at least 5 jobs together and 5 apart, the surest first.

    Parameters
    ----------
    places : pyarrow.Table
        Rows of the query `run-places`.
    program : str, optional
        Only pairs in which this program is disturbed, or disturbs.
    """
    if not len(places):
        return []
    variants, variant = _numbered(places, _VARIANT)
    _, job = _numbered(places, (*_VARIANT, "job_id"))
    _, log = _numbered(places, ("log",))
    kinds = places["kind"].to_numpy(zero_copy_only=False)
    has_servers = np.isin(log, log[kinds == "OST"])
    first, second = _overlapping(places)
    by_system = kinds[first] == "file system"
    keep = variant[first] != variant[second]
    keep &= ~(by_system & has_servers[first] & has_servers[second])
    # Logs of one job see the same weather, so a job counts once, with the mean of its rows.
    logarithms = np.bincount(job, np.log(places["bandwidth_mib_s"].to_numpy())) / np.bincount(job)
    of_job = variant[np.unique(job, return_index=True)[1]]
    met = np.column_stack((variant[first], variant[second], job[first], by_system))[keep]
    met = np.unique(met, axis=0)
    edges = np.flatnonzero((np.diff(met[:, :2], axis=0) != 0).any(axis=1)) + 1
    found, values = [], []
    for part in np.split(met, edges) if len(met) else ():
        one, other = (variants[number] for number in part[0, :2])
        together = np.unique(part[:, 2])
        apart = np.setdiff1d(np.flatnonzero(of_job == part[0, 0]), together)
        is_asked = program is None or program in (one["program"], other["program"])
        if is_asked and min(len(together), len(apart)) >= _FEWEST:
            values.append((logarithms[together], logarithms[apart]))
            found.append(
                DisturbingPair(
                    **one,
                    **{f"by_{name}": other[name] for name in _VARIANT[1:]},
                    places="file system" if part[:, 3].any() else "server",
                    together=len(together),
                    apart=len(apart),
                    together_mib_s=float(np.exp(values[-1][0].mean())),
                    apart_mib_s=float(np.exp(values[-1][1].mean())),
                    p=1.0,
                )
            )
    # With fewer draws, no p would be small enough after the correction.
    most_draws = max(_MOST_DRAWS, int(2 * len(found) / _MOST_P))
    random = np.random.default_rng(0)
    p = np.array([_permutation_p(*each, most_draws, random) for each in values])
    order = np.argsort(p, kind="stable")
    # Holm's correction, the smallest first.
    p = np.maximum.accumulate(np.minimum(p[order] * np.arange(len(p), 0, -1), 1.0))
    return [replace(found[place], p=float(each)) for place, each in zip(order, p, strict=True)]


def _numbered(places: pa.Table, names: Sequence[str]) -> tuple[list[dict[str, Any]], Ints]:
    """Number the different rows of some columns in their order; None is a value."""
    numbers: dict[Any, int] = {}
    rows = zip(*(places[name].to_pylist() for name in names), strict=True)
    number = np.array([numbers.setdefault(row, len(numbers)) for row in rows], np.int64)
    return [dict(zip(names, row, strict=True)) for row in numbers], number


def _overlapping(places: pa.Table) -> tuple[Ints, Ints]:
    """Find the rows of two logs at the same place at the same time, each two in both orders."""
    _, place = _numbered(places, ("system", "kind", "place"))
    starts = places["start_us"].to_numpy() / 1e6
    ends = starts + places["run_seconds"].to_numpy()
    order = np.lexsort((starts, place))
    pairs = []
    for rows in np.split(order, np.cumsum(np.bincount(place))[:-1]):
        # Of the rows by start, those that follow a row and start before its end.
        at = np.arange(len(rows))
        following = np.maximum(np.searchsorted(starts[rows], ends[rows]) - at - 1, 0)
        first = np.repeat(at, following)
        nth = np.arange(len(first)) - np.repeat(np.cumsum(following) - following, following)
        pairs.append((rows[first], rows[first + 1 + nth]))
    firsts, seconds = (np.concatenate(each) for each in zip(*pairs, strict=True))
    return np.append(firsts, seconds), np.append(seconds, firsts)


def _permutation_p(
    together: Floats, apart: Floats, most_draws: int, random: np.random.Generator
) -> float:
    """Draw how often chance makes jobs together as slow as they are beside those apart."""
    values = np.concatenate((together, apart))
    most = together.sum() + 1e-9 * np.abs(values).sum()
    draws = as_slow = 0
    while as_slow < _ENOUGH and draws < most_draws:
        at_once = min(max(draws, 64), max(_MOST_VALUES // len(values), 1), most_draws - draws)
        drawn = random.random((at_once, len(values))).argpartition(len(together) - 1, axis=1)
        as_slow += int((values[drawn[:, : len(together)]].sum(axis=1) <= most).sum())
        draws += at_once
    return (1 + as_slow) / (1 + draws)
