"""Runs in one table: a computation on columns costs a small log as much as a thousand of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from summario.phases.sanity import sound_logs
from summario.phases.selection import system_file_ids
from summario.phases.streams import Ints, Streams, changes, read_streams
from summario.reading.file_ids import is_among
from summario.reading.log import RECORD_MODULES, DarshanLog
from summario.reading.records import Records
from summario.runs.logs_of_run import Run

Ids = NDArray[np.uint64]
# The version of each module, and whether its records are partial.
_Counters = dict[str, tuple[int, bool]]


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
        of_run = tuple(log.records for log in runs[0].logs)
        return Stack(tuple(runs), of_run, np.zeros(0, np.uint64), np.zeros(0, np.int64))
    of_logs = [run.logs[0].records for run in runs]
    nprocs = np.array([run.nprocs for run in runs], np.int64)
    tables = {
        module: _joined(of_module, nprocs)
        for module in RECORD_MODULES
        if (
            of_module := [
                (place, each[module]) for place, each in enumerate(of_logs) if module in each
            ]
        )
    }
    nothing = [np.zeros(0, np.int64)]
    ids = np.concatenate([*nothing, *(table.words[:, 0] for table in tables.values())])
    log = np.concatenate([*nothing, *(table.log for table in tables.values())])
    number, end = _numbered(ids.view(np.uint64), log), 0
    for table in tables.values():
        begin, end = end, end + len(table.words)
        table.words[:, 0] = number[begin:end]
    files = number.max(initial=-1) + 1
    record_ids, run_of_file = np.zeros((2, files), np.int64)
    record_ids[number], run_of_file[number] = ids, log
    first_files = np.searchsorted(run_of_file, np.arange(len(runs)))
    return Stack(tuple(runs), (tables,), record_ids.view(np.uint64), first_files)


def _joined(tables: Sequence[tuple[int, Records]], nprocs: Ints) -> Records:
    """Copy the records of logs, given with their places, to one table."""
    log = np.repeat([place for place, _ in tables], [len(records.words) for _, records in tables])
    words = np.concatenate([records.words for _, records in tables])
    return replace(tables[0][1], words=words, nprocs=nprocs[log], log=log)


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
    for places in _alike(runs):
        stack = stacked([runs[place] for place in places])
        are_sound = _are_sound(stack)
        if are_sound.all():
            yield places, stack
            continue
        sound = [place for place, is_sound in zip(places, are_sound, strict=True) if is_sound]
        unsound = [
            [place] for place, is_sound in zip(places, are_sound, strict=True) if not is_sound
        ]
        for some in filter(None, (sound, *unsound)):
            yield some, stacked([runs[place] for place in some])


def _alike(runs: Sequence[Run]) -> Iterator[list[int]]:
    """Group runs of one log whose modules have the same counters; a log may lack a module."""
    groups: list[tuple[_Counters, list[int]]] = []
    counters = [_counters(run) for run in runs]
    # Logs with most modules come first, so that the others find all their modules in a group.
    for place in sorted(range(len(runs)), key=lambda place: -len(counters[place])):
        if len(runs[place].logs) > 1:
            yield [place]
            continue
        group = next((each for each in groups if _have_no_other(counters[place], each[0])), None)
        if group is None:
            groups.append((counters[place], [place]))
        else:
            group[0].update(counters[place])
            group[1].append(place)
    for _, places in groups:
        yield sorted(places)


def _have_no_other(counters: _Counters, known: _Counters) -> bool:
    """Whether modules have the known counters, or are not known."""
    return all(known.get(module, own) == own for module, own in counters.items())


def _counters(run: Run) -> _Counters:
    """Tell which counters a log has; stacked records of a module are all partial, or none is."""
    log = run.logs[0]
    return {
        module: (log.header.module_versions[module], log.records[module].partial)
        for module in RECORD_MODULES
        if module in log.records
    }


def _are_sound(stack: Stack) -> NDArray[np.bool_]:
    """Tell which of several runs have possible numbers only."""
    streams = stack.streams[0] if stack.has_several else None
    return (
        np.ones(len(stack.runs), bool) if streams is None else sound_logs(streams, len(stack.runs))
    )
