"""Find the request size at which the bandwidth of a system jumps.

Large requests may take another path than small ones, for example if a client sends them without
collecting them first. Then the curve of large requests does not prolong that of small ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from predictor.matching.nearest import SIZES
from predictor.model.features import FLAGS, with_io_nodes

Array = NDArray[np.float64]

_REQUEST_SIZE = SIZES.index("request size")
# With fewer request sizes a jump cannot be told from a slope.
_FEWEST_SIZES = 3
# Differences of the Bayesian information criterion: to no jump, and to the next best size. Above
# 10, the evidence for the better one is called very strong; the jump must also be worth a feature.
_BETTER_THAN_NONE, _BETTER_THAN_NEXT = 20.0, 10.0


def large_requests(
    patterns: Array, io_nodes: NDArray[np.int64], logarithms: Array, *, smallest_gap: float
) -> float | None:
    """Find where large requests begin, with a linear model of the logarithm of bandwidth.

    The linear model has a constant for each kind of I/O and number of I/O nodes, slopes of all
    sizes, and perhaps a jump in the middle between two measured request sizes.

    Parameters
    ----------
    patterns : array of shape (n_runs, len(SIZES) + len(FLAGS))
        The configuration of each run, without unknown sizes; see `pattern`.
    io_nodes : array of int, shape (n_runs,)
        Its number of I/O nodes.
    logarithms : array of shape (n_runs,)
        The logarithm of its bandwidth.

    Returns
    -------
    float or None
        Base-2 logarithm of the request size in bytes; requests above it are large. None without a
        clear jump at one size.

    References
    ----------
    R. E. Kass and A. E. Raftery, Bayes factors, Journal of the American Statistical Association
    1995 (differences of the Bayesian information criterion).
    """
    cells, of_run = np.unique(with_io_nodes(patterns, io_nodes), axis=0, return_inverse=True)
    means = np.bincount(of_run.reshape(-1), logarithms) / np.bincount(of_run.reshape(-1))
    sizes, flags = cells[:, : len(SIZES)], cells[:, len(SIZES) : len(SIZES) + len(FLAGS)]
    numbers = cells[:, len(SIZES) + len(FLAGS) :][:, [0, 2]]
    constants = np.unique(np.column_stack([flags, numbers]), axis=0, return_inverse=True)[1]
    linear = np.column_stack(
        [np.eye(constants.max() + 1)[constants.reshape(-1)], sizes - sizes.mean(axis=0)]
    )
    configurations = len(np.unique(np.column_stack([sizes, flags]), axis=0))

    def criterion(columns: Array, more: int) -> float:
        left = means - columns @ np.linalg.lstsq(columns, means, rcond=None)[0]
        # The cells of a configuration are not independent, so configurations count.
        error = max(float(np.mean(left**2)), np.finfo(float).tiny)
        return float(configurations * np.log(error) + more * np.log(configurations))

    asked = cells[:, _REQUEST_SIZE]
    measured = np.unique(asked)
    middles = ((measured[1:] + measured[:-1]) / 2)[np.diff(measured) >= smallest_gap]
    if len(middles) + 1 < _FEWEST_SIZES:
        return None
    # A jump has two parameters: where it is, and how high.
    found = sorted(
        (criterion(np.column_stack([linear, asked > middle]), 2), float(middle))
        for middle in middles
    )
    (best, middle), (next_best, _) = found[:2]
    is_clear = best < criterion(linear, 0) - _BETTER_THAN_NONE
    return middle if is_clear and best < next_best - _BETTER_THAN_NEXT else None
