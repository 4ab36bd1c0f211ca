"""Access patterns and platforms as numbers that a model can learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ior_configs import IorConfig
from predictor.matching import configurations as matching

Array = NDArray[np.float64]

# Powers of two of what has a size, then what is or is not so.
SIZES = ("processes", "processes per node", "request size", "bytes per process")
FLAGS = (
    *("file per process", "1D-strided", "random", "collective", "MPI-IO"),
    *("read", "O_DIRECT", "fsync"),
)
IO_NODES = ("I/O nodes", "processes per I/O node", "direct access")
FEATURES = (*SIZES, *FLAGS, *IO_NODES)


def pattern(config: IorConfig, *, stonewalled: bool = False) -> Array:
    """What a configuration is, whatever its number of I/O nodes.

    Parameters
    ----------
    config : IorConfig
        Of one operation.
    stonewalled : bool
        Whether its runs moved what the time allowed instead of what was asked for.

    Returns
    -------
    array of shape (len(SIZES) + len(FLAGS),)
        Base-2 logarithms of the sizes, NaN where not known; flags as 0 or 1.
    """
    sizes = matching.features(config, stonewalled=stonewalled)
    flags = (
        config.file_per_process,
        config.spatiality == "sequential",
        bool(config.random_offsets),
        config.collective,
        config.api == "MPIIO",
        config.operation == "read",
        config.odirect,
        config.fsync,
    )
    known = [math.nan if sizes[name] is None else math.log2(sizes[name] or 1) for name in SIZES]
    return np.array([*known, *map(float, flags)])


def with_io_nodes(patterns: Array, io_nodes: Sequence[int] | NDArray[np.int64]) -> Array:
    """Patterns with their numbers of I/O nodes.

    Parameters
    ----------
    patterns : array of shape (n, len(SIZES) + len(FLAGS))
        See `pattern`; the processes must be known.
    io_nodes : sequence of int, length n
        One for each; 0 is direct access.

    Returns
    -------
    array of shape (n, len(FEATURES))
        Of direct access the sizes are those of one I/O node; a flag tells it apart.
    """
    counts = np.asarray(io_nodes, dtype=np.float64)
    logarithms = np.log2(np.maximum(counts, 1))
    per_io_node = patterns[:, SIZES.index("processes")] - logarithms
    return np.column_stack([patterns, logarithms, per_io_node, counts == 0])
