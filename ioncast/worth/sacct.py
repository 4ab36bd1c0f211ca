"""Reads queues from Slurm's accounting, as `sacct` prints them."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from ioncast.worth.queued_jobs import QueuedJob
from ioncast_base.errors import InputError
from ioncast_base.times import instant

COMMAND = (
    "sacct --allusers --parsable2 --starttime=2026-01-01",
    "--format=JobID,JobIDRaw,User,JobName,Submit,Start,End,NNodes,AllocCPUS,Timelimit",
)
"""The command that makes an extract, in two parts, so that a help text can break the line."""

_NEEDED = ("JobID", "Submit", "Start", "End", "NNodes")
_NO_LIMIT = {"", "unlimited", "partition_limit", "invalid"}
_DURATION = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d):(\d\d)", re.ASCII)
# A number of nodes; sacct shortens large ones, such as 1.50K for 1,536.
_NODES = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(K|M)?", re.ASCII)
_JOB_ID = re.compile(r"\d{1,18}", re.ASCII)
_SECONDS = re.compile(r"\d{1,12}", re.ASCII)
_UNITS = {None: 1, "K": 1 << 10, "M": 1 << 20}

Row = Mapping[str, str]


class LeftOut(Enum):
    """Why lines of an extract are left out; the values are the words for people."""

    CUT_SHORT = "lines cut short"
    NOT_STARTED = "jobs that did not start"
    NOT_ENDED = "jobs that have not ended"
    NO_TIME = "jobs that took no time"


@dataclass(frozen=True)
class Extract:
    """The content of an accounting extract."""

    jobs: tuple[QueuedJob, ...]
    left_out: Mapping[LeftOut, int]

    @property
    def left_out_in_words(self) -> str:
        """The reasons and numbers of `left_out`, such as "jobs that did not start (1)"."""
        return ", ".join(f"{reason.value} ({count:,})" for reason, count in self.left_out.items())


def read_extract(path: str | Path) -> Extract:
    """Read the output of `sacct --parsable2` (or `--parsable`), or a CSV with the same columns.

    The columns JobID, Submit, Start, End and NNodes are needed. User and JobName tell
    applications apart. The limit of a job without Timelimit is its run time. JobIDRaw is needed to
    find the logs of array jobs, and AllocCPUS for core-hours. Curve and Bytes describe the I/O of a
    job if it is known. Other columns and the steps of jobs are ignored.

    Raises
    ------
    InputError
        If the file cannot be read, a column is missing, a value is not possible, or no job in
        it ran.
    """
    where = str(path)
    try:
        lines = Path(path).read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=where) from error
    jobs: list[QueuedJob] = []
    left_out: Counter[LeftOut] = Counter()
    for line, row in _rows(lines, where):
        if row is None:
            left_out[LeftOut.CUT_SHORT] += 1
        elif "." in row["jobid"]:
            continue
        elif reason := _did_not_run(row):
            left_out[reason] += 1
        else:
            jobs.append(_job(row, f"{where}:{line}"))
    extract = Extract(tuple(sorted(jobs, key=lambda job: job.submit_s)), left_out)
    if not jobs:
        listed = f": {extract.left_out_in_words}" if left_out else ""
        raise InputError(f"no job in it ran{listed}", where=where)
    return extract


def _rows(lines: Sequence[str], where: str) -> Iterator[tuple[int, Row | None]]:
    """Number and values of each line, by names of columns in small letters; None if it is cut."""
    header = lines[0] if lines else ""
    # sacct quotes nothing, so a quote in a name must not be taken for that of a CSV.
    is_sacct = "|" in header
    table = (line.split("|") for line in lines) if is_sacct else _csv(lines, where)
    names = [name.strip().lower() for name in next(iter(table), [])]
    missing = [name for name in _NEEDED if name.lower() not in names]
    if missing:
        raise InputError(
            f"missing columns: {', '.join(missing)}",
            where=where,
            remedy=f"make it with `{' '.join(COMMAND)}`",
        )
    for number, values in enumerate(table, start=2):
        if values not in ([], [""]):
            whole = _rejoined(values, names) if is_sacct else values
            row = dict(zip(names, map(str.strip, whole), strict=False))
            yield number, row if len(whole) >= len(names) else None


def _csv(lines: Sequence[str], where: str) -> Iterator[list[str]]:
    try:
        yield from csv.reader(lines, skipinitialspace=True)
    except csv.Error as error:
        raise InputError(str(error), where=where, remedy="save it as CSV") from error


def _rejoined(values: list[str], names: Sequence[str]) -> list[str]:
    """Join the pieces of a job's name: of sacct's columns, only this one can hold a "|"."""
    more = len(values) - len(names)
    if more <= 0 or "jobname" not in names:
        return values
    place = names.index("jobname")
    name = "|".join(values[place : place + more + 1])
    return [*values[:place], name, *values[place + more + 1 :]]


def _did_not_run(row: Row) -> LeftOut | None:
    start, end = _time_s(row["start"]), _time_s(row["end"])
    if start is None or _time_s(row["submit"]) is None:
        return LeftOut.NOT_STARTED
    if end is None:
        return LeftOut.NOT_ENDED
    return LeftOut.NO_TIME if end <= start else None


def _time_s(text: str) -> float | None:
    """Seconds since 1970; None for a text that is not a time, such as sacct's Unknown."""
    if _SECONDS.fullmatch(text):
        return float(text)
    time = instant(text)
    return time.timestamp() if time else None


def _job(row: Row, where: str) -> QueuedJob:
    submit, start, end = (_time_s(row[name]) for name in ("submit", "start", "end"))
    assert submit is not None and start is not None and end is not None  # noqa: S101
    bytes_ = row.get("bytes")
    return QueuedJob(
        submit_s=submit,
        run_s=end - start,
        limit_s=_limit_s(row.get("timelimit", ""), where) or end - start,
        nodes=_nodes(row["nnodes"], where),
        application=f"{row.get('user', '')} {row.get('jobname', '')}",
        start_s=start,
        job_id=_job_id(row),
        cores=_cores(row.get("alloccpus", "")),
        curve=row.get("curve") or None,
        bytes=_bytes(bytes_, where) if bytes_ else None,
    )


def _limit_s(text: str, where: str) -> float | None:
    if text.lower() in _NO_LIMIT:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InputError(f"Timelimit: {text!r} is not a duration such as 1-12:00:00", where=where)
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _nodes(text: str, where: str) -> int:
    match = _NODES.fullmatch(text)
    count = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if count < 1:
        raise InputError(f"NNodes: {text!r} is not a number of nodes", where=where)
    return count


def _job_id(row: Row) -> int | None:
    """The number that a job has in its logs; those of arrays have another one in JobID."""
    text = row.get("jobidraw") or row["jobid"]
    return int(text) if _JOB_ID.fullmatch(text) else None


def _cores(text: str) -> int | None:
    match = _NODES.fullmatch(text)
    return round(float(match[1]) * _UNITS[match[2]]) or None if match else None


def _bytes(text: str, where: str) -> float:
    try:
        count = float(text)
    except ValueError:
        count = -1
    if not 0 <= count < math.inf:
        raise InputError(f"Bytes: {text!r} is not a number of bytes", where=where)
    return count
