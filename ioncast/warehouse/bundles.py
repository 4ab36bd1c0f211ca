"""Bundles: the folders of a store, each with all tables of up to 2,000 logs as Parquet files.

The folder of a bundle is renamed to its place when all its files are on the disk. So whoever reads
a store sees whole bundles, and a process that is killed leaves only a folder `.new-…`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ioncast.warehouse.copies import unique_tables_of
from ioncast.warehouse.inputs import LogFile, sources_of
from ioncast.warehouse.schema import EXTRACTOR, SCHEMAS

NEW = ".new-"
MOST_LOGS, _MOST_BYTES = 2_000, 256 << 20
_FEWEST_LOGS = 500
# The tables of so many logs are in memory at once.
_LOGS_AT_ONCE, _BYTES_AT_ONCE = 500, 32 << 20
_ROWS_OF_A_GROUP = 1_000_000


@dataclass(frozen=True)
class IngestOptions:
    """The system of all logs, whether their traced requests are stored, and the store."""

    store: Path
    system: str
    requests: bool


@dataclass(frozen=True)
class Written:
    """A bundle with numbers of its files, by their fate, and the bytes of the bundle."""

    name: str
    logs: int
    failed: int
    copies: int
    stored_bytes: int


def divided(files: Sequence[LogFile], workers: int) -> list[tuple[LogFile, ...]]:
    """Divide logs into bundles, the one with most bytes first; a large log is a bundle alone."""
    most_logs = min(max(-(-len(files) // max(workers, 1)), _FEWEST_LOGS), MOST_LOGS)
    bundles = _pieces(files, most_logs, _MOST_BYTES)
    return sorted(bundles, key=lambda bundle: -sum(file.size_bytes for file in bundle))


def write_bundle(
    files: Sequence[LogFile], options: IngestOptions, reasons: Mapping[str, str] | None = None
) -> Written:
    """Read logs, and write their bundle; it may be there already.

    `reasons` has the names of logs that are not to be read, and why.

    Raises
    ------
    OSError
        If the store cannot be written.
    """
    reasons = reasons or {}
    readable = [file for file in files if file.name not in reasons]
    with new_bundle(options.store) as new:
        for part in _pieces(readable, _LOGS_AT_ONCE, _BYTES_AT_ONCE):
            tables = unique_tables_of(
                sources_of(part),
                system=options.system,
                requests=options.requests,
                known=new.logs,
            )
            new.write(tables | {"failed": _completed(tables["failed"], part)})
        lost = [file for file in files if file.name in reasons]
        new.write({"failed": _failed(lost, reasons, options.system)})
        return new.finished(options.system, requests=options.requests)


class NewBundle:
    """A bundle while it is written; `logs` are those that it has so far."""

    def __init__(self, store: Path, folder: Path, stack: ExitStack) -> None:
        self._store = store
        self._folder = folder
        self._stack = stack
        self._writers = {
            name: stack.enter_context(
                pq.ParquetWriter(folder / f"{name}.parquet", schema, compression="zstd")
            )
            for name, schema in SCHEMAS.items()
        }
        self.logs: list[str] = []
        self._copies: list[str] = []
        self._failed: list[str] = []

    def write(self, tables: Mapping[str, pa.Table]) -> None:
        """Append rows to tables."""
        for name, table in tables.items():
            if len(table):
                self._writers[name].write_table(table, row_group_size=_ROWS_OF_A_GROUP)
        if "jobs" in tables:
            self.logs += tables["jobs"]["log"].to_pylist()
        if "copies" in tables:
            self._copies += tables["copies"]["log"].to_pylist()
        if "failed" in tables:
            self._failed += [
                f"{row['path']}\0{row['size_bytes']}\0{row['modified_ns']}"
                for row in tables["failed"].to_pylist()
            ]

    def finished(self, system: str, *, requests: bool) -> Written:
        """Put the bundle in its place, unless the same one is there; one without files nowhere."""
        inputs = [*self.logs, *self._copies, *self._failed]
        name = bundle_name([str(EXTRACTOR), system, str(int(requests)), *sorted(inputs)])
        stored = self.finished_as(name, is_needed=bool(inputs))
        return Written(name, len(self.logs), len(self._failed), len(self._copies), stored)

    def finished_as(self, name: str, *, is_needed: bool = True) -> int:
        """Put the bundle in its place, unless the same one is there; return its bytes."""
        self._stack.close()
        place = self._store / name
        stored = sum(path.stat().st_size for path in self._folder.iterdir())
        if is_needed:
            for path in (*self._folder.iterdir(), self._folder):
                _sync(path)
            try:
                self._folder.rename(place)
            except OSError:
                # Another process had the same logs, or NFS reports an error after it has renamed.
                if not is_complete(place):
                    raise
            _sync(self._store)
        return stored


@contextmanager
def new_bundle(store: Path) -> Iterator[NewBundle]:
    """Make a bundle to write to; it is removed if it is not finished."""
    folder = store / f"{NEW}{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(8)}"
    folder.mkdir(mode=0o750)
    try:
        with ExitStack() as stack:
            yield NewBundle(store, folder, stack)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def bundle_name(parts: Sequence[str]) -> str:
    """Name a bundle by the SHA-256 of all that decides its rows."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8", "surrogateescape") + b"\n")
    return f"bundle={digest.hexdigest()}"


def is_complete(bundle: Path) -> bool:
    """Whether a bundle has all tables."""
    return all((bundle / f"{name}.parquet").exists() for name in SCHEMAS)


def remove_bundle(bundle: Path) -> None:
    """Remove a bundle; readers never see a part of it."""
    old = bundle.with_name(f"{NEW}{secrets.token_hex(8)}-removed")
    bundle.rename(old)
    shutil.rmtree(old)


def _pieces(files: Sequence[LogFile], most_logs: int, most_bytes: int) -> list[tuple[LogFile, ...]]:
    """Divide logs in their order."""
    pieces: list[list[LogFile]] = []
    logs = moved = 0
    for file in files:
        if not pieces or logs == most_logs or moved + file.size_bytes > most_bytes:
            pieces.append([])
            logs = moved = 0
        pieces[-1].append(file)
        logs, moved = logs + 1, moved + file.size_bytes
    return [tuple(piece) for piece in pieces]


def _completed(failed: pa.Table, files: Sequence[LogFile]) -> pa.Table:
    """Give failed members of tar files their sizes and times."""
    if not len(failed):
        return failed
    known = {file.name: file for file in files}
    rows = failed.to_pylist()
    for row in rows:
        file = known.get(row["path"])
        if file is not None:
            row |= {"size_bytes": file.size_bytes, "modified_ns": file.modified_ns}
    return pa.Table.from_pylist(rows, schema=SCHEMAS["failed"])


def _failed(files: Sequence[LogFile], reasons: Mapping[str, str], system: str) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "path": file.name,
            "system": system,
            "size_bytes": file.size_bytes,
            "modified_ns": file.modified_ns,
            "reason": reasons[file.name],
            "extractor": EXTRACTOR,
        }
        for file in files
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMAS["failed"])


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
