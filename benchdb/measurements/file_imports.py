"""Reads a file of measurements or an export, and stores it; for the command and the service."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from sqlalchemy import Connection

from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.importers import (
    ImportOptions,
    ResultFile,
    is_export,
    is_ours,
    is_rates_export,
    read_export,
    read_measurements,
    read_rates_export,
    text_of,
)
from benchdb.measurements.parquet import MAGIC, csv_of
from benchdb.measurements.progress import Progress, silently
from benchdb.measurements.restore import Origin, Repetition, restore, restore_rates
from benchdb.measurements.storing import Measurement, count, store
from ioncast_base.errors import InputError, Remedy

EXPORT = "export"
# More bytes than the first line of ioncast's own CSV has.
_START_BYTES = 1 << 16


@dataclass(frozen=True)
class ImportCounts:
    """Some measurements in numbers; `measurements` counts rates too, and `rates` only these."""

    measurements: int
    configurations: int
    set_apart: int
    lacks_tasks: bool
    rates: int = 0


@dataclass(frozen=True)
class StoredFile:
    """The result of storing a file.

    `file_format` is an importer's name, "parquet", "json" or `EXPORT`. `found` and `stored` count
    the measurements in the file and those that the database did not have yet, `replaced` those that
    were removed for new ones, `imports` and `known_imports` the imports of an export.
    """

    file_format: str
    found: ImportCounts
    stored: ImportCounts
    replaced: int = 0
    imports: int = 0
    known_imports: int = 0


@dataclass(frozen=True, eq=False)
class MeasurementsFile:
    """Measurements or rates of a file; a path as `content` stands for a large one."""

    name: str
    content: bytes | Path
    file_format: str
    system: str
    rows: Sequence[Measurement | FileRate]
    warnings: Sequence[str] = ()

    def store(
        self, connection: Connection, *, replace: bool = False, progress: Progress = silently
    ) -> StoredFile:
        """Store the measurements (see `benchdb.measurements.storing.store`)."""
        before = count(connection) if replace else 0
        is_new = store(
            connection,
            system=self.system,
            file=self.name,
            content=self.content,
            file_format=self.file_format,
            rows=self.rows,
            replace=replace,
            progress=progress,
        )
        stored = self.rows if is_new else ()
        return StoredFile(
            self.file_format,
            found=_counts(self.rows),
            stored=_counts(stored),
            replaced=_replaced(connection, before, len(stored)) if replace else 0,
        )


@dataclass(frozen=True, eq=False)
class ExportFile:
    """An export of measurements or of rates that is read from a file."""

    name: str
    imports: Mapping[Origin, list[Repetition]] = field(default_factory=dict)
    rates: Mapping[Origin, list[FileRate]] = field(default_factory=dict)

    def store(
        self, connection: Connection, *, replace: bool = False, progress: Progress = silently
    ) -> StoredFile:
        """Restore the imports (see `benchdb.measurements.restore.restore`)."""
        before = count(connection) if replace else 0
        restored = restore(
            connection, self.imports, file=self.name, replace=replace, progress=progress
        )
        restored |= restore_rates(connection, self.rates, file=self.name, replace=replace)
        origins = {*self.imports, *self.rates}
        stored = _counts(self._rows_of(restored))
        return StoredFile(
            EXPORT,
            found=_counts(self._rows_of(origins)),
            stored=stored,
            replaced=_replaced(connection, before, stored.measurements) if replace else 0,
            imports=len(restored),
            known_imports=len(origins) - len(restored),
        )

    def _rows_of(self, origins: Iterable[Origin]) -> list[Measurement | FileRate]:
        rows: list[Measurement | FileRate] = []
        for origin in origins:
            rows += [row for _, row in self.imports.get(origin, ())]
            rows += self.rates.get(origin, ())
        return rows


def read_file(
    path: str | Path, options: ImportOptions, *, name: str | None = None
) -> MeasurementsFile | ExportFile:
    """Read a file of measurements or an export; `name` is that for the database and for errors.

    A format that is not known, a line that cannot be used, and a missing fact are InputErrors.
    """
    name = str(path) if name is None else name
    content, text, is_parquet = _opened(Path(path), name)
    warnings: dict[str, None] = {}
    file, options = ResultFile(name, text), replace(options, warn=warnings.setdefault)
    if is_export(file.header()):
        # An export may be large, and its text is enough.
        content = b""
        return ExportFile(name, read_export(file, options))
    if is_rates_export(file.header()):
        return ExportFile(name, rates=read_rates_export(file, options))
    file_format, rows = read_measurements(file, options)
    if options.system is None:
        raise InputError(
            "the file does not name the system of its runs",
            where=name,
            remedy=Remedy("name it with {}", ("system",)),
        )
    shown_format = "parquet" if is_parquet else file_format
    return MeasurementsFile(name, content, shown_format, options.system, rows, tuple(warnings))


def _opened(path: Path, name: str) -> tuple[bytes | Path, str | Path, bool]:
    """Open a file: its content, its text, and whether it is Parquet.

    The output of a benchmark may be larger than the memory, so its lines are read one by one. A
    file that can be read only once, such as a pipe, and ioncast's own formats are in memory.
    """
    if path.is_file():
        with path.open("rb") as file:
            start = file.read(_START_BYTES)
        if not start.startswith(MAGIC) and not is_ours(start.decode("utf-8-sig", "replace")):
            return path, path, False
    content = path.read_bytes()
    is_parquet = content.startswith(MAGIC)
    return content, csv_of(content, name) if is_parquet else text_of(content, name), is_parquet


def _counts(rows: Sequence[Measurement | FileRate]) -> ImportCounts:
    measured = [row for row in rows if isinstance(row, Measurement)]
    configs = {id(row.config): row.config for row in measured}
    return ImportCounts(
        measurements=len(rows),
        configurations=len(set(configs.values())),
        set_apart=sum(not row.used for row in rows),
        lacks_tasks=any(config.tasks is None for config in configs.values()),
        rates=len(rows) - len(measured),
    )


def _replaced(connection: Connection, before: int, stored: int) -> int:
    return before + stored - count(connection)
