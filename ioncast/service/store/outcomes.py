"""Outcomes in the database: the bandwidth that jobs really got, with their decisions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    CompoundSelect,
    Connection,
    Integer,
    RowMapping,
    Select,
    String,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    union,
    update,
)

from benchdb.store.accepted_values import (
    check_bandwidth,
    check_count,
    check_text,
    is_text,
    stored_time,
)
from benchdb.store.schema import systems
from benchdb.store.system_changes import SystemChange, changes
from benchdb.store.systems import system_id_of
from ioncast.diagnosis.slow_io_nodes import NamedOutcome
from ioncast.service.store.applications import Application
from ioncast.service.store.decisions import DecisionRow, decision_of_row
from ioncast.service.store.revisions import next_revision
from ioncast.service.store.same_run import SECOND, Outcome, Report, outcomes_of_run, whole_second
from ioncast.service.store.tables import applications, decisions, runs
from ioncast.service.store.tables import outcomes as outcomes_table
from ioncast_base.errors import ConflictError, InputError, UnknownNameError
from ioncast_base.io_node_names import names_in
from ioncast_base.limits import LARGEST_ID
from ioncast_base.times import in_utc, now


@dataclass(frozen=True)
class JoinedOutcome:
    """An outcome together with its decision and its application.

    Attributes
    ----------
    decision : DecisionRow or None
        The reported decision; else the last one that was asked for the job before the run started,
        or, if its start is unknown, before the outcome was reported.
    pattern : str or None
        The kind of I/O that moved most bytes in the run, else in the application's newest run.
    tasks : int or None
        Number of processes of the run, else of the decision.
    """

    outcome: Outcome
    decision: DecisionRow | None
    application: Application | None
    pattern: str | None
    tasks: int | None
    change: SystemChange | None = None

    @property
    def ran_at(self) -> str:
        """When the run started; when it was reported if its start is unknown."""
        return self.outcome.started or self.outcome.reported_at

    @property
    def is_cut(self) -> bool:
        """Whether the run got fewer I/O nodes than are best, because too few were free.

        The scheduler told that no more are available, or the job got fewer than were decided: the
        arbiter gave them, or its user asked for them, which the outcome does not tell.
        """
        decided = self.decision
        if decided is None or decided.io_nodes is None or self.outcome.io_nodes is None:
            return False
        if self.outcome.io_nodes != decided.io_nodes:
            return self.outcome.io_nodes < decided.io_nodes
        if decided.available is None or not decided.curve or decided.explored:
            return False
        return max(decided.curve, key=lambda point: point[1])[0] > decided.available

    @property
    def is_before_change(self) -> bool:
        """Whether the system has changed since the run, which then no longer counts."""
        return self.change is not None and not self.change.is_followed_by(self.ran_at)

    @property
    def is_decided_before_change(self) -> bool:
        """Whether the decision was asked for before the change of the system was noted."""
        return (
            self.change is not None
            and self.decision is not None
            and self.decision.asked_at < self.change.noted_at
        )


# The watch guesses the end of a run that slurmctld has forgotten, and slurmdbd may tell other times
# than slurmctld. So a later report of the same run does not contradict the first one.
_TOLD_DIFFERENTLY = {"submitted", "ended"}
_OUTCOME_FIELDS = tuple(field.name for field in fields(Outcome))

# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_OUTCOMES = (
    select(
        outcomes_table.c.id,
        systems.c.name.label("system"),
        *(outcomes_table.c[name] for name in ("job_id", "started", "decision_id", "run_id")),
        *(outcomes_table.c[name] for name in ("io_nodes", "bandwidth_mib_s", "reported_at")),
        *(outcomes_table.c[name] for name in ("io_node_names", "submitted", "ended")),
        runs.c.started.label("log_started"),
    )
    .join_from(outcomes_table, systems)
    .outerjoin(runs, outcomes_table.c.run_id == runs.c.id)
)
_OUTCOME = _OUTCOMES.where(outcomes_table.c.id == bindparam("key"))
_OUTCOMES_OF_JOB = _OUTCOMES.where(
    outcomes_table.c.system_id == bindparam("in_system"),
    outcomes_table.c.job_id == bindparam("job"),
)
_START_IN_LOG = select(runs.c.started).where(
    runs.c.id == bindparam("run"), runs.c.system_id == bindparam("in_system")
)
_OF_JOB = decisions.alias()
# Schedulers tell the start of a run in whole seconds, and the question may be of the same second.
_LAST_DECISION = (
    select(_OF_JOB.c.id)
    .where(
        _OF_JOB.c.system == systems.c.name,
        _OF_JOB.c.job_id == outcomes_table.c.job_id,
        func.substr(_OF_JOB.c.asked_at, 1, SECOND)
        <= func.substr(
            func.coalesce(outcomes_table.c.started, outcomes_table.c.reported_at), 1, SECOND
        ),
    )
    .order_by(_OF_JOB.c.asked_at.desc(), _OF_JOB.c.id.desc())
    .limit(1)
    .scalar_subquery()
)
_APPLICATION_ID = func.coalesce(runs.c.application_id, decisions.c.application_id)
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
        *(column.label(f"decision_{column.name}_") for column in decisions.c),
        *(column.label(f"application_{column.name}_") for column in applications.c),
        func.coalesce(runs.c.pattern, _NEWEST_PATTERN).label("pattern"),
        func.coalesce(runs.c.tasks, decisions.c.tasks).label("tasks"),
    )
    .outerjoin(
        decisions,
        and_(
            decisions.c.id == func.coalesce(outcomes_table.c.decision_id, _LAST_DECISION),
            decisions.c.system == systems.c.name,
        ),
    )
    .outerjoin(applications, applications.c.id == _APPLICATION_ID)
)


def _candidates(
    runs_of: ColumnElement[bool], decisions_of: ColumnElement[bool]
) -> CompoundSelect[Any]:
    """Find all outcomes that may join runs or decisions, by indexes.

    These are the outcomes of the runs, those reported with the decisions, and those of jobs that
    the decisions were made for.
    """
    ids = select(outcomes_table.c.id)
    theirs = select(decisions.c.id).where(decisions_of)
    of_job = and_(
        decisions.c.system == systems.c.name, decisions.c.job_id == outcomes_table.c.job_id
    )
    return union(
        ids.join_from(outcomes_table, runs, outcomes_table.c.run_id == runs.c.id).where(runs_of),
        ids.where(outcomes_table.c.decision_id.in_(theirs)),
        ids.join_from(outcomes_table, systems).join(decisions, of_job).where(decisions_of),
    )


_WANTED: BindParameter[int] = bindparam("application", type_=Integer)
_CANDIDATES = _candidates(runs.c.application_id == _WANTED, decisions.c.application_id == _WANTED)
_OF_USER: BindParameter[str] = bindparam("of_user", type_=String)
_OWN = select(applications.c.id).where(applications.c.user == _OF_USER)
_CANDIDATES_OF_USER = _candidates(
    runs.c.application_id.in_(_OWN),
    or_(decisions.c.user == _OF_USER, decisions.c.application_id.in_(_OWN)),
)
_JOINED_OF_APPLICATION = _JOINED.where(
    outcomes_table.c.id.in_(_CANDIDATES), _APPLICATION_ID == _WANTED
)
_THEIRS = or_(applications.c.user == _OF_USER, decisions.c.user == _OF_USER)
_IDS_OF_USER = _JOINED.with_only_columns(outcomes_table.c.id).where(
    outcomes_table.c.id.in_(_CANDIDATES_OF_USER), _THEIRS
)
_NEWEST_IDS = (
    select(outcomes_table.c.id)
    .where(outcomes_table.c.system_id == bindparam("of_system"))
    .order_by(outcomes_table.c.id.desc())
    .limit(bindparam("most"))
)
_NAMED = (
    select(
        *(outcomes_table.c[name] for name in ("id", "job_id", "io_nodes", "bandwidth_mib_s")),
        outcomes_table.c.io_node_names,
        func.coalesce(outcomes_table.c.started, outcomes_table.c.reported_at).label("ran_at"),
        systems.c.name.label("system"),
        *(runs.c[name] for name in ("application_id", "tasks", "nodes", "pattern", "phases")),
    )
    .join_from(outcomes_table, systems)
    .join(runs, outcomes_table.c.run_id == runs.c.id)
    .where(
        outcomes_table.c.id.in_(_NEWEST_IDS),
        outcomes_table.c.io_node_names.is_not(None),
        outcomes_table.c.reported_at >= bindparam("since"),
    )
    .order_by(outcomes_table.c.id)
)
_NEWEST_OF_SYSTEM = _JOINED.where(outcomes_table.c.id.in_(_NEWEST_IDS))


def store_outcome(
    connection: Connection,
    *,
    system: str,
    job_id: str,
    io_nodes: int,
    bandwidth_mib_s: float,
    started: str | None = None,
    decision_id: str | None = None,
    run_id: int | None = None,
    io_node_names: str | None = None,
    submitted: str | None = None,
    ended: str | None = None,
) -> tuple[Outcome, bool]:
    """Store the bandwidth that a job got in one of its runs; return it, and whether it is new.

    If this run of the job already has an outcome (see `same_run`), only unknown values are filled
    in. `started` is the scheduler's start of the run, by default that of the
    stored run. `submitted` and `ended` are the scheduler's too. The decision may be stored later.

    Raises
    ------
    ConflictError
        If the run is stored with another start, decision, log, number or names of I/O nodes, or
        bandwidth. Another submission or end is not stored.
    UnknownNameError
        If the system has no such run.
    InputError
        If a number is out of range, the database cannot hold a text, or the names of I/O nodes are
        wrong.
    """
    if not job_id:
        raise InputError("an outcome needs the id of a job")
    check_text("the job's id", job_id, outcomes_table.c.job_id)
    check_text("the decision's id", decision_id, outcomes_table.c.decision_id)
    check_count("I/O nodes", io_nodes)
    check_bandwidth(bandwidth_mib_s)
    if io_node_names and len(names_in(io_node_names)) > io_nodes:
        raise InputError(f"these are more names than the job had I/O nodes ({io_nodes})")
    started, submitted, ended = (
        whole_second(stored_time(name, time)) if time else None
        for name, time in (("started", started), ("submitted", submitted), ("ended", ended))
    )
    system_id = system_id_of(connection, system)
    log_started = _start_in_log(connection, system_id, run_id)
    given = {
        "decision_id": decision_id or None,
        "run_id": run_id,
        "io_nodes": io_nodes,
        "bandwidth_mib_s": bandwidth_mib_s,
        "io_node_names": io_node_names or None,
        "submitted": submitted,
        "ended": ended,
    }
    report = Report(started, log_started, run_id, now())
    of_job = connection.execute(_OUTCOMES_OF_JOB, {"in_system": system_id, "job": job_id})
    known = outcomes_of_run([Outcome(**row) for row in of_job.mappings()], report)
    if known:
        key = _fill_in(connection, known, report, given)
    else:
        start = {"started": started or log_started, "reported_at": report.reported_at}
        revision = next_revision(connection, outcomes_table)
        values = {"system_id": system_id, "job_id": job_id, "revision": revision, **start, **given}
        [key] = connection.scalars(
            insert(outcomes_table).values(values).returning(outcomes_table.c.id)
        )
    stored = connection.execute(_OUTCOME, {"key": key}).mappings().one()
    return Outcome(**stored), not known


def joined_outcomes(
    connection: Connection,
    *,
    system: str | None = None,
    application_id: int | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[JoinedOutcome]:
    """List outcomes with ids above `after`, with their decisions and applications, by id.

    An unknown system has no outcomes.
    """
    if not is_text(system) or max(after, application_id or 0) > LARGEST_ID:
        return []
    query, given = _JOINED, {}
    if application_id is not None:
        query, given = _JOINED_OF_APPLICATION, {"application": application_id}
    query = query.where(outcomes_table.c.id > after)
    if system is not None:
        query = query.where(systems.c.name == system)
    query = query.order_by(outcomes_table.c.id).limit(limit)
    return _joined(connection, query, given)


def outcomes_of_job(
    connection: Connection, system: str, job_id: str, *, limit: int
) -> list[JoinedOutcome]:
    """List the newest outcomes of a job id on a system, the last reported first."""
    of_job = systems.c.name == system, outcomes_table.c.job_id == job_id
    return _newest_joined(connection, _JOINED.where(*of_job), limit)


def outcomes_of_decision(
    connection: Connection, decision_id: str, *, limit: int
) -> list[JoinedOutcome]:
    """List the newest outcomes that were reported with a decision, the last reported first."""
    reported = outcomes_table.c.decision_id == decision_id
    return _newest_joined(connection, _JOINED.where(reported), limit)


def systems_with_outcomes(connection: Connection) -> list[str]:
    """The names of the systems that have outcomes, sorted."""
    has_one = select(outcomes_table.c.id).where(outcomes_table.c.system_id == systems.c.id).exists()
    return list(connection.scalars(select(systems.c.name).where(has_one).order_by(systems.c.name)))


def newest_outcomes(
    connection: Connection, limit: int, system: str | None = None
) -> list[JoinedOutcome]:
    """List the newest outcomes of each system by id; an unknown system has none."""
    asked = select(systems.c.id)
    if system is not None:
        asked = asked.where(systems.c.name == system)
    found = [
        joined
        for system_id in list(connection.scalars(asked))
        for joined in _joined(
            connection, _NEWEST_OF_SYSTEM, {"of_system": system_id, "most": limit}
        )
    ]
    return sorted(found, key=lambda row: row.outcome.id)


def newest_ids(connection: Connection, limit: int) -> list[int]:
    """List the ids of the outcomes that `newest_outcomes` returns, by system."""
    return [
        key
        for system_id in list(connection.scalars(select(systems.c.id).order_by(systems.c.id)))
        for key in connection.scalars(_NEWEST_IDS, {"of_system": system_id, "most": limit})
    ]


def named_outcomes(
    connection: Connection, limit: int, since: datetime
) -> list[tuple[str, NamedOutcome]]:
    """List the outcomes with names of I/O nodes and a log, with the times of their runs.

    Of each system only the newest ones count, and those that were reported since a time.
    """
    found = []
    for system_id in list(connection.scalars(select(systems.c.id))):
        given = {"of_system": system_id, "most": limit, "since": in_utc(since)}
        for row in connection.execute(_NAMED, given).mappings():
            outcome = NamedOutcome(
                id=row["id"],
                system=row["system"],
                job_id=row["job_id"],
                variant=f"{row['application_id']} {row['pattern']}",
                processes=row["tasks"],
                nodes=row["nodes"],
                io_nodes=row["io_nodes"],
                moved_bytes=sum(phase["bytes"] for phase in json.loads(row["phases"])),
                bandwidth_mib_s=row["bandwidth_mib_s"],
                names=tuple(row["io_node_names"].split(",")),
            )
            found.append((row["ran_at"], outcome))
    return found


def newest_outcomes_of(
    connection: Connection, application_id: int, limit: int
) -> list[JoinedOutcome]:
    """List the newest outcomes of an application, in the order of their ids."""
    found = _newest_joined(connection, _JOINED_OF_APPLICATION, limit, application=application_id)
    return found[::-1]


def ids_of_users_outcomes(connection: Connection, user: str) -> list[int]:
    """The ids of the outcomes of a user's applications and of decisions for the user."""
    return list(connection.scalars(_IDS_OF_USER, {"of_user": user}))


