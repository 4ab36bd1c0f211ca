"""The records of DXT, Darshan's trace of single requests: who traced which file on which host.

A record has the file, the rank, the host, the number of writes and of reads, and then its
requests, which `summario.reading.operations` decodes. Layout: darshan-dxt-log-format.h.
"""

from __future__ import annotations

import struct
from array import array
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ioncast_base.wording import counted
from summario.reading.log import DarshanLog
from summario.reading.names import numbered_names

DXT_MODULES = {"POSIX": "DXT_POSIX", "MPIIO": "DXT_MPIIO"}
NEWEST_VERSIONS = {"DXT_POSIX": 2, "DXT_MPIIO": 3}
# From this version of a module on, a request has a thread id after its times.
FIRST_WITH_THREAD = {"DXT_POSIX": 2, "DXT_MPIIO": 3}

# Record id, rank, an unused word, the host's name in eight words, writes, reads.
_HEAD_WORDS = 13
_HEAD_BYTES = 8 * _HEAD_WORDS
_COUNTS_BYTE = 8 * 11
_HOST_WORDS = np.arange(3, 11)

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class DxtRecords:
    """A table of the records of one DXT module; `writes` and `reads` are numbers of requests.

    `host` is an index into the hosts of `read_dxt_module`, `first_word` into the module's words.
    """

    file_id: NDArray[np.uint64]
    rank: Ints
    host: Ints
    writes: Ints
    reads: Ints
    first_word: Ints

    def take(self, rows: NDArray[np.bool_]) -> DxtRecords:
        """Select records by a mask."""
        return DxtRecords(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


@dataclass(frozen=True)
class DxtModule:
    """One DXT module: its records, and the words of their requests in the byte order of the log.

    A request has `request_words`: offset, length, start, end, and in newer versions a thread id.
    Offsets mean nothing in version 1 of DXT_MPIIO, which did not know them.
    """

    records: DxtRecords
    words: Ints
    request_words: int
    has_offsets: bool
    warnings: tuple[str, ...]

    def integers(self, at: Ints) -> Ints:
        """Read integers at some words."""
        return self.words[at].astype(np.int64, copy=False)

    def reals(self, at: Ints) -> NDArray[np.float64]:
        """Read floating-point numbers at some words."""
        return self.integers(at).view(np.float64)


def read_dxt_module(log: DarshanLog, api: str, hosts: dict[str, int]) -> DxtModule:
    """Read the records of one module.

    Damage is a warning, never an error, because counters have the totals of all requests: records
    behind a break of the data, and records of impossible ranks, are left out.
    """
    module = DXT_MODULES[api]
    newest = NEWEST_VERSIONS[module]
    version = log.header.module_versions.get(module, newest)
    data, warnings = log.traces.get(module, b""), []
    if not 1 <= version <= newest:
        warnings.append(
            f"the {module} data have format {version}, but this reader knows 1 to {newest}; they"
            " are left out"
        )
        data = b""
    request_words = 5 if version >= FIRST_WITH_THREAD[module] else 4
    positions, end = _record_positions(data, log.header.byte_order, 8 * request_words)
    if end < len(data):
        warnings.append(
            f"the {module} data break off after {counted(len(positions), 'record')}; the rest"
            f" ({counted(len(data) - end, 'byte')}) is left out"
        )
    words = np.frombuffer(data[:end], f"{log.header.byte_order}i8")
    records = _records_at(words, np.array(positions) // 8, hosts)
    possible = (records.rank >= 0) & (records.rank < log.job.nprocs)
    if not possible.all():
        count = int(np.count_nonzero(~possible))
        warnings.append(
            f"{counted(count, f'{module} record')} left out: the rank is outside the job's"
            f" {counted(log.job.nprocs, 'process')}"
        )
        records = records.take(possible)
    if module in log.header.partial_modules:
        warnings.append(
            f"Darshan marked the {module} data as partial: its memory was full, and requests are"
            " missing"
        )
    return DxtModule(
        records=records,
        words=words,
        request_words=request_words,
        has_offsets=(module, version) != ("DXT_MPIIO", 1),
        warnings=tuple(warnings),
    )


def _record_positions(data: bytes, byte_order: str, request_bytes: int) -> tuple[array[int], int]:
    """Find where each whole record begins, and where the last one ends, in bytes.

    The counts of a record tell where the next one begins, so this is the only loop over records.
    Records without requests, such as gigabytes of zeros, are passed over and need no memory.
    """
    counts_at = struct.Struct(f"{byte_order}2q").unpack_from
    positions = array("q")
    position = 0
    while position + _HEAD_BYTES <= len(data):
        writes, reads = counts_at(data, position + _COUNTS_BYTE)
        end = position + _HEAD_BYTES + (writes + reads) * request_bytes
        if writes < 0 or reads < 0 or end > len(data):
            break
        if writes or reads:
            positions.append(position)
        position = end
    return positions, position


def _records_at(words: Ints, first: Ints, hosts: dict[str, int]) -> DxtRecords:
    host = numbered_names(words[first[:, np.newaxis] + _HOST_WORDS], hosts)
    file_id, rank, writes, reads = (
        words[first + word].astype(np.int64, copy=False) for word in (0, 1, 11, 12)
    )
    return DxtRecords(
        file_id=file_id.view(np.uint64),
        rank=rank,
        host=host,
        writes=writes,
        reads=reads,
        first_word=first + _HEAD_WORDS,
    )
