"""Layouts of files on Lustre: over which servers (OSTs) the bytes of a file are spread.

A file has one layout in version 1 of the module (Darshan 3.0 to 3.4.5), and a list of components,
each for the bytes of one extent, in version 2. The formats are in darshan-lustre-log-format.h.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ioncast_base.wording import counted
from summario.reading.log import DarshanLog
from summario.reading.names import numbered_names

NOT_RECORDED = -1
END_OF_FILE = -1

_MODULE = "LUSTRE"
_NEWEST_VERSION = 2
# Version 1: id, rank, OSTs, metadata servers, first OST, stripe size, stripes; then the OSTs.
_HEAD_WORDS_1 = 7
# Version 2: id, rank, components, stripes; then the components, then the OSTs of all stripes.
_HEAD_WORDS_2 = 4
# A component: stripe size, stripe count, pattern, flags, extent (two words), mirror, and a name.
_NUMBERS_OF_COMPONENT = 7
_COMPONENT_WORDS = 9
# Lustre's own fields for them have 16 and 32 bits.
_MOST_STRIPES = (1 << 16) - 1
_LARGEST_STRIPE_BYTES = (1 << 32) - 1

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LustreComponents:
    """A table with a row for each component of each record, in the order of the log.

    `rank` is the process that opened the file, -1 if all did. `component` counts from 0 in a
    record. `stripe_count` is the number of stripes before the first OST is used again; 0 for bytes
    on a metadata server. A component has the bytes from `extent_start` to `extent_end` - 1;
    `END_OF_FILE` has no end. `NOT_RECORDED` stands for `pattern`, `flags` and `mirror_id` in
    version 1, and for `osts`, `mdts` (of the file system) and `stripe_offset` (the file's first
    OST) in version 2.

    `pool` is an index into `pools`, where an empty name means no OST pool. `first_ost` is the index
    of the component's first OST in `ost_ids`, which has `stripe_count` OSTs of each component, -1
    if Lustre did not tell.
    """

    file_id: NDArray[np.uint64]
    rank: Ints
    component: Ints
    stripe_size_bytes: Ints
    stripe_count: Ints
    extent_start: Ints
    extent_end: Ints
    pattern: Ints
    flags: Ints
    mirror_id: Ints
    pool: Ints
    first_ost: Ints
    osts: Ints
    mdts: Ints
    stripe_offset: Ints
    ost_ids: Ints
    pools: tuple[str, ...]
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.file_id)

    def take(self, rows: NDArray[np.bool_] | Ints) -> LustreComponents:
        """Select components by a mask or by their indices."""
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS})


_COLUMNS = tuple(
    field.name
    for field in fields(LustreComponents)
    if field.name not in ("ost_ids", "pools", "warnings")
)


@dataclass(frozen=True)
class _Rows:
    """Components as the module has them, with a row for each.

    Columns: `ids` has record id and rank; `numbers` stripe size, stripe count, pattern, flags,
    extent's start and end, mirror; `file_system` OSTs, metadata servers, first OST; `pool_words`
    the pool's name, in the byte order of the log. `ost_word` is the word of the first OST, and
    `end_word` the end of the record.
    """

    record: Ints
    ids: Ints
    component: Ints
    numbers: Ints
    file_system: Ints
    pool_words: Ints
    ost_word: Ints
    end_word: Ints


def lustre_components_of(log: DarshanLog) -> LustreComponents:
    """Decode the layouts of files on Lustre.

    Damage is a warning, never an error, because the layouts are no part of the I/O itself: records
    behind a break of the data, and records with impossible numbers, are left out.
    """
    version = log.header.module_versions.get(_MODULE, _NEWEST_VERSION)
    data, warnings = log.traces.get(_MODULE, b""), []
    if version not in _ROWS_OF_VERSION:
        warnings.append(
            f"the {_MODULE} data have format {version}, but this reader knows 1 to"
            f" {_NEWEST_VERSION}; they are left out"
        )
        version, data = _NEWEST_VERSION, b""
    positions, records, end = _record_positions(data, log.header.byte_order, version)
    if end < len(data):
        warnings.append(
            f"the {_MODULE} data break off after {counted(records, 'record')}; the rest"
            f" ({counted(len(data) - end, 'byte')}) is left out"
        )
    if _MODULE in log.header.partial_modules:
        warnings.append(
            f"Darshan marked the {_MODULE} data as partial: it ran out of memory and left records"
            " out"
        )
    words = np.frombuffer(data[:end], f"{log.header.byte_order}i8")
    rows = _ROWS_OF_VERSION[version](words, np.frombuffer(positions, np.int64) // 8)
    possible = _are_possible(rows, log.job.nprocs)
    if not possible.all():
        left_out = np.zeros(len(positions), bool)
        left_out[rows.record[~possible]] = True
        possible = ~left_out[rows.record]
        warnings.append(
            f"{counted(int(left_out.sum()), f'{_MODULE} record')} left out: a rank, a stripe or an"
            " extent is impossible"
        )
    return _table(words, rows, possible, tuple(warnings))


def _record_positions(data: bytes, byte_order: str, version: int) -> tuple[array[int], int, int]:
    """Find the bytes where records with a layout begin; count all records; find their end."""
    # The last two words of a head have the numbers of components (version 2) and of stripes.
    counts_at = struct.Struct(f"{byte_order}2q").unpack_from
    head_bytes = 8 * (_HEAD_WORDS_1 if version == 1 else _HEAD_WORDS_2)
    component_bytes = 0 if version == 1 else 8 * _COMPONENT_WORDS
    positions = array("q")
    records = position = 0
    while position + head_bytes <= len(data):
        components, stripes = counts_at(data, position + head_bytes - 16)
        tail_bytes = components * component_bytes + 8 * stripes
        end = position + head_bytes + tail_bytes
        if components * component_bytes < 0 or stripes < 0 or end > len(data):
            break
        if tail_bytes:
            positions.append(position)
        records += 1
        position = end
    return positions, records, position


def _rows_1(words: Ints, first: Ints) -> _Rows:
    """Read the records of version 1, whose layout is one component."""
    heads = _words_at(words, first, _HEAD_WORDS_1)
    nothing = np.zeros(len(first), np.int64)
    unknown = np.full(len(first), NOT_RECORDED)
    to_the_end = np.full(len(first), END_OF_FILE)
    size, stripes = heads[:, 5], heads[:, 6]
    ost_word = first + _HEAD_WORDS_1
    return _Rows(
        record=np.arange(len(first)),
        ids=heads[:, :2],
        component=nothing,
        numbers=np.stack([size, stripes, unknown, unknown, nothing, to_the_end, unknown], axis=1),
        file_system=heads[:, 2:5],
        pool_words=np.zeros((len(first), 2), np.int64),
        ost_word=ost_word,
        end_word=ost_word + stripes,
    )


def _rows_2(words: Ints, first: Ints) -> _Rows:
    """Read the records of version 2, which are lists of components."""
    heads = _words_at(words, first, _HEAD_WORDS_2)
    components, stripes = heads[:, 2], heads[:, 3]
    record, component = numbered(components)
    at = first[record] + _HEAD_WORDS_2 + _COMPONENT_WORDS * component
    numbers = _words_at(words, at, _NUMBERS_OF_COMPONENT)
    # A stripe size of -1 marks the end of the components that are in use (Darshan's runtime).
    unused = numbers[:, 0] == -1
    used = ~unused & (_sum_before(unused.astype(np.int64), component) == 0)
    record, component, at, numbers = record[used], component[used], at[used], numbers[used]
    ost_word = first[record] + _HEAD_WORDS_2 + _COMPONENT_WORDS * components[record]
    end_word = ost_word + stripes[record]
    ost_word += _sum_before(np.clip(numbers[:, 1], 0, _MOST_STRIPES), component)
    return _Rows(
        record=record,
        ids=heads[record, :2],
        component=component,
        numbers=numbers,
        file_system=np.full((len(record), 3), NOT_RECORDED),
        pool_words=words[(at + _NUMBERS_OF_COMPONENT)[:, np.newaxis] + np.arange(2)],
        ost_word=ost_word,
        end_word=end_word,
    )


_ROWS_OF_VERSION = {1: _rows_1, 2: _rows_2}


def _words_at(words: Ints, at: Ints, count: int) -> Ints:
    """Read some words from each place on, shape (places, count)."""
    found: Ints = words[at[:, np.newaxis] + np.arange(count)].astype(np.int64, copy=False)
    return found


def numbered(counts: Ints) -> tuple[Ints, Ints]:
    """List the pairs (group, number in the group) of groups with so many members each."""
    group = np.repeat(np.arange(len(counts)), counts)
    return group, np.arange(len(group)) - np.repeat(np.cumsum(counts) - counts, counts)


def _sum_before(values: Ints, number: Ints) -> Ints:
    """Add up the values before each row since the last row with number 0."""
    before = np.cumsum(values) - values
    group = np.cumsum(number == 0) - 1
    sum_before: Ints = before - before[number == 0][group]
    return sum_before


def _are_possible(rows: _Rows, nprocs: int) -> NDArray[np.bool_]:
    size, stripes, _, _, start, end, _ = rows.numbers.T
    rank = rows.ids[:, 1]
    possible: NDArray[np.bool_] = (rank >= -1) & (rank < nprocs)
    possible &= (stripes >= 0) & (stripes <= _MOST_STRIPES)
    possible &= (stripes == 0) | ((size > 0) & (size <= _LARGEST_STRIPE_BYTES))
    possible &= (start >= 0) & ((end == END_OF_FILE) | (end > start))
    possible &= rows.ost_word + np.clip(stripes, 0, _MOST_STRIPES) <= rows.end_word
    return possible


def _table(
    words: Ints, rows: _Rows, possible: NDArray[np.bool_], warnings: tuple[str, ...]
) -> LustreComponents:
    pools: dict[str, int] = {}
    pool = numbered_names(rows.pool_words[possible], pools)
    numbers, file_system = rows.numbers[possible], rows.file_system[possible]
    row, stripe = numbered(numbers[:, 1])
    return LustreComponents(
        file_id=rows.ids[possible, 0].astype(np.uint64),
        rank=rows.ids[possible, 1],
        component=rows.component[possible],
        stripe_size_bytes=numbers[:, 0],
        stripe_count=numbers[:, 1],
        extent_start=numbers[:, 4],
        extent_end=numbers[:, 5],
        pattern=numbers[:, 2],
        flags=numbers[:, 3],
        mirror_id=numbers[:, 6],
        pool=pool,
        first_ost=np.cumsum(numbers[:, 1]) - numbers[:, 1],
        osts=file_system[:, 0],
        mdts=file_system[:, 1],
        stripe_offset=file_system[:, 2],
        ost_ids=words[rows.ost_word[possible][row] + stripe].astype(np.int64, copy=False),
        pools=tuple(pools),
        warnings=warnings,
    )
