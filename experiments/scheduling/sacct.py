"""Queues out of Slurm's accounting, as `sacct` prints them."""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.scheduling.queues import Job
from ioncast_base.errors import InputError
from ioncast_base.times import instant

COMMAND = (
    "sacct --allusers --parsable2 --starttime=2026-01-01"
    " --format=JobID,User,JobName,Submit,Start,End,NNodes,Timelimit"
)
_NEEDED = ("jobid", "submit", "start", "end", "nnodes")
_NO_LIMIT = {"", "unlimited", "partition_limit", "invalid"}
_DURATION = re.compile(r"(?:(\d{1,9})-)?(\d{1,9}):(\d\d):(\d\d)", re.ASCII)
# Numbers of nodes as sacct shortens them.
_NODES = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(K|M)?", re.ASCII)
_SECONDS = re.compile(r"\d{1,12}", re.ASCII)
_UNITS = {None: 1, "K": 1 << 10, "M": 1 << 20}

Row = Mapping[str, str]


@dataclass(frozen=True)
class Extract:
    """What an accounting extract holds.

    Attributes
    ----------
    jobs : tuple of Job
        Those that ran, by the time of their submission.
    left_out : mapping of str to int
        Why others are left out, and how many.
    """

    jobs: tuple[Job, ...]
    left_out: Mapping[str, int]


def read_extract(path: str | Path) -> Extract:
    """Read what `sacct --parsable2` (or `--parsable`) printed, or a CSV with its columns.

    Needed are JobID, Submit, Start, End and NNodes; User and JobName tell applications apart;
    a job without a Timelimit is taken to have asked for what it needed. Columns Curve and
    Bytes tell what a job's I/O was, where that is known. Others are ignored, and so are steps
    of jobs.

    Raises
    ------
    InputError
        When the file is something else, a value cannot be, or no job in it ran.
    """
    where = str(path)
    try:
        lines = Path(path).read_text(encoding="utf-8-sig", errors="replace").splitlines()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=where) from error
    jobs: list[Job] = []
    left_out: Counter[str] = Counter()
    for line, row in _rows(lines, where):
        if row is None:
            left_out["lines cut short"] += 1
        elif "." in row["jobid"]:
            continue
        elif reason := _did_not_run(row):
            left_out[reason] += 1
        else:
            jobs.append(_job(row, f"{where}:{line}"))
    if not jobs:
        listed = ", ".join(f"{reason} ({count:,})" for reason, count in left_out.items())
        raise InputError(f"no job in it ran{f': {listed}' if listed else ''}", where=where)
    return Extract(tuple(sorted(jobs, key=lambda job: job.submit_s)), left_out)


def _rows(lines: Sequence[str], where: str) -> Iterator[tuple[int, Row | None]]:
    """Each line's number and its values by their columns' names in small letters."""
    header = lines[0] if lines else ""
    # What sacct prints has no quotes, whatever names hold.
    is_sacct = "|" in header
    table = (line.split("|") for line in lines) if is_sacct else _csv(lines, where)
    names = [name.strip().lower() for name in next(iter(table), [])]
    missing = [name for name in _NEEDED if name not in names]
    if missing:
        known = {name.lower(): name for name in ("JobID", "Submit", "Start", "End", "NNodes")}
        raise InputError(
            f"no column {' or '.join(known[name] for name in missing)}",
            where=where,
            remedy=f"make it with `{COMMAND}`",
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
    """Of all that sacct prints, only a job's name can hold what parts columns."""
    more = len(values) - len(names)
    if more <= 0 or "jobname" not in names:
        return values
    place = names.index("jobname")
    name = "|".join(values[place : place + more + 1])
    return [*values[:place], name, *values[place + more + 1 :]]


def _did_not_run(row: Row) -> str | None:
    start, end = _time_s(row["start"]), _time_s(row["end"])
    if start is None or _time_s(row["submit"]) is None:
        return "jobs that did not start"
    if end is None:
        return "jobs that have not ended"
    return "jobs that took no time" if end <= start else None


def _time_s(text: str) -> float | None:
    """Seconds since 1970; None for Unknown, None and what else is no time."""
    if _SECONDS.fullmatch(text):
        return float(text)
    time = instant(text)
    return time.timestamp() if time else None


def _job(row: Row, where: str) -> Job:
    submit, start, end = (_time_s(row[name]) for name in ("submit", "start", "end"))
    assert submit is not None and start is not None and end is not None  # noqa: S101
    bytes_ = row.get("bytes")
    return Job(
        submit_s=submit,
        run_s=end - start,
        limit_s=_limit_s(row.get("timelimit", ""), where) or end - start,
        nodes=_nodes(row["nnodes"], where),
        application=f"{row.get('user', '')} {row.get('jobname', '')}",
        curve=row.get("curve") or None,
        bytes=_bytes(bytes_, where) if bytes_ else None,
    )


def _limit_s(text: str, where: str) -> float | None:
    if text.lower() in _NO_LIMIT:
        return None
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InputError(f"Timelimit: {text!r} is no time such as 1-12:00:00", where=where)
    days, hours, minutes, seconds = (int(number or 0) for number in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def _nodes(text: str, where: str) -> int:
    match = _NODES.fullmatch(text)
    count = round(float(match[1]) * _UNITS[match[2]]) if match else 0
    if count < 1:
        raise InputError(f"NNodes: {text!r} is no number of nodes", where=where)
    return count


def _bytes(text: str, where: str) -> float:
    try:
        count = float(text)
    except ValueError:
        count = -1
    if not 0 <= count < math.inf:
        raise InputError(f"Bytes: {text!r} is no number of bytes", where=where)
    return count
