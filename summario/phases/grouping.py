"""Step 3 of the extraction (Inria RR-9366, Appendix A): merge the rows of files to phases."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS, SPATIALITIES
from summario.phases.elapsed import elapsed_times
from summario.phases.merge import FilePhases, blocks, spatialities
from summario.phases.stacks import Stack
from summario.phases.streams import Floats, Ints, Streams, changes
from summario.phases.values import Part, Phase
from summario.requests.fsyncs import fsyncs_of
from summario.requests.offsets import NOT_TOLD, Loads
from summario.requests.orders import below_of

_Number = TypeVar("_Number", np.int64, np.uint64)

_MAX_PARTS = 4


def merge_files(
    file_phases: FilePhases,
    stack: Stack,
    streams: Streams,
    threshold: float,
    time_distance: float,
    loads: Loads | None = None,
) -> list[list[Phase]]:
    """Step 3: merge rows of one run and kind that follow each other closely to one phase.

    The phases are listed by run. `streams` also has layers that are left out; `loads` are by
    process and row, if a trace tells.
    """
    spatiality = spatialities(file_phases, threshold)
    kind = _kinds(file_phases, spatiality)
    # Rows whose requests are not counted are phases of their own.
    kind = 2 * kind + (file_phases.requests == 0)
    run = stack.runs_of(file_phases.file_id)
    if stack.has_several:
        kind = (kind.max() + 1) * run + kind
    order = np.lexsort((file_phases.end, file_phases.start, kind))
    ordered_group = _close_groups(
        kind[order], file_phases.start[order], file_phases.end[order], time_distance
    )
    group = np.empty(len(order), np.int64)
    group[order] = ordered_group
    [first] = changes(ordered_group).nonzero()
    leader = order[first]

    def total(values: Ints) -> Ints:
        return np.add.reduceat(values[order], first)

    members = _members(file_phases, group, stack)
    time = _slowest_process(members, file_phases.time)
    metadata = _slowest_process(members, file_phases.metadata)
    calls = _slowest_process(members, file_phases.calls)
    elapsed = elapsed_times(file_phases, group, calls, time_distance)
    ranks = _distinct_ranks(members, stack)
    modes = _modes(group, file_phases.processes)
    parts = _merged_parts(file_phases, group)
    fsyncs = fsyncs_of(file_phases, group, stack, threshold)
    below = below_of(file_phases, group, stack, streams, threshold)
    in_blocks = np.add.reduceat(blocks(file_phases)[order], first)
    largest = [NOT_TOLD] * len(first) if loads is None else loads.largest(group)
    # Several pieces of one file count as one file.
    files = np.bincount(_distinct_pairs(group, file_phases.file_id)[0], minlength=len(first))
    start = np.minimum.reduceat(file_phases.start[order], first)
    end = np.maximum.reduceat(file_phases.end[order], first)
    partial = np.logical_or.reduceat(file_phases.partial[order], first)
    moved, requests = total(file_phases.bytes), total(file_phases.requests)
    phases: list[list[Phase]] = [[] for _ in stack.runs]
    for index, row in enumerate(leader):
        api = APIS[file_phases.api[row]]
        processes, rank = ranks[index]
        own_run = stack.runs[run[row]]
        phases[run[row]].append(
            Phase(
                job=own_run.first.id,
                start_seconds=float(start[index]),
                end_seconds=float(end[index]),
                operation=OPERATIONS[file_phases.operation[row]],
                rank=rank,
                processes=processes,
                nprocs=own_run.nprocs,
                bytes=int(moved[index]),
                io_time_seconds=float(time[index]),
                api=api,
                requests=int(requests[index]),
                spatiality=SPATIALITIES[spatiality[row]],
                file_access="shared" if file_phases.shared[row] else "unique",
                n_files=int(files[index]),
                mode_processes=int(modes[index]),
                parts=parts[index],
                partial=bool(partial[index]),
                log=own_run.name,
                metadata_seconds=None if np.isnan(metadata[index]) else float(metadata[index]),
                fsync=fsyncs[index],
                order=below[index].order,
                block_requests=(
                    below[index].block_requests
                    if api == "MPIIO" or not requests[index]
                    else float(requests[index] / in_blocks[index])
                ),
                aggregators=below[index].aggregators,
                amplification=below[index].amplification,
                elapsed_seconds=None if np.isnan(elapsed[index]) else float(elapsed[index]),
                largest_process_bytes=largest[index].process_bytes,
                largest_node_bytes=largest[index].node_bytes,
                nodes=largest[index].nodes,
            )
        )
    return [
        sorted(of_run, key=lambda phase: (phase.start_seconds, phase.end_seconds))
        for of_run in phases
    ]


def _kinds(file_phases: FilePhases, spatiality: Ints) -> NDArray[np.int16]:
    """Number the kind of each row, in 16 bits, which numpy sorts fastest."""
    kind = file_phases.shared.astype(np.int16)
    for traits, number in (
        (spatiality, len(SPATIALITIES)),
        (file_phases.operation, len(OPERATIONS)),
        (file_phases.api, len(APIS)),
    ):
        kind = (kind * number + traits).astype(np.int16)
    return kind


def _close_groups(
    kind: NDArray[np.int16] | Ints, start: Floats, end: Floats, time_distance: float
) -> Ints:
    """Number the groups of rows, which are sorted by kind and start."""
    new = changes(kind)
    edges = [*np.flatnonzero(new).tolist(), len(kind)]
    for first, last in itertools.pairwise(edges):
        if last - first > 1:
            latest = np.maximum.accumulate(end[first : last - 1])
            new[first + 1 : last] = start[first + 1 : last] > latest + time_distance
    group: Ints = new.cumsum() - 1
    return group


@dataclass(frozen=True)
class _Members:
    """The processes of all rows, and the distinct (group, log) and (group, log, rank).

    Each process has a `row` and its (group, log, rank), `process`. `process_log`, `common_log` are
    (group, log) of each (group, log, rank), and of `common_row`, which stands for all processes of
    a log. `log_group` and `log_index` are the group and the log of each (group, log).
    """

    groups: int
    row: Ints
    process: Ints
    process_log: Ints
    process_rank: Ints
    common_row: Ints
    common_log: Ints
    log_group: Ints
    log_index: Ints


def _members(file_phases: FilePhases, group: Ints, stack: Stack) -> _Members:
    row, rank = file_phases.member_row, file_phases.member_rank
    groups = int(group.max()) + 1
    if len(stack.tables) > 1:
        log_group, log_index, log = _distinct_pairs(group[row], file_phases.member_log)
    else:
        # A group has one log.
        log_group, log_index, log = np.arange(groups), np.zeros(groups, np.int64), group[row]
        log_index[log] = file_phases.member_log
    common = rank < 0
    process_log, process_rank, process = _distinct_pairs(log[~common], rank[~common])
    return _Members(
        groups=groups,
        row=row[~common],
        process=process,
        process_log=process_log,
        process_rank=process_rank,
        common_row=row[common],
        common_log=log[common],
        log_group=log_group,
        log_index=log_index,
    )


def _slowest_process(members: _Members, times: Floats) -> Floats:
    """Compute the longest time of a process in each group, from the times of the rows.

    A process uses its files in turn, so their times add up; processes work in parallel.
    """
    logs = len(members.log_group)
    common = np.bincount(members.common_log, times[members.common_row], minlength=logs)
    longest, slowest = np.zeros(logs), np.zeros(members.groups)
    # NumPy warns of NaN, which is an unknown time.
    with np.errstate(invalid="ignore"):
        own = np.bincount(members.process, times[members.row])
        np.maximum.at(longest, members.process_log, own)
        np.maximum.at(slowest, members.log_group, common + longest)
    return slowest


def _distinct_ranks(members: _Members, stack: Stack) -> list[tuple[int, int | None]]:
    """Count the processes of each group; a group of one process also gets its rank."""
    counts = np.bincount(members.process_log, minlength=len(members.log_group))
    counts[members.common_log] = stack.processes[members.log_index[members.common_log]]
    # The ranks of a log come after those of the logs before it.
    before = stack.first_ranks[members.log_index[members.process_log]]
    rank = np.full(members.groups, -1)
    rank[members.log_group[members.process_log]] = members.process_rank + before
    rank[members.log_group[members.common_log]] = -1
    total = np.zeros(members.groups, np.int64)
    np.add.at(total, members.log_group, counts)
    return [
        (count, one if count == 1 and one >= 0 else None)
        for count, one in zip(total.tolist(), rank.tolist(), strict=True)
    ]


def _distinct_pairs(left: Ints, right: NDArray[_Number]) -> tuple[Ints, NDArray[_Number], Ints]:
    """List the distinct (left, right) pairs, and the index of each row's pair."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    new = changes(left, right)
    index = np.empty(len(order), np.int64)
    index[order] = new.cumsum() - 1
    return left[new], right[new], index


