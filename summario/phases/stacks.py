"""Runs in one table: a computation on columns costs a small log as much as a thousand of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from summario.phases.sanity import are_sound
from summario.phases.selection import system_file_ids
from summario.phases.streams import Ints, Streams, changes, read_streams
from summario.reading.file_ids import is_among
from summario.reading.log import RECORD_MODULES, DarshanLog
from summario.reading.records import Records
from summario.runs.logs_of_run import Run

Ids = NDArray[np.uint64]


@dataclass(frozen=True)
class Stack:
    """One run, or several runs of one log each with the same counters; see `stacks_of`.

    `tables` has the records by module: of each log of one run, or of all runs together. One run's
    file ids are its record ids. Files of several runs are numbered, so that they never share an id:
    `record_ids` has the record id of each, and those of each run begin at `first_files`.
    """

    runs: tuple[Run, ...]
    tables: tuple[Mapping[str, Records], ...]
    record_ids: Ids
    first_files: Ints

    @property
    def has_several(self) -> bool:
        """Whether there are several runs, each of which is a log."""
        return len(self.runs) > 1

    @cached_property
    def logs(self) -> tuple[DarshanLog, ...]:
        """The logs of all runs."""
        return tuple(log for run in self.runs for log in run.logs)

    @cached_property
    def processes(self) -> Ints:
        """The number of processes of each log."""
        return np.concatenate([run.processes for run in self.runs])

    @cached_property
    def first_ranks(self) -> Ints:
        """The process of its run that is rank 0 in each log."""
        before = np.cumsum(self.processes) - self.processes
        return np.zeros_like(before) if self.has_several else before

    def records(self, module: str) -> list[Records]:
        """List the tables of a module."""
        return [table[module] for table in self.tables if module in table]

    def runs_of_logs(self, log: Ints) -> Ints:
        """Find the run of each log."""
        return log if self.has_several else np.zeros_like(log)

    def runs_of(self, files: Ids) -> Ints:
        """Find the run of each file."""
        if not self.has_several:
            return np.zeros(len(files), np.int64)
        found: Ints = np.searchsorted(self.first_files, files.astype(np.int64), side="right") - 1
        return found

    def ids_of(self, files: Ids) -> Ids:
        """Find the record id of each file."""
        return self.record_ids[files] if self.has_several else files

    @cached_property
    def streams(self) -> list[Streams | None]:
        """The streams of each table, see `read_streams`."""
        return list(map(read_streams, self.tables))

    @cached_property
    def system_files(self) -> list[Ids]:
        """The files of the system in each table."""
        found = [system_file_ids(log) for log in self.logs]
        if not self.has_several:
            return found
        edges = pairwise([*self.first_files.tolist(), len(self.record_ids)])
        are_of_system = [
            is_among(self.record_ids[slice(*files)], ids)
            for files, ids in zip(edges, found, strict=True)
        ]
        return [np.flatnonzero(np.concatenate(are_of_system)).astype(np.uint64)]


def stacked(runs: Sequence[Run]) -> Stack:
    """Stack one run, or several runs of one log each with the same counters and sound records."""
    if len(runs) == 1:
        tables = tuple(log.records for log in runs[0].logs)
        return Stack(tuple(runs), tables, np.zeros(0, np.uint64), np.zeros(0, np.int64))
    of_logs = [run.logs[0].records for run in runs]
    modules = [module for module in RECORD_MODULES if module in of_logs[0]]
    sizes = [[len(records[module].words) for records in of_logs] for module in modules]
    words = {module: np.concatenate([each[module].words for each in of_logs]) for module in modules}
    log = [np.repeat(np.arange(len(runs)), size) for size in sizes]
    nothing = np.zeros(0, np.int64)
    ids = np.concatenate([nothing, *(each[:, 0] for each in words.values())]).view(np.uint64)
    of_log = np.concatenate([nothing, *log])
    number = _numbered(ids, of_log)
    files = number.max(initial=-1) + 1
    record_ids, run_of_file = np.zeros(files, np.uint64), np.zeros(files, np.int64)
    record_ids[number], run_of_file[number] = ids, of_log
    nprocs = np.array([run.nprocs for run in runs], np.int64)
    table, end = {}, 0
    for module, own_log in zip(modules, log, strict=True):
        begin, end = end, end + len(own_log)
        words[module][:, 0] = number[begin:end]
        first = of_logs[0][module]
        table[module] = Records(
            module, words[module], first.columns, first.partial, nprocs[own_log], own_log
        )
    return Stack(
        tuple(runs), (table,), record_ids, np.searchsorted(run_of_file, np.arange(len(runs)))
    )


def _numbered(ids: Ids, log: Ints) -> Ints:
    """Number the distinct (log, id) in ascending order."""
    order = np.lexsort((ids, log))
    number = np.empty(len(order), np.int64)
    if len(order):
        number[order] = changes(log[order], ids[order]).cumsum() - 1
    return number


def stacks_of(runs: Sequence[Run]) -> Iterator[tuple[list[int], Stack]]:
    """Stack runs that are alike; yield the places of its runs with each stack.

    A run of several logs, or with an impossible number, is a stack of its own.
    """
    alike: dict[Any, list[int]] = {}
    for place, run in enumerate(runs):
        alike.setdefault(_counters(run) if len(run.logs) == 1 else place, []).append(place)
    for places in alike.values():
        stack = stacked([runs[place] for place in places])
        is_sound = _are_sound(stack) if stack.has_several else np.ones(1, bool)
        if is_sound.all():
            yield places, stack
            continue
        for place in (place for place, sound in zip(places, is_sound, strict=True) if not sound):
            yield [place], stacked([runs[place]])
        rest = [place for place, sound in zip(places, is_sound, strict=True) if sound]
        if rest:
            yield rest, stacked([runs[place] for place in rest])


def _counters(run: Run) -> tuple[tuple[str, int, bool], ...]:
    """Tell which counters a log has; stacked records are all partial, or none of them is."""
    [log] = run.logs
    return tuple(
        (module, log.header.module_versions[module], log.records[module].partial)
        for module in RECORD_MODULES
        if module in log.records
    )


def _are_sound(stack: Stack) -> NDArray[np.bool_]:
    """Tell which runs have possible numbers only."""
    [streams] = stack.streams
    if streams is None:
        return np.ones(len(stack.runs), bool)
    return are_sound(streams, len(stack.runs))
