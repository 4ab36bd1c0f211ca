"""Rows of the table `files`: each file of some runs at each api."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ioncast.insights.facts.slowest_ranks import SharedFiles
from ioncast.insights.facts.values import Bools, FileFacts, Floats, Ints, Layer, possible
from ioncast.warehouse.arrays import INDEX, Columns, hexadecimal, known, named, texts
from ioncast_base.kinds import APIS, OPERATIONS
from summario.lustre_components import LustreComponents
from summario.lustre_servers import first_mirrors
from summario.phases.streams import opens_of

Mounts = tuple[tuple[str, str], ...]


class FilesOfRuns(NamedTuple):
    """The files of several runs, and what is known of each run.

    `run` is the run of each of `facts.files`, `ids` its record id; those of each run are between
    two of `edges`.
    """

    facts: FileFacts
    shared: SharedFiles
    run: Ints
    ids: NDArray[np.uint64]
    edges: list[int]
    mounts: list[Mounts]
    lustre: list[LustreComponents | None]


class _OfFiles(NamedTuple):
    """Columns of each of `FileFacts.files`, whatever the api; times are those at the highest."""

    file: pa.Array
    path: pa.Array
    file_system: pa.Array
    has_extremes: Bools
    slowest_seconds: Floats
    slowest_rank: Ints
    fastest_seconds: Floats
    is_striped: Bools
    stripe_count: Ints
    stripe_size: Ints


def file_rows(files: FilesOfRuns) -> Iterator[Columns]:
    """Yield the rows of each layer."""
    of_files = _of_files(files)
    for layer in files.facts.layers.values():
        yield {INDEX: files.run[layer.used_files], **_of_layer(files.facts, layer, of_files)}


def _of_layer(facts: FileFacts, layer: Layer, of_files: _OfFiles) -> dict[str, Any]:
    used, reads, writes = layer.used_files, layer.reads, layer.writes
    in_arrow = pa.array(used)
    seconds = layer.of_files(reads.seconds + writes.seconds + layer.metadata_seconds)
    processes = layer.file_processes()
    collective = reads.collective + reads.split + writes.collective + writes.split
    is_highest = facts.files.api[used] == APIS.index(layer.api)
    has_extremes = is_highest & of_files.has_extremes[used]
    is_striped, extent = of_files.is_striped[used], facts.files.extent_bytes[used]
    return {
        "file": of_files.file.take(in_arrow),
        "path": of_files.path.take(in_arrow),
        "file_system": of_files.file_system.take(in_arrow),
        "api": named((layer.api,), np.zeros(len(used), np.int8)),
        "is_highest": is_highest,
        "shared": layer.file_is_shared(),
        "processes": processes,
        "reads": layer.of_files(reads.requests),
        "writes": layer.of_files(writes.requests),
        "read_bytes": layer.of_files(reads.bytes),
        "written_bytes": layer.of_files(writes.bytes),
        "read_seconds": layer.of_files(reads.seconds),
        "write_seconds": layer.of_files(writes.seconds),
        "metadata_seconds": layer.of_files(layer.metadata_seconds),
        "slowest_seconds": known(of_files.slowest_seconds[used], has_extremes),
        "slowest_rank": known(of_files.slowest_rank[used], has_extremes),
        "fastest_seconds": known(of_files.fastest_seconds[used], has_extremes),
        "mean_seconds": seconds / np.maximum(processes, 1),
        "size_bytes": known(extent, extent != 0),
        "opens": layer.of_files(possible(opens_of(layer.records, layer.api))),
        "collective": layer.of_files(collective),
        "stripe_count": known(of_files.stripe_count[used], is_striped),
        "stripe_size": known(of_files.stripe_size[used], is_striped),
        **dict(_first_and_last(layer)),
    }


def _first_and_last(layer: Layer) -> Iterator[tuple[str, pa.Array]]:
    """Yield the times of the first and last request of each operation, null without requests."""
    for operation in OPERATIONS:
        has_requests = layer.of(operation).requests > 0
        first = layer.seconds(f"F_{operation.upper()}_START_TIMESTAMP")
        last = layer.seconds(f"F_{operation.upper()}_END_TIMESTAMP")
        # Darshan writes 0 for a time that it does not know.
        is_known = has_requests & (first > 0) & (last >= first)
        are_known = layer.of_files(is_known, np.logical_or)
        earliest = layer.of_files(np.where(is_known, first, np.inf), np.minimum)
        latest = layer.of_files(np.where(is_known, last, -np.inf), np.maximum)
        yield f"first_{operation}_seconds", known(earliest, are_known)
        yield f"last_{operation}_seconds", known(latest, are_known)


def _of_files(files: FilesOfRuns) -> _OfFiles:
    number = len(files.ids)
    has_extremes = np.zeros(number, bool)
    slowest_seconds, fastest_seconds = np.zeros((2, number))
    slowest_rank, stripe_count, stripe_size = np.zeros((3, number), np.int64)
    shared, slowest, fastest = files.shared, files.shared.slowest, files.shared.fastest
    # The slowest one of several records of a file comes last, so it stays.
    order = np.argsort(slowest.seconds, kind="stable")
    place = shared.file[order]
    has_extremes[place] = True
    slowest_seconds[place], slowest_rank[place] = slowest.seconds[order], slowest.rank[order]
    fastest_seconds[place] = fastest.seconds[order]
    is_striped = np.zeros(number, bool)
    for (first, end), lustre in zip(pairwise(files.edges), files.lustre, strict=True):
        if lustre is not None:
            table = first_mirrors(lustre)
            # The first component of a file comes last, so it stays.
            place = first + np.searchsorted(files.ids[first:end], table.file_id[::-1])
            is_striped[place] = True
            stripe_count[place] = table.stripe_count[::-1]
            stripe_size[place] = table.stripe_size_bytes[::-1]
    return _OfFiles(
        file=hexadecimal(files.ids),
        path=texts(files.facts.files.path),
        file_system=texts(list(_file_systems(files))),
        has_extremes=has_extremes,
        slowest_seconds=slowest_seconds,
        slowest_rank=slowest_rank,
        fastest_seconds=fastest_seconds,
        is_striped=is_striped,
        stripe_count=stripe_count,
        stripe_size=stripe_size,
    )


def _file_systems(files: FilesOfRuns) -> Iterator[str | None]:
    tables: dict[Mounts, _FileSystems] = {}
    for (first, end), mounts in zip(pairwise(files.edges), files.mounts, strict=True):
        table = tables.setdefault(mounts, _FileSystems(mounts))
        yield from map(table.of, files.facts.files.path[first:end])


class _FileSystems:
    """The type of the file system whose mount point is the longest beginning of a path."""

    def __init__(self, mounts: Mounts) -> None:
        self._at: dict[str, tuple[int, str]] = {}
        self._below: dict[str, tuple[int, str]] = {}
        for mount, type_ in sorted(mounts, key=lambda each: (len(each[0]), each[1])):
            self._at[mount] = self._below[mount.rstrip("/")] = len(mount), type_
        self._folders: dict[str, tuple[int, str | None]] = {}

    def of(self, path: str) -> str | None:
        """Find the type; None if no mount point is a beginning of the path."""
        folder, slash, _ = path.rpartition("/")
        of_folder = self._of_folder(folder) if slash else (-1, None)
        return max(self._at.get(path, of_folder), of_folder)[1]

    def _of_folder(self, folder: str) -> tuple[int, str | None]:
        if folder not in self._folders:
            parents = [folder[:end] for end, letter in enumerate(folder) if letter == "/"]
            found = [self._below[each] for each in (*parents, folder) if each in self._below]
            self._folders[folder] = max(found, default=(-1, None))
        return self._folders[folder]
