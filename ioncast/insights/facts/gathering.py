"""Gathers the facts of a run from its logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.requests import read_requests
from ioncast.insights.facts.values import (
    HIGHEST_FIRST,
    Facts,
    FileFacts,
    Files,
    Ints,
    Layer,
    Module,
    RunFacts,
    possible,
)
from ioncast_base.kinds import APIS, OPERATIONS, Api
from ioncast_base.limits import LONGEST_SECONDS
from summario.lustre_components import LustreComponents, lustre_components_of
from summario.phases.sanity import sound_streams
from summario.phases.settings import DEFAULTS
from summario.phases.stacks import Stack, stacked
from summario.phases.streams import MODULE_OF_API, Streams, read_streams
from summario.reading.dxt import DXT_MODULES
from summario.reading.file_ids import is_among
from summario.reading.heatmap import heatmaps_of
from summario.reading.log import RECORD_MODULES, TRACE_MODULES, DarshanLog
from summario.reading.operations import Operations, operations_of
from summario.reading.records import Records
from summario.runs.hosts import HOST_MODULES, NodeCount, count_nodes
from summario.runs.logs_of_run import Run, warned
from summario.runs.stacking import stacked as stacked_requests

LIBRARY_MODULES = ("H5F", "H5D", "PNETCDF_FILE", "PNETCDF_VAR")
# Enough for tables. Checks also need requests of single ranks, in `FACT_MODULES`.
COUNTED_MODULES = (*RECORD_MODULES, *LIBRARY_MODULES, "LUSTRE")
FACT_MODULES = tuple(dict.fromkeys((*COUNTED_MODULES, *TRACE_MODULES, *HOST_MODULES)))


def facts_of(run: Run, *, all_files: bool = False, nodes: int | None = None) -> Facts:
    """Gather the facts of a run, whose logs were read with `FACT_MODULES`.

    With `COUNTED_MODULES` the facts lack traces. `nodes` counts more than the log's host names.
    Impossible numbers in records with most of the bytes raise DamagedLogError.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> from summario.runs.logs_of_run import run_of
    >>> facts = facts_of(run_of([read_log("tests/summario/fixtures/single-a.darshan")]))
    >>> facts.files.path, facts.files.bytes_written.tolist(), sorted(facts.layers)
    (('/tmp/testbed/data/single-a/f',), [1073741824], ['POSIX'])
    """
    stack = stacked([run])
    tables = _sound_tables(stack, all_files=all_files)
    layers, ids = _layers(stack, tables)
    trace, trace_warnings = trace_of(run, ids)
    lustre = lustre_of(run, ids)
    paths = [log.path for log in run.logs]
    return Facts(
        run=run_facts_of(run),
        files=_files(stack, ids, layers),
        layers=layers,
        libraries=_libraries(run),
        nodes=NodeCount(nodes, source="given") if nodes else count_nodes(run.logs),
        trace=trace,
        heatmaps=heatmaps_of(run.logs[0]) if len(run.logs) == 1 else {},
        lustre=lustre,
        warnings=(
            *run.warnings,
            *warned(paths, [table.warnings for table in tables]),
            *trace_warnings,
            *(lustre.warnings if lustre is not None else ()),
        ),
    )


def file_facts_of(stack: Stack) -> FileFacts:
    """Gather the files of each run of a stack; `stack.runs_of(facts.files.id)` tells their runs."""
    layers, ids = _layers(stack, _sound_tables(stack, all_files=False))
    return FileFacts(_files(stack, ids, layers), layers)


class _SoundTable(NamedTuple):
    """Records of files that count, without impossible numbers."""

    records: Mapping[Api, Records]
    warnings: tuple[str, ...] = ()


def _sound_tables(stack: Stack, *, all_files: bool) -> list[_SoundTable]:
    nothing = np.zeros(0, np.uint64)
    system_files = [nothing] * len(stack.tables) if all_files else stack.system_files
    if stack.has_several:
        return [_SoundTable(_counting(stack.tables[0], system_files[0]))]
    return [
        _sound_records(log, index, of_system)
        for index, (log, of_system) in enumerate(zip(stack.logs, system_files, strict=True))
    ]


def _counting(records: Mapping[str, Records], of_system: NDArray[np.uint64]) -> dict[Api, Records]:
    """Leave out files that do not count."""
    return {
        api: _without(records[MODULE_OF_API[api]], of_system)
        for api in APIS
        if MODULE_OF_API[api] in records
    }


def _sound_records(log: DarshanLog, index: int, of_system: NDArray[np.uint64]) -> _SoundTable:
    """Leave out files that do not count, and records with impossible numbers."""
    records = {
        api: replace(each, log=index) for api, each in _counting(log.records, of_system).items()
    }
    streams = read_streams(log.records)
    if streams is None:
        return _SoundTable(records)
    sound = sound_streams(streams, of_system, DEFAULTS.layer, log.path)
    if len(sound.replaced):
        records["MPIIO"] = _without(records["MPIIO"], sound.replaced)
    if len(sound.left_out):
        records = {api: _emptied(each, api, sound.left_out) for api, each in records.items()}
    return _SoundTable(records, sound.warnings)


def _emptied(records: Records, api: str, left_out: Streams) -> Records:
    """Set the counters of operations that are left out to 0; the record may have another one."""
    words = records.words.copy()
    ranks = list(zip(records.ids.tolist(), records.ranks.tolist(), strict=True))
    for operation, word in (("read", "READ"), ("write", "WRIT")):
        is_lost = left_out.api == APIS.index(api)
        lost = left_out.take(is_lost & (left_out.operation == OPERATIONS.index(operation)))
        bad = set(zip(lost.file_id.tolist(), lost.rank.tolist(), strict=True))
        rows = [row for row, rank in enumerate(ranks) if rank in bad]
        columns = [column for name, column in records.columns.items() if word in name]
        words[np.ix_(rows, columns)] = 0
    return replace(records, words=words)


def _without(records: Records, ids: NDArray[np.uint64]) -> Records:
    kept = ~is_among(records.ids, ids)
    return records if kept.all() else records.take(kept)


def _layers(
    stack: Stack, tables: Sequence[_SoundTable]
) -> tuple[dict[Api, Layer], NDArray[np.uint64]]:
    """Make the layers, and list the ids of their files."""
    found = {api: [table.records[api] for table in tables if api in table.records] for api in APIS}
    joined = {api: _joined(of_api) for api, of_api in found.items() if of_api}
    joined = {api: records for api, records in joined.items() if len(records.words)}
    ids, files = np.unique(
        np.concatenate([np.zeros(0, np.uint64), *(records.ids for records in joined.values())]),
        return_inverse=True,
    )
    layers, end = {}, 0
    for api, records in joined.items():
        begin, end = end, end + len(records.words)
        log = np.full(len(records.words), records.log)
        layers[api] = _layer(api, records, files[begin:end], stack.first_ranks[log])
    return layers, ids


def _joined(tables: Sequence[Records]) -> Records:
    """Stack the records of several logs; counters that a log lacks are 0."""
    if len(tables) == 1:
        return tables[0]
    newest = max(tables, key=lambda records: len(records.columns))
    return replace(
        newest,
        words=np.concatenate([_with_columns(records, newest.columns) for records in tables]),
        partial=any(records.partial for records in tables),
        nprocs=np.concatenate([np.full(len(each.words), each.nprocs) for each in tables]),
        log=np.concatenate([np.full(len(each.words), each.log) for each in tables]),
    )


def _with_columns(records: Records, columns: Mapping[str, int]) -> Ints:
    if records.columns == columns:
        return records.words
    counters = map(records.integer, columns)
    return np.stack([*records.words[:, :2].T, *counters], axis=1)


def _layer(api: Api, records: Records, file: Ints, first_rank: Ints) -> Layer:
    processes = records.processes
    order = np.argsort(file, kind="stable")
    seconds = records.real(f"{api}_F_META_TIME")
    return Layer(
        api=api,
        records=records,
        file=file,
        rank=np.where(records.ranks < 0, -1, records.ranks + first_rank),
        first_rank=first_rank,
        processes=processes,
        reads=read_requests(records, api, "read", processes),
        writes=read_requests(records, api, "write", processes),
        metadata_seconds=np.where((seconds >= 0) & (seconds < LONGEST_SECONDS), seconds, 0.0),
        order=order,
        first_row=np.flatnonzero(np.diff(file[order], prepend=-1)),
    )


def _files(stack: Stack, ids: NDArray[np.uint64], layers: Mapping[Api, Layer]) -> Files:
    run = stack.runs_of(ids)
    nprocs = np.array([each.nprocs for each in stack.runs], np.int64)
    first, end = (np.searchsorted(run, np.arange(len(nprocs)), side) for side in ("left", "right"))
    names = [
        _paths(each, stack.ids_of(ids[slice(*of_run)]))
        for each, *of_run in zip(stack.runs, first.tolist(), end.tolist(), strict=True)
    ]
    api = _highest(len(ids), layers)
    read, written, processes, read_extent, written_extent = np.zeros((5, len(ids)), np.int64)
    for name, layer in layers.items():
        used = layer.used_files
        is_highest = api[used] == APIS.index(name)
        read[used] = np.where(is_highest, layer.of_files(layer.reads.bytes), read[used])
        written[used] = np.where(is_highest, layer.of_files(layer.writes.bytes), written[used])
        processes[used] = np.where(is_highest, layer.file_processes(), processes[used])
        for extent, requests, counter in (
            (read_extent, layer.reads, "MAX_BYTE_READ"),
            (written_extent, layer.writes, "MAX_BYTE_WRITTEN"),
        ):
            if layer.has(counter):
                last = np.where(requests.bytes > 0, possible(layer.count(counter)) + 1, 0)
                extent[used] = np.maximum(extent[used], layer.of_files(last, np.maximum))
    return Files(
        id=ids,
        path=tuple(chain.from_iterable(names)),
        api=api,
        bytes_read=read,
        bytes_written=written,
        read_extent_bytes=read_extent,
        written_extent_bytes=written_extent,
        processes=np.minimum(processes, nprocs[run]),
    )


def _paths(run: Run, ids: NDArray[np.uint64]) -> tuple[str, ...]:
    """Find the names of files in sorted arrays: look-ups in a dictionary take 3 times as long."""
    names: dict[int, str] = {}
    for log in run.logs:
        names |= log.names
    known = np.fromiter(names, np.uint64, len(names))
    names |= {id_: f"file {id_}" for id_ in ids[~is_among(ids, known)].tolist()}
    known = np.fromiter(names, np.uint64, len(names))
    order = np.argsort(known)
    paths = np.array([*names.values()], dtype=object)
    return tuple(paths[order[np.searchsorted(known, ids, sorter=order)]].tolist())


def _highest(files: int, layers: Mapping[Api, Layer]) -> NDArray[np.int8]:
    """Find each file's highest layer with requests; without any, its highest with records."""
    highest = np.zeros(files, np.int8)
    for with_requests in (False, True):
        for api in [api for api in reversed(HIGHEST_FIRST) if api in layers]:
            layer = layers[api]
            moved = layer.reads.requests + layer.reads.bytes
            moved = moved + layer.writes.requests + layer.writes.bytes
            used = layer.used_files
            highest[used[layer.of_files(moved) > 0] if with_requests else used] = APIS.index(api)
    return highest


