"""The traced requests that causes of slow I/O name, for the time line."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.checks.values import Applied, Case, Checked
from ioncast.timelines.requests import TimedRequests, timed_requests
from ioncast.timelines.timeline import NamedCause
from ioncast_base.kinds import APIS, OPERATIONS, SMALL_REQUEST_BYTES, Api
from summario.reading.file_ids import is_among
from summario.reading.operations import Operations
from summario.runs.logs_of_run import Run

# Checks that count requests below 1 MiB.
_SMALL = frozenset(["P05", "P06", "P15", "P16"])
# Checks of a layer begin with its letter.
_APIS: Mapping[str, Api] = {"P": "POSIX", "M": "MPIIO"}


def named_requests(
    checked: Checked, operations: Operations, run: Run, most: int
) -> dict[NamedCause, NDArray[np.bool_]]:
    """Find the requests that the largest causes name.

    A finding names ranks, files, a layer, small requests or an operation, or some of them. One that
    names no request, or all, is left out.

    Parameters
    ----------
    operations : Operations
        Requests of the run.
    most : int
        The most causes.
    """
    names = paths_of(run)
    found: dict[NamedCause, NDArray[np.bool_]] = {}
    for cause in checked.causes:
        for each in cause.findings:
            mask = _mask(each, operations, names)
            if mask is not None and mask.any() and not mask.all() and len(found) < most:
                found[NamedCause(each.check.code, each.check.title)] = mask
    return found


def requests_of(
    run: Run, case: Case, files: str | None = None, *, all_files: bool = False
) -> TimedRequests | None:
    """The timed requests of a run, as `timed_requests` reads them; a trace is not decoded again."""
    trace = case.facts.trace
    if files is None and trace is not None and len(trace) and not case.facts.is_incomplete:
        return TimedRequests(trace, run.nprocs, None)
    return timed_requests(run, files=files, all_files=all_files)


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
    # A check of one operation is a `partial` of a function for both.
    operation = getattr(applied.check.find, "keywords", {}).get("operation")
    if operation is not None:
        masks.append(operations.operation == OPERATIONS.index(operation))
    if code in _SMALL:
        masks.append(operations.length < SMALL_REQUEST_BYTES)
    if masks and code[0] in _APIS:
        masks.append(operations.api == APIS.index(_APIS[code[0]]))
    return np.logical_and.reduce(masks) if masks else None
