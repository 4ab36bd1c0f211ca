"""Tasks of disposable processes (see `child`): functions of plain values."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as altered
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from benchdb.measurements.importers import (
    Source,
    is_export,
    read_export,
    read_measurements,
    text_of,
)
from benchdb.measurements.parquet import MAGIC, csv_of
from benchdb.measurements.restore import restore
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import existing_database, transaction
from ioncast_base.errors import (
    DamagedLogError,
    InputError,
)
from ioncast_base.limits import LARGEST_COUNT
from ioncast_base.times import in_utc
from predictor.composition.asking import Asked, Frontend, ask
from predictor.composition.composing import observed_mib_s
from predictor.composition.explanation import explain
from predictor.composition.prediction_formats import to_json
from summario.phases.extract import extract_phases
from summario.phases.tables import from_record, to_record
from summario.phases.values import Phase
from summario.reading.log import DarshanLog, Limits, read_log

# More than any run has: each is predicted alone, and all of a run are kept in the history.
MOST_PHASES = 10_000
# What the database takes for a number of processes.
_LINE_BREAKS = re.compile("[\\r\\n]+")


@dataclass(frozen=True)
class Upload:
    """A file that a client sent.

    Attributes
    ----------
    path : str
        Where it was put.
    name : str
        What the client calls it: what errors say.
    sha256 : str
        Of its content.
    """

    path: str
    name: str
    sha256: str


@dataclass(frozen=True)
class Place:
    """Where the benchmark database is, and how many seconds to wait for it."""

    location: str | None
    patience_s: float

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Connection]:
        """One on the database, which is neither created nor upgraded, and closed afterwards."""
        database = existing_database(self.location, patience_s=self.patience_s)
        try:
            with transaction(database, write=write) as connection:
                yield connection
        finally:
            database.dispose()


@dataclass(frozen=True)
class TraceContent:
    """What the history keeps of a Darshan log.

    Attributes
    ----------
    job_id : str
        Darshan's, which is the scheduler's where there is one.
    uid : int
        The user's number.
    tasks : int
        Processes.
    started : str or None
        When, in UTC; None for a time that cannot be.
    executable : str
        As it was started, without its arguments.
    phases : tuple of dict
        As `ioncast phases --format json` writes them.
    bandwidth_mib_s : float or None
        All bytes over the time of the phases; None where the log has no time for them.
    warnings : tuple of str
        What a reader should know.
    """

    job_id: str
    uid: int
    tasks: int
    started: str | None
    executable: str
    phases: tuple[dict[str, Any], ...]
    bandwidth_mib_s: float | None
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Imported:
    """What became of a file of measurements.

    Attributes
    ----------
    stored : bool
        Whether the database did not have them already.
    file_format : str
        The name of the file's format.
    measurements, configurations : int
        How many the file holds.
    """

    stored: bool
    file_format: str
    measurements: int
    configurations: int


def read_trace(upload: Upload, limits: Limits) -> TraceContent:
    """Read a Darshan log.

    Raises
    ------
    InputError
        When it is none, is damaged, or costs too much; under the client's name of it.
    BusyError
        When there is no room to read it.
    """
    with _called(upload):
        log = read_log(upload.path, limits)
        phases = _phases_of(log, upload)
        if log.job.nprocs > LARGEST_COUNT:
            raise DamagedLogError(f"the job record counts {log.job.nprocs} processes")
    command = log.job.executable.split(maxsplit=1)
    return TraceContent(
        job_id=str(log.job.id),
        uid=log.job.uid,
        tasks=log.job.nprocs,
        started=_moment(log.job.start_seconds),
        executable=command[0] if command else "",
        phases=tuple(map(to_record, phases)),
        bandwidth_mib_s=_observed(phases),
        warnings=log.warnings,
    )


def predict_job(
    place: Place, source: Upload | Sequence[Mapping[str, Any]], asked: Asked, limits: Limits
) -> dict[str, Any]:
    """Predict from a log or from phases, as `ioncast predict --format json --explain`.

    Raises
    ------
    InputError
        When the source cannot be used.
    UnknownNameError
        When nothing was measured on the system, or not with that engine.
    DatabaseError
        When the database does not answer.
    """
    phases, warnings = _phases(source, limits)
    prediction = ask(_frontend(place), asked, phases, warnings)
    return {**to_json(prediction), "explanation": explain(prediction)}


def import_measurements(
    place: Place,
    upload: Upload,
    system: str,
    *,
    io_nodes: int | None = None,
    tasks: int | None = None,
    nodes: int | None = None,
    command: str | None = None,
    replace: bool = False,
) -> Imported:
    """Store a file of benchmark results, as `ioncast bench import` does.

    Raises
    ------
    InputError
        When the file cannot be used, or says otherwise than an earlier import of it.
    DatabaseError
        When the database does not take it; nothing is stored then.
    """
    with _called(upload):
        content = Path(upload.path).read_bytes()
        is_parquet = content.startswith(MAGIC)
        text = csv_of(content, upload.name) if is_parquet else text_of(content, upload.name)
        source = Source(upload.name, text, io_nodes, tasks, nodes, command)
        if is_export(text):
            found = read_export(source, system)
            with place.transaction(write=True) as connection:
                restored = restore(connection, found, file=upload.name, replace=replace)
            rows = [row for repetitions in found.values() for _, row in repetitions]
            return _imported(bool(restored), "export", rows)
        file_format, rows = read_measurements(source)
        return _stored(place, upload.name, content, system, file_format, rows, replace)


def store_rows(
    place: Place,
    name: str,
    content: bytes,
    system: str,
    rows: Sequence[tuple[int, Mapping[str, Any]]],
) -> Imported:
    """Store measurements that were sent as JSON.

    Parameters
    ----------
    place : Place
        Of the database.
    name : str
        The field that they were sent in, a list.
    content : bytes
        What was sent.
    system : str
        Where they were measured.
    rows : sequence of (int, mapping)
        The item of that list that each is of, and its columns as of our own CSV.

    Raises
    ------
    InputError
        Naming the item that cannot be used.
    DatabaseError
        When the database does not take them; nothing is stored then.
    """
    text = _csv_of_rows([row for _, row in rows])
    try:
        _, found = read_measurements(Source(name, text))
    except InputError as error:
        if error.line is not None:
            # Line 1 is the header, so the first row is in line 2.
            error.where, error.line = f"{name}.{rows[error.line - 2][0]}", None
        raise
    return _stored(place, name, content, system, "json", found, replace=False)


@contextmanager
def _called(upload: Upload) -> Iterator[None]:
    """Let errors in a file name it as the client does."""
    try:
        yield
    except InputError as error:
        if error.where in {None, upload.path}:
            error.where = upload.name
        raise


def _moment(seconds: float) -> str | None:
    try:
        return in_utc(datetime.fromtimestamp(seconds, timezone.utc))
    except (ValueError, OverflowError, OSError):
        return None


def _observed(phases: Sequence[Phase]) -> float | None:
    try:
        return observed_mib_s(phases)
    except ValueError:
        return None


def _phases(
    source: Upload | Sequence[Mapping[str, Any]], limits: Limits
) -> tuple[list[Phase], tuple[str, ...]]:
    if not isinstance(source, Upload):
        return [_phase(index, record) for index, record in enumerate(source)], ()
    with _called(source):
        log = read_log(source.path, limits)
        return _phases_of(log, source), log.warnings


def _phases_of(log: DarshanLog, upload: Upload) -> list[Phase]:
    found = extract_phases(log)
    if len(found) > MOST_PHASES:
        raise InputError(f"its I/O is {len(found)} phases, more than {MOST_PHASES}")
    return [altered(phase, log=upload.name) for phase in found]


def _phase(index: int, record: Mapping[str, Any]) -> Phase:
    try:
        return from_record(record)
    except InputError as error:
        error.where = f"phases.{index}"
        raise


def _frontend(place: Place) -> Frontend:
    """How the service asks for predictions; its answers do not name the database."""
    return Frontend(
        transaction=place.transaction,
        choose_engine="choose with `engine`",
        import_first="send measurements first",
        says_unstored=False,
    )


def _csv_of_rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows as our own CSV, which an importer knows, each on a line of its own."""
    text = io.StringIO()
    names = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _on_a_line(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _on_a_line(value: object) -> object:
    """A value whose line breaks, which are blanks in a command, are blanks."""
    return _LINE_BREAKS.sub(" ", value) if isinstance(value, str) else value


def _stored(
    place: Place,
    name: str,
    content: bytes,
    system: str,
    file_format: str,
    rows: list[Measurement],
    replace: bool,
) -> Imported:
    with place.transaction(write=True) as connection:
        stored = store(
            connection,
            system=system,
            file=name,
            content=content,
            file_format=file_format,
            rows=rows,
            replace=replace,
        )
    return _imported(stored, file_format, rows)


def _imported(stored: bool, file_format: str, rows: Sequence[Measurement]) -> Imported:
    configurations = {id(row.config) for row in rows}
    return Imported(stored, file_format, len(rows), len(configurations))
