"""The records of a module as one array, with a column for each counter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast_base.errors import DamagedLogError, InputError
from ioncast_base.wording import counted
from summario.reading.header import Header
from summario.reading.layouts import FILE_ID, Layout, layout_of, newest_version

_SHARED = -1


@dataclass(frozen=True)
class Records:
    """All records of one module.

    `words`, of shape (records, words of a record), has record id, rank and all counters of the log,
    in native byte order. A word of a floating-point counter has the bits of the number. `columns`
    has the column of each counter. `partial` is Darshan's own flag: the module ran out of memory
    and left out records. `nprocs` counts the processes of the job. If the records of several logs
    are stacked (see `summario.phases.stacks`), it is an array, as is `log`, the log of each record.
    """

    module: str
    words: NDArray[np.int64]
    columns: Mapping[str, int]
    partial: bool
    nprocs: int | NDArray[np.int64] = 1
    log: int | NDArray[np.int64] = 0

    @property
    def ids(self) -> NDArray[np.uint64]:
        """The record ids, which are hashes of the files' paths."""
        return self.words[:, 0].view(np.uint64)

    @property
    def ranks(self) -> NDArray[np.int64]:
        """The ranks; -1 stands for a record that is reduced over all ranks."""
        return self.words[:, 1]

    @property
    def processes(self) -> NDArray[np.int64]:
        """The processes that each record is of: 1, or all of its log."""
        return np.where(self.ranks < 0, self.nprocs, 1)

    def take(self, rows: NDArray[Any]) -> Records:
        """Select records by a mask or by their places."""
        nprocs, log = (
            each[rows] if isinstance(each, np.ndarray) else each for each in (self.nprocs, self.log)
        )
        return replace(self, words=self.words[rows], nprocs=nprocs, log=log)

    @property
    def file_ids(self) -> NDArray[np.uint64] | None:
        """The record ids of the files that datasets (H5D) and variables (PNETCDF_VAR) are in.

        None for the other modules, and for version 1 of H5D, which does not have them.
        """
        column = self.columns.get(FILE_ID)
        return None if column is None else self.words[:, column].view(np.uint64)

    def integers(self, *names: str) -> NDArray[np.int64]:
        """Read several counters, shape (records, names)."""
        return self.words[:, [self.columns[name] for name in names]]

    def integer(self, name: str) -> NDArray[np.int64]:
        """Read a counter, shape (records,); zeros if the log's version does not have it."""
        column = self.columns.get(name)
        return np.zeros(len(self.words), np.int64) if column is None else self.words[:, column]

    def real(self, name: str) -> NDArray[np.float64]:
        """Read a floating-point counter in seconds, shape (records,)."""
        return np.ascontiguousarray(self.words[:, self.columns[name]]).view(np.float64)


def parse_records(
    module: str, data: NDArray[np.uint8], header: Header, nprocs: int, where: str
) -> Records:
    """Decode all records of a module."""
    version = header.module_versions[module]
    layout = layout_of(module, version)
    if layout is None:
        raise InputError(
            f"{module} records have format {version}, this reader knows 1 to"
            f" {newest_version(module)}",
            where=where,
            remedy="install a newer ioncast",
        )
    if len(data) == 0 or len(data) % (8 * layout.words):
        raise _other_size(module, data, layout, header, nprocs, where)
    words = np.frombuffer(data, f"{header.byte_order}i8").reshape(-1, layout.words)
    records = Records(
        module=module,
        words=words.astype(np.int64, copy=False),
        columns=layout.columns,
        partial=module in header.partial_modules,
        nprocs=nprocs,
    )
    if not _are_ranks(records.ranks, nprocs):
        raise DamagedLogError(
            f"a {module} record has a rank outside the job's {counted(nprocs, 'process')}",
            where=where,
            remedy="fetch the log again",
        )
    return records


def unreadable(module: str, where: str) -> DamagedLogError:
    """Make the error for records that are not what the header promises."""
    return DamagedLogError(
        f"the {module} records are not what the header promises",
        where=where,
        remedy="fetch the log again, or use the log of another run",
    )


def _are_ranks(ranks: NDArray[np.int64], nprocs: int) -> bool:
    return bool(ranks.min() >= _SHARED and ranks.max() < nprocs)


def _other_size(
    module: str,
    data: NDArray[np.uint8],
    layout: Layout,
    header: Header,
    nprocs: int,
    where: str,
) -> DamagedLogError:
    """Make the error for records of another size, and name the size where it can be told."""
    size = _size_by_ranks(data, layout, header, nprocs)
    if size is None:
        return unreadable(module, where)
    return DamagedLogError(
        f"it has {module} records of {size} bytes; those of Darshan have {8 * layout.words} bytes",
        where=where,
        remedy="a modified Darshan wrote it: use a log of Darshan's own releases",
    )


def _size_by_ranks(
    data: NDArray[np.uint8], layout: Layout, header: Header, nprocs: int
) -> int | None:
    """Find the next larger size of a record, in bytes, that puts a rank at every second word."""
    words = np.frombuffer(data[: len(data) // 8 * 8], f"{header.byte_order}i8")
    for count in range(layout.words + 1, 2 * layout.words):
        if len(data) and len(data) % (8 * count) == 0 and _are_ranks(words[1::count], nprocs):
            return 8 * count
    return None
