"""Reads fio's JSON (``--output-format=json``, fio 3)."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from benchdb.measurements.storing import Measurement
from ioncast_base.errors import InputError
from ioncast_base.limits import LARGEST_BYTES
from ioncast_base.wording import counted
from ior_configs import IorConfig

_Kind = TypeVar("_Kind")
_MIB = 1 << 20
_LARGEST_ERROR = 2**31 - 1
# fio may print messages in front of its JSON.
_START = re.compile(r'^\{\s*"fio version"\s*:', re.MULTILINE)
_VERSION = re.compile(r"fio-((\d{1,9})\..*)")
# fio counts whole milliseconds; below this time, one of them is more than 1 %.
_COARSE_MS = 100
_REPEAT = "the run may have failed: repeat it"


def is_fio(text: str) -> bool:
    """Whether a text contains fio's JSON, also one that is cut off."""
    return _START.search(text) is not None


def fio_measurement(text: str, config: IorConfig, *, io_nodes: int, where: str) -> Measurement:
    """Read the measurement in fio's JSON.

    The time is the longest time of a job, including the fsync at its end if there is one. The time
    of a job starts when it may open its file, and jobs do not start together.

    Parameters
    ----------
    text : str
        A text that `is_fio`.
    config : IorConfig
        The pattern that the jobs stand for. The operation and the number of processes must agree
        with the JSON.
    io_nodes : int
        Number of I/O nodes of the run.
    where : str
        Name of the file, for errors.

    Returns
    -------
    Measurement
        The measurement of all jobs together. Its note says if whole milliseconds are too coarse.

    Raises
    ------
    InputError
        If the JSON is damaged, a job failed, or the jobs did not do one operation at the same time.
    """
    try:
        return _measurement(_load(text), config, io_nodes)
    except InputError as error:
        raise InputError(error.what, where=where, remedy=error.remedy) from error


def _measurement(document: dict[str, Any], config: IorConfig, io_nodes: int) -> Measurement:
    version = _version(document)
    jobs = _jobs(document)
    operation = _operation(jobs)
    moved = [_count(job[operation], "io_bytes") for job in jobs]
    if 0 in moved:
        # fio marks the job of a killed process neither as failed nor as incomplete.
        raise InputError(f"job {moved.index(0)} of fio moved nothing", remedy=_REPEAT)
    time_ms = max(_count(job[operation], "runtime") for job in jobs)
    if time_ms == 0:
        raise InputError("fio measured a time of 0 ms", remedy="let it move more bytes")
    return Measurement(
        config=_done(config, operation, len(jobs)),
        io_nodes=io_nodes,
        bandwidth_mib_s=sum(moved) / _MIB / (time_ms / 1000),
        bytes=sum(moved),
        time_s=time_ms / 1000,
        # fio prints the time stamp at the end of the run.
        started=_utc(_count(document, "timestamp") - time_ms / 1000),
        engine="fio",
        engine_version=version,
        note=f"fio rounded the time up to {time_ms} ms" if time_ms < _COARSE_MS else None,
    )


def _done(config: IorConfig, operation: str, processes: int) -> IorConfig:
    """The configuration with the operation and the processes of the JSON, which must agree."""
    if operation not in config.operation:
        raise InputError(
            f"the operation is {operation} in fio's JSON, but {config.operation} in the command",
            remedy="correct the command",
        )
    if config.tasks is not None and config.tasks != processes:
        raise InputError(
            f"the JSON has {counted(processes, 'job')}, but the command has"
            f" {counted(config.tasks, 'task')}",
            remedy="correct the number of tasks, and run fio without group_reporting",
        )
    one = config.for_operation(operation)
    return replace(one, tasks=processes, nodes=config.nodes or 1)


def _jobs(document: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = _get(document, "jobs", list)
    if not jobs:
        raise InputError("the JSON has no job", remedy=_REPEAT)
    for number, job in enumerate(jobs):
        error = _count(job, "error")
        if error:
            reason = os.strerror(min(error, _LARGEST_ERROR))
            raise InputError(f"job {number} of fio failed: {reason}", remedy=_REPEAT)
    groups = {_count(job, "groupid") for job in jobs}
    if len(groups) > 1:
        raise InputError(
            f"the jobs of fio are in {len(groups)} groups, which may run one after the other",
            remedy="run them without stonewall and new_group",
        )
    return jobs


def _operation(jobs: list[dict[str, Any]]) -> str:
    """The operation of the jobs."""
    done = [
        operation
        for operation in ("write", "read")
        if any(_count(_get(job, operation, dict), "io_bytes") for job in jobs)
    ]
    if len(done) != 1:
        raise InputError(
            "fio both wrote and read" if done else "fio neither wrote nor read",
            remedy="measure one operation in each run",
        )
    return done[0]


def _load(text: str) -> dict[str, Any]:
    start = _START.search(text)
    if start is None:
        raise InputError("this is not an output of fio")
    try:
        document: dict[str, Any] = json.JSONDecoder().raw_decode(text, start.start())[0]
    except (ValueError, RecursionError) as error:
        raise InputError(f"the JSON is cut off or damaged ({error})", remedy=_REPEAT) from error
    return document


def _version(document: dict[str, Any]) -> str:
    match = _VERSION.fullmatch(_get(document, "fio version", str))
    if match is None or int(match[2]) < 3:
        raise InputError(
            f"the output is from {document['fio version']!r}, which may count in other units",
            remedy="use fio 3 or later",
        )
    return match[1]


def _count(section: object, key: str) -> int:
    value = _get(section, key, int)
    if isinstance(value, bool) or not 0 <= value <= LARGEST_BYTES:
        raise _unusable(key)
    return value


def _get(section: object, key: str, kind: type[_Kind]) -> _Kind:
    value = section.get(key) if isinstance(section, dict) else None
    if not isinstance(value, kind):
        raise _unusable(key)
    return value


def _unusable(key: str) -> InputError:
    return InputError(f"the JSON has no usable {key!r}", remedy="give the complete output of fio")


def _utc(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError) as error:
        raise _unusable("timestamp") from error
