"""Restores exports: stores measurements under their first imports and repetitions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, func, select

from benchdb.measurements.file_rates import FileRate, insert_rates, rates_of_import
from benchdb.measurements.progress import Progress, silently
from benchdb.measurements.storing import (
    Measurement,
    configuration_ids,
    delete_import,
    insert_import,
    insert_measurements,
    pattern_of,
    stored_values,
)
from benchdb.store.schema import imports, longest, measurements
from benchdb.store.systems import check_system_name, revise, system_id_of
from ioncast_base.errors import InputError, Remedy
from ioncast_base.times import instant
from ioncast_base.wording import in_words

Repetition = tuple[int, Measurement]
_Place = tuple[Any, ...]
_PLACE = ("system_id", "configuration_id", "io_nodes", "engine", "repetition")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_CHUNK = 10_000


@dataclass(frozen=True)
class Origin:
    """The first import of measurements.

    Raises
    ------
    InputError
        If a value is not valid or too long.
    """

    system: str
    file: str
    sha256: str
    format: str
    imported_at: str

    def __post_init__(self) -> None:
        check_system_name(self.system)
        if not _SHA256.fullmatch(self.sha256):
            raise InputError(f"{self.sha256!r} is not a SHA-256")
        if instant(self.imported_at) is None:
            raise InputError(f"{self.imported_at!r} is not a time")
        for name in ("file", "format", "imported_at"):
            value = getattr(self, name)
            if not 0 < len(value) <= longest(imports.c[name]) or "\0" in value:
                raise InputError(f"{value[:40]!r} is not a valid {name} of an import")


def restore(
    connection: Connection,
    found: Mapping[Origin, list[Repetition]],
    *,
    file: str,
    replace: bool = False,
    progress: Progress = silently,
) -> set[Origin]:
    """Store measurements under their first imports and repetitions.

    If the database has other measurements of an import and `replace` is False, or a repetition
    belongs to another import, an InputError is raised.
    """
    try:
        return _restore(connection, found, replace, progress)
    except InputError as error:
        what = f"{error.where}: {error.what}" if error.where else error.what
        raise InputError(what, where=file, remedy=error.remedy) from error


def restore_rates(
    connection: Connection,
    found: Mapping[Origin, list[FileRate]],
    *,
    file: str,
    replace: bool = False,
) -> set[Origin]:
    """Store rates of files under their first imports, and return the imports that are new.

    If the database has other rates of an import and `replace` is False, an InputError is raised.
    """
    system_ids = {name: system_id_of(connection, name) for name in sorted(_systems(found))}
    known = _known_imports(connection, found, system_ids)
    same = {
        origin
        for origin, import_id in known.items()
        if Counter(rates_of_import(connection, import_id)) == Counter(found[origin])
    }
    new = sorted(set(found) - same, key=lambda origin: origin.imported_at)
    for origin in new:
        if origin in known:
            if not replace:
                raise InputError(
                    f"{origin.system} has other rates of {origin.file}",
                    where=file,
                    remedy=Remedy("correct them with {}", ("replace",)),
                )
            delete_import(connection, known[origin])
        import_id = _insert_origin(connection, system_ids[origin.system], origin)
        insert_rates(connection, system_ids[origin.system], import_id, found[origin])
    for name in _systems(new):
        revise(connection, system_ids[name])
    return set(new)


def _systems(origins: Iterable[Origin]) -> set[str]:
    return {origin.system for origin in origins}


def _insert_origin(connection: Connection, system_id: int, origin: Origin) -> int:
    return insert_import(
        connection,
        system_id=system_id,
        sha256=origin.sha256,
        file=origin.file,
        format=origin.format,
        imported_at=origin.imported_at,
    )


def _restore(
    connection: Connection,
    found: Mapping[Origin, list[Repetition]],
    replace: bool,
    progress: Progress,
) -> set[Origin]:
    system_ids = {name: system_id_of(connection, name) for name in sorted(_systems(found))}
    ids = configuration_ids(connection, (row for rows in found.values() for _, row in rows))
    wanted = _places(found, system_ids, ids)
    known = _known_imports(connection, found, system_ids)
    same, taken = _compare(connection, wanted, known, set(system_ids.values()))
    stored = _counts(connection, known) if replace else same
    new = [
        origin
        for origin, rows in found.items()
        if same[origin] < len(rows) or stored[origin] > len(rows)
    ]
    changed = [origin for origin in new if origin in known]
    if changed and not replace:
        raise InputError(
            f"{changed[0].system} has other measurements of {changed[0].file}",
            remedy=Remedy("correct them with {}", ("replace",)),
        )
    replaced = {known[origin] for origin in changed}
    for place, import_id in taken.items():
        if import_id not in replaced:
            raise _clash(connection, wanted[place], place, import_id)
    for import_id in replaced:
        delete_import(connection, import_id)
    for origin in sorted(new, key=lambda origin: origin.imported_at):
        system_id = system_ids[origin.system]
        import_id = _insert_origin(connection, system_id, origin)
        insert_measurements(connection, system_id, import_id, ids, progress(found[origin]))
    for system_id in {system_ids[origin.system] for origin in new}:
        revise(connection, system_id)
    return set(new)


def _places(
    found: Mapping[Origin, list[Repetition]], system_ids: dict[str, int], ids: dict[int, int]
) -> dict[_Place, tuple[Origin, Measurement]]:
    """Map the unique key of each measurement to the measurement; reject a key that comes twice."""
    wanted: dict[_Place, tuple[Origin, Measurement]] = {}
    for origin, rows in found.items():
        system_id = system_ids[origin.system]
        for repetition, row in rows:
            place = (system_id, ids[id(row.config)], row.io_nodes, row.engine, repetition)
            if place in wanted:
                raise InputError(f"the export has {_said(row, place)} twice")
            wanted[place] = (origin, row)
    return wanted


def _known_imports(
    connection: Connection, found: Iterable[Origin], system_ids: dict[str, int]
) -> dict[Origin, int]:
    query = select(imports.c.system_id, imports.c.sha256, imports.c.id).where(
        imports.c.system_id.in_(system_ids.values())
    )
    stored = {(row[0], row[1]): int(row[2]) for row in connection.execute(query)}
    keys = {origin: (system_ids[origin.system], origin.sha256) for origin in found}
    return {origin: stored[key] for origin, key in keys.items() if key in stored}


def _counts(connection: Connection, known: Mapping[Origin, int]) -> Counter[Origin]:
    """The number of stored measurements of each import."""
    query = select(measurements.c.import_id, func.count()).group_by(measurements.c.import_id)
    counts = {row[0]: int(row[1]) for row in connection.execute(query)}
    return Counter({origin: counts.get(import_id, 0) for origin, import_id in known.items()})


def _compare(
    connection: Connection,
    wanted: Mapping[_Place, tuple[Origin, Measurement]],
    known: Mapping[Origin, int],
    system_ids: set[int],
) -> tuple[Counter[Origin], dict[_Place, int]]:
    """Count the stored measurements of each import, and find the keys that other imports use."""
    same: Counter[Origin] = Counter()
    taken: dict[_Place, int] = {}
    query = select(measurements).where(measurements.c.system_id.in_(system_ids))
    for stored in connection.execute(query.execution_options(yield_per=_CHUNK)).mappings():
        place = tuple(stored[name] for name in _PLACE)
        if place not in wanted:
            continue
        origin, row = wanted[place]
        if stored["import_id"] != known.get(origin):
            taken[place] = stored["import_id"]
        elif all(stored[name] == value for name, value in stored_values(row).items()):
            same[origin] += 1
    return same, taken


def _clash(
    connection: Connection, of: tuple[Origin, Measurement], place: _Place, import_id: int
) -> InputError:
    origin, row = of
    other = connection.scalar(select(imports.c.file).where(imports.c.id == import_id))
    return InputError(
        f"{origin.system} already has {_said(row, place)}, from {other}",
        remedy=Remedy("give the system of this export another name with {}", ("system",)),
    )


def _said(row: Measurement, place: _Place) -> str:
    return f"repetition {place[-1]} of `{pattern_of(row.config)}` with {in_words(row.io_nodes)}"
