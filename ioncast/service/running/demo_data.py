"""The data of `ioncast serve --demo`: an emulated system's benchmarks, runs and reruns.

The files are in `testbed`; its README tells how they were measured. The questions and reports of
a scheduler are replayed: for each rerun the service decides as if only the rerun's I/O nodes
were available, and then gets the rerun's bandwidth as the outcome. All decisions are made before
the first outcome is stored, so that no prediction knows the bandwidth that it is compared with.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection

from benchdb.history.applications import applications
from benchdb.history.decisions import store_decisions
from benchdb.history.outcomes import store_outcome
from benchdb.history.run_insights import store_insights
from benchdb.history.runs import NewRun, store_run
from benchdb.store.database import opened_database, transaction
from benchdb.store.fitted_models import store_model
from ioncast.insights.checks.values import Thresholds
from ioncast.service.answering.answers import Entry, answer
from ioncast.service.answering.spool import SpoolWriter
from ioncast.service.keeper.draining import Drain
from ioncast.service.keeper.preparing import Preparing, Surveys
from ioncast.service.sandbox.reading_insights import read_insights
from ioncast.service.sandbox.tasks import Place, import_measurements, read_trace
from ioncast.service.sandbox.uploaded_logs import Upload
from ioncast.service.settings import read_settings
from predictor.matching.basis import lessons
from predictor.matching.same_application import identities
from predictor.model.stored import to_document

TESTBED = Path(__file__).with_name("testbed")
SYSTEM = "testbed"
USER = "demo"
TASKS, NODES = 16, 8
_PATIENCE_S = 60.0
_LOG_NAME = re.compile(r"(?P<name>.+)-ionodes(?P<io_nodes>\d+)(?:-dxt)?")


@dataclass(frozen=True)
class _Rerun:
    """A job, and the bandwidth that it got."""

    name: str
    executable: str
    job_id: str
    io_nodes: int
    bandwidth_mib_s: float


def fill(location: str) -> None:
    """Fill a new database with the data that a site has after some weeks.

    Parameters
    ----------
    location : str
        An SQLite file or a SQLAlchemy URL.

    Raises
    ------
    IoncastError
        When the database cannot be used, or these files were imported with other options.
    """
    with opened_database(location) as engine:
        table = TESTBED / "benchmarks.csv"
        place = Place(location, _PATIENCE_S)
        import_measurements(place, _upload(table), SYSTEM, tasks=TASKS, nodes=NODES)
        with transaction(engine, write=True) as connection:
            for log in sorted((TESTBED / "logs").iterdir()):
                _store_log(connection, log)
        reruns = _reruns()
        with transaction(engine, write=True) as connection:
            _store_model(connection)
            lines = _decided(connection, reruns)
            _store_decisions(connection, lines)
            for rerun, line in zip(reruns, lines, strict=True):
                store_outcome(
                    connection,
                    system=SYSTEM,
                    job_id=rerun.job_id,
                    io_nodes=rerun.io_nodes,
                    bandwidth_mib_s=rerun.bandwidth_mib_s,
                    decision_id=str(line["id"]),
                )


def _upload(path: Path) -> Upload:
    return Upload(str(path), path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def _store_log(connection: Connection, path: Path) -> None:
    told = _LOG_NAME.fullmatch(path.stem)
    assert told is not None  # noqa: S101
    upload = _upload(path)
    trace = read_trace([upload])
    run = NewRun(
        system=SYSTEM,
        executable=trace.executable,
        user=USER,
        name=told["name"],
        logs=[upload.sha256],
        tasks=trace.tasks,
        nodes=NODES,
        io_nodes=int(told["io_nodes"]),
        phases=trace.phases,
        job_id=trace.job_id,
        bandwidth_mib_s=trace.bandwidth_mib_s,
        started=trace.started,
    )
    stored, _ = store_run(connection, run)
    store_insights(connection, stored.id, run.logs, read_insights([upload], NODES, Thresholds()))


def _reruns() -> list[_Rerun]:
    with (TESTBED / "applications.csv").open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["started"])
    return [
        _Rerun(
            name=row["name"],
            executable=row["command"].split(maxsplit=1)[0],
            job_id=f"{row['name']}-{row['io_nodes']}-{row['repetition']}",
            io_nodes=int(row["io_nodes"]),
            bandwidth_mib_s=float(row["bandwidth_mib_s"]),
        )
        for row in rows
    ]


def _decided(connection: Connection, reruns: Iterable[_Rerun]) -> list[dict[str, object]]:
    """Decide for each job; return the lines that a worker would write to its spool."""
    entries = _entries(connection)
    lines: list[dict[str, object]] = []
    for rerun in reruns:
        found = next(
            (entries[identity.key], identity.says)
            for identity in identities(rerun.executable, USER, rerun.name)
            if identity.key in entries
        )
        told = answer(*found, TASKS, NODES, rerun.io_nodes)
        query = {
            "system": SYSTEM,
            "user": USER,
            "executable": rerun.executable,
            "name": rerun.name,
            "job_id": rerun.job_id,
            "nodes": NODES,
            "tasks": TASKS,
            "available": rerun.io_nodes,
        }
        at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        lines.append({"id": uuid4().hex, "at": at, "query": query, "answer": json.loads(told.body)})
    return lines


def _store_model(connection: Connection) -> None:
    """Fit the model and store it, so that the keeper need not fit it."""
    found = lessons(connection, SYSTEM)
    assert found is not None  # noqa: S101
    fitted = found.learn()
    store_model(connection, SYSTEM, fitted.engine, fitted.state, to_document(fitted.model))


def _entries(connection: Connection) -> Mapping[str, Entry]:
    """Prepare the entries as the keeper would."""
    preparing = Preparing(connection, read_settings(environment={}), Surveys(), wanted={})
    entries: dict[str, Entry] = {}
    for summary in applications(connection, system=SYSTEM):
        entries.update(preparing.prepare(summary.application.id).entries)
    return entries


def _store_decisions(connection: Connection, lines: Iterable[Mapping[str, object]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        spool = SpoolWriter(Path(folder))
        for line in lines:
            spool.append(json.dumps(line).encode() + b"\n")
        spool.close()
        with Drain(Path(folder)).batch(time.time()) as drained:
            store_decisions(connection, drained.rows)
