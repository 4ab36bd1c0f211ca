"""Runs of applications: one Darshan log each, in the history of a program of a user."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    Select,
    Table,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    tuple_,
    union,
    update,
)

from benchdb.measurements.storing import system_id_of
from benchdb.store.accepted_values import (
    check_bandwidth,
    check_count,
    check_text,
    is_text,
    stored_time,
)
from benchdb.store.schema import applications as applications_table
from benchdb.store.schema import decisions, longest, outcomes, runs, systems
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.kinds import kind_of_record
from ioncast_base.limits import LARGEST_ID
from ioncast_base.times import now

# In bytes, too: an index of PostgreSQL takes no more than 2704 with all its columns.
_LONGEST_EXECUTABLE = longest(applications_table.c.executable)
# What somebody tells of a run, and what a log need not say; both may come later.
_TOLD = ("job_id", "name", "nodes", "io_nodes")
_FOUND = ("bandwidth_mib_s", "started")


@dataclass(frozen=True)
class Application:
    """A program of a user on a system.

    Attributes
    ----------
    id : int
        The database's.
    system : str
        Where it runs.
    executable : str
        As the log names it, most often with its folder.
    program : str
        The executable without its folder.
    user : str
        Whose runs they are.
    """

    id: int
    system: str
    executable: str
    program: str
    user: str


@dataclass(frozen=True)
class ApplicationSummary:
    """An application, and how much is known of it.

    Attributes
    ----------
    application : Application
        Which one.
    runs : int
        How many runs are in its history.
    newest : str
        When the last one started, or was stored where that is not known; ISO 8601 in UTC.
    """

    application: Application
    runs: int
    newest: str


@dataclass(frozen=True)
class Run:
    """One run of an application.

    Attributes
    ----------
    id : int
        The database's.
    application : Application
        Whose run it was.
    job_id, name : str or None
        The job's.
    tasks : int
        Processes.
    nodes, io_nodes : int or None
        Compute nodes, and I/O nodes (0 is direct access).
    bandwidth_mib_s : float or None
        All bytes over the time of their phases.
    started : str or None
        When, ISO 8601 in UTC.
    stored_at : str
        When it came here, ISO 8601 in UTC.
    phases : tuple of dict
        As `ioncast phases --format json` shows them.
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


# Statements are made once: SQLAlchemy needs longer for that than a database for an answer.
_WHEN = func.coalesce(runs.c.started, runs.c.stored_at)
_APPLICATION = (
    applications_table.c.id.label("application_id"),
    systems.c.name.label("system"),
    applications_table.c.executable,
    applications_table.c.program,
    applications_table.c.user,
)
_RUNS = (
    select(*(column for column in runs.c if column.name != "application_id"), *_APPLICATION)
    .join_from(runs, applications_table, runs.c.application_id == applications_table.c.id)
    .join(systems, applications_table.c.system_id == systems.c.id)
)
_NEWEST_RUNS_FIRST = _RUNS.order_by(_WHEN.desc(), runs.c.id.desc()).limit(bindparam("most"))
_RUNS_OF = _NEWEST_RUNS_FIRST.where(runs.c.application_id == bindparam("application"))
_RUNS_BEFORE = _RUNS_OF.where(tuple_(_WHEN, runs.c.id) < tuple_(bindparam("when"), bindparam("id")))
_WHEN_OF_RUN = select(_WHEN).where(
    runs.c.id == bindparam("id"), runs.c.application_id == bindparam("application")
)
_RUN = _RUNS.where(runs.c.id == bindparam("id"))
_RUN_OF_LOG = _RUNS.where(
    runs.c.system_id == bindparam("in_system"), runs.c.sha256 == bindparam("digest")
)
_FIND_APPLICATION = select(applications_table.c.id).where(
    applications_table.c.system_id == bindparam("in_system"),
    applications_table.c.user == bindparam("of_user"),
    applications_table.c.executable == bindparam("path"),
)
_SUMMARIES = select(
    *_APPLICATION,
    select(func.count())
    .where(runs.c.application_id == applications_table.c.id)
    .scalar_subquery()
    .label("runs"),
    select(func.max(_WHEN))
    .where(runs.c.application_id == applications_table.c.id)
    .scalar_subquery()
    .label("newest"),
).join_from(applications_table, systems)
_SUMMARY = _SUMMARIES.where(applications_table.c.id == bindparam("id"))
_NEWEST = select(
    select(func.max(runs.c.revision)).scalar_subquery(),
    select(func.max(outcomes.c.revision)).scalar_subquery(),
)
_NEW_OUTCOMES = outcomes.c.revision > bindparam("outcome_revision")
_CHANGED = union(
    select(runs.c.application_id).where(runs.c.revision > bindparam("run_revision")),
    select(runs.c.application_id).join_from(outcomes, runs).where(_NEW_OUTCOMES),
    select(decisions.c.application_id)
    .join_from(outcomes, decisions, outcomes.c.decision_id == decisions.c.id)
    .where(_NEW_OUTCOMES),
    select(decisions.c.application_id)
    .join_from(outcomes, systems)
    .join(
        decisions,
        and_(decisions.c.system == systems.c.name, decisions.c.job_id == outcomes.c.job_id),
    )
    .where(_NEW_OUTCOMES, outcomes.c.decision_id.is_(None)),
)


