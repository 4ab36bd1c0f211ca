"""Files whose processes move pieces between those of other processes."""

from __future__ import annotations

import numpy as np

from ioncast.insights.facts.values import Bools, Facts, Floats
from ioncast_base.kinds import Api, Operation
from summario.phases.settings import DEFAULTS

# The requests of POSIX are the calls of MPI-IO if counts and bytes differ by less than this share.
_MOST_DIFFERENCE = 0.1


def interleaved_files(facts: Facts, operation: Operation) -> Bools:
    """Tell for each shared file whether its processes move pieces between those of others.

    In the other files each process moves a part of its own from start to end. POSIX counts the
    order, of MPI-IO only if its calls are the requests of POSIX; an unknown order is interleaved.
    """
    contiguous = np.zeros(len(facts.files), bool)
    posix = facts.layers.get("POSIX")
    if posix is not None:
        requests = posix.of(operation)
        consecutive = posix.of_files(requests.consecutive)
        others = posix.of_files(np.maximum(requests.requests - requests.first, 0))
        enough = consecutive >= (1 - DEFAULTS.threshold) * others
        contiguous[posix.used_files] = enough & (others > 0)
    is_known = ~differs_from_calls(facts, operation)
    interleaved: Bools = (facts.files.processes > 1) & ~(contiguous & is_known)
    return interleaved


def differs_from_calls(facts: Facts, operation: Operation) -> Bools:
    """Tell for each file whether POSIX has other requests than MPI-IO has calls.

    Then MPI-IO sieves data, collects them in aggregators, or moves a call with gaps in pieces.
    """
    above, below = (_requests_and_bytes(facts, api, operation) for api in ("MPIIO", "POSIX"))
    least = (1 - _MOST_DIFFERENCE) * np.maximum(above, below)
    differs = np.any(np.minimum(above, below) < least, axis=0)
    found: Bools = differs & (above[0] > 0) & (below[0] > 0)
    return found


def _requests_and_bytes(facts: Facts, api: Api, operation: Operation) -> Floats:
    """The requests of each file at a layer, and below them the bytes; zeros without records."""
    counts = np.zeros((2, len(facts.files)))
    layer = facts.layers.get(api)
    if layer is not None:
        requests = layer.of(operation)
        counts[:, layer.used_files] = [
            layer.of_files(requests.requests),
            layer.of_files(requests.bytes),
        ]
    return counts
