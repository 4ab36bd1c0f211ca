"""The data of `ioncast serve --demo`: an emulated system's benchmarks, runs and reruns.

The files are in `testbed`; its README tells how they were measured. The questions and reports of
a scheduler are replayed: for each rerun the service decides as if only the rerun's I/O nodes
were available, and then gets the rerun's bandwidth as the outcome. All decisions are made before
the first outcome is stored, so that no prediction knows the bandwidth that it is compared with.

Everything was measured within an hour. The times of runs and reruns are made up: they are in the
order of the measurements, spread over the last weeks, so that pages look like those of a site.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from uuid import uuid4

from sqlalchemy import Connection, update

from benchdb.measurements.importers import ImportOptions
from benchdb.store.database import opened_database, transaction
from ioncast.advice_of_run import ADVICE_MODULES
from ioncast.insights.checks.values import Thresholds
from ioncast.service.background.draining import decision_in
from ioncast.service.background.preparing import KnownSystems, Preparing
from ioncast.service.decide.answers import Entry, answer
from ioncast.service.settings import read_settings
from ioncast.service.store.applications import applications
from ioncast.service.store.decisions import store_decisions
from ioncast.service.store.outcomes import store_outcome
from ioncast.service.store.run_insights import NewInsights, store_insights
from ioncast.service.store.runs import NewRun, store_run
from ioncast.service.store.tables import outcomes
from ioncast.service.web.sandbox.reading_insights import insights_of_run
from ioncast.service.web.sandbox.tasks import (
    Place,
    TraceContent,
    import_measurements,
    trace_content,
)
from ioncast.service.web.sandbox.uploaded_logs import Upload, run_of_uploads
from ioncast_base.times import in_utc
from predictor.matching.same_application import identities
from predictor.model.measurement_summary import read_summary

TESTBED = Path(__file__).with_name("testbed")
SYSTEM = "testbed"
USER = "demo"
TASKS, NODES = 16, 8
# The runs of the logs are spread over the first week, and the reruns over the days after it.
_WEEKS, _DAYS_OF_RERUNS = timedelta(weeks=3), timedelta(weeks=2)
# From a rerun's question to its start, and to the report of its outcome.
_UNTIL_START, _UNTIL_REPORT = timedelta(seconds=20), timedelta(minutes=6)
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
    asked: datetime


def fill(location: str) -> None:
    """Fill an empty database with the data that a site has after some weeks."""
    now = datetime.now(timezone.utc)
    with opened_database(location) as engine:
        table = TESTBED / "benchmarks.csv"
        place = Place(location, _PATIENCE_S)
        import_measurements(place, _upload(table), ImportOptions(SYSTEM, tasks=TASKS, nodes=NODES))
        runs = list(_logged_runs(now - _WEEKS, now - _DAYS_OF_RERUNS))
        reruns = _reruns(now - _DAYS_OF_RERUNS, now)
        with transaction(engine, write=True) as connection:
            for run, insights in runs:
                stored, _ = store_run(connection, run)
                store_insights(connection, stored.id, run.logs, insights)
        with transaction(engine, write=True) as connection:
            # The keeper then need not fit the model.
            summary = read_summary(connection, SYSTEM)
            summary.fitted_to(summary.curves_to_fit(connection)).store_model(connection)
            lines = _decided(connection, reruns)
            store_decisions(connection, map(decision_in, lines))
            for rerun, line in zip(reruns, lines, strict=True):
                _store_outcome(connection, rerun, str(line["id"]))


def _spread(count: int, first: datetime, end: datetime) -> list[datetime]:
    """Make times at equal distances, the last one before the end."""
    return [first + (end - first) * place / count for place in range(count)]


def _upload(path: Path) -> Upload:
    return Upload(str(path), path.name, hashlib.sha256(path.read_bytes()).hexdigest())


def _logged_runs(first: datetime, end: datetime) -> Iterator[tuple[NewRun, NewInsights]]:
    """Read each log as a run, in the order in which they ran."""
    uploads = [_upload(path) for path in sorted((TESTBED / "logs").iterdir())]
    runs = [run_of_uploads([upload], ADVICE_MODULES) for upload in uploads]
    found = [(trace_content(run), upload, run) for run, upload in zip(runs, uploads, strict=True)]
    found.sort(key=lambda each: each[0].started or "")
    for (trace, upload, run), moment in zip(found, _spread(len(found), first, end), strict=True):
        yield _run(trace, upload, moment), insights_of_run(run, NODES, Thresholds())[0]


def _run(trace: TraceContent, upload: Upload, started: datetime) -> NewRun:
    told = _LOG_NAME.fullmatch(Path(upload.name).stem)
    assert told is not None  # noqa: S101
    return NewRun(
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
        started=in_utc(started),
    )


def _store_outcome(connection: Connection, rerun: _Rerun, decision_id: str) -> None:
    stored, _ = store_outcome(
        connection,
        system=SYSTEM,
        job_id=rerun.job_id,
        io_nodes=rerun.io_nodes,
        bandwidth_mib_s=rerun.bandwidth_mib_s,
        decision_id=decision_id,
        started=in_utc(rerun.asked + _UNTIL_START),
    )
    values = {"reported_at": in_utc(rerun.asked + _UNTIL_REPORT)}
    connection.execute(update(outcomes).where(outcomes.c.id == stored.id).values(values))


def _reruns(first: datetime, end: datetime) -> list[_Rerun]:
    with (TESTBED / "applications.csv").open(encoding="utf-8", newline="") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["started"])
    return [
        _Rerun(
            name=row["name"],
            executable=row["command"].split(maxsplit=1)[0],
            job_id=f"{row['name']}-{row['io_nodes']}-{row['repetition']}",
            io_nodes=int(row["io_nodes"]),
            bandwidth_mib_s=float(row["bandwidth_mib_s"]),
            asked=moment,
        )
        for row, moment in zip(rows, _spread(len(rows), first, end), strict=True)
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
        at = rerun.asked.isoformat(timespec="milliseconds")
        lines.append({"id": uuid4().hex, "at": at, "query": query, "answer": json.loads(told.body)})
    return lines


def _entries(connection: Connection) -> Mapping[str, Entry]:
    """Prepare the entries as the keeper would."""
    preparing = Preparing(connection, read_settings(environment={}), KnownSystems(), wanted={})
    entries: dict[str, Entry] = {}
    for summary in applications(connection, system=SYSTEM):
        entries.update(preparing.prepare(summary.application.id).entries)
    return entries
