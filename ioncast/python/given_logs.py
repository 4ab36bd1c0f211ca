"""The logs, reports and frames that functions of the Python interface are given."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

import pandas as pd

from ioncast.python.phase_frames import WHERE, phases_of_frame
from ioncast.python.results import Result, in_words
from ioncast_base.errors import InputError, IoncastError
from predictor.curve.asking import read_phases
from summario.phases.extract import extract_run
from summario.phases.many import find_runs, from_all
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.values import Extraction
from summario.reading.pydarshan import log_of_report
from summario.reading.sources import Source, find_sources
from summario.runs.given_run import read_run
from summario.runs.hosts import NodeCount
from summario.runs.joining import Join
from summario.runs.logs_of_run import Run, run_of

if TYPE_CHECKING:
    from darshan import DarshanReport

_T = TypeVar("_T")

Path: TypeAlias = "str | PathLike[str]"
Logs: TypeAlias = "Path | DarshanReport | Sequence[Path | DarshanReport]"
"""Logs, folders of logs and patterns by their paths, or reports of PyDarshan."""
Phases: TypeAlias = "Logs | pd.DataFrame | Result"
"""The logs of one run, a CSV of phases by its path, or a result of `phases`, or its frame."""

_REMEDY = "give a path, a report of PyDarshan, or a list of them"


class FromRuns(NamedTuple):
    """The results of runs by the names of their first logs, and sentences about limits."""

    named: list[tuple[str, Any]]
    warnings: tuple[str, ...]


def paths_of(logs: Logs) -> list[str]:
    """The paths of logs; of a report it is the path of its log."""
    return [each if isinstance(each, str) else str(each.filename) for each in _items(logs)]


def from_runs(
    logs: Logs, join: Join | None, result_of: Callable[[Run], _T], modules: Sequence[str]
) -> FromRuns:
    """Compute something from each run of logs, many runs on all cores.

    A log of a folder or of a pattern that cannot be read becomes a warning, if others can be read.

    Raises
    ------
    IoncastError
        When a log that is named itself cannot be read, or no log.
    """
    items = _items(logs)
    paths = [each for each in items if isinstance(each, str)]
    sources = list(find_sources(paths))
    named: list[tuple[str, Any]] = []
    unread: list[IoncastError] = []
    runs = find_runs(sources, join)
    for logs_of_run, found in zip(runs, from_all(runs, result_of, modules), strict=True):
        if found.errors and _is_named(logs_of_run, paths):
            raise found.errors[0]
        unread += found.errors
        if found.result is not None:
            named.append((found.name, found.result))
    for run in map(_run_of_report, (each for each in items if not isinstance(each, str))):
        named.append((run.name, result_of(run)))
    if unread and not named:
        raise unread[0]
    return FromRuns(named, tuple(map(str, unread)))


def run_of_logs(logs: Phases, join: Join, need: str, modules: Sequence[str]) -> Run:
    """Read the logs of one run, whose counters are needed too, for instance "that advice needs"."""
    if isinstance(logs, (pd.DataFrame, Result)):
        raise InputError(f"phases do not have the counters {need}", where=WHERE, remedy="give logs")
    items = _items(logs)
    reports = [each for each in items if not isinstance(each, str)]
    if not reports:
        return read_run(items, join, need, modules)
    if len(reports) < len(items):
        raise InputError("the logs of one run are either paths or reports", remedy="give paths")
    return run_of(map(log_of_report, reports))


def extraction_of(logs: Phases, join: Join, settings: ExtractionSettings) -> Extraction:
    """Read the phases of one run; those of a frame may have been edited."""
    if isinstance(logs, (pd.DataFrame, Result)):
        if settings != DEFAULTS:
            raise InputError("settings are for logs", where=WHERE, remedy="give them to `phases`")
        frame = logs.frame if isinstance(logs, Result) else logs
        return Extraction(phases_of_frame(frame), nodes=_nodes_of(logs))
    items = _items(logs)
    if all(isinstance(each, str) for each in items):
        return read_phases(items, settings, join)
    return extract_run(run_of_logs(logs, join, "", ()), settings)


def warned(runs: FromRuns, warnings_of: Callable[[Any], Sequence[str]]) -> tuple[str, ...]:
    """The warnings of runs, with their names if there are several; then the logs without."""
    several = len(runs.named) > 1
    own = [
        sentence
        for name, result in runs.named
        for sentence in in_words(name if several else "", warnings_of(result))
    ]
    return (*own, *runs.warnings)


def _nodes_of(phases: pd.DataFrame | Result) -> NodeCount | None:
    """The compute nodes of the only run of a result; a frame does not have them."""
    runs: Any = phases.details if isinstance(phases, Result) else ()
    is_one = isinstance(runs, tuple) and len(runs) == 1 and isinstance(runs[0], Extraction)
    nodes: NodeCount | None = runs[0].nodes if is_one else None
    return nodes


def _items(logs: Any) -> list[Any]:
    """List paths, as texts, and reports."""
    if isinstance(logs, (str, PathLike)) or not isinstance(logs, Sequence):
        logs = [logs]
    if not logs:
        raise InputError("no log is given", remedy=_REMEDY)
    return list(map(_item, logs))


def _item(log: Any) -> Any:
    if isinstance(log, (str, PathLike)):
        path = fspath(log)
        if isinstance(path, str):
            return path
    elif hasattr(log, "metadata") and hasattr(log, "records"):
        return log
    raise InputError(f"a log cannot be a {type(log).__name__}", remedy=_REMEDY)


def _is_named(logs: tuple[Source, ...] | IoncastError, paths: Sequence[str]) -> bool:
    """Whether one of the logs is an argument itself, or the argument has no log."""
    return isinstance(logs, IoncastError) or any(log.name in paths for log in logs)


def _run_of_report(report: DarshanReport) -> Run:
    return Run((log_of_report(report),))


def named_logs(named: Sequence[tuple[str, _T]]) -> Iterator[tuple[str, _T]]:
    """Name each run by the end of its path, and an only run not at all."""
    for name, result in named:
        yield "" if len(named) == 1 else name.rpartition("/")[2], result
