"""The requests that DXT traced, as one table with a row for each request of both apis."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import APIS, OPERATIONS
from ioncast_base.limits import LARGEST_BYTES, LONGEST_SECONDS, MOST_BYTES
from ioncast_base.wording import counted
from summario.reading.dxt import DXT_MODULES, DxtModule, Ints, read_dxt_module
from summario.reading.file_ids import is_among
from summario.reading.log import DarshanLog

UNKNOWN_OFFSET = -1

# A record has its writes before its reads.
_IN_RECORD = np.array([OPERATIONS.index("write"), OPERATIONS.index("read")], np.int8)

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Operations:
    """A table with a row for each traced request, in the order of the log.

    `offset` is in bytes, `UNKNOWN_OFFSET` if the log does not tell. The sum of the lengths is at
    most 2^60 bytes. Times are seconds since the job's start; no end is before its start. `host` is
    an index into `hosts`.
    """

    api: NDArray[np.int8]
    operation: NDArray[np.int8]
    file_id: NDArray[np.uint64]
    rank: Ints
    offset: Ints
    length: Ints
    start_seconds: Floats
    end_seconds: Floats
    host: NDArray[np.int32]
    hosts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.length)

    def take(self, rows: NDArray[np.bool_] | Ints | slice) -> Operations:
        """Select rows by mask, index or slice."""
        columns = {name: getattr(self, name)[rows] for name in COLUMNS}
        return Operations(**columns, hosts=self.hosts, warnings=self.warnings)


COLUMNS = tuple(
    field.name for field in fields(Operations) if field.name not in ("hosts", "warnings")
)


def operations_of(log: DarshanLog, file_ids: NDArray[np.uint64] | None = None) -> Operations:
    """Decode the requests that DXT traced, of POSIX first, then of MPI-IO; empty without DXT.

    DXT is a second description of requests that the counters of the log have too. So damage is a
    warning, never an error: a request with a negative length, without finite times or with an end
    before its start is left out, and so is everything that `summario.reading.dxt` leaves out.

    Examples
    --------
    >>> from summario.reading.log import read_log
    >>> log = read_log("tests/summario/fixtures/reopen-same-5x-dxt.darshan")
    >>> operations = operations_of(log)
    >>> len(operations), int(operations.length.sum()), operations.hosts
    (480, 251658240, ('vm',))
    """
    hosts: dict[str, int] = {}
    tables: list[dict[str, Any]] = []
    warnings: list[str] = []
    for api in [api for api, name in DXT_MODULES.items() if name in log.traces] or ["POSIX"]:
        module = read_dxt_module(log, api, hosts)
        if file_ids is not None:
            chosen = module.records.take(is_among(module.records.file_id, file_ids))
            module = replace(module, records=chosen)
        table, left_out = _possible(_decode(module, api), DXT_MODULES[api])
        tables.append(table)
        warnings += [*module.warnings, *left_out]
    return Operations(**stack(tables), hosts=tuple(hosts), warnings=tuple(warnings))


def stack(tables: list[dict[str, Any]]) -> dict[str, Any]:
    """Stack tables of `COLUMNS`, and free each of their columns once it is copied."""
    if len(tables) == 1:
        return tables[0]
    return {name: np.concatenate([table.pop(name) for table in tables]) for name in COLUMNS}


def _decode(module: DxtModule, api: str) -> dict[str, Any]:
    """Decode the requests of one module to columns of `Operations`."""
    records, words = module.records, module.request_words
    counts = records.writes + records.reads
    # The place of each request's first word: a record's first one, and then every `words` words.
    at = np.repeat(records.first_word - words * (np.cumsum(counts) - counts), counts)
    at += words * np.arange(len(at))
    length = module.integers(at + 1)
    by_operation = np.stack([records.writes, records.reads], axis=1).ravel()
    return {
        "api": np.full(len(at), APIS.index(api), np.int8),
        "operation": np.repeat(np.tile(_IN_RECORD, len(counts)), by_operation),
        "file_id": np.repeat(records.file_id, counts),
        "rank": np.repeat(records.rank, counts),
        "offset": _known_offsets(module, at, length),
        "length": length,
        "start_seconds": module.reals(at + 2),
        "end_seconds": module.reals(at + 3),
        "host": np.repeat(records.host.astype(np.int32), counts),
    }


def _known_offsets(module: DxtModule, at: Ints, length: Ints) -> Ints:
    if not module.has_offsets:
        return np.full(len(at), UNKNOWN_OFFSET)
    offset = module.integers(at)
    # The end of the request must be an offset too.
    known = (offset >= 0) & (offset <= LARGEST_BYTES - np.maximum(length, 0))
    return np.where(known, offset, UNKNOWN_OFFSET)


def _possible(table: dict[str, Any], module: str) -> tuple[dict[str, Any], list[str]]:
    """Leave out requests that no run can have made, with a warning."""
    length, start, end = table["length"], table["start_seconds"], table["end_seconds"]
    possible = (length >= 0) & (start <= end)
    possible &= (np.abs(start) < LONGEST_SECONDS) & (np.abs(end) < LONGEST_SECONDS)
    reason = "a negative length or impossible times"
    if length[possible].sum(dtype=np.float64) > MOST_BYTES:
        possible[:] = False
        reason = "an impossible number of bytes together"
    if possible.all():
        return table, []
    left_out = counted(int(np.count_nonzero(~possible)), f"{module} request")
    warning = f"{left_out} of {len(length):,} left out: {reason}"
    return {name: column[possible] for name, column in table.items()}, [warning]
