"""Extraction of I/O phases from a Darshan log, by Inria RR-9366, Appendix A.

The steps are functions on tables: read streams (`summario.phases.streams`), keep one layer for
each file, merge ranks (`summario.phases.merge`), split at pauses (`summario.phases.pauses`), merge
files (`summario.phases.grouping`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.wording import size
from summario.phases.grouping import merge_files
from summario.phases.merge import FilePhases, merge_ranks
from summario.phases.pauses import has_trace, split_at_pauses
from summario.phases.sanity import check_sums, of_sound_logs, sound_streams
from summario.phases.selection import system_file_ids, without_small
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.stacks import Stack, stacked
from summario.phases.streams import Streams, concatenate, in_run, read_streams
from summario.phases.values import Extraction, Phase
from summario.phases.why_no_phases import why_no_phases
from summario.reading.log import DarshanLog
from summario.requests.offsets import told_by_trace
from summario.runs.hosts import count_nodes
from summario.runs.logs_of_run import Run, warned


def extract(log: DarshanLog, settings: ExtractionSettings = DEFAULTS) -> Extraction:
    """Extract the I/O phases of a log, with warnings.

    Settings that need a trace are an InputError if the log has none.

    References
    ----------
    F. Boito, "Estimation of the impact of I/O forwarding usage on application
    performance", Inria RR-9366, Appendix A.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> log = read_log("tests/summario/fixtures/single-a.darshan")
    >>> [(p.operation, p.spatiality, p.bytes, p.requests) for p in extract(log).phases]
    [('write', 'contiguous', 1073741824, 512)]
    """
    return extract_run(Run((log,)), settings)


def extract_run(run: Run, settings: ExtractionSettings = DEFAULTS) -> Extraction:
    """Extract the I/O phases of a run, with times from its earliest log's start; see `extract`.

    A file that processes of several logs used is shared.
    """
    [found] = extract_stack(stacked([run]), settings)
    return found


def extract_stack(stack: Stack, settings: ExtractionSettings = DEFAULTS) -> list[Extraction]:
    """Extract the I/O phases of each of the runs in a stack; see `extract`."""
    if settings.phases == "dxt" and stack.has_several:
        return [extract_run(run, settings) for run in stack.runs]
    return [
        _extraction(run, whole, settings)
        for run, whole in zip(stack.runs, _phases(stack, settings), strict=True)
    ]


def _extraction(run: Run, whole: Extraction, settings: ExtractionSettings) -> Extraction:
    """Leave out small phases, and add all that is told about the run."""
    found = without_small(whole.phases, settings.min_share)
    warnings = (*run.warnings, *whole.warnings, *found.warnings)
    return Extraction(found.phases, warnings, count_nodes(run.logs), run.logs[0].job.id)


def extract_phases(log: DarshanLog, settings: ExtractionSettings = DEFAULTS) -> list[Phase]:
    """Extract the phases of a log without the warnings; see `extract`."""
    return list(extract(log, settings).phases)


def _phases(stack: Stack, settings: ExtractionSettings) -> list[Extraction]:
    if settings.phases == "dxt" and not has_trace(stack.runs[0]):
        raise InputError(
            "the log has no DXT trace",
            where=stack.runs[0].name,
            remedy="leave out --phases dxt, or set DXT_ENABLE_IO_TRACE while the program runs",
        )
    tables = _streams_of_tables(stack, settings)
    have_bytes = np.zeros(len(stack.runs), bool)
    for used in (table.used for table in tables if table.used is not None):
        have_bytes[stack.runs_of_logs(used.log[used.bytes > 0])] = True
    found = _extracted(stack, tables, have_bytes, settings) if have_bytes.any() else []
    return [
        found[place] if has_bytes else _without_phases(stack, place, tables, settings)
        for place, has_bytes in enumerate(have_bytes.tolist())
    ]


def _extracted(
    stack: Stack,
    tables: Sequence[_TableStreams],
    have_bytes: NDArray[np.bool_],
    settings: ExtractionSettings,
) -> list[Extraction]:
    """Extract the phases of the runs with bytes; at least one has some."""
    everything, used = (
        concatenate([_of_runs(each, stack, have_bytes) for each in streams if each is not None])
        for streams in zip(*((table.all, table.used) for table in tables), strict=True)
    )
    if not stack.has_several:
        check_sums(everything, stack.runs[0].name)
    rows = merge_ranks(used, stack.processes, runs_apart=stack.has_several)
    split = split_at_pauses(rows, stack, everything, settings.time_distance)
    told = told_by_trace(split.file_phases, stack.runs[0]) if settings.phases == "dxt" else None
    rows = split.file_phases if told is None else told.file_phases
    loads = None if told is None else told.loads
    by_trace = () if told is None else told.warnings
    phases = merge_files(rows, stack, everything, settings.threshold, settings.time_distance, loads)
    lacking = frozenset[str]().union(*(table.lacking for table in tables))
    warnings = () if stack.has_several else _warned(stack.runs[0], tables)
    found = []
    for of_run, of_pauses in zip(phases, split.warnings, strict=True):
        kept = [
            replace(phase, partial=True) if phase.api in lacking else phase
            for phase in of_run
            if phase.bytes
        ]
        told_of_run = (*warnings, *of_pauses, *by_trace, *_uncounted(kept))
        found.append(Extraction(tuple(kept), told_of_run))
    return found


def _of_runs(streams: Streams, stack: Stack, runs: NDArray[np.bool_]) -> Streams:
    return streams.take(runs[stack.runs_of_logs(streams.log)])


def _warned(run: Run, tables: Sequence[_TableStreams]) -> tuple[str, ...]:
    return warned([log.path for log in run.logs], [table.warnings for table in tables])


def _without_phases(
    stack: Stack, place: int, tables: Sequence[_TableStreams], settings: ExtractionSettings
) -> Extraction:
    """Say why no stream of a run is left."""
    run = stack.runs[place]
    if stack.has_several:
        tables = [tables[0].of_run(stack, place)]
    tables = [
        replace(
            table,
            warnings=(
                *table.warnings,
                *why_no_phases(log, table.all, table.system_files, settings),
            ),
        )
        for log, table in zip(run.logs, tables, strict=True)
    ]
    return Extraction((), _warned(run, tables))


def _uncounted(phases: list[Phase]) -> tuple[str, ...]:
    """Warn of phases whose requests the log does not count."""
    moved = sum(phase.bytes for phase in phases if not phase.requests)
    if not moved:
        return ()
    return (
        f"the log does not tell in how many requests {size(moved)} were moved, so no benchmark"
        " stands for them",
    )


def file_rows(run: Run, settings: ExtractionSettings = DEFAULTS) -> FilePhases:
    """Make the rows of the files of a run that has phases, whole as before their pauses."""
    tables = _streams_of_tables(stacked([run]), settings)
    used = [table.used for table in tables if table.used is not None]
    return merge_ranks(concatenate(used), run.processes)


@dataclass(frozen=True)
class _TableStreams:
    """A table's streams, None without any; of `lacking` apis, impossible records are left out."""

    system_files: NDArray[np.uint64]
    all: Streams | None = None
    used: Streams | None = None
    lacking: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def of_run(self, stack: Stack, place: int) -> _TableStreams:
        """Select the streams of one of several runs, with its record ids."""
        system_files = self.system_files[stack.runs_of(self.system_files) == place]
        of_run = None
        if self.all is not None:
            of_run = self.all.take(self.all.log == place)
            of_run = replace(of_run, file_id=stack.ids_of(of_run.file_id))
        return _TableStreams(stack.ids_of(system_files), of_run)


