"""The files that a finding names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.checks.values import MOST_FILES, Case, FileShare
from ioncast.insights.facts.values import Bools, Floats, Ints, Layer, share
from ioncast_base.kinds import Operation

# The rate of fewer bytes is that of a cache.
_BYTES_OF_A_RATE = 1 << 24


def time_of_requests(
    case: Case, layer: Layer, operation: Operation, concerned: NDArray[Any]
) -> Floats:
    """The seconds that some requests of an operation can cost at most, as `Finding.at_stake`.

    `concerned` counts these requests in each of `Layer.used_files`. They take their part of the
    time of each file, but no more than they would save at the other files' rate, if it is higher.
    """
    of_files = np.zeros(len(case.facts.files))
    of_files[layer.used_files] = concerned
    all_ = layer.of_files(layer.of(operation).requests)
    shares = np.zeros(len(of_files))
    shares[layer.used_files] = concerned / np.maximum(all_, 1)
    saved = _saved_at_the_rate_of(case, operation, of_files == 0)
    return case.times.part(layer.api, operation, np.minimum(shares, saved))


def _saved_at_the_rate_of(case: Case, operation: Operation, files: Bools) -> Floats | float:
    """The share of its time that each file would save at the rate of some files, 1 at most."""
    is_read = operation == "read"
    moved = (case.facts.files.bytes_read if is_read else case.facts.files.bytes_written).astype(
        np.float64
    )
    took = case.file_times.read_seconds if is_read else case.file_times.write_seconds
    known = moved[files].sum()
    if known < _BYTES_OF_A_RATE or not took[files].sum():
        return 1.0
    at_rate = moved * (took[files].sum() / known)
    is_faster = at_rate < took
    left: Floats = np.divide(at_rate, took, out=np.zeros_like(took), where=is_faster)
    return 1 - left


def worst_files(
    case: Case, files: Ints, numbers: NDArray[Any], whole: float | None = None, least: float = 0
) -> tuple[int, tuple[FileShare, ...]]:
    """Count the files with numbers above `least`, and name the `MOST_FILES` largest, in order.

    `whole`, the number of all files together, gives shares. `files` are rows in `Facts.files`.
    """
    [counting] = (numbers > least).nonzero()
    first = counting[np.argsort(-numbers[counting], kind="stable")[:MOST_FILES]]
    return len(counting), tuple(
        FileShare(
            case.facts.files.path[files[row]],
            numbers[row].item(),
            None if whole is None else share(numbers[row].item(), whole),
        )
        for row in first
    )
