"""The phases of many logs, which are read on all cores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from signal import SIGKILL
from typing import Generic, TypeAlias, TypeVar

from ioncast_base.errors import InputError, IoncastError
from ioncast_base.workers import Killed, results_in_order, usable_cores
from summario.phases.extract import extract_run
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.values import Extraction
from summario.reading.job import DarshanJob
from summario.reading.log import PHASE_MODULES, DarshanLog
from summario.reading.sources import Source, read_source
from summario.runs.joining import Join, runs_among, told_apart
from summario.runs.logs_of_run import Run, named, run_of

Result = TypeVar("Result")
_Item = TypeVar("_Item")

# While other processes start, this one reads as many runs, or as many bytes.
FEW = 20
_FEW_BYTES = 1 << 20

Logs: TypeAlias = tuple[Source, ...] | IoncastError
"""The logs of a run, or an error in the place of logs that were not found."""
Reader: TypeAlias = Callable[[Source], DarshanLog]


@dataclass(frozen=True)
class FromRun(Generic[Result]):
    """A value that was computed from a run.

    `name` is the path of its first log, and how many more there are. `result` is None without a log
    that can be used. `jobs` are the job records of such logs, as far as `runs_among` needs them.
    `errors` has the reason for each log that cannot be used.
    """

    name: str
    result: Result | None
    jobs: tuple[DarshanJob, ...]
    errors: tuple[IoncastError, ...]


def find_runs(sources: Sequence[Source | IoncastError], join: Join | None) -> list[Logs]:
    """Group logs by run (see `runs_among`), in the order of their first logs.

    Without `join` each log is a run, and always a log without a readable job record. An error is in
    the place of logs that were not found.
    """
    if join is None:
        return [each if isinstance(each, IoncastError) else (each,) for each in sources]
    found = dict(enumerate(find_runs(sources, None)))
    logs: dict[int, tuple[Source, DarshanJob]] = {}
    for place, job in enumerate(_on_all_cores(_job_of, sources, _file_bytes)):
        source = sources[place]
        if isinstance(source, Source) and isinstance(job, DarshanJob):
            logs[place] = (source, job)
    places = list(logs)
    for run in runs_among([job for _, job in logs.values()], join):
        members = [places[member] for member in run]
        for place in members:
            del found[place]
        found[min(members)] = tuple(logs[place][0] for place in members)
    return [found[place] for place in sorted(found)]


def extract_all(
    runs: Sequence[Logs],
    settings: ExtractionSettings = DEFAULTS,
    modules: Collection[str] = PHASE_MODULES,
) -> Iterator[FromRun[Extraction]]:
    """Extract the phases of runs of `find_runs`, in their order; many runs on all cores."""
    return from_all(runs, partial(extract_run, settings=settings), modules)


def from_all(
    runs: Sequence[Logs],
    result_of: Callable[[Run], Result],
    modules: Collection[str] = PHASE_MODULES,
    other_reader: Reader | None = None,
) -> Iterator[FromRun[Result]]:
    """Compute something from each run, as `extract_all` computes phases.

    A reader other than ioncast's own may crash, so it never runs in this process.
    """
    read = other_reader or partial(read_source, modules=modules)
    compute = partial(_compute, result_of=result_of, read=read)
    results = (
        _on_all_cores(compute, runs, _total_bytes)
        if other_reader is None
        else results_in_order(compute, runs, usable_cores())
    )
    remedy = (
        "use the log of another run" if other_reader is None else "read it with ioncast's reader"
    )
    for logs, found in zip(runs, results, strict=True):
        yield _failed(_lost(logs, found, remedy)) if isinstance(found, Killed) else found


def _compute(logs: Logs, result_of: Callable[[Run], Result], read: Reader) -> FromRun[Result]:
    if isinstance(logs, IoncastError):
        return _failed(logs)
    try:
        return _from_usable(logs, result_of, read)
    except MemoryError:
        return _failed(_out_of_memory(_name(logs), "the memory is not enough to read it"))


def _from_usable(
    sources: tuple[Source, ...], result_of: Callable[[Run], Result], read: Reader
) -> FromRun[Result]:
    logs, errors = _tried(read, sources)
    return _from_logs(logs, errors, result_of) if logs else _failed(*errors)


def _from_logs(
    logs: list[DarshanLog], errors: list[IoncastError], result_of: Callable[[Run], Result]
) -> FromRun[Result]:
    run = run_of(logs)
    try:
        result = result_of(run)
    except IoncastError as error:
        sound, unsound = _tried(partial(_usable, result_of=result_of), run.logs)
        if not sound or not unsound:
            return _failed(*errors, *(unsound or [error]))
        # Logs that are sound one by one may still have too many bytes together.
        return _from_logs(sound, [*errors, *unsound], result_of)
    jobs = tuple(told_apart(log.job) for log in run.logs)
    return FromRun(run.name, result, jobs, tuple(errors))


def _usable(log: DarshanLog, result_of: Callable[[Run], object]) -> DarshanLog:
    result_of(Run((log,)))
    return log


def _tried(
    function: Callable[[_Item], Result], items: Iterable[_Item]
) -> tuple[list[Result], list[IoncastError]]:
    """Apply a function to each item; return the results and the errors."""
    results, errors = [], []
    for item in items:
        try:
            results.append(function(item))
        except IoncastError as error:
            errors.append(error)
    return results, errors


def _job_of(source: Source | IoncastError) -> DarshanJob | None:
    """Read the job record of a log; None if it cannot be read, which `from_all` reports."""
    try:
        return None if isinstance(source, IoncastError) else read_source(source, modules=()).job
    except (IoncastError, MemoryError):
        return None


def _on_all_cores(
    function: Callable[[_Item], Result],
    items: Sequence[_Item],
    bytes_of: Callable[[_Item], int],
) -> Iterator[Result | Killed]:
    are_few = len(items) < 2 or (len(items) <= FEW and sum(map(bytes_of, items)) <= _FEW_BYTES)
    return map(function, items) if are_few else results_in_order(function, items, usable_cores())


def _total_bytes(logs: Logs) -> int:
    return 0 if isinstance(logs, IoncastError) else sum(map(_file_bytes, logs))


def _file_bytes(source: Source | IoncastError) -> int:
    if isinstance(source, IoncastError):
        return 0
    try:
        return Path(source.name).stat().st_size
    except OSError:
        return 0


def _name(logs: tuple[Source, ...]) -> str:
    return named([log.name for log in logs])


def _failed(*errors: IoncastError) -> FromRun[Result]:
    return FromRun("", None, (), errors)


def _lost(logs: Logs, killed: Killed, remedy: str) -> IoncastError:
    if isinstance(logs, IoncastError):
        return logs
    if killed.signal == SIGKILL:
        return _out_of_memory(_name(logs), "the process that read it was killed")
    how = f"ended by signal {killed.signal}" if killed.signal else "failed"
    return InputError(f"the process that read it {how}", where=_name(logs), remedy=remedy)


def _out_of_memory(name: str, what: str) -> InputError:
    return InputError(what, where=name, remedy="read it alone, or on a computer with more memory")
