"""Access patterns and platforms as numbers that a model can learn from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ior_configs import IorConfig
from predictor.matching.nearest import SIZES, logarithms

Array = NDArray[np.float64]

# Beside the sizes: properties that a configuration has or does not have.
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
    return np.array([*logarithms(config, stonewalled=stonewalled), *map(float, flags)])


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
