"""Sets of record ids, which are hashes of the files' paths."""

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
