"""The watch's state in an SQLite file: runs of jobs, logs to send, and logs that were sent."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from ioncast_base.errors import InputError
from scheduler_plugin.locks import locked_file

Kind = Literal["trace", "outcome"]
_VERSION = 5
_PATIENCE_S = 5.0
_SCHEMA = """
CREATE TABLE jobs (
    id INTEGER NOT NULL, started_s REAL NOT NULL, ended_s REAL,
    user TEXT NOT NULL, name TEXT NOT NULL, nodes INTEGER, io_nodes INTEGER, decision_id TEXT,
    closed_s REAL, tasks INTEGER, submitted_s REAL, io_node_names TEXT,
    PRIMARY KEY (id, started_s)
);
CREATE INDEX jobs_that_are_open ON jobs (id) WHERE closed_s IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended_s, id, started_s);
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, started_s REAL NOT NULL,
    kind TEXT NOT NULL, path TEXT NOT NULL, made_s REAL NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, due_s REAL NOT NULL, done_s REAL,
    moved_bytes INTEGER, refused TEXT, batch INTEGER NOT NULL DEFAULT 0,
    UNIQUE (job_id, started_s, kind, path),
    FOREIGN KEY (job_id, started_s) REFERENCES jobs (id, started_s) ON DELETE CASCADE
);
CREATE INDEX deliveries_that_wait ON deliveries (due_s) WHERE done_s IS NULL;
CREATE INDEX deliveries_of_batches ON deliveries (batch);
CREATE TABLE progress (name TEXT PRIMARY KEY, moment_s REAL NOT NULL);
"""
_JOB = "id, started_s, ended_s, user, name, nodes, io_nodes, decision_id, tasks, submitted_s"
# slurmctld's word on a run replaces stored values, but not those of a closed run: its logs are
# not waited for any more. A run that is listed as running is open again in any case.
_FOLLOW = f"""
INSERT INTO jobs ({_JOB}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET
    ended_s = excluded.ended_s, closed_s = NULL, user = excluded.user, name = excluded.name,
    nodes = excluded.nodes, io_nodes = excluded.io_nodes, decision_id = excluded.decision_id,
    tasks = excluded.tasks, submitted_s = excluded.submitted_s
WHERE (closed_s IS NULL OR excluded.ended_s IS NULL)
    AND (ended_s, user, name, nodes, io_nodes, decision_id, tasks, submitted_s) IS NOT
        (excluded.ended_s, excluded.user, excluded.name, excluded.nodes, excluded.io_nodes,
        excluded.decision_id, excluded.tasks, excluded.submitted_s)
"""  # noqa: S608
# slurmdbd knows less of a run than slurmctld, so for a stored run it only adds a missing end.
_FILL_IN = f"""
INSERT INTO jobs ({_JOB}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET ended_s = excluded.ended_s WHERE ended_s IS NULL
"""  # noqa: S608


@dataclass(frozen=True)
class JobRun:
    """A run of a job; a job that is started again has several.

    Attributes
    ----------
    started_s, ended_s, submitted_s : float
        Unix times; `ended_s` is None while it runs, `submitted_s` if it is unknown.
    io_nodes : int or None
        Number of I/O nodes that it had; None if unknown.
    decision_id : str or None
        Id of ioncast's decision on the job; None without one.
    """

    id: int
    started_s: float
    ended_s: float | None
    user: str
    name: str
    nodes: int | None
    io_nodes: int | None
    decision_id: str | None
    tasks: int | None = None
    submitted_s: float | None = None


@dataclass(frozen=True)
class Delivery:
    """Logs to send in one request, as a trace or as the outcome of their job."""

    batch: int
    job_id: int
    started_s: float
    kind: Kind
    paths: tuple[Path, ...]
    attempts: int


@dataclass(frozen=True)
class Account:
    """Numbers of a job's runs that were sent as traces and outcomes, and of logs.

    `refused` logs were rejected, `waiting` logs were not sent yet.
    """

    traces: int
    outcomes: int
    refused: int
    waiting: int


class WatchState:
    """The watch's state. Each change is one SQL statement; `transaction` groups several.

    Parameters
    ----------
    connection : sqlite3.Connection
        A connection that `opened_state` or `copied_state` has prepared.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._database = connection

    def follow(self, runs: Iterable[JobRun]) -> None:
        """Store the runs that slurmctld lists now."""
        self._database.executemany(_FOLLOW, map(astuple, runs))

    def fill_in(self, runs: Iterable[JobRun]) -> None:
        """Store runs that are not stored yet, and add missing ends to those that are."""
        self._database.executemany(_FILL_IN, map(astuple, runs))

    def running(self) -> list[JobRun]:
        """Runs without a known end."""
        return self._runs("closed_s IS NULL AND ended_s IS NULL")

    def ended(self) -> list[JobRun]:
        """Runs that have ended and whose logs may still appear."""
        return self._runs("closed_s IS NULL AND ended_s IS NOT NULL")

    def unnamed(self) -> list[JobRun]:
        """Open runs with I/O nodes whose names are unknown."""
        return self._runs("closed_s IS NULL AND io_nodes > 0 AND io_node_names IS NULL")

    def note_names(self, run: JobRun, names: Sequence[str]) -> None:
        """Store the names of the I/O nodes of a run."""
        self._database.execute(
            "UPDATE jobs SET io_node_names = ? WHERE id = ? AND started_s = ?",
            (",".join(names), run.id, run.started_s),
        )

    def names_of(self, run: JobRun) -> str | None:
        """The names of the I/O nodes of a run, with commas between; None if unknown."""
        [names] = self._database.execute(
            "SELECT io_node_names FROM jobs WHERE id = ? AND started_s = ?",
            (run.id, run.started_s),
        ).fetchone()
        return None if names is None else str(names)

    def count_ended(self, since_s: float, until_s: float) -> int:
        """Number of runs with `since_s` <= end < `until_s`, in Unix times."""
        [found] = self._database.execute(
            "SELECT count(*) FROM jobs WHERE ended_s >= ? AND ended_s < ?", (since_s, until_s)
        ).fetchone()
        return int(found)

    def newest_ended(
        self, since_s: float, until_s: float, after: JobRun | None, limit: int
    ) -> list[JobRun]:
        """Some runs with `since_s` <= end < `until_s`, the newest first."""
        place = (until_s, 0, 0.0) if after is None else (after.ended_s, after.id, after.started_s)
        return self._runs(
            "ended_s >= ? AND (ended_s, id, started_s) < (?, ?, ?)",
            since_s,
            *place,
            order="ended_s DESC, id DESC, started_s DESC",
            limit=limit,
        )

    def run_of(self, delivery: Delivery) -> JobRun:
        """The run that a log belongs to."""
        [run] = self._runs("id = ? AND started_s = ?", delivery.job_id, delivery.started_s)
        return run

    def close_run(self, run: JobRun, now_s: float) -> None:
        """Do not wait for more logs of a run."""
        self._database.execute(
            "UPDATE jobs SET closed_s = ? WHERE id = ? AND started_s = ?",
            (now_s, run.id, run.started_s),
        )

    def paths_of(self, run: JobRun) -> set[Path]:
        """The logs of a run that were sent, rejected or wait."""
        rows = self._database.execute(
            "SELECT path FROM deliveries WHERE job_id = ? AND started_s = ?",
            (run.id, run.started_s),
        )
        return {Path(os.fsdecode(path)) for (path,) in rows}

    def neighbours(self, run: JobRun) -> tuple[float | None, float | None]:
        """End of the run before this one with the same id, and start of the run after it."""
        before, after = self._database.execute(
            "SELECT (SELECT max(ended_s) FROM jobs WHERE id = :id AND started_s < :started_s),"
            " (SELECT min(started_s) FROM jobs WHERE id = :id AND started_s > :started_s)",
            {"id": run.id, "started_s": run.started_s},
        ).fetchone()
        return before, after

    def rejected_paths_of(self, run: JobRun) -> set[Path]:
        """The logs of a run that cannot be used; those of a rejected outcome still can."""
        rows = self._database.execute(
            "SELECT path FROM deliveries WHERE job_id = ? AND started_s = ?"
            " AND kind = 'trace' AND refused IS NOT NULL",
            (run.id, run.started_s),
        )
        return {Path(os.fsdecode(path)) for (path,) in rows}

    def add_delivery(self, run: JobRun, kind: Kind, paths: Iterable[Path], now_s: float) -> None:
        """Add logs to send in one request; those that were sent as this kind are sent again."""
        [batch] = self._database.execute(
            "SELECT coalesce(max(batch), 0) + 1 FROM deliveries"
        ).fetchone()
        self._database.executemany(
            "INSERT INTO deliveries (job_id, started_s, kind, path, made_s, due_s, batch)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET batch = excluded.batch,"
            " due_s = excluded.due_s, done_s = NULL, moved_bytes = NULL, attempts = 0",
            [
                (run.id, run.started_s, kind, os.fsencode(path), now_s, now_s, batch)
                for path in paths
            ],
        )

    def due_requests(self, now_s: float, longest_wait_s: float) -> list[tuple[str, int]]:
        """User and batch of all logs that are due, those that are due longest first.

        Logs that seem to wait longer than `longest_wait_s` are due: the clock was wrong when they
        were put off.
        """
        rows = self._database.execute(
            "SELECT user, batch FROM deliveries"
            " JOIN jobs ON id = job_id AND jobs.started_s = deliveries.started_s"
            " WHERE done_s IS NULL AND (due_s <= ? OR due_s > ?) ORDER BY due_s, number",
            (now_s, now_s + longest_wait_s),
        )
        # A batch has a row for each log.
        return list(dict.fromkeys(rows))

    def delivery(self, batch: int) -> Delivery | None:
        """The logs of a batch that wait; None if none waits any more."""
        row = self._database.execute(
            "SELECT job_id, started_s, kind, attempts FROM deliveries"
            " WHERE batch = ? AND done_s IS NULL",
            (batch,),
        ).fetchone()
        if row is None:
            return None
        job_id, started_s, kind, attempts = row
        paths = self._paths("batch = ? AND done_s IS NULL", batch)
        return Delivery(batch, job_id, started_s, kind, paths, attempts)

    def put_off(self, delivery: Delivery, due_s: float) -> None:
        """Send logs at a later Unix time."""
        self._database.execute(
            "UPDATE deliveries SET attempts = attempts + 1, due_s = ?"
            " WHERE batch = ? AND done_s IS NULL",
            (due_s, delivery.batch),
        )

    def make_due(self, now_s: float) -> None:
        """Send all logs that wait at once."""
        self._database.execute("UPDATE deliveries SET due_s = ? WHERE done_s IS NULL", (now_s,))

    def set_apart(self, delivery: Delivery, paths: Iterable[Path], due_s: float) -> None:
        """Send each of some logs as a trace of its own, at a later Unix time."""
        self._database.executemany(
            "UPDATE OR REPLACE deliveries SET kind = 'trace', attempts = attempts + 1, due_s = ?,"
            " batch = (SELECT max(batch) + 1 FROM deliveries) WHERE batch = ? AND path = ?",
            [(due_s, delivery.batch, os.fsencode(path)) for path in paths],
        )

    def note_sent(self, delivery: Delivery, now_s: float, moved_bytes: int | None) -> None:
        """Note that logs were sent, and how many bytes their run moved."""
        self._database.execute(
            "UPDATE deliveries SET done_s = ?, moved_bytes = ? WHERE batch = ? AND done_s IS NULL",
            (now_s, moved_bytes, delivery.batch),
        )

    def note_rejected(
        self, delivery: Delivery, paths: Iterable[Path], now_s: float, kind: Kind, why: str
    ) -> None:
        """Note that logs are not sent any more, as this kind, and why."""
        self._database.executemany(
            "UPDATE OR REPLACE deliveries SET done_s = ?, kind = ?, moved_bytes = NULL, refused = ?"
            " WHERE batch = ? AND path = ?",
            [(now_s, kind, why, delivery.batch, os.fsencode(path)) for path in paths],
        )

    def withdraw(self, delivery: Delivery) -> None:
        """Forget logs that wait, because they are added again in other requests."""
        self._database.execute(
            "DELETE FROM deliveries WHERE batch = ? AND done_s IS NULL", (delivery.batch,)
        )

    def account_of(self, run: JobRun) -> Account:
        """Numbers of a job's runs and logs so far."""
        return Account(
            *self._database.execute(
                "SELECT count(DISTINCT batch) FILTER (WHERE sent AND kind = 'trace'),"
                " count(DISTINCT batch) FILTER (WHERE sent AND kind = 'outcome'),"
                " count(refused), count(*) FILTER (WHERE done_s IS NULL)"
                " FROM (SELECT *, done_s IS NOT NULL AND refused IS NULL AS sent FROM deliveries"
                " WHERE job_id = ? AND started_s = ?)",
                (run.id, run.started_s),
            ).fetchone()
        )

    def has_outcome(self, run: JobRun) -> bool:
        """Whether a run's outcome was sent, was rejected or waits."""
        found = self._database.execute(
            "SELECT 1 FROM deliveries WHERE job_id = ? AND started_s = ? AND kind = 'outcome'",
            (run.id, run.started_s),
        )
        return found.fetchone() is not None

    def largest_trace(self, run: JobRun) -> tuple[Path, ...]:
        """The logs of the run that moved most bytes, among those of a job sent as traces."""
        row = self._database.execute(
            "SELECT batch FROM deliveries WHERE job_id = ? AND started_s = ? AND kind = 'trace'"
            " AND moved_bytes > 0 ORDER BY moved_bytes DESC, path LIMIT 1",
            (run.id, run.started_s),
        ).fetchone()
        return () if row is None else self._paths("batch = ? AND refused IS NULL", row[0])

    def waiting(self) -> int:
        """Number of logs that wait to be sent."""
        [found] = self._database.execute(
            "SELECT count(*) FROM deliveries WHERE done_s IS NULL"
        ).fetchone()
        return int(found)

    def moment(self, name: str) -> float | None:
        """A stored time; None if it is not stored."""
        row = self._database.execute(
            "SELECT moment_s FROM progress WHERE name = ?", (name,)
        ).fetchone()
        return None if row is None else float(row[0])

    def remember(self, name: str, moment_s: float | None) -> None:
        """Store a time by name; None removes it."""
        if moment_s is None:
            self._database.execute("DELETE FROM progress WHERE name = ?", (name,))
        else:
            self._database.execute("REPLACE INTO progress VALUES (?, ?)", (name, moment_s))

    def prune(self, before_s: float) -> int:
        """Remove runs closed before a time, the oldest first, and at most 1 % of all runs.

        Return how many of their logs were never sent.
        """
        old = (
            "(SELECT id, started_s FROM jobs WHERE closed_s < ? ORDER BY closed_s"
            " LIMIT (SELECT (count(*) + 99) / 100 FROM jobs))"
        )
        [unsent] = self._database.execute(
            "SELECT count(*) FROM deliveries"  # noqa: S608
            f" WHERE done_s IS NULL AND (job_id, started_s) IN {old}",
            (before_s,),
        ).fetchone()
        self._database.execute(
            f"DELETE FROM jobs WHERE (id, started_s) IN {old}",  # noqa: S608
            (before_s,),
        )
        return int(unsent)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Store all changes of the block, or none if it raises."""
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def _paths(self, condition: str, *values: Any) -> tuple[Path, ...]:
        query = f"SELECT path FROM deliveries WHERE {condition} ORDER BY number"  # noqa: S608
        rows = self._database.execute(query, values)
        return tuple(Path(os.fsdecode(path)) for (path,) in rows)

    def _runs(
        self, condition: str, *values: Any, order: str = "id, started_s", limit: int = -1
    ) -> list[JobRun]:
        query = f"SELECT {_JOB} FROM jobs WHERE {condition} ORDER BY {order} LIMIT ?"  # noqa: S608
        return [JobRun(*row) for row in self._database.execute(query, (*values, limit))]


@contextmanager
def opened_state(path: str, user: str = "watch") -> Iterator[WatchState]:
    """Open or create a state, locked for this process."""
    with _lock(path, user), _reported(path), closing(_connected(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        _prepare(connection, path)
        yield WatchState(connection)


@contextmanager
def copied_state(path: str) -> Iterator[WatchState]:
    """Copy a state for a dry run, into a temporary file that SQLite deletes."""
    with closing(_connected("")) as copy, _reported(path):
        if Path(path).exists():
            with closing(
                sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True)
            ) as original:
                original.backup(copy)
        _prepare(copy, path)
        yield WatchState(copy)


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        connection.executescript(f"BEGIN;{_SCHEMA};PRAGMA user_version = {_VERSION};COMMIT")
    elif version != _VERSION:
        raise InputError(
            f"another version of ioncast wrote this state ({version}, not {_VERSION})",
            where=path,
            remedy="name another file as `watch.state`",
        )


@contextmanager
def _reported(path: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise InputError(
            f"the state cannot be used: {error}",
            where=path,
            remedy="it must be an SQLite file of ioncast",
        ) from error


def _lock(path: str, user: str) -> BinaryIO:
    """Hold the lock of a state until the file is closed."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return locked_file(f"{path}.lock", f"another {user} uses this state")
    except OSError as error:
        raise InputError(
            f"the state cannot be used: {error.strerror}",
            where=path,
            remedy="name another file as `watch.state`",
        ) from error
