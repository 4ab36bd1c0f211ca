"""Logs with the same content: the first one has rows, the others are named as its copies."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from ioncast.warehouse.rows import tables_of
from ioncast.warehouse.schema import SCHEMAS
from ioncast_base.errors import IoncastError
from summario.reading.log import MAX_BYTES
from summario.reading.sources import Source


def unique_tables_of(
    sources: Iterable[Source | IoncastError],
    *,
    system: str | None = None,
    requests: bool = True,
    known: Collection[str] = (),
) -> dict[str, pa.Table]:
    """Read logs into tables as `tables_of`, but a copy of another log, or of a known one, once.

    Copies are rows of the table `copies`. `known` has the SHA-256 of logs that have rows already.
    """
    first: list[Source | IoncastError] = []
    again: dict[str, list[Source]] = {}
    seen = set(known)
    for source in sources:
        digest = None if isinstance(source, IoncastError) else _sha256(source)
        if isinstance(source, IoncastError) or digest is None or digest not in seen:
            first.append(source)
            seen |= {digest} if digest else set()
        else:
            again.setdefault(digest, []).append(source)
    tables = tables_of(first, system=system, requests=requests)
    have_rows = {*known, *tables["jobs"]["log"].to_pylist()}
    # Copies of a log that cannot be read cannot be read either, and each counts.
    failed = [source for log in again.keys() - have_rows for source in again[log]]
    if failed:
        more = tables_of(failed, system=system, requests=requests)["failed"]
        tables["failed"] = pa.concat_tables([tables["failed"], more])
    copies = [row for log in again.keys() & have_rows for row in _copies(log, again[log], system)]
    return tables | {"copies": pa.Table.from_pylist(copies, schema=SCHEMAS["copies"])}


def _copies(log: str, sources: list[Source], system: str | None) -> Iterator[dict[str, object]]:
    for source in sources:
        size, modified_ns = _size_and_time(source)
        yield {
            "log": log,
            "path": source.name,
            "system": system,
            "size_bytes": size,
            "modified_ns": modified_ns,
        }


def _size_and_time(source: Source) -> tuple[int | None, int | None]:
    if source.content is not None:
        return len(source.content), source.modified_ns
    status = Path(source.name).stat()
    return status.st_size, status.st_mtime_ns


def _sha256(source: Source) -> str | None:
    """Hash a log; None for pipes and folders, and for files that are too large to be logs."""
    if source.content is not None:
        return hashlib.sha256(source.content).hexdigest()
    try:
        status = Path(source.name).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return None
        return hashlib.sha256(Path(source.name).read_bytes()).hexdigest()
    except OSError:
        return None