def _streams_of_tables(stack: Stack, settings: ExtractionSettings) -> list[_TableStreams]:
    if settings.all_files:
        system_files = [np.zeros(0, np.uint64)] * len(stack.tables)
    else:
        system_files = stack.system_files
    return [
        _streams_of_table(stack, index, of_table, settings.layer)
        for index, of_table in enumerate(system_files)
    ]


def _streams_of_table(
    stack: Stack, index: int, system_files: NDArray[np.uint64], layer: str
) -> _TableStreams:
    read = stack.streams[index]
    if read is None:
        return _TableStreams(system_files)
    if stack.has_several:
        sound = of_sound_logs(read, system_files, layer)
    else:
        sound = sound_streams(read, system_files, layer, stack.logs[index].path)
    everything, used = sound.streams, sound.used
    if index:
        delay_seconds = stack.runs[0].delays_seconds[index]
        everything, used = (in_run(one, index, delay_seconds) for one in (everything, used))
    return _TableStreams(system_files, everything, used, sound.lacking, sound.warnings)


def check_streams(log: DarshanLog) -> None:
    """Raise DamagedLogError when the counters of a log are impossible."""
    streams = read_streams(log.records)
    if streams is not None:
        sound_streams(streams, system_file_ids(log), DEFAULTS.layer, log.path)