def _start_in_log(connection: Connection, system_id: int, run_id: int | None) -> str | None:
    """When a stored run started by its log; None without a run."""
    if run_id is None:
        return None
    found = None
    if 0 <= run_id <= LARGEST_ID:
        found = connection.execute(_START_IN_LOG, {"in_system": system_id, "run": run_id}).first()
    if found is None:
        raise UnknownNameError(f"the system has no run {run_id}")
    return whole_second(found.started)


def _fill_in(
    connection: Connection, known: list[Outcome], report: Report, given: dict[str, Any]
) -> int:
    """Store the given values that the outcome of a run does not have yet; return its id."""
    outcome, *others = known
    if others:
        raise _conflict(outcome, "the log and the start are stored in two outcomes")
    added = {}
    for name, value in given.items():
        stored = getattr(outcome, name)
        if value is None or value == stored:
            continue
        if stored is not None and name in _TOLD_DIFFERENTLY:
            continue
        if stored is not None:
            raise _conflict(
                outcome, f"the outcome is already stored with {name} {stored}, not {value}"
            )
        added[name] = value
    added |= _added_start(outcome, report)
    if added:
        revised = added | {"revision": next_revision(connection, outcomes_table)}
        key = outcomes_table.c.id == outcome.id
        connection.execute(update(outcomes_table).where(key).values(revised))
    return outcome.id


