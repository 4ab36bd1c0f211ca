"""Reader of fio's JSON (``--output-format=json``, fio 3)."""

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
from ior_configs import IorConfig

_Kind = TypeVar("_Kind")
_MIB = 1 << 20
_LARGEST_ERROR = 2**31 - 1
# fio may print messages in front of its JSON.
_START = re.compile(r'^\{\s*"fio version"\s*:', re.MULTILINE)
_VERSION = re.compile(r"fio-((\d{1,9})\..*)")
# Below it, a whole millisecond is more than one per cent.
_COARSE_MS = 100
_REPEAT = "the run may have failed: repeat it"


def is_fio(text: str) -> bool:
    """Whether a text holds fio's JSON; one cut off still does."""
    return _START.search(text) is not None


def fio_measurement(text: str, config: IorConfig, *, io_nodes: int, where: str) -> Measurement:
    """Read fio's JSON.

    Its time is the longest of a job, with the fsync at the end if there is one. A job's
    begins when it may open its file, which is not the same moment for all.

    Parameters
    ----------
    text : str
        A text that `is_fio`.
    config : IorConfig
        The pattern that the jobs mean; fio says what was done, and by how many processes.
    io_nodes : int
        I/O nodes it ran with.
    where : str
        The file, for errors.

    Returns
    -------
    Measurement
        What all jobs did together; its note says when fio's whole milliseconds are coarse.

    Raises
    ------
    InputError
        When the JSON is damaged, a job failed, or the jobs did not do one thing together.
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
        # fio calls the job of a killed process neither failed nor incomplete.
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
        # It is printed at the end.
        started=_utc(_count(document, "timestamp") - time_ms / 1000),
        engine="fio",
        engine_version=version,
        note=f"fio rounded the time up to {time_ms} ms" if time_ms < _COARSE_MS else None,
    )


def _done(config: IorConfig, operation: str, processes: int) -> IorConfig:
    """The configuration, which must say what fio says."""
    if operation not in config.operation:
        raise InputError(
            f"fio did {operation}, the command says {config.operation}",
            remedy="correct the command",
        )
    if config.tasks not in (None, processes):
        raise InputError(
            f"{processes} jobs of fio, but {config.tasks} tasks",
            remedy="correct the tasks, and run fio without group_reporting",
        )
    one = config.for_operation(operation)
    return replace(one, tasks=processes, nodes=config.nodes or 1)


def _jobs(document: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = _get(document, "jobs", list)
    if not jobs:
        raise InputError("there is no job in the JSON", remedy=_REPEAT)
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
    """What the jobs did."""
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
            f"this is of {document['fio version']!r}, which may count in other units",
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
    return InputError(f"the JSON has no usable {key!r}", remedy="give fio's own, whole output")


def _utc(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError) as error:
        raise _unusable("timestamp") from error
