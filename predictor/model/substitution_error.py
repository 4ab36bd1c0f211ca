"""The doubt about a benchmark that stands in although it does not do the same I/O."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from ior_configs import IorConfig
from predictor.matching.configurations import Difference
from predictor.matching.nearest import properties

# Standard deviation of the logarithm of the ratio of two bandwidths that differ in a property only.
# fsync at the end or none: root mean square 0.12 on GlusterFS (15 cells that experiments/data
# measured both ways, 0 to 8 I/O nodes), 0.72 on a local ext4 (23 configurations of IOR 4.0, POSIX
# and MPI-IO, requests of 4 KiB to 4 MiB); both storages together 0.5.
# Order of MPI-IO: 0.45 on GlusterFS (5 cells), 0.35 on ext4 (20 pairs of configurations).
# Conditions are too many to be measured; a memory that is filled (-M) does as much as an fsync.
# Blocks of several requests lie between single requests and contiguous ones, so they change at most
# as much as an order.
# Collective buffering: 1.5 on ext4 (6 pairs of runs of IOR 4.0 on one node, of which those with
# `romio_cb_write=enable` got 0.14 to 0.35 of the bandwidth of the others).
_DEVIATIONS = {
    "fsync": 0.5,
    "order": 0.4,
    "conditions": 0.5,
    "block": 0.4,
    "collective buffering": 1.5,
}

# Correlation between the errors of direct access and of I/O nodes, at a size that was never
# measured. Measured on FORGE, with each request size left out; between two numbers of I/O nodes it
# is 0.9, for which 1 is taken.
_DIRECT_AND_FORWARDED = 0.6

Taught = tuple[str, ...]


def doubt_about(differences: Iterable[Difference]) -> float:
    """Compute the variance of the logarithm of bandwidth that differences cause.

    Parameters
    ----------
    differences : iterable of Difference
        The properties in which a benchmark differs. A value that is not known is as likely the same
        as another one, so it has half of the variance.

    Examples
    --------
    >>> doubt_about([Difference("fsync", "none", "end"), Difference("order", None, "random")])
    0.33
    """
    return sum(
        _DEVIATIONS[difference.name] ** 2
        * (0.5 if None in (difference.wanted, difference.measured) else 1)
        for difference in differences
    )


def taught(config: IorConfig, name: str) -> Taught:
    """Name what a benchmark teaches a model about a property: its value, and where it counts."""
    its = properties(config)
    if name == "order":
        return name, config.operation, config.api, str(config.collective), its.order
    values = {
        "conditions": " ".join(its.conditions),
        "collective buffering": str(its.aggregators),
        "fsync": str(its.fsync),
    }
    return name, config.operation, values[name]


def together(io_nodes: Sequence[int]) -> NDArray[np.float64]:
    """Correlations of the errors of a configuration between numbers of I/O nodes."""
    direct = np.equal(io_nodes, 0)
    return np.where(direct[:, None] == direct, 1.0, _DIRECT_AND_FORWARDED)