def program_of(executable: str) -> str:
    """The executable without its folder.

    Examples
    --------
    >>> program_of("/opt/hacc/bin/hacc_io"), program_of("hacc_io")
    ('hacc_io', 'hacc_io')
    """
    return executable.rstrip("/").rpartition("/")[2]


def pattern_of_phases(phases: Sequence[Mapping[str, Any]]) -> str | None:
    """The kind of I/O that moves most bytes; None where nothing is moved.

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


def store_run(
    connection: Connection,
    *,
    system: str,
    executable: str,
    user: str,
    sha256: str,
    tasks: int,
    phases: Sequence[Mapping[str, Any]],
    job_id: str | None = None,
    name: str | None = None,
    nodes: int | None = None,
    io_nodes: int | None = None,
    bandwidth_mib_s: float | None = None,
    started: str | None = None,
) -> tuple[Run, bool]:
    """Put a run into the history of its application.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes (see `benchdb.store.database.transaction`).
    system, executable, user : str
        Whose run it was; system and application are created on first use.
    sha256 : str
        Of the log; it keeps a log from counting twice on a system.
    tasks : int
        Processes.
    phases : sequence of mapping
        As `ioncast phases --format json` shows them.
    job_id, name, nodes, io_nodes, bandwidth_mib_s, started
        As in `Run`; an empty text is the same as none.

    Returns
    -------
    (Run, bool)
        The run, and whether it is a new one. A log that the system has already keeps its
        application, tasks and phases; what was not known of it is filled in.

    Raises
    ------
    ConflictError
        When another job, name, number of nodes or of I/O nodes is stored with the log.
    InputError
        For quantities that cannot be, and texts that the database does not take.
    """
    _check_names(executable, user, sha256)
    given = {
        "job_id": job_id or None,
        "name": name or None,
        "nodes": nodes,
        "io_nodes": io_nodes,
        "bandwidth_mib_s": bandwidth_mib_s,
        "started": stored_time("started", started) if started else None,
    }
    _check_values(tasks, given)
    pattern, document = pattern_of_phases(phases), _document(phases)
    check_text("the pattern of the phases", pattern, runs.c.pattern)
    system_id = system_id_of(connection, system)
    known = connection.execute(_RUN_OF_LOG, {"in_system": system_id, "digest": sha256})
    if row := known.mappings().one_or_none():
        return _filled_in(connection, _run(row), given), False
    values = {
        "system_id": system_id,
        "application_id": _application_id(connection, system_id, executable, user),
        "sha256": sha256,
        "tasks": tasks,
        "stored_at": now(),
        "pattern": pattern,
        "phases": document,
        "revision": next_revision(connection, runs),
        **given,
    }
    [key] = connection.scalars(insert(runs).values(values).returning(runs.c.id))
    return _stored_run(connection, key), True


def runs_like(
    connection: Connection,
    system: str,
    *,
    executable: str | None = None,
    program: str | None = None,
    user: str | None = None,
    name: str | None = None,
    limit: int = 50,
) -> list[Run]:
    """The newest runs of all that is given, newest first.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    system : str
        Where they ran; one that is not known has none.
    executable, program, user, name : str, optional
        What must be exactly so; None may be anything.
    limit : int
        How many at most.
    """
    wanted = {
        systems.c.name: system,
        applications_table.c.executable: executable,
        applications_table.c.program: program,
        applications_table.c.user: user,
        runs.c.name: name,
    }
    if not all(map(is_text, wanted.values())):
        return []
    given = [column == value for column, value in wanted.items() if value is not None]
    return _runs(connection, _NEWEST_RUNS_FIRST.where(*given), most=limit)


def runs_of(
    connection: Connection, application_id: int, *, before: int | None = None, limit: int = 100
) -> list[Run]:
    """The runs of an application, newest first: by their start, or by when they were stored.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    application_id : int
        Whose runs.
    before : int, optional
        Only those older than the application's run of this id, for the next page.
    limit : int
        How many at most.

    Raises
    ------
    UnknownNameError
        When there is no such application, or run of it.
    """
    application(connection, application_id)
    if before is None:
        return _runs(connection, _RUNS_OF, application=application_id, most=limit)
    key = {"id": _key(before, "run"), "application": application_id}
    when = connection.scalar(_WHEN_OF_RUN, key)
    if when is None:
        raise UnknownNameError(f"application {application_id} has no run {before}")
    return _runs(connection, _RUNS_BEFORE, when=when, most=limit, **key)


def run_of(connection: Connection, application_id: int, run_id: int) -> Run:
    """One run of an application.

    Raises
    ------
    UnknownNameError
        When it has none of that id.
    """
    found = _runs(connection, _RUN, id=_key(run_id, "run"))
    if not found or found[0].application.id != application_id:
        raise UnknownNameError(f"application {application_id} has no run {run_id}")
    return found[0]


def application(connection: Connection, application_id: int) -> ApplicationSummary:
    """One application.

    Raises
    ------
    UnknownNameError
        When there is none of that id.
    """
    key = {"id": _key(application_id, "application")}
    row = connection.execute(_SUMMARY, key).mappings().one_or_none()
    if row is None:
        raise UnknownNameError(f"no application {application_id} in the database")
    return _summary(row)


def applications(
    connection: Connection,
    *,
    system: str | None = None,
    search: str | None = None,
    after: int = 0,
    limit: int = 100,
) -> list[ApplicationSummary]:
    """Applications, in the order of their ids.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    system : str, optional
        Only this system's; one that is not known has none.
    search : str, optional
        What the executable or the user must hold, in capitals or not (in SQLite, of ASCII
        letters).
    after : int
        Only those of greater ids, for the next page.
    limit : int
        How many at most.
    """
    if not is_text(system) or not is_text(search) or after >= LARGEST_ID:
        return []
    query = _SUMMARIES.where(applications_table.c.id > after)
    if system is not None:
        query = query.where(systems.c.name == system)
    if search:
        found = (applications_table.c.executable, applications_table.c.user)
        query = query.where(or_(*(each.icontains(search, autoescape=True) for each in found)))
    query = query.order_by(applications_table.c.id).limit(limit)
    return [_summary(row) for row in connection.execute(query).mappings()]


def newest(connection: Connection) -> tuple[int, int]:
    """How far the history is: the greatest revisions of runs and of outcomes; 0 for none."""
    run, outcome = connection.execute(_NEWEST).one()
    return run or 0, outcome or 0


def applications_after(
    connection: Connection, run_revision: int, outcome_revision: int
) -> set[int]:
    """The applications whose runs or outcomes are new or others since.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    run_revision, outcome_revision : int
        From `newest`, in an earlier transaction.

    Returns
    -------
    set of int
        Their ids. An outcome is of the application of its run, and of that of its decision;
        it counts as new again when its decision is stored after it.
    """
    revisions = {"run_revision": run_revision, "outcome_revision": outcome_revision}
    return {key for key in connection.scalars(_CHANGED, revisions) if key is not None}


def next_revision(connection: Connection, table: Table) -> int:
    """A greater revision than any row has; writers wait for each other, so it is a new one."""
    greatest = connection.scalar(select(func.max(table.c.revision)))
    return int(greatest or 0) + 1


def _check_names(executable: str, user: str, sha256: str) -> None:
    program = program_of(executable)
    if not program or not user:
        raise InputError(f"no application: {executable!r} of {user!r}")
    check_text("the user", user, applications_table.c.user)
    check_text("the executable", executable, applications_table.c.executable)
    check_text("the program", program, applications_table.c.program)
    if (size := len(executable.encode())) > _LONGEST_EXECUTABLE:
        raise InputError(f"the executable has {size} bytes, more than {_LONGEST_EXECUTABLE}")
    if len(sha256) != longest(runs.c.sha256) or set(sha256) - set("0123456789abcdef"):
        raise InputError(f"{sha256!r} is no SHA-256")


def _check_values(tasks: int, given: Mapping[str, Any]) -> None:
    check_count("tasks", tasks, least=1)
    check_count("nodes", given["nodes"], least=1)
    check_count("I/O nodes", given["io_nodes"])
    check_bandwidth(given["bandwidth_mib_s"])
    check_text("the job's id", given["job_id"], runs.c.job_id)
    check_text("the job's name", given["name"], runs.c.name)


def _document(phases: Sequence[Mapping[str, Any]]) -> str:
    try:
        return json.dumps([dict(phase) for phase in phases], allow_nan=False)
    except ValueError as error:
        raise InputError("the phases hold what is no number") from error


def _application_id(connection: Connection, system_id: int, executable: str, user: str) -> int:
    values = {"in_system": system_id, "of_user": user, "path": executable}
    known = connection.scalar(_FIND_APPLICATION, values)
    if known is not None:
        return int(known)
    query = insert(applications_table).values(
        system_id=system_id, executable=executable, program=program_of(executable), user=user
    )
    [key] = connection.scalars(query.returning(applications_table.c.id))
    return int(key)


def _filled_in(connection: Connection, run: Run, given: Mapping[str, Any]) -> Run:
    """The run with what was not known of it."""
    for name in _TOLD:
        stored, told = getattr(run, name), given[name]
        if None not in {stored, told} and stored != told:
            raise ConflictError(
                f"the log is stored already with {name} {stored}, not {told}",
                where=f"run {run.id}",
                remedy="nothing was changed",
            )
    new = {
        name: given[name]
        for name in (*_TOLD, *_FOUND)
        if getattr(run, name) is None and given[name] is not None
    }
    if not new:
        return run
    revised = new | {"revision": next_revision(connection, runs)}
    connection.execute(update(runs).where(runs.c.id == run.id).values(revised))
    return _stored_run(connection, run.id)


def _stored_run(connection: Connection, key: int) -> Run:
    return _run(connection.execute(_RUN, {"id": key}).mappings().one())


def _key(key: int, what: str) -> int:
    """An id that a database can look for."""
    if not 0 <= key <= LARGEST_ID:
        raise UnknownNameError(f"no {what} {key} in the database")
    return key


def _runs(connection: Connection, query: Select[Any], **values: Any) -> list[Run]:
    return [_run(row) for row in connection.execute(query, values).mappings()]


def _run(row: RowMapping) -> Run:
    return Run(
        id=row["id"],
        application=_application(row),
        job_id=row["job_id"],
        name=row["name"],
        tasks=row["tasks"],
        nodes=row["nodes"],
        io_nodes=row["io_nodes"],
        bandwidth_mib_s=row["bandwidth_mib_s"],
        started=row["started"],
        stored_at=row["stored_at"],
        phases=tuple(json.loads(row["phases"])),
    )


def _summary(row: RowMapping) -> ApplicationSummary:
    return ApplicationSummary(_application(row), row["runs"], row["newest"])


def _application(row: RowMapping) -> Application:
    names = ("system", "executable", "program", "user")
    return Application(row["application_id"], *(row[name] for name in names))
