"""Table 7, files: how many, shared or unique, read or written; of each file also its processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ioncast.insights.facts.slowest_ranks import shared_files_of
from ioncast.insights.facts.values import Files, total
from ioncast.insights.tables.scopes import Scope
from ioncast.insights.tables.values import Line, Table, Unit
from ioncast_base.kinds import APIS

ACCESSES = ("read only", "written only", "read and written", "without bytes")


def files(scope: Scope) -> Table:
    """Count the files by access, or describe each file.

    Each byte counts once, at its file's highest layer. A file's size is its highest offset plus 1.
    """
    lines = _each(scope) if scope.by_file else _all(scope)
    return Table("files", "Files", tuple(lines))


def _all(scope: Scope) -> list[Line]:
    found, rows = scope.facts.files, scope.files
    processes, number = found.processes[rows], np.array([len(rows)])
    all_, access = scope.facts.run.processes, access_of(found)[rows]
    by_processes = {
        "used by one process": processes <= 1,
        "shared by all processes": (processes == all_) & (processes > 1),
        "shared by some processes": (processes < all_) & (processes > 1),
    }
    by_access = {name: access == index for index, name in enumerate(ACCESSES)}
    largest = found.extent_bytes[rows].max(initial=0, keepdims=True)
    return [
        Line("", "files", number),
        *(
            Line("", name, np.array([is_so.sum()]), wholes=number, of="files")
            for name, is_so in (by_processes | by_access).items()
        ),
        *(
            Line("", name, np.array([total(values[rows])], object), "bytes")
            for name, values in (
                ("bytes read", found.bytes_read),
                ("bytes written", found.bytes_written),
                ("size of all", found.extent_bytes),
            )
        ),
        Line("", "size of the largest", largest, "bytes"),
    ]


def _each(scope: Scope) -> list[Line]:
    found, rows = scope.facts.files, scope.files
    names = np.array([*ACCESSES], object)
    return [
        Line("", "layer", np.array([*APIS], object)[found.api[rows]]),
        Line("", "access", names[access_of(found)[rows]]),
        Line("", "processes", found.processes[rows]),
        Line("", "bytes read", found.bytes_read[rows], "bytes"),
        Line("", "bytes written", found.bytes_written[rows], "bytes"),
        Line("", "size", found.extent_bytes[rows], "bytes"),
        *_ranks(scope),
        *_variances(scope),
    ]


def access_of(files: Files) -> NDArray[Any]:
    """Find the access of each file, an index into `ACCESSES`."""
    is_read, is_written = files.bytes_read > 0, files.bytes_written > 0
    return np.select([is_read & is_written, is_read, is_written], [2, 0, 1], 3)


def _ranks(scope: Scope) -> Iterator[Line]:
    """Describe the fastest and the slowest process of each shared file."""
    shared = shared_files_of(scope.facts)
    group = scope.group_of_file[shared.file]
    counts = group >= 0
    present = np.zeros(len(scope), bool)
    present[group[counts]] = True
    for name, extreme in (("fastest", shared.fastest), ("slowest", shared.slowest)):
        columns: tuple[tuple[str, NDArray[Any], Unit], ...] = (
            ("rank", extreme.rank, "rank"),
            ("rank's time", extreme.seconds, "seconds"),
            ("rank's bytes", extreme.bytes, "bytes"),
        )
        for what, values, unit in columns:
            found = np.zeros(len(scope), values.dtype)
            found[group[counts]] = values[counts]
            yield Line("", f"{name} {what}", found, unit, present=present)


def _variances(scope: Scope) -> Iterator[Line]:
    """Read the variances that Darshan computes over the processes of a reduced record."""
    units: tuple[tuple[str, Unit], ...] = (("time", "seconds²"), ("bytes", "bytes²"))
    for layer in scope.layers():
        records = layer.layer
        is_told = records.is_reduced & scope.facts.files.highest(records)
        for name, unit in units:
            variances = records.seconds(f"F_VARIANCE_RANK_{name.upper()}") * is_told
            yield layer.line(
                f"variance of the ranks' {name}",
                layer.largest(variances),
                unit=unit,
                among=layer.largest(is_told.astype(float)) > 0,
            )
