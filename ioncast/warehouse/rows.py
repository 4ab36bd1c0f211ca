"""From logs to the rows of all tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ioncast.insights.checks.registry import run_checks
from ioncast.insights.checks.values import Case, Checked
from ioncast.insights.facts.file_times import file_times_of
from ioncast.insights.facts.gathering import FACT_MODULES, facts_of
from ioncast.insights.facts.values import Facts, Layer, total
from ioncast.warehouse.schema import EXTRACTOR, SCHEMAS
from ioncast_base.errors import IoncastError
from ioncast_base.files import program_of
from ioncast_base.kinds import APIS, OPERATIONS
from predictor.curve.composing import observed_mib_s
from summario.lustre_servers import bytes_of_servers, first_mirrors
from summario.phases.extract import extract_run
from summario.phases.tables import to_record
from summario.phases.values import Phase
from summario.reading.layouts import SIZE_BINS
from summario.reading.log import PHASE_MODULES
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.reading.sources import Source, read_source
from summario.runs.logs_of_run import run_of

WAREHOUSE_MODULES = tuple(dict.fromkeys((*PHASE_MODULES, *FACT_MODULES)))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
# The first bins that have only requests below 1 MiB, and the one that also has some of 1 MiB.
_SMALL_BINS = SIZE_BINS.index("100K_1M")
# A trace of one request in each of thousands of stripes has as many rows.
_AT_ONCE = 100_000
_NAMES_OF_PHASES = {
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
Columns = Mapping[str, Any]
"""Columns of a table by name, lists or arrays; a column that is missing is null."""


def tables_of(
    sources: Iterable[Source | IoncastError], *, system: str | None = None
) -> dict[str, pa.Table]:
    """Read logs into tables; a log that cannot be read is a row of `failed`.

    Parameters
    ----------
    sources : iterable of Source or IoncastError
        The logs, or the errors in their places, as `find_sources` lists them.
    system : str, optional
        The system of all these logs.
    """
    parts: dict[str, list[pa.Table]] = {
        name: [schema.empty_table()] for name, schema in SCHEMAS.items()
    }
    for source in sources:
        for name, table in _tables_or_failure(source, system).items():
            parts[name].append(table)
    return {name: pa.concat_tables(of_table) for name, of_table in parts.items()}


def _tables_or_failure(source: Source | IoncastError, system: str | None) -> dict[str, pa.Table]:
    if isinstance(source, IoncastError):
        about = {"path": source.where, "system": system, "reason": source.what}
        return {"failed": _table("failed", {name: [value] for name, value in about.items()})}
    about = {"path": source.name, "system": system, **_file_facts(source)}
    try:
        return {name: _table(name, columns) for name, columns in _rows(source, about).items()}
    except IoncastError as error:
        about["reason"] = error.what
    except (OSError, OverflowError, pa.ArrowException) as error:
        about["reason"] = f"it cannot be put into tables: {error}"
    return {"failed": _table("failed", {name: [value] for name, value in about.items()})}


def _file_facts(source: Source) -> dict[str, Any]:
    """The size and the time of a log's file, null for standard input."""
    if source.content is not None:
        return {"size_bytes": len(source.content), "modified_ns": None}
    try:
        status = Path(source.name).stat()
    except OSError:
        return {"size_bytes": None, "modified_ns": None}
    return {"size_bytes": status.st_size, "modified_ns": status.st_mtime_ns}


def _rows(source: Source, about: Mapping[str, Any]) -> dict[str, Columns]:
    """Make the rows of all tables from one log."""
    run = run_of([read_source(source, WAREHOUSE_MODULES)])
    facts = facts_of(run)
    case = Case(facts)
    phases = extract_run(run).phases
    log = _sha256(source)
    rows: dict[str, Columns] = {
        "jobs": _job(facts, phases, about),
        "files": _files(case),
        "phases": _phases(phases),
        "request_sizes": _request_sizes(facts),
        "findings": _findings(run_checks(case)),
    }
    if facts.trace is not None:
        rows["requests"] = _requests(facts.trace)
        rows["file_servers"] = _file_servers(facts, facts.trace)
    return {name: {"log": [log] * _length(columns), **columns} for name, columns in rows.items()}


def _sha256(source: Source) -> str:
    content = Path(source.name).read_bytes() if source.content is None else source.content
    return hashlib.sha256(content).hexdigest()


def _length(columns: Columns) -> int:
    return len(next(iter(columns.values())))