def run_facts_of(run: Run) -> RunFacts:
    """Gather the job record and the modules of a run."""
    first = run.first
    partial = {name for log in run.logs for name in log.header.partial_modules}
    modules = {
        name: Module(name, log.header.module_versions[name], name in partial)
        for log in reversed(run.logs)
        for name in log.header.modules
    }
    return RunFacts(
        name=run.name,
        job_id=first.id,
        uid=first.uid,
        processes=run.nprocs,
        start_seconds=first.start_seconds,
        end_seconds=max(log.job.end_seconds for log in run.logs),
        command=first.executable,
        darshan=first.library_version or f"log format {run.logs[0].header.version}",
        modules=tuple(modules.values()),
        mounts=tuple(first.mounts()),
    )


def trace_of(run: Run, ids: NDArray[np.uint64]) -> tuple[Operations | None, tuple[str, ...]]:
    """Decode the traced requests to files; None if no log has any."""
    if not any(DXT_MODULES.values() & log.traces.keys() for log in run.logs):
        return None, ()
    trace = stacked_requests(run, [operations_of(log, ids) for log in run.logs])
    return trace, trace.warnings


def lustre_of(run: Run, ids: NDArray[np.uint64]) -> LustreComponents | None:
    """Read the layouts of files (record ids) from the first log with any; None without any."""
    for log in run.logs:
        if "LUSTRE" in log.traces:
            components = lustre_components_of(log)
            return components.take(is_among(components.file_id, ids))
    return None


def _libraries(run: Run) -> dict[str, Records]:
    found = {
        module: [log.records[module] for log in run.logs if module in log.records]
        for module in LIBRARY_MODULES
    }
    return {module: _joined(tables) for module, tables in found.items() if tables}
