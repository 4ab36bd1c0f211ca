"""From logs to the rows of all tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case, Checked
from ioncast.insights.facts.gathering import (
    FACT_MODULES,
    facts_of,
    file_facts_of,
    lustre_of,
    run_facts_of,
    trace_of,
)
from ioncast.insights.facts.slowest_ranks import shared_files_of
from ioncast.warehouse.arrays import INDEX, Columns, joined, table_of
from ioncast.warehouse.file_rows import FilesOfRuns, file_rows
from ioncast.warehouse.job_rows import job_rows
from ioncast.warehouse.request_rows import (
    file_ost_rows,
    io_node_rows,
    request_rows,
    request_size_rows,
    server_rows,
    untraced_server_rows,
)
from ioncast.warehouse.schema import EXTRACTOR, SCHEMAS
from ioncast_base.errors import IoncastError
from ioncast_base.kinds import APIS
from summario.phases.extract import extract_stack
from summario.phases.pauses import has_trace
from summario.phases.stacks import Stack, stacked, stacks_of
from summario.phases.tables import to_record
from summario.phases.values import Phase
from summario.reading.dxt import DXT_MODULES
from summario.reading.log import PHASE_MODULES
from summario.reading.operations import Operations
from summario.reading.sources import Source, read_source
from summario.requests.calls import CallsOfRequests, join_calls
from summario.runs.hosts import HOST_MODULES
from summario.runs.logs_of_run import Run

WAREHOUSE_MODULES = tuple(dict.fromkeys((*PHASE_MODULES, *FACT_MODULES)))
NAMES_OF_PHASES = {
    "start": "start_seconds",
    "end": "end_seconds",
    "type": "operation",
    "rank": "ranks",
    "time": "io_seconds",
    "files": "file_access",
    "order": "request_order",
    "metadata_time": "metadata_seconds",
    "elapsed": "elapsed_seconds",
    "log": "log_name",
}
# Logs are computed together until their records and traces take so much memory.
_MOST_BYTES_TOGETHER = 64 << 20


@dataclass(frozen=True)
class TableChoice:
    """The tables to fill besides those of counters, and the system of the logs."""

    system: str | None
    findings: bool
    requests: bool
    io_nodes: Mapping[str, int]

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules of logs that the tables need."""
        return WAREHOUSE_MODULES if self.findings else (*PHASE_MODULES, "LUSTRE", *HOST_MODULES)


class _Log(NamedTuple):
    """A log that was read, with its place in the bundle and the columns of its file."""

    place: int
    run: Run
    digest: str
    about: Mapping[str, Any]

    @property
    def bytes(self) -> int:
        """The size of its records and traces in memory."""
        [log] = self.run.logs
        return sum(each.words.nbytes for each in log.records.values()) + sum(
            map(len, log.traces.values())
        )


def tables_of(
    sources: Iterable[Source | IoncastError],
    *,
    system: str | None = None,
    findings: bool = True,
    requests: bool = True,
    io_nodes: Mapping[str, int] | None = None,
) -> dict[str, pa.Table]:
    """Read logs into tables; a log that cannot be read is a row of `failed`.

    Parameters
    ----------
    sources : iterable of Source or IoncastError
        The logs, or the errors in their places, as `find_sources` lists them.
    system : str, optional
        The system of all these logs.
    findings, requests : bool
        Whether to fill the tables `findings`, and `requests` and `request_servers`. The jobs of
        logs whose requests are left out have no requests.
    io_nodes : mapping of str to int, optional
        The number of the I/O node that serves each compute node.
    """
    choice = TableChoice(system, findings, requests, io_nodes or {})
    parts: dict[str, list[pa.Table]] = {name: [] for name in SCHEMAS}
    for name, table in _rows(sources, choice):
        parts[name].append(table)
    return {name: joined(name, of_table) for name, of_table in parts.items()}


def _rows(
    sources: Iterable[Source | IoncastError], choice: TableChoice
) -> Iterator[tuple[str, pa.Table]]:
    """Yield tables of some logs each, with the places of the logs."""
    waiting: list[_Log] = []
    waiting_bytes = 0
    for place, source in enumerate(sources):
        log = _read(place, source, choice)
        if not isinstance(log, _Log):
            yield "failed", log
            continue
        waiting.append(log)
        waiting_bytes += log.bytes
        if waiting_bytes > _MOST_BYTES_TOGETHER:
            yield from _rows_together(waiting, choice)
            waiting, waiting_bytes = [], 0
    yield from _rows_together(waiting, choice)


def _read(place: int, source: Source | IoncastError, choice: TableChoice) -> _Log | pa.Table:
    """Read a log; a table of failures if that fails."""
    if isinstance(source, IoncastError):
        return _failure(place, {"path": source.where, "system": choice.system}, source.what)
    about = {"path": source.name, "system": choice.system, **_file_facts(source)}
    try:
        run = Run((read_source(source, choice.modules),))
        return _Log(place, run, _sha256(source), about)
    except IoncastError as error:
        return _failure(place, about, error.what)
    except OSError as error:
        return _failure(place, about, f"it cannot be put into tables: {error}")


def _failure(place: int, about: Mapping[str, Any], reason: str) -> pa.Table:
    row = {INDEX: 0, **about, "reason": reason, "extractor": EXTRACTOR}
    places = np.array([place])
    return table_of("failed", {name: [value] for name, value in row.items()}, places)


