"""Reads counters of Lustre exporters: Prometheus' text, and the JSON of its `query_range`.

Sources: the exporters of HewlettPackard and whamcloud, which name their metrics alike. Counters of
a whole target are preferred to those of its jobs. The text has no times of its own: a scrape needs
a time after each value, or a line with the Unix time before it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ioncast.diagnosis.server_logs.counters import (
    JobCounters,
    Snapshot,
    rows_of_files,
    rows_of_snapshots,
)
from ioncast.diagnosis.server_logs.read_job_stats import TIME_LINE
from ioncast.diagnosis.server_logs.sample_rows import (
    METADATA_OPERATIONS,
    ImportSettings,
    ServerName,
    lines_of,
    server_name,
)
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible

LINE = re.compile(r"(lustre_\w+)\{([^\n]*)\}\s+(\S+)(?:\s+(\d{1,16}))?\s*", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"', re.ASCII)
_METRICS = {
    "lustre_read_bytes_total": "read_bytes",
    "lustre_write_bytes_total": "written_bytes",
    "lustre_read_samples_total": "operations",
    "lustre_write_samples_total": "operations",
    "lustre_stats_total": "operations",
}
_OF_JOBS = {name.replace("_", "_job_", 1): column for name, column in _METRICS.items()}
_KINDS = {"ost": "OST", "mdt": "MDT"}
_MOST_BYTES_IN_MEMORY = 256 << 20
_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError)


class _TargetCounter(NamedTuple):
    """A counter of a job at a target; the job "" stands for the whole target.

    A column may add up several metrics, and several operations of a metric.
    """

    server: ServerName
    job: str
    column: str
    metric: str
    operation: str


class _Value(NamedTuple):
    """A counter's value at a time."""

    counter: _TargetCounter
    time_us: int
    value: float


def read_exposition(paths: Sequence[Path], settings: ImportSettings) -> Iterator[pa.Table]:
    """Read scrapes of exporters, one or several in a file, whatever the order of files."""
    yield from rows_of_files(paths, lambda path: _snapshots(_by_time(path, settings)))


def read_query_range(paths: Sequence[Path], settings: ImportSettings) -> Iterator[pa.Table]:
    """Read the answer of `query_range`; the query names the counters, without `rate`."""
    [path] = paths
    where = str(path)
    if path.stat().st_size > _MOST_BYTES_IN_MEMORY:
        raise InputError(
            "this is larger than 256 MiB", where=where, remedy="ask for shorter ranges"
        )
    try:
        series = json.loads(path.read_bytes())["data"]["result"]
        values = sorted(
            (each for one in series for each in _values_of_series(one, where)),
            key=lambda value: value.time_us,
        )
    except _DAMAGED as error:
        what = f"this is not an answer of Prometheus' query_range: {visible(error)}"
        raise InputError(what, where=where) from error
    if not values:
        raise InputError(
            "the answer has no counter of a Lustre exporter with its name and target",
            where=where,
            remedy="query lustre_read_bytes_total itself, not its rate or sum",
        )
    yield from rows_of_snapshots(_snapshots(values), where)


def _values_of_series(series: Mapping[str, Any], where: str) -> Iterator[_Value]:
    metric = series["metric"]
    for name, label in metric.items():
        if not isinstance(label, str):
            raise TypeError(f"the label {name[:80]} is not text")
    counter = _counter(metric.get("__name__", ""), metric, where)
    if counter is None:
        return
    for time, text in series["values"]:
        yield _Value(counter, round(float(time) * 1e6), float(text))


def _counter(name: str, labels: Mapping[str, str], where: str) -> _TargetCounter | None:
    """Find the counter of a metric; None if it is of something else."""
    kind = _KINDS.get(labels.get("component", ""))
    column = _METRICS.get(name) or _OF_JOBS.get(name)
    if kind is None or column is None or not labels.get("target"):
        return None
    operation = labels.get("operation", "")
    if name.endswith("stats_total") and (kind != "MDT" or operation not in METADATA_OPERATIONS):
        return None
    job = labels.get("jobid", "?") if name in _OF_JOBS else ""
    server = server_name(labels["target"], kind, where)
    return _TargetCounter(server, job, column, name, operation)


def _by_time(path: Path, settings: ImportSettings) -> Iterator[_Value]:
    """Yield the values of a text by time; an export may have one series after the other."""
    values = _scraped(path, settings)
    if path.stat().st_size <= _MOST_BYTES_IN_MEMORY:
        yield from sorted(values, key=lambda value: value.time_us)
        return
    latest_us = 0
    for each in values:
        if each.time_us < latest_us:
            raise InputError(
                "the times do not ascend, and a text above 256 MiB is not sorted",
                where=str(path),
                remedy="write the values by time, or into files of shorter ranges",
            )
        latest_us = each.time_us
        yield each


def _scraped(path: Path, settings: ImportSettings) -> Iterator[_Value]:
    scraped_us: int | None = None
    for number, line in lines_of(path, settings):
        if time := TIME_LINE.fullmatch(line.strip()):
            scraped_us = round(float(time[1]) * 1e6)
            continue
        match = LINE.fullmatch(line)
        counter = match and _counter(match[1], dict(_LABEL.findall(match[2])), str(path))
        if not match or not counter:
            continue
        time_us = int(match[4]) * 1000 if match[4] else scraped_us
        if time_us is None:
            raise InputError(
                "nobody knows the time of this value",
                where=str(path),
                line=number,
                remedy="print a line with `date +%s` before each scrape, or import an answer of"
                " query_range",
            )
        try:
            yield _Value(counter, time_us, float(match[3]))
        except ValueError as error:
            what = f"{visible(match[3][:80])} is not a number"
            raise InputError(what, where=str(path), line=number) from error


def _snapshots(values: Iterable[_Value]) -> Iterator[Snapshot]:
    """Collect the values of each time, which ascend, by server.

    Two replicas of Prometheus, or two scrapers, may have a counter: it counts once.
    """
    now_us: int | None = None
    targets: dict[ServerName, dict[str, dict[str, float]]] = {}
    counted: set[_TargetCounter] = set()
    for each in values:
        if each.time_us != now_us:
            yield from _finished(now_us, targets)
            now_us, targets, counted = each.time_us, {}, set()
        if each.counter in counted:
            continue
        counted.add(each.counter)
        server, job, column, *_ = each.counter
        jobs = targets.setdefault(server, defaultdict(lambda: defaultdict(float)))
        jobs[job][column] += each.value
    yield from _finished(now_us, targets)


def _finished(
    time_us: int | None, targets: Mapping[ServerName, Mapping[str, Mapping[str, float]]]
) -> Iterator[Snapshot]:
    for server, jobs in targets.items():
        chosen = {"": jobs[""]} if "" in jobs else jobs
        counters = {job: JobCounters(None, values) for job, values in chosen.items()}
        yield Snapshot(server, time_us or 0, counters)
