"""The files that a finding names."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.checks.values import MOST_FILES, Case, FileShare
from ioncast.insights.facts.values import Ints, share


def worst_files(
    case: Case, files: Ints, numbers: NDArray[Any], whole: float | None = None, least: float = 0
) -> tuple[int, tuple[FileShare, ...]]:
    """Name the files with the largest numbers.

    Parameters
    ----------
    case : Case
        The case, which knows the paths.
    files : ndarray of int64
        The rows of the files in `Facts.files`.
    numbers : ndarray
        A number for each of them.
    whole : float, optional
        The number of all files together; without it the files have no shares.
    least : float
        Files with this number, or with a smaller one, do not count.

    Returns
    -------
    int
        The number of files that count.
    tuple of FileShare
        The first `MOST_FILES` of them, the largest first.
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
