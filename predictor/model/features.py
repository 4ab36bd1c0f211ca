"""The features of a model: configurations and numbers of I/O nodes as arrays of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ior_configs import IorConfig
from predictor.matching.nearest import SIZES, logarithms, properties

Array = NDArray[np.float64]

STRIDED_MPI_IO = "1D-strided MPI-IO"
# Runs from before the system's newest change tell about today's bandwidths but for an offset, and
# as far as curves have kept their shapes. Both are learned.
BEFORE_CHANGE = "before the change"
# Properties that a configuration has or does not have. The more processes share an aggregator, the
# larger is "collective buffering".
FLAGS_OF_CONFIGURATION = (
    *("file per process", "1D-strided", "random", "collective", "MPI-IO"),
    *("read", "O_DIRECT", "fsync at the end", "fsync after each write", "conditions"),
    *(STRIDED_MPI_IO, "collective buffering"),
)
FLAGS = (*FLAGS_OF_CONFIGURATION, BEFORE_CHANGE)
# The flags of each difference of a match (see `predictor.matching.configurations.Difference`).
FLAGS_OF = {
    "fsync": ("fsync at the end", "fsync after each write"),
    "order": (STRIDED_MPI_IO, "random"),
    "conditions": ("conditions",),
    "block": (),
    "collective buffering": ("collective buffering",),
}
# A configuration whose fsync is not known lies between the runs with and without one at the end.
# Runs with an fsync after each write are rare and several times slower, so it is far from them.
# Reads never call fsync.
_FSYNC_FLAGS = {"none": (0.0, 0.0), "end": (1.0, 0.0), "each": (0.0, 1.0), None: (0.5, 0.0)}
IO_NODES = ("I/O nodes", "processes per I/O node", "direct access")
LARGE_REQUESTS = "large requests"
FEATURES = (*SIZES, *FLAGS, *IO_NODES, LARGE_REQUESTS)


def pattern(config: IorConfig, *, stonewalled: bool = False, before_change: bool = False) -> Array:
    """Turn a configuration, without a number of I/O nodes, into numbers.

    Parameters
    ----------
    stonewalled : bool
        Whether a time limit ended its runs before they moved all bytes.
    before_change : bool
        Whether its runs are from before the system's newest change.

    Returns
    -------
    array of shape (len(SIZES) + len(FLAGS),)
        Base-2 logarithms of the sizes, NaN if unknown; flags as 0 or 1. An fsync that is not known
        is half an fsync at the end. Collective buffering is 1 + the base-2 logarithm of the
        processes per aggregator, if hints tell the aggregators.
    """
    its = properties(config)
    shared_by = max((config.tasks or 1) / its.aggregators, 1) if its.aggregators else 0.5
    flags = (
        config.file_per_process,
        config.spatiality == "sequential",
        config.order == "random",
        config.collective,
        config.api == "MPIIO",
        config.operation == "read",
        config.odirect,
        *_FSYNC_FLAGS["none" if config.operation == "read" else config.fsync],
        bool(its.conditions),
        config.api == "MPIIO" and config.order == "sequential",
        1 + math.log2(shared_by),
        before_change,
    )
    return np.array([*logarithms(config, stonewalled=stonewalled), *map(float, flags)])


def with_io_nodes(
    patterns: Array,
    io_nodes: Sequence[int] | NDArray[np.int64],
    *,
    large_requests: float | None = None,
) -> Array:
    """Add numbers of I/O nodes to configurations, and whether their requests are large.

    Parameters
    ----------
    patterns : array of shape (n, len(SIZES) + len(FLAGS))
        See `pattern`; the number of processes must be known.
    io_nodes : sequence of int, length n
        The number of I/O nodes of each; 0 is direct access.
    large_requests : float, optional
        Base-2 logarithm of the size in bytes above which requests are large; see
        `predictor.model.regimes`. Without it none are.

    Returns
    -------
    array of shape (n, len(FEATURES))
        Direct access has the sizes of one I/O node, and a flag.
    """
    counts = np.asarray(io_nodes, dtype=np.float64)
    logarithms = np.log2(np.maximum(counts, 1))
    per_io_node = patterns[:, SIZES.index("processes")] - logarithms
    sizes = patterns[:, SIZES.index("request size")]
    are_large = np.zeros(len(sizes)) if large_requests is None else sizes > large_requests
    return np.column_stack([patterns, logarithms, per_io_node, counts == 0, are_large])
