"""The traced requests that causes of slow I/O name, for the time line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.checks.values import Applied, Checked
from ioncast_base.kinds import OPERATIONS
from summario.reading.file_ids import is_among
from summario.reading.operations import Operations
from summario.runs.logs_of_run import Run

# The operation of a check, where it looks at one alone.
_READS = frozenset(["P05", "P09", "P11", "P15", "P22", "M02"])
_WRITES = frozenset(["P06", "P10", "P13", "P16", "P21", "M03"])
# Checks that count requests below 1 MiB.
_SMALL = frozenset(["P05", "P06", "P15", "P16"])
_SMALL_BYTES = 1 << 20


def named_requests(
    checked: Checked, operations: Operations, run: Run, most: int
) -> dict[str, NDArray[np.bool_]]:
    """Find the requests that the largest causes name, by the causes' codes and titles.

    A finding names ranks, files, small requests or an operation, or some of them. One that names
    nothing of a request is left out.

    Parameters
    ----------
    operations : Operations
        Requests of the run.
    most : int
        The most causes.
    """
    names = paths_of(run)
    found: dict[str, NDArray[np.bool_]] = {}
    for cause in checked.causes:
        for each in cause.findings:
            mask = _mask(each, operations, names)
            if mask is not None and mask.any() and not mask.all() and len(found) < most:
                found[f"{each.check.code} {each.check.title}"] = mask
    return found


def paths_of(run: Run) -> dict[int, str]:
    """The paths of a run's files by their ids."""
    return {file_id: path for log in run.logs for file_id, path in log.names.items()}


def _mask(
    applied: Applied, operations: Operations, names: Mapping[int, str]
) -> NDArray[np.bool_] | None:
    """Tell which requests a finding names; None if it names none."""
    finding, code = applied.finding, applied.check.code
    masks = []
    if finding.ranks:
        masks.append(np.isin(operations.rank, finding.ranks))
    if finding.files:
        paths = {file.path for file in finding.files}
        ids = sorted(file_id for file_id, path in names.items() if path in paths)
        masks.append(is_among(operations.file_id, np.array(ids, np.uint64)))
    for operation, codes in (("read", _READS), ("write", _WRITES)):
        if code in codes:
            masks.append(operations.operation == OPERATIONS.index(operation))
    if code in _SMALL:
        masks.append(operations.length < _SMALL_BYTES)
    return np.logical_and.reduce(masks) if masks else None
