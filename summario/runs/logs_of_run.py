"""One run of an application: a log, or the logs of processes that Darshan could not join.

Without MPI each process writes its own, for example with Python's multiprocessing or Dask.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ioncast_base.limits import MOST_BYTES
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted
from summario.reading.job import DarshanJob
from summario.reading.log import DarshanLog
from summario.reading.records import Records

_BYTES = re.compile("(POSIX|MPIIO|STDIO)_BYTES_(READ|WRITTEN)")


@dataclass(frozen=True)
class Run:
    """The logs of one run, the earliest first; `run_of` makes it.

    `left_out` has a sentence if there were copies of logs.
    """

    logs: tuple[DarshanLog, ...]
    left_out: tuple[str, ...] = ()

    @property
    def first(self) -> DarshanJob:
        """The job record of the earliest log."""
        return self.logs[0].job

    @property
    def program(self) -> str:
        """The executable that moved most bytes: launchers may log too. Of equals the earliest."""
        moved: dict[str, int] = {}
        for log in self.logs:
            [program, *_] = log.job.executable.split(maxsplit=1) or [""]
            moved[program] = moved.get(program, 0) + sum(map(_moved_bytes, log.records.values()))
        return max(moved, key=lambda program: moved[program])

    @property
    def name(self) -> str:
        """The path of the earliest log, and how many more there are."""
        return named([log.path for log in self.logs])

    @cached_property
    def delays_seconds(self) -> list[float]:
        """The time from the start of the run to the start of each log."""
        return [log.job.start_seconds - self.first.start_seconds for log in self.logs]

    @cached_property
    def processes(self) -> NDArray[np.int64]:
        """The number of processes of each log."""
        return np.array([log.job.nprocs for log in self.logs], np.int64)

    @cached_property
    def nprocs(self) -> int:
        """The number of processes of all logs."""
        return sum(log.job.nprocs for log in self.logs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences about data that the logs lack; see `warned`."""
        paths = [log.path for log in self.logs]
        return (*self.left_out, *warned(paths, [log.warnings for log in self.logs]))


def run_of(logs: Iterable[DarshanLog]) -> Run:
    """Make a run of at least one log; a copy of another one is left out, with a warning."""
    alike: dict[DarshanJob, list[DarshanLog]] = {}
    for log in logs:
        alike.setdefault(log.job, []).append(log)
    kept, copies = [], []
    for of_job in alike.values():
        seen: set[bytes] = set()
        for log in of_job:
            # Reading the content of a large log once more takes long, and most jobs have one log.
            content = _digest(log) if len(of_job) > 1 else b""
            if content in seen:
                copies.append(visible(Path(log.path).name))
            else:
                seen.add(content)
                kept.append(log)
    kept.sort(key=lambda log: log.job.start_seconds)
    return Run(tuple(kept), (f"{named(copies)}: a copy is not counted",) if copies else ())


def _digest(log: DarshanLog) -> bytes:
    """Hash the names, records and traces of a log, but not its job record."""
    digest = hashlib.sha256(repr(sorted(log.names.items())).encode("utf-8", "surrogateescape"))
    contents = {module: records.words.tobytes() for module, records in log.records.items()}
    for module, content in sorted((contents | log.traces).items()):
        digest.update(f"{module} {len(content)} ".encode())
        digest.update(content)
    return digest.digest()


def _moved_bytes(records: Records) -> int:
    names = [name for name in records.columns if _BYTES.fullmatch(name)]
    # Some versions of Darshan write impossible numbers.
    counts = np.clip(records.integers(*names), 0, MOST_BYTES)
    return int(counts.sum(dtype=np.float64))


def named(paths: Sequence[str]) -> str:
    """Name several logs, such as "logs/a.darshan and 1 more log"."""
    more = f" and {counted(len(paths) - 1, 'more log')}" if len(paths) > 1 else ""
    return f"{paths[0]}{more}"


def warned(paths: Sequence[str], warnings: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Gather the warnings of each log; a sentence that not all logs have names its logs.

    Examples
    --------
    >>> warned(["a.darshan", "b.darshan"], [("It is partial",), ("It is partial", "It ends")])
    ('It is partial', 'b.darshan: It ends')
    """
    logs: dict[str, list[str]] = {}
    for path, sentences in zip(paths, warnings, strict=True):
        for sentence in sentences:
            logs.setdefault(sentence, []).append(visible(Path(path).name))
    return tuple(
        sentence if len(names) == len(paths) else f"{named(names)}: {sentence}"
        for sentence, names in logs.items()
    )
