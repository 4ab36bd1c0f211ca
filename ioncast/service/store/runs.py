"""Runs of applications in the database; each run comes from the Darshan logs of its processes."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    bindparam,
    func,
    insert,
    select,
    tuple_,
    update,
)

from benchdb.store.accepted_values import (
    check_bandwidth,
    check_count,
    check_text,
    is_text,
    stored_time,
)
from benchdb.store.schema import longest, systems
from benchdb.store.systems import check_system_name, system_id_of
from ioncast.service.store.applications import (
    APPLICATION_COLUMNS,
    RUN_TIME,
    Application,
    application,
    application_of_row,
    checked_id,
    id_of_application,
    note_new_run,
    note_other_times,
)
from ioncast.service.store.revisions import next_revision
from ioncast.service.store.tables import applications, run_logs, runs
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.files import program_of
from ioncast_base.kinds import kind_of_record
from ioncast_base.times import now
from ioncast_base.wording import counted

# Also a limit in bytes, because an index row of PostgreSQL holds at most 2704 bytes.
_LONGEST_EXECUTABLE = longest(applications.c.executable)
# Values that the sender of a log may add later; a different value is a conflict.
_TOLD = ("job_id", "name", "nodes", "io_nodes")


@dataclass(frozen=True)
class NewRun:
    """A run to be stored, with all values checked. An empty text means "unknown".

    Attributes
    ----------
    logs : sequence of str
        SHA-256 of each log, at least one; a system stores each log once.
    phases : sequence of mapping
        The phases as `ioncast phases --format json` shows them.
    bandwidth_mib_s : float or None
        All bytes over the time of their phases.
    named_nodes : int or None
        The number of compute nodes that the log names. It is stored until `nodes` is known.
    """

    system: str
    executable: str
    user: str
    logs: Sequence[str]
    tasks: int
    phases: Sequence[Mapping[str, Any]]
    job_id: str | None = None
    name: str | None = None
    nodes: int | None = None
    io_nodes: int | None = None
    bandwidth_mib_s: float | None = None
    started: str | None = None
    named_nodes: int | None = None

    def __post_init__(self) -> None:
        check_system_name(self.system)
        self._check_application()
        for sha256 in self.logs:
            if len(sha256) != longest(run_logs.c.sha256) or set(sha256) - set("0123456789abcdef"):
                raise InputError(f"{sha256!r} is not a SHA-256")
        check_count("tasks", self.tasks, least=1)
        check_count("nodes", self.nodes, least=1)
        check_count("nodes in the log", self.named_nodes, least=1)
        check_count("I/O nodes", self.io_nodes)
        check_bandwidth(self.bandwidth_mib_s)
        check_text("the job's id", self.job_id, runs.c.job_id)
        check_text("the job's name", self.name, runs.c.name)
        check_text("the pattern of the phases", self.pattern, runs.c.pattern)
        # Computing these values fails if a time or a number is not valid.
        _ = self.optional_values, self.document

    def _check_application(self) -> None:
        program = program_of(self.executable)
        if not program or not self.user:
            raise InputError(
                f"an application needs an executable and a user, not {self.executable!r}"
                f" and {self.user!r}"
            )
        check_text("the user", self.user, applications.c.user)
        check_text("the executable", self.executable, applications.c.executable)
        check_text("the program", program, applications.c.program)
        if (size := len(self.executable.encode())) > _LONGEST_EXECUTABLE:
            raise InputError(f"the executable has {size} bytes, more than {_LONGEST_EXECUTABLE}")

    @cached_property
    def sha256(self) -> str:
        """The `digest_of_logs` of its logs."""
        return digest_of_logs(self.logs)

    @cached_property
    def pattern(self) -> str | None:
        """The kind of I/O that moves most bytes."""
        return pattern_of_phases(self.phases)

    @cached_property
    def document(self) -> str:
        """The phases as JSON."""
        try:
            return json.dumps([dict(phase) for phase in self.phases], allow_nan=False)
        except ValueError as error:
            raise InputError("the phases contain a number that is not finite") from error

    @cached_property
    def optional_values(self) -> dict[str, Any]:
        """The values that may be unknown, as the columns hold them."""
        return {
            "job_id": self.job_id or None,
            "name": self.name or None,
            "nodes": self.nodes or self.named_nodes,
            "io_nodes": self.io_nodes,
            "bandwidth_mib_s": self.bandwidth_mib_s,
            "started": stored_time("started", self.started) if self.started else None,
        }


@dataclass(frozen=True)
class StoredRun:
    """A stored run of an application; times are ISO 8601 in UTC.

    `bandwidth_mib_s` is all bytes over the time of their phases, which are those of `ioncast phases
    --format json`. 0 I/O nodes are direct access. `outcome_scatter` is how much evidence from
    servers widens the noise of the run as an outcome, as a standard deviation of the logarithm.
    """

    id: int
    application: Application
    job_id: str | None
    name: str | None
    tasks: int
    nodes: int | None
    io_nodes: int | None
    bandwidth_mib_s: float | None
    started: str | None
    stored_at: str
    phases: tuple[dict[str, Any], ...]
    outcome_scatter: float = 0.0

    @property
    def ran_at(self) -> str:
        """When the run started; when it was stored if its start is unknown."""
        return self.started or self.stored_at


class RecentLog(NamedTuple):
    """A log of a run, by its SHA-256, with the program of the run."""

    run_id: int
    program: str
    sha256: str
    outcome_scatter: float


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_RUNS = (
    select(*(column for column in runs.c if column.name != "application_id"), *APPLICATION_COLUMNS)
    .join_from(runs, applications, runs.c.application_id == applications.c.id)
    .join(systems, applications.c.system_id == systems.c.id)
)
_NEWEST = RUN_TIME.desc(), runs.c.id.desc()
# Of the row of `applications` in the statement around it.
NEWEST_RUN = (
    select(runs.c.id)
    .where(runs.c.application_id == applications.c.id)
    .order_by(*_NEWEST)
    .limit(1)
    .correlate(applications)
    .scalar_subquery()
)
_NEWEST_FIRST = _RUNS.order_by(*_NEWEST).limit(bindparam("most"))
_RECENT = (
    select(runs.c.id, runs.c.io_nodes, RUN_TIME.label("time"))
    .join_from(runs, applications, runs.c.application_id == applications.c.id)
    .join(systems, applications.c.system_id == systems.c.id)
    .order_by(*_NEWEST)
    .limit(2_000)
)
_RUNS_OF = _NEWEST_FIRST.where(runs.c.application_id == bindparam("application"))
_RUNS_OF_JOB = _NEWEST_FIRST.where(
    systems.c.name == bindparam("in_system"), runs.c.job_id == bindparam("job")
)
_RUNS_BEFORE = _RUNS_OF.where(
    tuple_(RUN_TIME, runs.c.id) < tuple_(bindparam("when"), bindparam("id"))
)
_TIME_OF_RUN = select(RUN_TIME).where(
    runs.c.id == bindparam("id"), runs.c.application_id == bindparam("application")
)
_RUN = _RUNS.where(runs.c.id == bindparam("id"))
_LOGS_OF_RUN = select(run_logs.c.sha256).where(run_logs.c.run_id == bindparam("id"))
_LOGS_SINCE = (
    select(runs.c.id, applications.c.program, run_logs.c.sha256, runs.c.outcome_scatter)
    .join_from(runs, applications, runs.c.application_id == applications.c.id)
    .join(run_logs, run_logs.c.run_id == runs.c.id)
    .where(runs.c.stored_at >= bindparam("since"))
    .order_by(runs.c.stored_at.desc(), runs.c.id.desc())
    .limit(bindparam("most"))
)
_RUNS_OF_LOGS = (
    select(run_logs.c.run_id)
    .distinct()
    .where(
        run_logs.c.system_id == bindparam("in_system"),
        run_logs.c.sha256.in_(bindparam("digests", expanding=True)),
    )
    .order_by(run_logs.c.run_id)
)


def digest_of_logs(logs: Iterable[str]) -> str:
    """The SHA-256 of a log, or that of the sorted ones of several logs."""
    digests = sorted(set(logs))
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def pattern_of_phases(phases: Sequence[Mapping[str, Any]]) -> str | None:
    """The kind of I/O that moves most bytes; None if the phases move no bytes.

    Examples
    --------
    >>> phase = {"type": "write", "api": "POSIX", "spatiality": "random", "files": "shared"}
    >>> pattern_of_phases([phase | {"bytes": 8}])
    'write POSIX random shared'
    """
    moved: Counter[str] = Counter()
    for phase in phases:
        moved[str(kind_of_record(phase))] += phase["bytes"]
    return max(moved, key=lambda kind: moved[kind]) if moved.total() else None


def store_run(connection: Connection, new: NewRun) -> tuple[StoredRun, bool]:
    """Store a run in the history of its application; return it, and whether anything of it is new.

    If the system already has all logs, the stored application, tasks and phases stay; only unknown
    values are filled in. If the system has some of the logs, as all logs of one run, tasks and
    phases become those of all.

    Raises
    ------
    ConflictError
        If a log is stored with another job, name, number of nodes or number of I/O nodes, or with
        logs that are not given.
    InputError
        If the system is stored with another spelling.
    """
    system_id = system_id_of(connection, new.system)
    digests = set(new.logs)
    given = {"in_system": system_id, "digests": sorted(digests)}
    known = connection.scalars(_RUNS_OF_LOGS, given).all()
    if not known:
        return _added(connection, system_id, new), True
    stored = set(connection.scalars(_LOGS_OF_RUN, {"id": known[0]}))
    if len(known) > 1 or not (digests <= stored or stored <= digests):
        raise ConflictError(
            f"the logs belong to {counted(len(known), 'stored run')} with other logs",
            where=f"run {known[0]}",
            remedy="send all logs of a run together; nothing was changed",
        )
    grows = not digests <= stored
    run = _filled_in(connection, _stored_run(connection, known[0]), new, grows=grows)
    if not grows:
        return run, False
    grown = _values_of_logs(connection, new)
    for name in ("bandwidth_mib_s", "started"):
        grown[name] = new.optional_values[name]
    connection.execute(update(runs).where(runs.c.id == run.id).values(grown))
    _add_logs(connection, system_id, run.id, digests - stored)
    note_other_times(connection, run.application.id)
    return _stored_run(connection, run.id), True


def _added(connection: Connection, system_id: int, new: NewRun) -> StoredRun:
    values = {
        "system_id": system_id,
        "application_id": id_of_application(connection, system_id, new.executable, new.user),
        "stored_at": now(),
        **_values_of_logs(connection, new),
        **new.optional_values,
    }
    [key] = connection.scalars(insert(runs).values(values).returning(runs.c.id))
    _add_logs(connection, system_id, key, set(new.logs))
    note_new_run(connection, values["application_id"], values["started"] or values["stored_at"])
    return _stored_run(connection, key)


def _values_of_logs(connection: Connection, new: NewRun) -> dict[str, Any]:
    """The values of a run that change when more logs of it arrive."""
    return {
        "sha256": new.sha256,
        "tasks": new.tasks,
        "pattern": new.pattern,
        "phases": new.document,
        "revision": next_revision(connection, runs),
    }


def _add_logs(connection: Connection, system_id: int, run_id: int, digests: Iterable[str]) -> None:
    rows = [
        {"system_id": system_id, "run_id": run_id, "sha256": digest} for digest in sorted(digests)
    ]
    connection.execute(insert(run_logs), rows)


def runs_like(
    connection: Connection,
    system: str,
    *,
    executable: str | None = None,
    program: str | None = None,
    user: str | None = None,
    name: str | None = None,
    limit: int = 50,
) -> list[StoredRun]:
    """List the newest runs with each number of I/O nodes that match everything that is given.

    Runs with one number must not hide those with another, so `limit` counts for each number. Of
    more than 2,000 runs only the newest are looked at. None matches every run.
    """
    wanted = {
        systems.c.name: system,
        applications.c.executable: executable,
        applications.c.program: program,
        applications.c.user: user,
        runs.c.name: name,
    }
    if not all(map(is_text, wanted.values())):
        return []
    given = [column == value for column, value in wanted.items() if value is not None]
    recent = _RECENT.where(*given).subquery()
    newest_first = recent.c.time.desc(), recent.c.id.desc()
    place = func.row_number().over(partition_by=recent.c.io_nodes, order_by=newest_first)
    ranked = select(recent.c.id, place.label("place")).subquery()
    kept = select(ranked.c.id).where(ranked.c.place <= limit)
    return _runs(connection, _RUNS.where(runs.c.id.in_(kept)).order_by(*_NEWEST))


def runs_of(
    connection: Connection, application_id: int, *, before: int | None = None, limit: int = 100
) -> list[StoredRun]:
    """List the runs of an application, newest first; only those older than the run `before`.

    A run without a known start is ordered by the time when it was stored. An unknown application or
    run is an UnknownNameError.
    """
    application(connection, application_id)
    if before is None:
        return _runs(connection, _RUNS_OF, application=application_id, most=limit)
    key = {"id": checked_id(before, "run"), "application": application_id}
    when = connection.scalar(_TIME_OF_RUN, key)
    if when is None:
        raise UnknownNameError(f"application {application_id} has no run {before}")
    return _runs(connection, _RUNS_BEFORE, when=when, most=limit, **key)


def runs_of_job(connection: Connection, system: str, job_id: str, limit: int) -> list[StoredRun]:
    """List the runs of a job id on a system, newest first."""
    given = {"in_system": system, "job": job_id, "most": limit}
    return _runs(connection, _RUNS_OF_JOB, **given)


def run_of(connection: Connection, application_id: int, run_id: int) -> StoredRun:
    """Read one run of an application; an UnknownNameError if it has no run with this id."""
    found = _runs(connection, _RUN, id=checked_id(run_id, "run"))
    if not found or found[0].application.id != application_id:
        raise UnknownNameError(f"application {application_id} has no run {run_id}")
    return found[0]


def logs_of_run(connection: Connection, run_id: int) -> tuple[str, ...]:
    """List the SHA-256 of each log of a run, sorted; an unknown run has none."""
    return tuple(sorted(connection.scalars(_LOGS_OF_RUN, {"id": run_id})))


def logs_since(connection: Connection, since: str, limit: int) -> list[RecentLog]:
    """List the logs of the newest runs that were stored since a time, ISO 8601 in UTC."""
    rows = connection.execute(_LOGS_SINCE, {"since": since, "most": limit})
    return [RecentLog(*row) for row in rows]


def note_scatter(connection: Connection, run_id: int, outcome_scatter: float) -> None:
    """Store how much evidence from servers widens the noise of a run; a deleted run stays so."""
    revised = {"outcome_scatter": outcome_scatter, "revision": next_revision(connection, runs)}
    connection.execute(update(runs).where(runs.c.id == run_id).values(revised))


def _filled_in(connection: Connection, run: StoredRun, new: NewRun, *, grows: bool) -> StoredRun:
    """Store the given values that the run does not have yet, and return the run with them."""
    stored = {name: getattr(run, name) for name in new.optional_values}
    given = dict(new.optional_values)
    # More logs name more compute nodes than fewer logs of the same run.
    named_more = grows and (run.nodes or 0) < (new.named_nodes or 0)
    if run.nodes == new.named_nodes or named_more:
        # The stored number is that of the stored logs, so a newer one replaces it.
        stored["nodes"] = None
    elif new.nodes is None:
        given["nodes"] = run.nodes or new.named_nodes
    for name in _TOLD:
        if None not in {stored[name], given[name]} and stored[name] != given[name]:
            raise ConflictError(
                f"the log is already stored with {name} {stored[name]}, not {given[name]}",
                where=f"run {run.id}",
                remedy="nothing was changed",
            )
    added = {
        name: value
        for name, value in given.items()
        if stored[name] is None and value is not None and value != getattr(run, name)
    }
    if not added:
        return run
    revised = added | {"revision": next_revision(connection, runs)}
    connection.execute(update(runs).where(runs.c.id == run.id).values(revised))
    if "started" in added:
        note_other_times(connection, run.application.id)
    return _stored_run(connection, run.id)


def _stored_run(connection: Connection, key: int) -> StoredRun:
    return _run(connection.execute(_RUN, {"id": key}).mappings().one())


def _runs(connection: Connection, query: Select[Any], **values: Any) -> list[StoredRun]:
    return [_run(row) for row in connection.execute(query, values).mappings()]


def _run(row: RowMapping) -> StoredRun:
    values: dict[str, Any] = {
        **{field.name: row.get(field.name) for field in fields(StoredRun)},
        "application": application_of_row(row),
        "phases": tuple(json.loads(row["phases"])),
    }
    return StoredRun(**values)
