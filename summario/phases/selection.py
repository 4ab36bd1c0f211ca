"""The selection of files, layers and phases that count."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS
from ioncast_base.wording import counted, in_digits, size
from summario.phases.streams import Streams
from summario.phases.values import Extraction, Phase
from summario.reading.file_ids import is_among
from summario.reading.log import DarshanLog

# The highest layer comes first. Its records of a file hide those of lower layers.
_LAYER_ORDER = ("MPIIO", "STDIO", "POSIX")

_SYSTEM_FILE = re.compile(
    r"""
    /(?:proc|sys|dev|etc)/ | <STD(?:IN|OUT|ERR)>\Z | .*\.(?:so(?:\.\d+)*|py[co])\Z
    # Python's own files and its packages, and the memory that processes share through Open MPI.
    | .*\.pth\Z | .*/pyvenv\.cfg\Z | .*/(?:lib(?:64)?/python\d[\d.]*|(?:site|dist)-packages)/
    | .*/(?:ompi\.|openmpi-sessions-) | .*\.sm\Z
    """,
    re.DOTALL | re.VERBOSE,
)
# Darshan's hashes of <STDIN>, <STDOUT> and <STDERR>: a log may have other names for them, or none.
_STANDARD_STREAMS = (0xCC7A12A8F35A0099, 0xDCEFD8E1E1999787, 0x6473749C774423AF)


def system_file_ids(log: DarshanLog) -> NDArray[np.uint64]:
    """List the record ids of files that belong to the system, not to the application."""
    ids = [id_ for id_, path in log.names.items() if _SYSTEM_FILE.match(path)]
    return np.array([*_STANDARD_STREAMS, *ids], np.uint64)


def select_layer(streams: Streams, layer: str) -> Streams:
    """Step 4: keep one layer, or the highest layer of each file.

    If a file was used through MPI-IO, all its POSIX records are dropped. They may contain reads
    that the application did not ask for, because a collective write reads, modifies and writes.
    """
    if layer == "all" or (layer == "highest" and (streams.api == streams.api[:1]).all()):
        return streams
    if layer != "highest":
        return streams.take(streams.api == APIS.index(layer.upper()))
    keep = np.ones(len(streams), bool)
    seen = np.zeros(0, np.uint64)
    for api in _LAYER_ORDER:
        [of_api] = (streams.api == APIS.index(api)).nonzero()
        if len(of_api):
            ids = streams.file_id[of_api]
            keep[of_api] = ~is_among(ids, seen)
            seen = np.concatenate([seen, ids])
    return streams.take(keep)


def without_small(phases: Sequence[Phase], min_share: float) -> Extraction:
    """Leave out phases whose share of all bytes is smaller than `min_share`, with a warning."""
    moved = sum(phase.bytes for phase in phases)
    kept = tuple(phase for phase in phases if phase.bytes >= min_share * moved)
    if len(kept) == len(phases):
        return Extraction(kept)
    lost = moved - sum(phase.bytes for phase in kept)
    left_out = counted(len(phases) - len(kept), "phase")
    return Extraction(
        kept,
        (
            f"phases with less than {in_digits(min_share)} of the bytes each are left out:"
            f" {left_out} with {size(lost)} of {size(moved)}",
        ),
    )