def _table(name: str, columns: Columns) -> pa.Table:
    schema, rows = SCHEMAS[name], _length(columns)
    arrays = [
        pa.array(_in_utf_8(columns[field.name]), field.type, from_pandas=True)
        if field.name in columns
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _in_utf_8(column: Any) -> Any:
    """Replace bytes of names that are not UTF-8, which Python keeps as lone surrogates."""
    if isinstance(column, list) and any(isinstance(each, str) for each in column):
        return [each and each.encode(errors="replace").decode() for each in column]
    return column


def _job(facts: Facts, phases: Sequence[Phase], about: Mapping[str, Any]) -> Columns:
    run, times = facts.run, file_times_of(facts, Case(facts).shared_files)
    io_seconds = float((times.read_seconds + times.write_seconds).sum())
    most = run.processes * run.run_seconds
    is_capped = 0 < most < io_seconds
    start = _start(run.start_seconds)
    mpiio = facts.layers.get("MPIIO")
    try:
        bandwidth = observed_mib_s(phases)
    except ValueError:
        bandwidth = None
    row = {
        **about,
        "job_id": run.job_id,
        "user_id": run.uid,
        "program": program_of(run.command.split(maxsplit=1)[0]) if run.command.strip() else None,
        "command": run.command,
        "processes": run.processes,
        "compute_nodes": facts.nodes.number if facts.nodes else None,
        "start_us": round(run.start_seconds * 1e6) if start else None,
        "month": f"{start:%Y-%m}" if start else None,
        "run_seconds": run.run_seconds,
        "darshan_version": run.darshan,
        "modules": ",".join(module.name for module in run.modules),
        "partial": any(module.is_partial for module in run.modules),
        "read_bytes": total(facts.files.bytes_read),
        "written_bytes": total(facts.files.bytes_written),
        "io_seconds": most if is_capped else io_seconds,
        "metadata_seconds": float(times.metadata_seconds.sum()),
        "capped": is_capped,
        "bandwidth_mib_s": bandwidth,
        "files": len(facts.files),
        "uses_mpiio": mpiio is not None and len(mpiio) > 0,
        "uses_collective": mpiio is not None and _has_collective(mpiio),
        "has_requests": facts.trace is not None,
        "extractor": EXTRACTOR,
    }
    return {name: [value] for name, value in row.items()}


def _start(seconds: float) -> datetime | None:
    """A Unix time as a date; None if there is no such date."""
    try:
        return _EPOCH + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return None


def _has_collective(mpiio: Layer) -> bool:
    return any(bool((each.collective + each.split).any()) for each in (mpiio.reads, mpiio.writes))


def _files(case: Case) -> Columns:
    facts, shared = case.facts, case.shared_files
    slowest, fastest = dict[int, tuple[float, int]](), dict[int, float]()
    for place, file in enumerate(shared.file.tolist()):
        seconds = float(shared.slowest.seconds[place])
        if seconds >= slowest.get(file, (0.0, 0))[0]:
            slowest[file] = seconds, int(shared.slowest.rank[place])
            fastest[file] = float(shared.fastest.seconds[place])
    stripes = _stripes(facts)
    parts = [_files_of(facts, layer, slowest, fastest, stripes) for layer in facts.layers.values()]
    names = [field.name for field in SCHEMAS["files"] if field.name != "log"]
    return {name: [value for part in parts for value in part[name]] for name in names}


def _files_of(
    facts: Facts,
    layer: Layer,
    slowest: Mapping[int, tuple[float, int]],
    fastest: Mapping[int, float],
    stripes: Mapping[int, tuple[int, int]],
) -> dict[str, list[Any]]:
    """Describe the files of one layer; slowest and fastest processes are known at the highest."""
    used = layer.used_files.tolist()
    is_highest = facts.files.highest(layer)[layer.order][layer.first_row].tolist() if used else []
    ids = [int(facts.files.id[file]) for file in used]
    extent = facts.files.extent_bytes
    reads, writes = layer.reads, layer.writes
    seconds = layer.of_files(reads.seconds + writes.seconds + layer.metadata_seconds)
    processes = layer.file_processes()
    collective = reads.collective + reads.split + writes.collective + writes.split
    at_top = [file if highest else -1 for file, highest in zip(used, is_highest, strict=True)]
    opens = "OPENS" if layer.api != "MPIIO" else "INDEP_OPENS"
    return {
        "file": [f"{each:016x}" for each in ids],
        "path": [facts.files.path[file] for file in used],
        "file_system": [_file_system(facts, facts.files.path[file]) for file in used],
        "api": [layer.api] * len(used),
        "shared": layer.file_is_shared().tolist(),
        "processes": processes.tolist(),
        "reads": layer.of_files(reads.requests).tolist(),
        "writes": layer.of_files(writes.requests).tolist(),
        "read_bytes": layer.of_files(reads.bytes).tolist(),
        "written_bytes": layer.of_files(writes.bytes).tolist(),
        "read_seconds": layer.of_files(reads.seconds).tolist(),
        "write_seconds": layer.of_files(writes.seconds).tolist(),
        "metadata_seconds": layer.of_files(layer.metadata_seconds).tolist(),
        "slowest_seconds": [slowest.get(file, (None, None))[0] for file in at_top],
        "slowest_rank": [slowest.get(file, (None, None))[1] for file in at_top],
        "fastest_seconds": [fastest.get(file) for file in at_top],
        "mean_seconds": (seconds / np.maximum(processes, 1)).tolist(),
        "size_bytes": [int(extent[file]) or None for file in used],
        "opens": layer.of_files(layer.count(opens)).tolist(),
        "collective": layer.of_files(collective).tolist(),
        "stripe_count": [stripes.get(each, (None, None))[0] for each in ids],
        "stripe_size": [stripes.get(each, (None, None))[1] for each in ids],
    }


def _stripes(facts: Facts) -> dict[int, tuple[int, int]]:
    """The stripes of each file on Lustre, and their size; those of its first component."""
    if facts.lustre is None:
        return {}
    table = first_mirrors(facts.lustre)
    columns = (table.file_id, table.stripe_count, table.stripe_size_bytes)
    found: dict[int, tuple[int, int]] = {}
    for file, count, size in zip(*(column.tolist() for column in columns), strict=True):
        found.setdefault(file, (count, size))
    return found


def _file_system(facts: Facts, path: str) -> str | None:
    """The type of the file system whose mount point is the longest beginning of a path."""
    of = [
        (len(mount), kind)
        for mount, kind in facts.run.mounts
        if path == mount or path.startswith(mount.rstrip("/") + "/")
    ]
    return max(of, default=(0, None))[1]


def _phases(phases: Sequence[Phase]) -> Columns:
    records = [to_record(phase) for phase in phases]
    columns = {
        _NAMES_OF_PHASES.get(name, name): [record[name] for record in records]
        for name in (records[0] if records else ())
    }
    if columns:
        columns["parts"] = [json.dumps(parts) for parts in columns["parts"]]
        columns["ranks"] = [str(ranks) for ranks in columns["ranks"]]
    known = {field.name for field in SCHEMAS["phases"]}
    kept = {name: column for name, column in columns.items() if name in known}
    return kept or {"job": []}


def _request_sizes(facts: Facts) -> Columns:
    rows = []
    for api, layer in facts.layers.items():
        if api == "STDIO":
            continue
        for operation in OPERATIONS:
            of = layer.of(operation)
            counts = of.histogram.reshape(len(layer), len(SIZE_BINS)).sum(axis=0).tolist()
            small = int(of.small.sum()) - sum(counts[:_SMALL_BINS])
            smalls = [*counts[:_SMALL_BINS], max(small, 0)]
            smalls += [0] * (len(SIZE_BINS) - len(smalls))
            rows += [
                (api, operation, *each) for each in zip(SIZE_BINS, counts, smalls, strict=True)
            ]
    names = ("api", "operation", "bin", "requests", "small")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def _requests(trace: Operations) -> Columns:
    hosts = np.array([*trace.hosts, ""], dtype=object)
    files = {each: f"{each:016x}" for each in np.unique(trace.file_id).tolist()}
    return {
        "id": np.arange(len(trace)),
        "api": np.array(APIS, dtype=object)[trace.api],
        "operation": np.array(OPERATIONS, dtype=object)[trace.operation],
        "file": np.array([files[each] for each in trace.file_id.tolist()], dtype=object),
        "rank": trace.rank,
        "node": [each or None for each in hosts[trace.host].tolist()],
        "offset_bytes": pa.array(trace.offset, mask=trace.offset == UNKNOWN_OFFSET),
        "length_bytes": trace.length,
        "start_seconds": trace.start_seconds,
        "end_seconds": trace.end_seconds,
    }


def _file_servers(facts: Facts, trace: Operations) -> Columns:
    """Add up the traced bytes of each file and api on each server (OST)."""
    found: dict[tuple[int, int, int], int] = {}
    for first in range(0, len(trace) if facts.lustre is not None else 0, _AT_ONCE):
        assert facts.lustre is not None  # noqa: S101
        part = trace.take(slice(first, first + _AT_ONCE))
        on = bytes_of_servers(facts.lustre, part.file_id, part.offset, part.length)
        keys = part.file_id[on.segment], part.api[on.segment], on.ost
        rows = zip(*(each.tolist() for each in (*keys, on.bytes)), strict=True)
        for file, api, ost, moved in rows:
            found[file, api, ost] = found.get((file, api, ost), 0) + moved
    return {
        "file": [f"{file:016x}" for file, _, _ in found],
        "api": [APIS[api] for _, api, _ in found],
        "server": [None if ost < 0 else ost for _, _, ost in found],
        "bytes": list(found.values()),
    }


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