def _added_start(outcome: Outcome, report: Report) -> dict[str, Any]:
    """The start that an outcome gets from a report: the scheduler's instead of the log's."""
    told = report.started
    if told and outcome.has_scheduled_start and told != outcome.started:
        raise _conflict(
            outcome, f"the outcome is already stored with started {outcome.started}, not {told}"
        )
    start = told or outcome.started or report.log_started
    return {"started": start} if start != outcome.started else {}


def _conflict(outcome: Outcome, why: str) -> ConflictError:
    return ConflictError(
        why,
        where=f"job {outcome.job_id}",
        remedy="nothing was changed; another run of a job needs its own start (`started`)",
    )


def _newest_joined(
    connection: Connection, query: Select[Any], limit: int, **given: Any
) -> list[JoinedOutcome]:
    """List some outcomes of a query, the last reported first."""
    return _joined(connection, query.order_by(outcomes_table.c.id.desc()).limit(limit), given)


def _joined(
    connection: Connection, query: Select[Any], given: dict[str, Any]
) -> list[JoinedOutcome]:
    noted = changes(connection)
    return [_joined_of_row(row, noted) for row in connection.execute(query, given).mappings()]


def _joined_of_row(row: RowMapping, noted: Mapping[str, SystemChange]) -> JoinedOutcome:
    outcome = Outcome(**{name: row[name] for name in _OUTCOME_FIELDS})
    decided = {column.name: row[f"decision_{column.name}_"] for column in decisions.c}
    application = None
    if row["application_id_"] is not None:
        application = Application(
            row["application_id_"],
            outcome.system,
            *(row[f"application_{name}_"] for name in ("executable", "program", "user")),
        )
    return JoinedOutcome(
        outcome=outcome,
        decision=None if decided["id"] is None else decision_of_row(decided),
        application=application,
        pattern=row["pattern"],
        tasks=row["tasks"],
        change=noted.get(outcome.system),
    )
