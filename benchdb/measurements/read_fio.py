"""Reads fio's JSON (``--output-format=json``, fio 3)."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from benchdb.measurements.storing import Measurement
from ioncast_base.errors import InputError
from ioncast_base.limits import LARGEST_BYTES
from ioncast_base.sizes import parse_count
from ioncast_base.wording import counted
from ior_configs import IorConfig

_Kind = TypeVar("_Kind")
_MIB = 1 << 20
_LARGEST_ERROR = 2**31 - 1
# fio may print messages in front of its JSON.
_START = re.compile(r'(?:^|(?<=[\s}]))\{\s*"fio version"\s*:')
_VERSION = re.compile(r"fio-((\d{1,9})\..*)")
# fio counts whole milliseconds; below this time, one of them is more than 1 %.
_COARSE_MS = 100
_OPERATIONS = ("write", "read")
_MIXED = "mixed"
_ALL_CLIENTS = "All clients"
_REPEAT = "the run may have failed: repeat it"


def is_fio(text: str) -> bool:
    """Whether a text contains fio's JSON, also one that is cut off."""
    return _START.search(text) is not None


def fio_measurements(
    text: str, config: IorConfig, *, io_nodes: int, where: str
) -> list[Measurement]:
    """Read the measurement of all jobs of a run together, for each run in fio's JSON.

    The time is the longest time of a job, including the fsync at its end if there is one. The time
    of a job starts when it may open its file, and jobs do not start together. The text may have
    several documents: those of runs one after the other, and those of a run with
    ``--status-interval``, of which the last one counts. Operation, number of processes and bytes
    must agree with `config`, except for the bytes of a run with a limited time. A note says if
    whole milliseconds are too coarse, or if the time was limited.
    """
    documents: list[tuple[int, dict[str, Any]]] = []
    try:
        for line, document in _documents(text):
            if documents and _continues(documents[-1][1], document):
                documents.pop()
            documents.append((line, document))
        return [_located(line, document, config, io_nodes) for line, document in documents]
    except InputError as error:
        raise InputError(error.what, where=where, line=error.line, remedy=error.remedy) from error


def _located(line: int, document: dict[str, Any], config: IorConfig, io_nodes: int) -> Measurement:
    """Read a document; an error names its first line, unless that is the first of the file."""
    try:
        return _measurement(document, config, io_nodes)
    except InputError as error:
        error.line = line if line > 1 else None
        raise


