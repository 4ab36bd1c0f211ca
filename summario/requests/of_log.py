"""The phases of a run that its trace shows, as `ioncast phases --trace` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ioncast_base.errors import InputError
from ioncast_base.kinds import Api
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted
from summario.phases.selection import system_file_ids
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.reading.dxt import DXT_MODULES
from summario.reading.file_ids import is_among
from summario.reading.operations import operations_of
from summario.requests.trace_phases import TracePhase, are_too_many, trace_phases
from summario.runs.logs_of_run import Run
from summario.runs.stacking import stacked

# The highest layer of a file decides nothing here: each api has a trace of its own.
_APIS: dict[str, tuple[Api, ...]] = {
    "highest": ("MPIIO", "POSIX"),
    "all": ("MPIIO", "POSIX"),
    "mpiio": ("MPIIO",),
    "posix": ("POSIX",),
}


@dataclass(frozen=True)
class TracePhaseOfLog:
    """A trace phase, with the job of its log, the number of the job's processes, and the log."""

    job: int
    nprocs: int
    log: str
    phase: TracePhase


@dataclass(frozen=True)
class TraceOfRun:
    """The trace phases of a run, MPI-IO first, and warnings about its trace, a sentence each.

    A folder may have thousands of logs without a trace, so `is_missing` takes the place of a
    warning; see `missing_traces`.
    """

    phases: tuple[TracePhaseOfLog, ...]
    warnings: tuple[str, ...]
    is_missing: bool = False


def check_settings(settings: ExtractionSettings) -> None:
    """Reject settings that mean nothing for a trace and are not the default."""
    unused = {"threshold", "min_share", "phases"} & settings.changed.keys()
    if settings.layer not in _APIS:
        unused.add("layer")
    if unused:
        option = f"--{min(unused).replace('_', '-')}"
        what = f"{option} {settings.layer}" if option == "--layer" else option
        raise InputError(f"{what} means nothing for a trace", remedy=f"leave out {option}")


def trace_run(run: Run, settings: ExtractionSettings = DEFAULTS) -> TraceOfRun:
    """Find the phases that the traces of a run show, which may have several logs."""
    if not any(DXT_MODULES.values() & log.header.modules.keys() for log in run.logs):
        return TraceOfRun((), (), is_missing=True)
    tables = [operations_of(log) for log in run.logs]
    if not settings.all_files:
        tables = [
            table.take(~is_among(table.file_id, system_file_ids(log)))
            for log, table in zip(run.logs, tables, strict=True)
        ]
    operations = stacked(run, tables)
    warnings = [*run.warnings, *operations.warnings]
    phases: list[TracePhase] = []
    for api in _APIS[settings.layer]:
        found = trace_phases(operations, api, time_distance=settings.time_distance)
        if are_too_many(found):
            warnings.append(
                f"{counted(len(found), f'{api} phase')} are many, because the pauses between them"
                " are shorter than the phases"
            )
        phases += found
    return TraceOfRun(
        tuple(TracePhaseOfLog(run.first.id, run.nprocs, run.name, phase) for phase in phases),
        tuple(warnings),
    )


def missing_traces(names: Sequence[str], runs: int) -> str:
    """Write one warning about all runs without a trace."""
    one = f"{visible(names[0])}: the log has"
    several = f"{len(names):,} of {runs:,} runs have"
    return (
        f"{one if len(names) == 1 else several} no trace: Darshan writes one if"
        " DXT_ENABLE_IO_TRACE is set while the program runs"
    )