def _file_facts(source: Source) -> dict[str, Any]:
    """The size and the time of a log's file, null for standard input."""
    if source.content is not None:
        return {"size_bytes": len(source.content), "modified_ns": source.modified_ns}
    try:
        status = Path(source.name).stat()
    except OSError:
        return {"size_bytes": None, "modified_ns": None}
    return {"size_bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _sha256(source: Source) -> str:
    content = Path(source.name).read_bytes() if source.content is None else source.content
    return hashlib.sha256(content).hexdigest()


def _rows_together(logs: Sequence[_Log], choice: TableChoice) -> Iterator[tuple[str, pa.Table]]:
    for places, stack in stacks_of([log.run for log in logs]):
        yield from _rows_or_failures([logs[place] for place in places], stack, choice)


def _rows_or_failures(
    logs: Sequence[_Log], stack: Stack, choice: TableChoice
) -> list[tuple[str, pa.Table]]:
    """Make the rows of alike logs; halve them until one is found that cannot be put into tables."""
    places = np.array([log.place for log in logs], np.int64)
    digests = pa.array([log.digest for log in logs])
    try:
        return [
            (name, table_of(name, columns, places, digests))
            for name, columns in _rows_of_stack(logs, stack, choice)
        ]
    except IoncastError as error:
        reason = error.what
    except (OSError, OverflowError, pa.ArrowException) as error:
        reason = f"it cannot be put into tables: {error}"
    if len(logs) == 1:
        return [("failed", _failure(logs[0].place, logs[0].about, reason))]
    half = len(logs) // 2
    return [
        row
        for part in (logs[:half], logs[half:])
        for row in _rows_or_failures(part, stacked([log.run for log in part]), choice)
    ]


def _rows_of_stack(
    logs: Sequence[_Log], stack: Stack, choice: TableChoice
) -> Iterator[tuple[str, Columns]]:
    """Yield rows of the tables, with the indices of their logs."""
    facts = file_facts_of(stack)
    shared = shared_files_of(facts)
    run = stack.runs_of(facts.files.id)
    edges = np.searchsorted(run, np.arange(len(logs) + 1)).tolist()
    ids = stack.ids_of(facts.files.id)
    found = extract_stack(stack)
    runs = [run_facts_of(each) for each in stack.runs]
    files = FilesOfRuns(
        *(facts, shared, run, ids, edges),
        mounts=[each.mounts for each in runs],
        lustre=[
            lustre_of(each, ids[slice(*of_run)])
            for each, of_run in zip(stack.runs, pairwise(edges), strict=True)
        ],
    )
    have_requests = [choice.requests and has_trace(each) for each in stack.runs]
    yield "jobs", job_rows([log.about for log in logs], runs, files, found, have_requests)
    for columns in file_rows(files):
        yield "files", columns
    yield "phases", _phases([each.phases for each in found])
    for columns in request_size_rows(files):
        yield "request_sizes", columns
    for index, each in enumerate(stack.runs):
        for name, columns in _rows_of_run(files, index, each, choice):
            length = len(next(iter(columns.values())))
            yield name, {INDEX: np.full(length, index), **columns}


def _rows_of_run(
    files: FilesOfRuns, index: int, run: Run, choice: TableChoice
) -> Iterator[tuple[str, Columns]]:
    """Yield rows of the tables that need a trace or checks, which are of one run."""
    lustre = files.lustre[index]
    of_run = slice(files.edges[index], files.edges[index + 1])
    if lustre is not None:
        extents = files.facts.files.extent_bytes[of_run]
        yield "file_osts", file_ost_rows(lustre, files.ids[of_run], extents)
    if choice.requests or lustre is not None:
        trace, _ = trace_of(run, files.ids[of_run])
        if trace is not None:
            if choice.requests:
                yield "requests", request_rows(trace, _calls(run, trace))
                yield "request_servers", io_node_rows(trace, choice.io_nodes)
            yield from server_rows(lustre, trace, of_requests=choice.requests)
        if lustre is not None:
            yield "file_servers", untraced_server_rows(lustre, files, of_run, trace)
    if choice.findings:
        yield "findings", _findings(run_checks(Case(facts_of(run))))


def _calls(run: Run, trace: Operations) -> CallsOfRequests:
    """Join the traced requests of both layers."""
    records = [log.records["MPI-IO"] for log in run.logs if "MPI-IO" in log.records]
    partial = {module for log in run.logs for module in log.header.partial_modules}
    full = [api for api in APIS if DXT_MODULES.get(api) in partial]
    return join_calls(trace, records, full)


def _phases(phases: Sequence[Sequence[Phase]]) -> Columns:
    records = [to_record(phase) for of_run in phases for phase in of_run]
    columns: dict[str, Any] = {
        NAMES_OF_PHASES.get(name, name): [record[name] for record in records]
        for name in (records[0] if records else ())
    }
    if columns:
        columns["parts"] = [json.dumps(parts) for parts in columns["parts"]]
        columns["ranks"] = [str(ranks) for ranks in columns["ranks"]]
    known_names = {field.name for field in SCHEMAS["phases"]}
    kept = {name: column for name, column in columns.items() if name in known_names}
    return {INDEX: np.repeat(np.arange(len(phases)), list(map(len, phases))), **kept}


def _findings(checked: Checked) -> Columns:
    findings = checked.findings
    return {
        "code": [each.check.code for each in findings],
        "level": [each.finding.level for each in findings],
        "importance": [each.importance for each in findings],
        "seconds_at_stake": [each.seconds_at_stake for each in findings],
        "share_of_run": [each.share_of_run for each in findings],
        "files": [each.finding.numbers.get("files", len(each.finding.files)) for each in findings],
        "ranks": [len(each.finding.ranks) for each in findings],
        "sentence": [each.sentence for each in findings],
    }
