"""The logs that a command was given, as one run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ioncast_base.errors import InputError, IoncastError
from summario.reading.sources import find_sources, read_source
from summario.runs.joining import Join, one_run
from summario.runs.logs_of_run import Run, run_of


def read_run(sources: Sequence[str], join: Join, need: str, modules: Sequence[str]) -> Run:
    """Read the logs of one run, whose counters are needed too; a CSV of phases is an InputError.

    `need` is the use of the counters, as a clause: "that --verify compares".
    """
    if is_csv(sources):
        raise InputError(
            f"a CSV of phases does not have the counters {need}",
            where=sources[0],
            remedy="give the log",
        )
    return run_of_files(sources, join, modules)


def run_of_files(sources: Sequence[str], join: Join, modules: Sequence[str]) -> Run:
    """Read the logs of one run; those of several runs are an InputError."""
    logs = []
    for found in find_sources(sources):
        if isinstance(found, IoncastError):
            raise found
        logs.append(found)
    if len(logs) > 1:
        jobs = [read_source(log, modules=()).job for log in logs]
        one_run(jobs, [log.name for log in logs], join, "give the logs of one run")
    return run_of(read_source(log, modules) for log in logs)


def is_csv(sources: Sequence[str]) -> bool:
    """Whether the only source is a CSV file."""
    return len(sources) == 1 and Path(sources[0]).suffix.lower() == ".csv"
