"""Pairs of applications of which one is slower while the other one runs on the same server."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Ints = NDArray[np.int64]
# fleet.md: a pair is named after so many jobs together and apart, and below this p.
_FEWEST, _MOST_P = 5, 0.01
# Draws end after so many as slow ones, because a larger p needs fewer draws (Besag and Clifford,
# 1991), and at once they take at most so many values.
_ENOUGH, _MOST_DRAWS, _MOST_VALUES = 20, 100_000, 2_000_000
_VARIANT = ("system", "user_id", "program", "processes")


@dataclass(frozen=True)
class DisturbingPair:
    """A variant of an application in jobs together with another one (`by_`), and in jobs apart.

    Attributes
    ----------
    places : str
        "server" if both used the same server at the same time; "file system" if the servers of
        some jobs are unknown.
    together_mib_s, apart_mib_s : float
        Geometric means of the bandwidths of jobs.
    p : float
        Of a permutation test that jobs together are not slower, times the number of pairs that
        are not excluded yet (Holm's correction).
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
    rows_of = {name: places[name].to_pylist() for name in (*_VARIANT, "job_id", "log")}
    variants, variant = _numbered(zip(*(rows_of[name] for name in _VARIANT), strict=True))
    _, job = _numbered(zip(variant.tolist(), rows_of["job_id"], strict=True))
    _, log = _numbered(rows_of["log"])
    kinds = places["kind"].to_numpy(zero_copy_only=False)
    has_servers = np.zeros(len(places), bool)
    has_servers[log[kinds == "OST"]] = True
    first, second = _overlapping(places)
    are_by_system = kinds[first] == "file system"
    keep = variant[first] != variant[second]
    keep &= ~(are_by_system & has_servers[log[first]] & has_servers[log[second]])
    # Logs of one job see the same weather, so a job counts once, with the mean of its rows.
    numbers = np.bincount(job)
    logarithms = np.bincount(job, np.log(places["bandwidth_mib_s"].to_numpy())) / numbers
    of_job = variant[np.unique(job, return_index=True)[1]]
    met = np.column_stack((variant[first], variant[second], job[first], are_by_system))[keep]
    met = np.unique(met, axis=0)
    edges = np.flatnonzero((np.diff(met[:, :2], axis=0) != 0).any(axis=1)) + 1
    random = np.random.default_rng(0)
    found = []
    for part in np.split(met, edges) if len(met) else ():
        one, other = part[0, :2]
        names = variants[one][2], variants[other][2]
        together = np.unique(part[:, 2])
        apart = np.setdiff1d(np.flatnonzero(of_job == one), together)
        if min(len(together), len(apart)) < _FEWEST or (program and program not in names):
            continue
        values = logarithms[together], logarithms[apart]
        found.append(
            DisturbingPair(
                **dict(zip(_VARIANT, variants[one], strict=True)),
                **{
                    f"by_{name}": value
                    for name, value in zip(_VARIANT[1:], variants[other][1:], strict=True)
                },
                places="file system" if part[:, 3].any() else "server",
                together=len(together),
                apart=len(apart),
                together_mib_s=float(np.exp(values[0].mean())),
                apart_mib_s=float(np.exp(values[1].mean())),
                p=_permutation_p(*values, random),
            )
        )
    return _corrected(found)


def _numbered(values: Iterable[Any]) -> tuple[list[Any], Ints]:
    """Number different values in their order; None is a value."""
    numbers: dict[Any, int] = {}
    places = np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)
    return list(numbers), places


def _overlapping(places: pa.Table) -> tuple[Ints, Ints]:
    """Find the rows of two logs at the same place at the same time, each two in both orders."""
    names = ("system", "kind", "place")
    _, place = _numbered(zip(*(places[name].to_pylist() for name in names), strict=True))
    starts = places["start_us"].to_numpy() / 1e6
    ends = starts + places["run_seconds"].to_numpy()
    order = np.lexsort((starts, place))
    firsts, seconds = [], []
    for rows in np.split(order, np.cumsum(np.bincount(place))[:-1]):
        # Of the rows by start, those that follow a row and start before its end.
        following = np.searchsorted(starts[rows], ends[rows]) - np.arange(len(rows)) - 1
        following = np.maximum(following, 0)
        first = np.repeat(np.arange(len(rows)), following)
        second = (
            first
            + 1
            + np.arange(len(first))
            - np.repeat(np.cumsum(following) - following, following)
        )
        firsts += [rows[first], rows[second]]
        seconds += [rows[second], rows[first]]
    return np.concatenate(firsts), np.concatenate(seconds)


def _permutation_p(
    together: NDArray[np.float64], apart: NDArray[np.float64], random: np.random.Generator
) -> float:
    """Draw how often chance makes jobs together as slow as they are beside those apart."""
    values = np.concatenate((together, apart))
    most = together.sum() + 1e-9 * np.abs(values).sum()
    draws = as_slow = 0
    while as_slow < _ENOUGH and draws < _MOST_DRAWS:
        at_once = min(max(draws, 64), max(_MOST_VALUES // len(values), 1), _MOST_DRAWS - draws)
        drawn = random.random((at_once, len(values))).argpartition(len(together) - 1, axis=1)
        as_slow += int((values[drawn[:, : len(together)]].sum(axis=1) <= most).sum())
        draws += at_once
    return (1 + as_slow) / (1 + draws)


def _corrected(pairs: list[DisturbingPair]) -> list[DisturbingPair]:
    """Correct p for the number of pairs as Holm does, the smallest first."""
    found: list[DisturbingPair] = []
    least = 0.0
    for place, pair in enumerate(sorted(pairs, key=lambda pair: pair.p)):
        least = max(least, min(1.0, pair.p * (len(pairs) - place)))
        found.append(replace(pair, p=least))
    return found
