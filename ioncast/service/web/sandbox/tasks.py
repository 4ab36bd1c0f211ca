"""The tasks that `child` runs in disposable processes: functions of plain values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from sqlalchemy import Connection

from benchdb.measurements.file_imports import MeasurementsFile, StoredFile, read_file
from benchdb.measurements.importers import ImportOptions, measurements_of
from benchdb.store.database import existing_database, transaction
from ioncast.service.web.sandbox.uploaded_logs import Upload, run_of_uploads
from ioncast_base.errors import DamagedLogError, InputError
from ioncast_base.limits import LARGEST_COUNT
from ioncast_base.times import in_utc
from predictor.curve.asking import PredictionContext, PredictionRequest, ask
from predictor.curve.composing import observed_mib_s
from predictor.curve.explanation import explain
from predictor.curve.prediction_formats import to_json
from summario.phases.extract import extract_run
from summario.phases.tables import from_record, to_record
from summario.phases.values import Extraction, Phase
from summario.reading.log import PHASE_MODULES
from summario.runs.hosts import HOST_MODULES, NodeCount
from summario.runs.logs_of_run import Run

# No real run has so many phases. Each one is predicted, and all are stored in the history.
MOST_PHASES = 10_000
_MODULES = (*PHASE_MODULES, *HOST_MODULES)


@dataclass(frozen=True)
class Place:
    """The location of the benchmark database, and how many seconds to wait for it."""

    location: str | None
    patience_s: float

    @contextmanager
    def transaction(self, *, write: bool = False) -> Iterator[Connection]:
        """Open the existing database for one transaction, and close it afterwards."""
        database = existing_database(self.location, patience_s=self.patience_s)
        try:
            with transaction(database, write=write) as connection:
                yield connection
        finally:
            database.dispose()


@dataclass(frozen=True)
class TraceContent:
    """The content of a Darshan log that the history stores.

    Attributes
    ----------
    started : str or None
        Start time in UTC; None if the log has an impossible time.
    phases : tuple of dict
        The phases as `ioncast phases --format json` writes them.
    bandwidth_mib_s : float or None
        All bytes over the time of the phases; None if the log has no time for them.
    """

    job_id: str
    uid: int
    tasks: int
    started: str | None
    executable: str
    phases: tuple[dict[str, Any], ...]
    bandwidth_mib_s: float | None
    warnings: tuple[str, ...]
    nodes: NodeCount | None


def trace_content(run: Run) -> TraceContent:
    """Read the content of a run that the history stores."""
    found = extracted(run)
    if run.nprocs > LARGEST_COUNT:
        raise DamagedLogError(f"the job record counts {run.nprocs} processes", where=run.name)
    return TraceContent(
        job_id=str(run.first.id),
        uid=run.first.uid,
        tasks=run.nprocs,
        started=_moment(run.first.start_seconds),
        executable=run.program,
        phases=tuple(map(to_record, found.phases)),
        bandwidth_mib_s=_observed(found.phases),
        warnings=found.warnings,
        nodes=found.nodes,
    )


def predict_logs(
    place: Place, uploads: Sequence[Upload], asked: PredictionRequest
) -> dict[str, Any]:
    """Predict from the logs of a run, as `ioncast predict --format json --explain`."""
    return predicted(place, extracted(run_of_uploads(uploads, _MODULES)), asked)


def predict_job(
    place: Place, records: Sequence[Mapping[str, Any]], asked: PredictionRequest
) -> dict[str, Any]:
    """Predict from phases, as `predict_logs` does from logs."""
    return predicted(place, phases_of(records), asked)


def predicted(place: Place, found: Extraction, asked: PredictionRequest) -> dict[str, Any]:
    """Predict as `ioncast predict --format json --explain`."""
    prediction = ask(frontend(place), asked, found)
    return {**to_json(prediction), "explanation": explain(prediction)}


def import_measurements(
    place: Place, upload: Upload, told: ImportOptions, *, replace: bool = False
) -> StoredFile:
    """Store a file of benchmark results, as `ioncast bench import` does."""
    try:
        read = read_file(upload.path, told, name=upload.name)
        with place.transaction(write=True) as connection:
            return read.store(connection, replace=replace)
    except InputError as error:
        # The client does not know the path.
        if error.where in {None, upload.path}:
            error.where = upload.name
        raise


def store_rows(
    place: Place,
    name: str,
    content: bytes,
    system: str,
    rows: Sequence[tuple[str, Mapping[str, Any]]],
) -> StoredFile:
    """Store measurements that were sent as JSON."""
    try:
        measurements = measurements_of(rows)
    except InputError as error:
        error.where = error.where or name
        raise
    sent = MeasurementsFile(name, content, "json", system, measurements)
    with place.transaction(write=True) as connection:
        return sent.store(connection)


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


def extracted(run: Run) -> Extraction:
    """Extract the phases of a run."""
    found = extract_run(run)
    if len(found.phases) > MOST_PHASES:
        raise InputError(
            f"its I/O has {len(found.phases)} phases, more than {MOST_PHASES}", where=run.name
        )
    return found


def phases_of(records: Sequence[Mapping[str, Any]]) -> Extraction:
    """Read phases, given as `ioncast phases --format json` prints them."""
    return Extraction(tuple(_phase(index, record) for index, record in enumerate(records)))


def _phase(index: int, record: Mapping[str, Any]) -> Phase:
    try:
        return from_record(record)
    except InputError as error:
        error.where = f"phases.{index}"
        raise


def frontend(place: Place) -> PredictionContext:
    """Make the frontend for predictions of the service, whose answers do not name the database."""
    return PredictionContext(
        transaction=place.transaction,
        choose_engine="choose with `engine`",
        import_first="send measurements first",
        says_unstored=False,
    )
