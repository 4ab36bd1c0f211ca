"""Logs that a client sent, read as one run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from ioncast_base.errors import InputError
from summario.phases.extract import check_streams
from summario.reading.log import DarshanLog, decode_log
from summario.runs.joining import one_run
from summario.runs.logs_of_run import Run, run_of


@dataclass(frozen=True)
class Upload:
    """A file that a client sent."""

    path: str
    name: str
    sha256: str


def run_of_uploads(uploads: Sequence[Upload], modules: Collection[str]) -> Run:
    """Read these modules of the logs of one run, which errors call as the client does."""
    if len(uploads) == 1:
        return Run((_log(uploads[0], modules),))
    logs = _logs(uploads, modules)
    names = [upload.name for upload in uploads]
    one_run([log.job for log in logs], names, "steps", "send the logs of each run by themselves")
    return run_of(logs)


def _logs(uploads: Sequence[Upload], modules: Collection[str]) -> list[DarshanLog]:
    """Read all logs; the error is that of the first one that cannot be used, and names all."""
    logs, bad = [], []
    first: InputError | None = None
    for place, upload in enumerate(uploads):
        try:
            log = _log(upload, modules)
            check_streams(log)
        except InputError as error:
            first = first or error
            bad.append((place, error.what))
        else:
            logs.append(log)
    if first is not None:
        first.items = tuple(bad)
        raise first
    return logs


def _log(upload: Upload, modules: Collection[str]) -> DarshanLog:
    with Path(upload.path).open("rb") as file:
        return decode_log(file, upload.name, modules=modules)
