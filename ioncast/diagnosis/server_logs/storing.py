"""Stores samples of servers' logs: a bundle for each file, or for snapshots of several times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ioncast.diagnosis.server_logs.importers import Format, format_of
from ioncast.diagnosis.server_logs.sample_rows import SCHEMA, ImportSettings
from ioncast.warehouse.bundles import bundle_name, is_complete, new_bundle, remove_bundle
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import text_query
from ioncast.warehouse.schema import EXTRACTOR
from ioncast_base.errors import InputError
from ioncast_base.visible_text import visible
from ioncast_base.wording import listed

_ROWS_AT_ONCE = 1_000_000
_FILE_SYSTEMS = text_query(
    "select distinct file_system from raw_server_samples"
    " where system = :system and file_system is not null"
)
# Rows of the same interval are one row, which may so have both directions.
_OVERLAPPING = text_query("""
with intervals as (
    select kind, server, time_start_us, time_end_us, max(read_bytes) is not null as has_reads
    from raw_server_samples
    where system = :system and time_end_us > :first_us and time_start_us < :last_us
        and (read_bytes is null) <> (written_bytes is null)
    group by kind, server, time_start_us, time_end_us
    having max(read_bytes) is null or max(written_bytes) is null
),
earlier as (
    select kind, server, time_start_us, has_reads,
        max(case when has_reads then time_end_us end) over before as reads_until_us,
        max(case when not has_reads then time_end_us end) over before as writes_until_us
    from intervals
    window before as (partition by kind, server order by time_start_us, time_end_us
        rows between unbounded preceding and 1 preceding)
)
select kind, server from earlier
where time_start_us < case when has_reads then writes_until_us else reads_until_us end
limit 1
""")


@dataclass(frozen=True)
class Imported:
    """Files that were imported together, their rows by kind of server, and the times in µs.

    `is_known` tells that the store had their samples before; then there are no numbers.
    """

    files: tuple[str, ...]
    format: str
    is_known: bool
    samples: int = 0
    kinds: tuple[str, ...] = ()
    first_us: int | None = None
    last_us: int | None = None


def import_samples(
    paths: Sequence[Path], store: Path, system: str, settings: ImportSettings
) -> Iterator[Imported]:
    """Store the samples of files that the store does not have; yield a line for each bundle.

    Raises
    ------
    InputError
        If a file is of no known format, damaged, without samples, or of a second file system: the
        numbers of servers would mean two servers each. Bundles that were yielded stay.
    """
    groups: dict[Format, list[list[Path]]] = {}
    for path in paths:
        format_ = format_of(path)
        of_format = groups.setdefault(format_, [])
        if format_.are_snapshots and of_format:
            of_format[0].append(path)
        else:
            of_format.append([path])
    for format_, of_format in groups.items():
        for files in of_format:
            yield _stored(files, format_, store, system, settings)


def _stored(
    files: Sequence[Path], format_: Format, store: Path, system: str, settings: ImportSettings
) -> Imported:
    names = tuple(map(str, files))
    digests = sorted({_sha256(path): path for path in files}.items())
    zone = str(settings.zone or "")
    name = bundle_name([str(EXTRACTOR), system, zone, *(digest for digest, _ in digests)])
    if is_complete(store / name):
        return Imported(names, format_.name, is_known=True)
    with asking(store) as ask:
        stored = ask(_FILE_SYSTEMS, {"system": system})["file_system"].to_pylist()
    found = Imported(names, format_.name, is_known=False)
    file_systems = set(stored)
    with new_bundle(store) as new:
        for table in _together(format_.read([path for _, path in digests], settings)):
            file_systems |= set(pc.unique(table["file_system"]).to_pylist()) - {None}
            if len(file_systems) > 1:
                raise InputError(
                    f"{listed(sorted(file_systems))} are two file systems, whose servers have the"
                    f" same numbers in the system {system}",
                    where=names[0],
                    remedy="import one of them under a --system of its own",
                )
            systems = pa.repeat(pa.scalar(system, pa.string()), len(table))
            new.write({"server_samples": table.set_column(0, SCHEMA.field("system"), systems)})
            found = _with(found, table)
        if not found.samples:
            raise InputError("this has no samples of servers", where=names[0])
        new.finished_as(name)
    _check_directions(found, store / name, system)
    return found


def _check_directions(found: Imported, bundle: Path, system: str) -> None:
    """Remove a bundle whose reads or writes overlap the other direction in the store.

    Queries add up the seconds of rows, so a server would seem half as busy.
    """
    times = {"first_us": found.first_us, "last_us": found.last_us}
    with asking(bundle.parent) as ask:
        overlapping = ask(_OVERLAPPING, {"system": system, **times}).to_pylist()
    if not overlapping:
        return
    remove_bundle(bundle)
    server = "{kind} {server}".format(**overlapping[0])
    raise InputError(
        f"reads and writes of {visible(server)} have intervals that differ and overlap",
        where=found.files[0],
        remedy="import both from one answer of query_range, as for"
        ' {__name__=~"lustre_(read|write)_bytes_total"}, or with the same times',
    )


def _together(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Join small tables, because each one that is written becomes a part of a file."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= _ROWS_AT_ONCE:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _with(found: Imported, table: pa.Table) -> Imported:
    if not len(table):
        return found
    kinds = {*found.kinds, *pc.unique(table["kind"]).to_pylist()}
    firsts = [pc.min(table["time_start_us"]).as_py(), found.first_us]
    lasts = [pc.max(table["time_end_us"]).as_py(), found.last_us]
    return replace(
        found,
        samples=found.samples + len(table),
        kinds=tuple(sorted(kinds)),
        first_us=min(each for each in firsts if each is not None),
        last_us=max(each for each in lasts if each is not None),
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
