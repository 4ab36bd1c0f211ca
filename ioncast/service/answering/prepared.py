"""What workers answer from: one SQLite file, written by the keeper and read by all workers.

All of it can be made again from the database, so a file of another version or one that cannot
be read is thrown away.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import marshal
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ioncast.service.answering.answers import Entry, PreparedGroup

# Version of the tables and of the keys and entries in them: a file of another version is made anew.
_VERSION = 2
_BUSY_S = 10.0
_TABLES = """
CREATE TABLE documents (id INTEGER PRIMARY KEY, sha256 BLOB UNIQUE, entry TEXT NOT NULL);
CREATE TABLE entries (
    system TEXT, key TEXT, document INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (system, key)
) WITHOUT ROWID;
CREATE INDEX entries_of_version ON entries (version);
CREATE INDEX entries_of_document ON entries (document);
CREATE TABLE tokens (sha256 TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL);
CREATE TABLE summaries (name TEXT PRIMARY KEY, json TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE wanted (
    number INTEGER PRIMARY KEY, application INTEGER NOT NULL, tasks INTEGER NOT NULL,
    nodes INTEGER
);
CREATE TABLE progress (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE heartbeat (at_s REAL NOT NULL, database_ok INTEGER NOT NULL);
"""

# The keeper gives a sign each second. A large transaction may take it longer.
LATE_S = 60.0

Role = Literal["reader", "scheduler", "admin"]
KeeperState = Literal["ok", "late", "unseen"]
DatabaseState = Literal["ok", "unavailable", "unknown"]


class Heartbeat(NamedTuple):
    """When the keeper was last seen (seconds since 1970), and whether it had the database."""

    at_s: float
    database_ok: bool


class Summary(NamedTuple):
    """A summary of the database as plain values of JSON, and when it was made (ISO 8601)."""

    value: Any
    at: str


class Wanted(NamedTuple):
    """A size of job that was asked for and that no run of the application had."""

    application_id: int
    tasks: int
    nodes: int | None


def prepared_file(state: str | Path) -> Path:
    """Where the file of a state folder is."""
    return Path(state) / "prepared.sqlite"


class Entries:
    """Prepared entries by system and key (see `predictor.matching.same_application.Identity`).

    Packed, because ten thousand applications as objects would take twice the memory.

    Attributes
    ----------
    systems : set of str
        All systems that there are entries of.
    """

    def __init__(self) -> None:
        self.systems: set[str] = set()
        self._packed: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def get(self, which: tuple[str, str]) -> Entry | None:
        """The entry of a system and a key."""
        packed = self._packed.get("\0".join(which))
        if packed is None:
            return None
        return [PreparedGroup(*group) for group in marshal.loads(packed)]  # noqa: S302

    def update(self, documents: Mapping[int, bytes], rows: Iterable[tuple[str, str, int]]) -> None:
        """Take entries over: system, key and the number of the document, which may be shared."""
        for system, key, document in rows:
            self._packed[f"{system}\0{key}"] = documents[document]
            self.systems.add(system)


class Reader:
    """What a worker holds of the file; any thread may read, one may refresh.

    Parameters
    ----------
    path : Path
        From `prepared_file`; it need not be there yet.

    Attributes
    ----------
    entries : Entries
        All entries.
    tokens : dict of str to str
        The roles of valid tokens, by hash (see `benchdb.store.tokens.digest`).
    summaries : dict of str to Summary
        By name.
    heartbeat : Heartbeat or None
        None as long as nothing was read.
    """

    def __init__(self, path: Path) -> None:
        self.entries = Entries()
        self.tokens: dict[str, Role] = {}
        self.summaries: dict[str, Summary] = {}
        self.heartbeat: Heartbeat | None = None
        self._path = path
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._change = -1
        self._version = -1

    def keeper_state(self, now_s: float) -> KeeperState:
        """Judge the keeper by its heartbeat.

        Parameters
        ----------
        now_s : float
            Seconds since 1970.

        Returns
        -------
        str
            "ok"; "late" when the heartbeat is older than `LATE_S`; "unseen" before the first one.
        """
        if self.heartbeat is None:
            return "unseen"
        return "late" if self.heartbeat.at_s < now_s - LATE_S else "ok"

    @property
    def database_state(self) -> DatabaseState:
        """Whether the keeper could use the database, "unknown" before its first heartbeat."""
        if self.heartbeat is None:
            return "unknown"
        return "ok" if self.heartbeat.database_ok else "unavailable"

    def refresh(self) -> bool:
        """Read what has changed; whether anything has. What cannot be read stays as it was."""
        try:
            file = _file_of(self._path)
            if file is None:
                return False
            if self._connection is None or self._file != file:
                return self._reopen(file)
            return self._read(self.entries)
        except (OSError, sqlite3.Error, ValueError, TypeError):
            self.close()
            return False

    def close(self) -> None:
        """Close the file; another refresh opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _reopen(self, file: tuple[int, int]) -> bool:
        self.close()
        # A reader that may not write could not make the files beside a log of changes.
        place = f"{self._path.absolute().as_uri()}?mode=rw"
        self._connection = sqlite3.connect(
            place, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_S
        )
        self._connection.execute("PRAGMA query_only = ON")
        if _version_of(self._connection) != _VERSION:
            self.close()
            return False
        self._change, self._version = -1, -1
        self.summaries = {}
        entries = Entries()
        self._read(entries)
        self.entries, self._file = entries, file
        return True

    def _read(self, entries: Entries) -> bool:
        assert self._connection is not None  # noqa: S101
        [change] = self._connection.execute("PRAGMA data_version").fetchone()
        if change == self._change:
            return False
        with _transaction(self._connection, "BEGIN") as rows:
            self._read_entries(rows, entries)
            self.tokens = dict(rows.execute("SELECT sha256, role FROM tokens"))
            self._read_summaries(rows)
            beat = rows.execute("SELECT at_s, database_ok FROM heartbeat").fetchone()
        self.heartbeat = None if beat is None else Heartbeat(beat[0], bool(beat[1]))
        self._change = change
        return True

    def _read_entries(self, rows: sqlite3.Connection, entries: Entries) -> None:
        since = (self._version,)
        [newest] = rows.execute("SELECT COALESCE(MAX(version), 0) FROM entries").fetchone()
        if newest == self._version:
            return
        changed = "FROM entries WHERE version > ?"
        documents = {
            number: marshal.dumps(json.loads(entry))
            for number, entry in rows.execute(
                f"SELECT id, entry FROM documents WHERE id IN (SELECT document {changed})",  # noqa: S608
                since,
            )
        }
        entries.update(documents, rows.execute(f"SELECT system, key, document {changed}", since))
        self._version = newest

    def _read_summaries(self, rows: sqlite3.Connection) -> None:
        known = {name: summary.at for name, summary in self.summaries.items()}
        found = dict(rows.execute("SELECT name, at FROM summaries"))
        if found == known:
            return
        self.summaries = {
            name: Summary(json.loads(text), at)
            for name, text, at in rows.execute("SELECT name, json, at FROM summaries")
        }


class Writer:
    """Writes the file; there is one, the keeper's.

    Parameters
    ----------
    path : Path
        From `prepared_file`.

    Raises
    ------
    sqlite3.Error, OSError
        When the file cannot be written; so can all methods.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = self._open()
        self._file = _file_of(path)

    def is_lost(self) -> bool:
        """Whether somebody took the file away: what is written then, nobody reads."""
        return _file_of(self._path) != self._file

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def renew(self) -> None:
        """Throw everything away."""
        self._connection.close()
        _remove(self._path)
        self._connection = self._open()
        self._file = _file_of(self._path)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write all of what is in the block, or nothing."""
        with _transaction(self._connection, "BEGIN IMMEDIATE"):
            yield

    def put_entries(self, system: str, entries: Mapping[str, Entry]) -> None:
        """Put entries, by key, into the place of those that there are."""
        execute = self._connection.execute
        [newest] = execute("SELECT COALESCE(MAX(version), 0) + 1 FROM entries").fetchone()
        for key, entry in entries.items():
            document = self._document(entry)
            held = execute(
                "SELECT document FROM entries WHERE system = ? AND key = ?", (system, key)
            ).fetchone()
            if held == (document,):
                continue
            execute("REPLACE INTO entries VALUES (?, ?, ?, ?)", (system, key, document, newest))
            if held is not None:
                execute(
                    "DELETE FROM documents WHERE id = ? AND id NOT IN"
                    " (SELECT document FROM entries WHERE document = documents.id)",
                    held,
                )

    def put_tokens(self, tokens: Iterable[tuple[str, str, str]]) -> None:
        """Put hash, name and role of all valid tokens."""
        found = set(tokens)
        if found == set(self._connection.execute("SELECT sha256, name, role FROM tokens")):
            return
        self._connection.execute("DELETE FROM tokens")
        self._connection.executemany("INSERT INTO tokens VALUES (?, ?, ?)", found)

    def put_summary(self, name: str, value: object, at: str) -> None:
        """Put a summary, plain values of JSON, into the place of the last one."""
        row = (name, json.dumps(value), at)
        self._connection.execute("REPLACE INTO summaries VALUES (?, ?, ?)", row)

    def beat(self, at_s: float, *, database_ok: bool) -> None:
        """Show that the keeper lives."""
        self._connection.execute("DELETE FROM heartbeat")
        self._connection.execute("INSERT INTO heartbeat VALUES (?, ?)", (at_s, database_ok))

    def progress(self) -> dict[str, str]:
        """How far the keeper was, as it said last."""
        return dict(self._connection.execute("SELECT name, value FROM progress"))

    def put_progress(self, progress: Mapping[str, str]) -> None:
        """Say how far the keeper is."""
        self._connection.execute("DELETE FROM progress")
        self._connection.executemany("INSERT INTO progress VALUES (?, ?)", progress.items())

    def wanted(self) -> list[Wanted]:
        """What was asked for, in this order."""
        query = "SELECT application, tasks, nodes FROM wanted ORDER BY number"
        return [Wanted(*row) for row in self._connection.execute(query)]

    def put_wanted(self, wanted: Iterable[Wanted]) -> None:
        """Put what was asked for, all of it."""
        self._connection.execute("DELETE FROM wanted")
        self._connection.executemany(
            "INSERT INTO wanted (application, tasks, nodes) VALUES (?, ?, ?)", wanted
        )

    def _document(self, entry: Entry) -> int:
        text = json.dumps(entry, separators=(",", ":"))
        digest = hashlib.sha256(text.encode()).digest()
        execute = self._connection.execute
        known = execute("SELECT id FROM documents WHERE sha256 = ?", (digest,)).fetchone()
        if known is not None:
            return int(known[0])
        made = execute("INSERT INTO documents (sha256, entry) VALUES (?, ?)", (digest, text))
        return int(made.lastrowid or 0)

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _opened(self._path)
        except sqlite3.DatabaseError as error:
            # A full or faulty disk is no reason to throw anything away.
            if isinstance(error, sqlite3.OperationalError):
                raise
        _remove(self._path)
        return _opened(self._path)


def _opened(path: Path) -> sqlite3.Connection:
    """Open the file to write it, new where it is not there.

    Raises
    ------
    sqlite3.DatabaseError
        When it is of another version, or cannot be read.
    """
    with contextlib.suppress(FileExistsError):
        # It holds hashes of tokens.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        version = _version_of(connection)
        if version == 0:
            with _transaction(connection, "BEGIN IMMEDIATE"):
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise sqlite3.DatabaseError(f"of version {version}")
        elif connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
    except BaseException:
        connection.close()
        raise
    return connection


def _file_of(path: Path) -> tuple[int, int] | None:
    """Which file is at a path; None for none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    connection.execute(begin)
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