def _documents(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield each document with the number of its first line."""
    line, end = 1, 0
    while start := _START.search(text, end):
        line += text.count("\n", end, start.start())
        try:
            document, after = json.JSONDecoder().raw_decode(text, start.start())
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"the JSON is cut off or damaged ({error})",
                line=line if line > 1 else None,
                remedy=_REPEAT,
            ) from error
        yield line, document
        line += text.count("\n", start.start(), after)
        end = after


def _continues(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether a document is a later report of the run of the document before it.

    The jobs of a later report have the same options and at least the same bytes, and they began
    before the earlier report was printed.
    """
    earlier, later = _progress(before), _progress(after)
    if [job[0] for job in earlier] != [job[0] for job in later]:
        return False
    moved = [(first[1], second[1]) for first, second in zip(earlier, later, strict=True)]
    if any(second < first for first, second in moved):
        return False
    began_ms = _printed_ms(after) - max((job[2] for job in later), default=0)
    in_ms = "timestamp_ms" in before and "timestamp_ms" in after
    has_grown = any(second > first for first, second in moved)
    return (has_grown or in_ms) and began_ms < _printed_ms(before)


def _progress(document: dict[str, Any]) -> list[tuple[object, int, int]]:
    """The identity, the moved bytes and the milliseconds of each job."""
    return [
        (
            [document.get("global options"), *map(job.get, ("jobname", "groupid", "job options"))],
            sum(_count(section, "io_bytes") for section in _sections(job)),
            max((_count(section, "runtime") for section in _sections(job)), default=0),
        )
        for job in _entries(document)
    ]


def _sections(job: dict[str, Any]) -> list[dict[str, Any]]:
    return [job[name] for name in (*_OPERATIONS, _MIXED) if name in job]


def _printed_ms(document: dict[str, Any]) -> int:
    if "timestamp_ms" in document:
        return _count(document, "timestamp_ms")
    return _count(document, "timestamp") * 1000


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
    done = _done(config, operation, document)
    notes = [f"fio rounded the time up to {time_ms} ms"] if time_ms < _COARSE_MS else []
    asked = (done.tasks or 1) * done.bytes_per_process
    if sum(moved) != asked:
        difference = (
            f"fio moved {sum(moved)} bytes, but the command asks for {asked}"
            f" ({counted(done.tasks or 1, 'task')} × {done.bytes_per_process})"
        )
        if not _is_limited(document):
            raise InputError(
                difference,
                remedy="correct the command, or run fio without group_reporting: it adds up"
                " the processes of jobs",
            )
        notes.append(f"{difference}, because its time was limited")
    return Measurement(
        config=done,
        io_nodes=io_nodes,
        bandwidth_mib_s=sum(moved) / _MIB / (time_ms / 1000),
        bytes=sum(moved),
        time_s=time_ms / 1000,
        # fio prints the time stamp at the end of the run.
        started=_utc(_count(document, "timestamp") - time_ms / 1000),
        engine="fio",
        engine_version=version,
        note="; ".join(notes) or None,
    )


def _done(config: IorConfig, operation: str, document: dict[str, Any]) -> IorConfig:
    """The configuration with the operation and the processes of the JSON, which must agree."""
    if operation not in config.operation:
        raise InputError(
            f"the operation is {operation} in fio's JSON, but {config.operation} in the command",
            remedy="correct the command",
        )
    processes = _processes(document)
    if config.tasks is not None and config.tasks != processes:
        raise InputError(
            f"the JSON has {counted(processes, 'job')}, but the command has"
            f" {counted(config.tasks, 'task')}",
            remedy="correct the number of tasks, and run fio without group_reporting",
        )
    one = config.for_operation(operation)
    hosts = {job["hostname"] for job in _entries(document) if isinstance(job.get("hostname"), str)}
    return replace(one, tasks=processes, nodes=config.nodes or max(1, len(hosts)))


def _processes(document: dict[str, Any]) -> int:
    """The number of processes: with group_reporting, one entry stands for several of them.

    fio does not write in its JSON that it has this option. Without it, a job with `numjobs` has as
    many entries. With it, the entry of a group has the options of one of the jobs in it; if there
    are others, the bytes do not agree with those of this job.
    """
    entries = Counter(
        (
            _text(job, "hostname"),
            _count(job, "port") if "port" in job else None,
            _text(job, "jobname"),
            _numjobs(document, job),
        )
        for job in _jobs(document)
    )
    return sum(max(number, numjobs) for (*_, numjobs), number in entries.items())


def _numjobs(document: dict[str, Any], job: dict[str, Any]) -> int:
    values = _of(job, "job options", "numjobs") or _of(document, "global options", "numjobs")
    try:
        return parse_count(values or "1")
    except InputError as error:
        raise _unusable("numjobs") from error


def _is_limited(document: dict[str, Any]) -> bool:
    """Whether the time of a job is limited; fio leaves `time_based` itself out of its JSON."""
    limits = [_of(document, "global options", "runtime")]
    limits += [_of(job, "job options", "runtime") for job in _entries(document)]
    return any(limits)


def _of(section: dict[str, Any], options: str, name: str) -> str | None:
    values = section.get(options)
    return _text(values, name) if isinstance(values, dict) else None


def _text(section: dict[str, Any], name: str) -> str | None:
    value = section.get(name)
    return value if isinstance(value, str) else None


def _entries(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The entries of the jobs, which stand under another name with ``--client``.

    There, another entry has the sum of all clients.
    """
    entries = _get(document, "client_stats" if "client_stats" in document else "jobs", list)
    for entry in entries:
        if not isinstance(entry, dict):
            raise _unusable("error")
    return [entry for entry in entries if entry.get("jobname") != _ALL_CLIENTS]


def _jobs(document: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = _entries(document)
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
    if any(_MIXED in job and not job.keys() & set(_OPERATIONS) for job in jobs):
        raise InputError(
            "fio added up writes and reads (unified_rw_reporting)",
            remedy="run it without unified_rw_reporting",
        )
    done = [
        operation
        for operation in _OPERATIONS
        if any(_count(_get(job, operation, dict), "io_bytes") for job in jobs)
    ]
    if len(done) != 1:
        raise InputError(
            "fio both wrote and read" if done else "fio neither wrote nor read",
            remedy="measure one operation in each run",
        )
    return done[0]


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
