"""Sets of record ids, which are hashes of the files' paths, and values by record id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def is_among(values: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell which ids are known; `numpy.isin` loads masked arrays, as slow as reading a log."""
    if not len(known):
        return np.zeros(len(values), bool)
    known = np.sort(known)
    nearest = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: NDArray[np.bool_] = known[nearest] == values
    return found


def values_of_files(
    values: NDArray[np.float64],
    ids: NDArray[np.uint64],
    wanted: NDArray[np.uint64],
    combine: np.ufunc,
    *,
    without: float = np.nan,
) -> NDArray[np.float64]:
    """Combine the values of each wanted id; `ids` has the id of each value.

    Examples
    --------
    >>> ids = np.array([7, 9, 7], np.uint64)
    >>> wanted = np.array([9, 7, 1], np.uint64)
    >>> values_of_files(np.array([1.0, 2.0, 3.0]), ids, wanted, np.maximum)
    array([ 2.,  3., nan])
    """
    if not len(ids):
        return np.full(len(wanted), without)
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    known = ids[first]
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found = combine.reduceat(values[order], first)[place]
    return np.where(known[place] == wanted, found, without)