def _modes(group: Ints, values: Ints) -> Ints:
    """Find the most frequent value of each group; of several the smallest."""
    pair_group, pair_value, pair = _distinct_pairs(group, values)
    frequency = np.bincount(pair)
    best = np.lexsort((-pair_value.astype(np.int64), frequency, pair_group))
    last_of_group = np.bincount(pair_group).cumsum() - 1
    modes: Ints = pair_value[best[last_of_group]].astype(np.int64)
    return modes


def _merged_parts(file_phases: FilePhases, group: Ints) -> list[tuple[Part, ...]]:
    """Merge each group's requests by size; the smallest parts become one part."""
    part_group = group[file_phases.part_row]
    order = np.lexsort((file_phases.part_size, part_group))
    size = file_phases.part_size[order]
    part_group = part_group[order]
    [first] = changes(part_group, size).nonzero()
    merged: list[list[Part]] = [[] for _ in range(int(group.max()) + 1)]
    if len(first):
        requests = np.add.reduceat(file_phases.part_requests[order], first)
        moved = np.add.reduceat(file_phases.part_bytes[order], first)
        for index, start in enumerate(first):
            merged[part_group[start]].append(Part(int(requests[index]), int(moved[index])))
    return [_largest(parts) for parts in merged]


def _largest(parts: list[Part]) -> tuple[Part, ...]:
    parts = sorted(parts, key=lambda part: part.bytes, reverse=True)
    if len(parts) <= _MAX_PARTS:
        return tuple(parts)
    rest = parts[_MAX_PARTS:]
    other = Part(sum(part.requests for part in rest), sum(part.bytes for part in rest))
    return (*parts[:_MAX_PARTS], other)
