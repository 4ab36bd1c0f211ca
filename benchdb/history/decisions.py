"""What schedulers asked and were told, and what their jobs then got."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    RowMapping,
    and_,
    bindparam,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from benchdb.history.runs import Application, next_revision
from benchdb.measurements.storing import check_system_name, system_id_of
from benchdb.store.accepted_values import (
    check_bandwidth,
    check_count,
    check_share,
    check_text,
    is_text,
    stored_time,
)
from benchdb.store.schema import applications, outcomes, runs, systems
from benchdb.store.schema import decisions as decisions_table
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.limits import LARGEST_ID
from ioncast_base.times import in_utc, now

# How many keys go to the database at once.
_KEYS = 200
_TEXTS = ("id", "user", "executable", "name", "job_id", "source")
# How many characters of a time are its date and hour.
_HOUR = len("2026-11-21T04")


@dataclass(frozen=True)
class DecisionRow:
    """A question of a scheduler, and its answer.

    Attributes
    ----------
    id : str
        Of this answer alone; up to 32 characters.
    asked_at : str
        When, ISO 8601.
    system : str
        Whose scheduler.
    user, executable, name, job_id : str or None
        What it said of the job.
    nodes, tasks, available : int or None
        Compute nodes and processes of the job, and I/O nodes that it could get.
    io_nodes : int or None
        The answer; None where there was none.
    source : str
        What the answer rests on: "history", "model" or "default".
    expected_mib_s : float or None
        Bandwidth with that many.
    confidence : float or None
        From 0 to 1.
    application_id : int or None
        The application that the job was taken for.
    why : str
        The reason in words.
    curve : tuple of (int, float, float, float)
        I/O nodes, expected bandwidth, and the 10th and 90th percentile of runs in MiB/s.

    Raises
    ------
    InputError
        For quantities that cannot be, and texts that the database does not take.
    """

    id: str
    asked_at: str
    system: str
    user: str | None
    executable: str | None
    name: str | None
    job_id: str | None
    nodes: int | None
    tasks: int | None
    available: int | None
    io_nodes: int | None
    source: str
    expected_mib_s: float | None
    confidence: float | None
    application_id: int | None
    why: str
    curve: tuple[tuple[int, float, float, float], ...]

    def __post_init__(self) -> None:
        if not self.id or not self.source:
            raise InputError("a decision without id or source")
        check_system_name(self.system)
        stored_time("asked_at", self.asked_at)
        for name in _TEXTS:
            check_text(name, getattr(self, name), decisions_table.c[name])
        if not is_text(self.why):
            raise InputError("why holds a NUL or half a character")
        for name in ("nodes", "tasks", "available", "io_nodes", "application_id"):
            check_count(name, getattr(self, name))
        check_bandwidth(self.expected_mib_s)
        check_share("confidence", self.confidence)
        for io_nodes, *bandwidths in self.curve:
            check_count("I/O nodes", io_nodes)
            for bandwidth in bandwidths:
                check_bandwidth(bandwidth)


@dataclass(frozen=True)
class Outcome:
    """What a job that ran got.

    Attributes
    ----------
    id : int
        The database's.
    system, job_id : str
        Which job.
    decision_id : str or None
        The decision that it ran by, as it was reported; it need not be stored.
    run_id : int or None
        Its run in the history, where its log is there.
    io_nodes : int
        I/O nodes that it ran with.
    bandwidth_mib_s : float
        What it got.
    reported_at : str
        When, ISO 8601 in UTC.
    """

    id: int
    system: str
    job_id: str
    decision_id: str | None
    run_id: int | None
    io_nodes: int
    bandwidth_mib_s: float
    reported_at: str


@dataclass(frozen=True)
class JoinedOutcome:
    """An outcome, and what is known of it.

    Attributes
    ----------
    outcome : Outcome
        What a job got.
    decision : DecisionRow or None
        The one that was reported with it; where none was, the last one that was asked for the
        job before it was reported.
    application : Application or None
        That of the run, else that of the decision.
    pattern : str or None
        The kind of I/O that moved most of the bytes of the run, else of the application's
        newest run.
    tasks : int or None
        Processes of the run, else those that the decision was asked for.
    """

    outcome: Outcome
    decision: DecisionRow | None
    application: Application | None
    pattern: str | None
    tasks: int | None


_OUTCOME_FIELDS = tuple(each.name for each in fields(Outcome))

# Statements are made once: SQLAlchemy needs longer for that than a database for an answer.
_DECISION = select(decisions_table).where(decisions_table.c.id == bindparam("key"))
_STORE_NEW = (
    insert(decisions_table)
    .from_select(
        decisions_table.c.keys(),
        select(*(bindparam(column.name, type_=column.type) for column in decisions_table.c)).where(
            ~exists().where(decisions_table.c.id == bindparam("id"))
        ),
    )
    .execution_options(preserve_rowcount=True)
)
_OUTCOMES = select(
    outcomes.c.id,
    systems.c.name.label("system"),
    *(outcomes.c[name] for name in ("job_id", "decision_id", "run_id")),
    *(outcomes.c[name] for name in ("io_nodes", "bandwidth_mib_s", "reported_at")),
).join_from(outcomes, systems)
_OUTCOME_OF_JOB = _OUTCOMES.where(
    outcomes.c.system_id == bindparam("in_system"), outcomes.c.job_id == bindparam("job")
)
_OF_JOB = decisions_table.alias()
_LAST_DECISION = (
    select(_OF_JOB.c.id)
    .where(
        _OF_JOB.c.system == systems.c.name,
        _OF_JOB.c.job_id == outcomes.c.job_id,
        _OF_JOB.c.asked_at <= outcomes.c.reported_at,
    )
    .order_by(_OF_JOB.c.asked_at.desc(), _OF_JOB.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
_APPLICATION_ID = func.coalesce(runs.c.application_id, decisions_table.c.application_id)
_OTHER_RUNS = runs.alias()
_NEWEST_PATTERN = (
    select(_OTHER_RUNS.c.pattern)
    .where(_OTHER_RUNS.c.application_id == applications.c.id)
    .order_by(
        func.coalesce(_OTHER_RUNS.c.started, _OTHER_RUNS.c.stored_at).desc(),
        _OTHER_RUNS.c.id.desc(),
    )
    .limit(1)
    .scalar_subquery()
)
_JOINED = (
    _OUTCOMES.add_columns(
        *(column.label(f"decision_{column.name}_") for column in decisions_table.c),
        *(column.label(f"application_{column.name}_") for column in applications.c),
        func.coalesce(runs.c.pattern, _NEWEST_PATTERN).label("pattern"),
        func.coalesce(runs.c.tasks, decisions_table.c.tasks).label("tasks"),
    )
    .outerjoin(runs, outcomes.c.run_id == runs.c.id)
    .outerjoin(
        decisions_table,
        and_(
            decisions_table.c.id == func.coalesce(outcomes.c.decision_id, _LAST_DECISION),
            decisions_table.c.system == systems.c.name,
        ),
    )
    .outerjoin(applications, applications.c.id == _APPLICATION_ID)
)
_NEWEST_IDS = (
    select(outcomes.c.id)
    .where(outcomes.c.system_id == bindparam("of_system"))
    .order_by(outcomes.c.id.desc())
    .limit(bindparam("most"))
)
_NEWEST_OF_SYSTEM = _JOINED.where(outcomes.c.id.in_(_NEWEST_IDS))


def store_decisions(connection: Connection, rows: Iterable[DecisionRow]) -> int:
    """Store what was decided; what is stored already stays as it is.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes (see `benchdb.store.database.transaction`).
    rows : iterable of DecisionRow
        Thousands at once are no trouble.

    Returns
    -------
    int
        How many were new. Outcomes of theirs that came before them count as new again (see
        `benchdb.history.runs.applications_after`).
    """
    found = list(rows)
    if not found:
        return 0
    new = connection.execute(_STORE_NEW, [_values(row) for row in found]).rowcount
    if new:
        _revise_outcomes(connection, found)
    return new


def decision(connection: Connection, decision_id: str) -> DecisionRow:
    """One decision.

    Raises
    ------
    UnknownNameError
        When there is none of that id.
    """
    row = None
    if is_text(decision_id):
        row = connection.execute(_DECISION, {"key": decision_id}).mappings().one_or_none()
    if row is None:
        raise UnknownNameError(f"no decision {decision_id!r} in the database")
    return _decision(row)


def decisions(
    connection: Connection,
    *,
    system: str | None = None,
    application_id: int | None = None,
    before: tuple[str, str] | None = None,
    limit: int = 100,
) -> list[DecisionRow]:
    """Decisions, newest first.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    system : str, optional
        Only this system's; one that is not known has none.
    application_id : int, optional
        Only this application's.
    before : (str, str), optional
        Only those before the one with this `asked_at` and id, for the next page.
    limit : int
        How many at most.

    Raises
    ------
    InputError
        When `before` begins with no time.
    """
    table = decisions_table.c
    if not is_text(system) or not 0 <= (application_id or 0) <= LARGEST_ID:
        return []
    query = select(decisions_table).order_by(table.asked_at.desc(), table.id.desc()).limit(limit)
    if system is not None:
        query = query.where(table.system == system)
    if application_id is not None:
        query = query.where(table.application_id == application_id)
    if before is not None:
        moment = stored_time("before", before[0])
        check_text("before", before[1], table.id)
        query = query.where(tuple_(table.asked_at, table.id) < tuple_(moment, before[1]))
    return [_decision(row) for row in connection.execute(query).mappings()]


def decisions_per_hour(
    connection: Connection, since: datetime, system: str | None = None
) -> list[tuple[str, str, int]]:
    """How many decisions were asked for.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    since : datetime
        From when on, with its zone.
    system : str, optional
        Only this system's.

    Returns
    -------
    list of (str, str, int)
        The hour's beginning in ISO 8601 (UTC), the source and how many there were; in the order
        of time and source, without hours of none.
    """
    table = decisions_table.c
    if not is_text(system):
        return []
    hour = func.substr(table.asked_at, 1, _HOUR).label("hour")
    query = select(hour, table.source, func.count()).where(table.asked_at >= in_utc(since))
    if system is not None:
        query = query.where(table.system == system)
    rows = connection.execute(query.group_by(hour, table.source))
    return sorted((f"{hour}:00:00+00:00", source, number) for hour, source, number in rows)


def store_outcome(
    connection: Connection,
    *,
    system: str,
    job_id: str,
    io_nodes: int,
    bandwidth_mib_s: float,
    decision_id: str | None = None,
    run_id: int | None = None,
) -> tuple[Outcome, bool]:
    """Store what a job got.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes (see `benchdb.store.database.transaction`).
    system, job_id : str
        Which job; the system is created on first use.
    io_nodes, bandwidth_mib_s, decision_id, run_id
        As in `Outcome`; the run must be stored, the decision need not be.

    Returns
    -------
    (Outcome, bool)
        The outcome, and whether it is a new one. Of one that is stored already, decision and
        run are filled in where they were not known.

    Raises
    ------
    ConflictError
        When the job is known to have got something else.
    UnknownNameError
        When there is no such run on the system.
    InputError
        For quantities that cannot be, and texts that the database does not take.
    """
    if not job_id:
        raise InputError("an outcome without a job")
    check_text("the job's id", job_id, outcomes.c.job_id)
    check_text("the decision's id", decision_id, outcomes.c.decision_id)
    check_count("I/O nodes", io_nodes)
    check_bandwidth(bandwidth_mib_s)
    system_id = system_id_of(connection, system)
    _check_run(connection, system_id, run_id)
    given = {
        "decision_id": decision_id or None,
        "run_id": run_id,
        "io_nodes": io_nodes,
        "bandwidth_mib_s": bandwidth_mib_s,
    }
    known = _outcome_of_job(connection, system_id, job_id)
    if known is not None:
        _fill_in(connection, known, given)
    else:
        values = {"system_id": system_id, "job_id": job_id, "reported_at": now(), **given}
        revision = next_revision(connection, outcomes)
        connection.execute(insert(outcomes).values(revision=revision, **values))
    stored = _outcome_of_job(connection, system_id, job_id)
    assert stored is not None  # noqa: S101
    return stored, known is None


def joined_outcomes(
    connection: Connection,
    *,
    system: str | None = None,
    application_id: int | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[JoinedOutcome]:
    """Outcomes with their decisions and applications, in the order of their ids.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    system : str, optional
        Only this system's; one that is not known has none.
    application_id : int, optional
        Only this application's.
    after : int
        Only those of greater ids, for the next page.
    limit : int, optional
        How many at most.
    """
    if not is_text(system) or max(after, application_id or 0) > LARGEST_ID:
        return []
    query = _JOINED.where(outcomes.c.id > after)
    if system is not None:
        query = query.where(systems.c.name == system)
    if application_id is not None:
        query = query.where(bindparam(None, application_id) == _APPLICATION_ID)
    query = query.order_by(outcomes.c.id).limit(limit)
    return [_joined(row) for row in connection.execute(query).mappings()]


def systems_with_outcomes(connection: Connection) -> list[str]:
    """The names of systems that an outcome came from, sorted.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    """
    has_one = select(outcomes.c.id).where(outcomes.c.system_id == systems.c.id).exists()
    return list(connection.scalars(select(systems.c.name).where(has_one).order_by(systems.c.name)))


def newest_outcomes(
    connection: Connection, limit: int, system: str | None = None
) -> list[JoinedOutcome]:
    """The last outcomes that came from each system, in the order of their ids.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    limit : int
        How many of a system at most.
    system : str, optional
        Only this system's; one that is not known has none.
    """
    asked = select(systems.c.id)
    if system is not None:
        asked = asked.where(systems.c.name == system)
    found = [
        _joined(row)
        for system_id in list(connection.scalars(asked))
        for row in connection.execute(
            _NEWEST_OF_SYSTEM, {"of_system": system_id, "most": limit}
        ).mappings()
    ]
    return sorted(found, key=lambda row: row.outcome.id)


def newest_outcomes_of(
    connection: Connection, application_id: int, limit: int
) -> list[JoinedOutcome]:
    """The last outcomes of an application that came, in the order of their ids.

    Parameters
    ----------
    connection : Connection
        In a transaction.
    application_id : int
        The application.
    limit : int
        How many at most.
    """
    query = _JOINED.order_by(outcomes.c.id.desc()).limit(limit)
    query = query.where(bindparam(None, application_id) == _APPLICATION_ID)
    return [_joined(row) for row in connection.execute(query).mappings()][::-1]


def _revise_outcomes(connection: Connection, decided: Sequence[DecisionRow]) -> None:
    """Outcomes that came before their decisions belong to applications only now."""
    revision = next_revision(connection, outcomes)
    for start in range(0, len(decided), _KEYS):
        some = decided[start : start + _KEYS]
        jobs = [row.job_id for row in some if row.job_id]
        theirs = or_(
            outcomes.c.decision_id.in_([row.id for row in some]), outcomes.c.job_id.in_(jobs)
        )
        connection.execute(update(outcomes).where(theirs).values(revision=revision))


def _check_run(connection: Connection, system_id: int, run_id: int | None) -> None:
    if run_id is None:
        return
    query = select(runs.c.system_id).where(runs.c.id == run_id)
    if not 0 <= run_id <= LARGEST_ID or connection.scalar(query) != system_id:
        raise UnknownNameError(f"no run {run_id} of the system in the database")


def _outcome_of_job(connection: Connection, system_id: int, job_id: str) -> Outcome | None:
    key = {"in_system": system_id, "job": job_id}
    row = connection.execute(_OUTCOME_OF_JOB, key).one_or_none()
    return Outcome(*row) if row else None


def _fill_in(connection: Connection, known: Outcome, given: dict[str, Any]) -> None:
    new = {}
    for name, value in given.items():
        stored = getattr(known, name)
        if value is None or value == stored:
            continue
        if stored is not None:
            raise ConflictError(
                f"the outcome is stored already with {name} {stored}, not {value}",
                where=f"job {known.job_id}",
                remedy="nothing was changed",
            )
        new[name] = value
    if new:
        revised = new | {"revision": next_revision(connection, outcomes)}
        connection.execute(update(outcomes).where(outcomes.c.id == known.id).values(revised))


def _values(row: DecisionRow) -> dict[str, Any]:
    """What the columns hold; an empty text is the same as none."""
    values = {name: None if value == "" else value for name, value in vars(row).items()}
    return values | {
        "asked_at": stored_time("asked_at", row.asked_at),
        "why": row.why,
        "curve": json.dumps(row.curve),
    }


def _decision(row: RowMapping | dict[str, Any]) -> DecisionRow:
    curve = tuple(tuple(point) for point in json.loads(row["curve"]))
    return DecisionRow(**{**row, "curve": curve})


def _joined(row: RowMapping) -> JoinedOutcome:
    outcome = Outcome(**{name: row[name] for name in _OUTCOME_FIELDS})
    decided = {column.name: row[f"decision_{column.name}_"] for column in decisions_table.c}
    application = None
    if row["application_id_"] is not None:
        application = Application(
            row["application_id_"],
            outcome.system,
            *(row[f"application_{name}_"] for name in ("executable", "program", "user")),
        )
    return JoinedOutcome(
        outcome=outcome,
        decision=None if decided["id"] is None else _decision(decided),
        application=application,
        pattern=row["pattern"],
        tasks=row["tasks"],
    )
