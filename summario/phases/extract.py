"""Extraction of I/O phases from a Darshan log, by Inria RR-9366, Appendix A.

The steps are functions on tables: read streams (`summario.phases.streams`), keep one layer for
each file, merge ranks (`summario.phases.merge`), split at pauses (`summario.phases.pauses`), merge
files (`summario.phases.grouping`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import InputError
from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.wording import size
from summario.phases.grouping import merge_files
from summario.phases.merge import FilePhases, merge_ranks
from summario.phases.pauses import has_trace, split_at_pauses
from summario.phases.sanity import check_sums, sound_streams
from summario.phases.selection import system_file_ids, without_small
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.streams import MODULE_OF_API, Streams, concatenate, in_run, streams_of
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
    whole = _phases(run, settings)
    found = without_small(whole.phases, settings.min_share)
    warnings = (*run.warnings, *whole.warnings, *found.warnings)
    return Extraction(found.phases, warnings, count_nodes(run.logs), run.logs[0].job.id)


def extract_phases(log: DarshanLog, settings: ExtractionSettings = DEFAULTS) -> list[Phase]:
    """Extract the phases of a log without the warnings; see `extract`."""
    return list(extract(log, settings).phases)


def _phases(run: Run, settings: ExtractionSettings) -> Extraction:
    if settings.phases == "dxt" and not has_trace(run):
        raise InputError(
            "the log has no DXT trace",
            where=run.name,
            remedy="leave out --phases dxt, or set DXT_ENABLE_IO_TRACE while the program runs",
        )
    logs = [_streams_of_log(run, index, settings) for index in range(len(run.logs))]
    paths = [log.path for log in run.logs]
    used = [each.used for each in logs if each.used is not None]
    if not any(each.bytes.any() for each in used):
        reasons = [each.warnings + each.why_no_phases(settings) for each in logs]
        return Extraction((), warned(paths, reasons))
    everything = concatenate([each.all for each in logs if each.all is not None])
    check_sums(everything, run.name)
    split = split_at_pauses(
        merge_ranks(concatenate(used), run.processes), run, everything, settings.time_distance
    )
    told = told_by_trace(split.file_phases, run) if settings.phases == "dxt" else None
    rows = split.file_phases if told is None else told.file_phases
    loads = None if told is None else told.loads
    phases = merge_files(rows, run, everything, settings.threshold, settings.time_distance, loads)
    lacking = frozenset[str]().union(*(each.lacking for each in logs))
    phases = [
        replace(phase, partial=True) if phase.api in lacking else phase
        for phase in phases
        if phase.bytes
    ]
    warnings = (*warned(paths, [each.warnings for each in logs]), *split.warnings)
    by_trace = () if told is None else told.warnings
    return Extraction(tuple(phases), (*warnings, *by_trace, *_uncounted(phases)))


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
    logs = [_streams_of_log(run, index, settings) for index in range(len(run.logs))]
    used = [log.used for log in logs if log.used is not None]
    return merge_ranks(concatenate(used), run.processes)


@dataclass(frozen=True)
class _LogStreams:
    """A log's streams, None without any; of `lacking` apis, impossible records are left out."""

    log: DarshanLog
    system_files: NDArray[np.uint64]
    all: Streams | None = None
    used: Streams | None = None
    lacking: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    def why_no_phases(self, settings: ExtractionSettings) -> tuple[str, ...]:
        """Say why no stream is left, in sentences for people."""
        return why_no_phases(self.log, self.all, self.system_files, settings)


def _streams_of_log(run: Run, index: int, settings: ExtractionSettings) -> _LogStreams:
    log = run.logs[index]
    system_files = np.zeros(0, np.uint64) if settings.all_files else system_file_ids(log)
    read = read_streams(log)
    if read is None:
        return _LogStreams(log, system_files)
    sound = sound_streams(read, system_files, settings.layer, log.path)
    everything, used = sound.streams, sound.used
    if index:
        delay_seconds = run.delays_seconds[index]
        everything, used = (in_run(one, index, delay_seconds) for one in (everything, used))
    return _LogStreams(log, system_files, everything, used, sound.lacking, sound.warnings)


def check_streams(log: DarshanLog) -> None:
    """Raise DamagedLogError when the counters of a log are impossible."""
    streams = read_streams(log)
    if streams is not None:
        sound_streams(streams, system_file_ids(log), DEFAULTS.layer, log.path)


def read_streams(log: DarshanLog) -> Streams | None:
    """Step 1: read a row for each (file, api, operation, rank); None if nothing was moved."""
    tables = [
        streams_of(
            log.records[MODULE_OF_API[api]],
            api,
            operation,
            log.job.nprocs,
            below=log.records.get("POSIX") if api == "MPIIO" else None,
        )
        for api in APIS
        if MODULE_OF_API[api] in log.records
        for operation in OPERATIONS
    ]
    used = [table for table in tables if table is not None]
    return concatenate(used) if used else None
