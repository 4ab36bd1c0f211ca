"""Logs with the same content: the first one has rows, the others are named as its copies."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
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
    findings: bool = True,
    io_nodes: Mapping[str, int] | None = None,
    known: Collection[str] = (),
) -> dict[str, pa.Table]:
    """Read logs into tables as `tables_of`, but a copy of another log, or of a known one, once.

    Copies are rows of the table `copies`. `known` has the SHA-256 of logs that have rows already.
    """
    again: dict[str, list[Source]] = {}
    tables = tables_of(
        _first(sources, set(known), again),
        system=system,
        requests=requests,
        findings=findings,
        io_nodes=io_nodes,
    )
    have_rows = {*known, *tables["jobs"]["log"].to_pylist()}
    # Copies of a log that cannot be read cannot be read either, and each counts.
    failed = [source for log in again.keys() - have_rows for source in again[log]]
    if failed:
        more = tables_of(failed, system=system)["failed"]
        tables["failed"] = pa.concat_tables([tables["failed"], more])
    copies = [row for log in again.keys() & have_rows for row in _copies(log, again[log], system)]
    return tables | {"copies": pa.Table.from_pylist(copies, schema=SCHEMAS["copies"])}


def _first(
    sources: Iterable[Source | IoncastError], seen: set[str], again: dict[str, list[Source]]
) -> Iterator[Source | IoncastError]:
    """Yield the first source of each content, with its content; put the others into `again`."""
    for source in sources:
        if isinstance(source, IoncastError):
            yield source
            continue
        read = _with_content(source)
        if read.content is None:
            yield read
            continue
        digest = hashlib.sha256(read.content).hexdigest()
        if digest in seen:
            again.setdefault(digest, []).append(source)
        else:
            seen.add(digest)
            yield read


def _with_content(source: Source) -> Source:
    """Read a log's file; pipes, folders, missing and very large files are left to its reader."""
    if source.content is not None:
        return source
    try:
        status = Path(source.name).stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_BYTES:
            return source
        return Source(source.name, Path(source.name).read_bytes(), status.st_mtime_ns)
    except OSError:
        return source


def _copies(log: str, sources: list[Source], system: str | None) -> Iterator[dict[str, object]]:
    for source in map(_with_content, sources):
        yield {
            "log": log,
            "path": source.name,
            "system": system,
            "size_bytes": None if source.content is None else len(source.content),
            "modified_ns": source.modified_ns,
        }
