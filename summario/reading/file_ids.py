"""Sets of record ids, which are hashes of the files' paths, and values by record id."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def is_among(values: NDArray[np.uint64], known: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Tell which ids are among the known ones.

    `numpy.isin` would do the same, but loads masked arrays, which takes as long as to read a log.
    """
    if not len(known):
        return np.zeros(len(values), bool)
    known = np.sort(known)
    nearest = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: NDArray[np.bool_] = known[nearest] == values
    return found


def totals_of_files(
    values: NDArray[np.float64], ids: NDArray[np.uint64], wanted: NDArray[np.uint64]
) -> NDArray[np.float64]:
    """Add up the values of each wanted id; 0 for an id without values.

    Examples
    --------
    >>> ids = np.array([7, 9, 7], np.uint64)
    >>> totals_of_files(np.array([1.0, 2.0, 3.0]), ids, np.array([9, 7, 1], np.uint64))
    array([2., 4., 0.])
    """
    if not len(ids):
        return np.zeros(len(wanted))
    known, place = np.unique(ids, return_inverse=True)
    totals = np.bincount(place, values)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[place] == wanted, totals[place], 0)


def extremes_of_files(
    values: NDArray[np.float64],
    ids: NDArray[np.uint64],
    wanted: NDArray[np.uint64],
    extreme: np.ufunc,
) -> NDArray[np.float64]:
    """Find the smallest or the largest value of each wanted id; NaN for an id without values.

    Parameters
    ----------
    values : ndarray of float64, shape (rows,)
        At least one value.
    ids : ndarray of uint64, shape (rows,)
        The id of each value.
    wanted : ndarray of uint64, shape (files,)
        The ids to look up.
    extreme : numpy.ufunc
        Such as `numpy.minimum` or `numpy.fmax`.

    Examples
    --------
    >>> ids = np.array([7, 9, 7], np.uint64)
    >>> wanted = np.array([9, 7, 1], np.uint64)
    >>> extremes_of_files(np.array([1.0, 2.0, 3.0]), ids, wanted, np.maximum)
    array([ 2.,  3., nan])
    """
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    first = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    known = ids[first]
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    found = extreme.reduceat(values[order], first)[place]
    return np.where(known[place] == wanted, found, np.nan)
