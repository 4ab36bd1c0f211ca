"""Reads what `lctl get_param obdfilter.*.job_stats mdt.*.job_stats` prints, once or many times.

The counters of a job run from its first request until its entry expires, so what servers moved is
the difference of two times. Lines of Unix times, as `date +%s` prints them, tell when the lines
below them were printed; without them the latest snapshot_time does. A snapshot_time below 10⁹
counts seconds since the server started (Lustre 2.17).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from ioncast.diagnosis.server_logs.counters import JobCounters, Snapshot, rows_of_files
from ioncast.diagnosis.server_logs.sample_rows import (
    EARLIEST_S,
    METADATA_OPERATIONS,
    ImportSettings,
    lines_of,
    server_name,
)
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

TIME_LINE = re.compile(r"#? ?(\d{10}(?:\.\d{1,9})?)", re.ASCII)
_HEADER = re.compile(r"(?:obdfilter|mdt)\.([^.]+)\.job_stats\s*=")
_JOB = re.compile(r"-?\s*job_id\s*:\s*(.*)")
_FIELD = re.compile(r"(\w+)\s*:\s*(.*)", re.ASCII)
_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,9})?", re.ASCII)
_SUM, _SAMPLES = (
    re.compile(rf"\b{name}:\s*(\d{{1,20}})\b", re.ASCII) for name in ("sum", "samples")
)
_BYTES = {"read_bytes": "read_bytes", "write_bytes": "written_bytes"}


class _Target:
    """The entries of a target while its lines are read."""

    def __init__(self, name: str, printed_s: float | None, where: str) -> None:
        self._server = server_name(name, "MDT" if "MDT" in name else "OST", where)
        self._printed_s = printed_s
        self._where = where
        self._latest_s = 0.0
        self._jobs: dict[str, JobCounters] = {}
        self._values: dict[str, float] = {}
        self._job = ""

    def begin(self, job: str) -> None:
        self._job, self._values = job.strip('"'), {}
        self._jobs[self._job] = JobCounters(None, self._values)

    def add(self, field: str, text: str) -> None:
        if field in ("snapshot_time", "start_time"):
            number = _NUMBER.match(text)
            seconds = float(number[0]) if number else 0.0
            if field == "snapshot_time":
                self._latest_s = max(self._latest_s, seconds)
            elif seconds >= EARLIEST_S:
                self._jobs[self._job] = JobCounters(round(seconds * 1e6), self._values)
            return
        if field in _BYTES:
            total = _SUM.search(text)
            self._values[_BYTES[field]] = float(total[1]) if total else 0.0
        if field in METADATA_OPERATIONS if self._server.kind == "MDT" else field in _BYTES:
            samples = _SAMPLES.search(text)
            operations = self._values.get("operations", 0.0)
            self._values["operations"] = operations + (float(samples[1]) if samples else 0.0)

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot; None if there are neither entries nor a time."""
        seconds = self._latest_s if self._printed_s is None else self._printed_s
        if seconds >= EARLIEST_S:
            return Snapshot(self._server, round(seconds * 1e6), self._jobs)
        if not self._jobs:
            return None
        raise InputError(
            "snapshot_time counts from the start of the server, so nobody knows the time",
            where=self._where,
            remedy="print a line with `date +%s` before `lctl get_param`",
        )


def read_job_stats(paths: Sequence[Path], settings: ImportSettings) -> Iterator[pa.Table]:
    """Read files of one or several snapshots, whatever their order."""
    yield from rows_of_files(paths, lambda path: _snapshots(path, settings))


def _snapshots(path: Path, settings: ImportSettings) -> Iterator[Snapshot]:
    target: _Target | None = None
    printed_s: float | None = None
    for number, line in lines_of(path, settings):
        text = line.strip()
        header, time = _HEADER.match(text), TIME_LINE.fullmatch(text)
        if header or time:
            if target is not None and (found := target.snapshot()):
                yield found
            target = _Target(header[1], printed_s, str(path)) if header else None
            printed_s = float(time[1]) if time else printed_s
        elif job := _JOB.match(text):
            if target is None:
                raise InputError(
                    f"no line before {visible(text[:80])} names its target",
                    where=str(path),
                    line=number,
                    remedy="print it with `lctl get_param 'obdfilter.*.job_stats'`",
                )
            target.begin(job[1])
        elif target is not None and (field := _FIELD.match(text)):
            target.add(field[1], field[2])
    if target is not None and (found := target.snapshot()):
        yield found
