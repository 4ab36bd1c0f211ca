"""Bytes that a trace shows to be read, or written, more than once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ioncast.insights.facts.values import Facts, Ints
from ioncast_base.kinds import APIS, OPERATIONS, Operation
from summario.reading.dxt import DXT_MODULES
from summario.reading.operations import UNKNOWN_OFFSET, Operations


@dataclass(frozen=True)
class Overlaps:
    """The files (ascending rows in `Facts.files`) that one operation used through POSIX.

    `bytes` are moved bytes, `distinct_bytes` the touched bytes of the file, each counted once.
    """

    file: Ints
    bytes: Ints
    distinct_bytes: Ints

    @property
    def repeated_bytes(self) -> Ints:
        """The bytes that were moved again."""
        return self.bytes - self.distinct_bytes


def overlaps_of(facts: Facts, operation: Operation) -> Overlaps | None:
    """Count bytes that one operation's POSIX requests moved again; None without a whole trace."""
    trace = facts.trace
    if trace is None or not facts.run.has(DXT_MODULES["POSIX"]):
        return None
    if facts.run.is_partial(DXT_MODULES["POSIX"]):
        return None
    trace = trace.take(
        (trace.api == APIS.index("POSIX")) & (trace.operation == OPERATIONS.index(operation))
    )
    layer = facts.layers.get("POSIX")
    counted = layer.of(operation).requests.sum(dtype=np.float64) if layer is not None else 0
    if len(trace) < counted or (trace.offset == UNKNOWN_OFFSET).any():
        return None
    return _overlaps(trace, np.searchsorted(facts.files.id, trace.file_id))


def _overlaps(trace: Operations, file: Ints) -> Overlaps:
    order = np.lexsort((trace.offset, file))
    file, offset = file[order], trace.offset[order]
    end = offset + trace.length[order]
    first = np.flatnonzero(np.diff(file, prepend=-1))
    before = _latest_before(file, end)
    new = np.maximum(end - np.maximum(offset, before), 0)
    if not len(first):
        return Overlaps(first, first, first)
    return Overlaps(
        file=file[first],
        bytes=np.add.reduceat(trace.length[order], first),
        distinct_bytes=np.add.reduceat(new, first),
    )


def _latest_before(file: Ints, end: Ints) -> Ints:
    """Find the largest end before each row among the rows of the same file; 0 in its first row."""
    ends, place = np.unique(end, return_inverse=True)
    # Files ascend, so the largest place of a row's own file is also the largest of all so far.
    key = file * (len(ends) + 1) + place + 1
    latest = np.maximum.accumulate(np.concatenate([np.zeros(1, np.int64), key[:-1]]))[: len(file)]
    before = latest - file * (len(ends) + 1)
    latest_before: Ints = (
        np.where(before > 0, ends[np.maximum(before, 1) - 1], 0) if len(ends) else end
    )
    return latest_before
