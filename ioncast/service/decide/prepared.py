"""The file of prepared answers: the keeper writes it, and others answer from it.

It is an SQLite file. Its content can be made again from the database, so a file that has
another version or is damaged is deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import marshal
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ioncast.service.decide.answers import Entry, Pause, PreparedGroup
from ioncast_base.files import memory_folder, runtime_folder

_LOG = logging.getLogger("ioncast.service")
_BETWEEN_READINGS_S = 0.5
# Version of the tables and of the keys and entries in them: a file of another version is made anew.
_VERSION = 10
_BUSY_S = 10.0
_TABLES = """
CREATE TABLE documents (id INTEGER PRIMARY KEY, sha256 BLOB UNIQUE, entry TEXT NOT NULL);
CREATE TABLE entries (
    system TEXT, key TEXT, document INTEGER NOT NULL, version INTEGER NOT NULL,
    PRIMARY KEY (system, key)
) WITHOUT ROWID;
CREATE TABLE changes (version INTEGER NOT NULL, removed_at INTEGER NOT NULL);
INSERT INTO changes VALUES (0, 0);
CREATE INDEX entries_of_version ON entries (version);
CREATE INDEX entries_of_document ON entries (document);
CREATE TABLE tokens (
    sha256 TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL, expires_at_s REAL
);
CREATE TABLE pauses (
    system TEXT PRIMARY KEY, paused_by TEXT NOT NULL, paused_at TEXT NOT NULL, reason TEXT
);
CREATE TABLE untried (
    application INTEGER PRIMARY KEY, system TEXT NOT NULL, io_nodes INTEGER NOT NULL,
    chosen INTEGER NOT NULL, loss REAL NOT NULL, gain REAL NOT NULL
);
CREATE TABLE summaries (name TEXT PRIMARY KEY, json TEXT NOT NULL, at TEXT NOT NULL);
CREATE TABLE wanted (
    number INTEGER PRIMARY KEY, application INTEGER NOT NULL, tasks INTEGER NOT NULL,
    nodes INTEGER
);
CREATE TABLE progress (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE heartbeat (
    at_s REAL NOT NULL, database_ok INTEGER NOT NULL, state_ok INTEGER NOT NULL
);
"""

# The keeper gives a sign each second. A large transaction may take it longer.
LATE_S = 60.0

Role = Literal["reader", "scheduler", "admin"]
KeeperState = Literal["ok", "late", "unseen"]
DatabaseState = Literal["ok", "unavailable", "unknown"]
StateFolderState = Literal["ok", "unwritable", "unknown"]


class KeeperHeartbeat(NamedTuple):
    """The keeper's newest sign of life: seconds since 1970, and what it could use."""

    at_s: float
    database_ok: bool
    state_ok: bool


class KnownToken(NamedTuple):
    """A token that was not revoked: name, role, and expiry in seconds since 1970 or None."""

    name: str
    role: Role
    expires_at_s: float | None

    def has_expired(self, now_s: float) -> bool:
        """Whether the token has expired at a time in seconds since 1970."""
        return self.expires_at_s is not None and self.expires_at_s <= now_s


class StoredSummary(NamedTuple):
    """A summary of the database: plain values of JSON, and the time when it was made (ISO 8601)."""

    value: Any
    at: str


class WantedSize(NamedTuple):
    """A size of job that a scheduler asked for and that no run of the application had."""

    application_id: int
    tasks: int
    nodes: int | None


class Untried(NamedTuple):
    """A number of I/O nodes that an application never ran with and that may be better.

    `loss` is the share of the bandwidth that a job with it is expected to lose, `gain` the share by
    which the bandwidths of later jobs are expected to rise after one such run.
    """

    io_nodes: int
    chosen: int
    loss: float
    gain: float


def prepared_file(state: str | Path) -> Path:
    """Return the path of the file in a state folder."""
    return Path(state) / "prepared.sqlite"


def shared_state() -> Path | None:
    """Return the state folder in memory that the keeper uses while it cannot write to its own.

    None without systemd, which makes the folder that contains it.
    """
    runtime = runtime_folder(os.environ)
    return Path(runtime) / "state" if runtime else None


def prepared_files(state: str) -> list[Path]:
    """Return the places of the file; the first one that exists counts."""
    return [prepared_file(folder) for folder in (shared_state(), state) if folder]


def remove_prepared(path: Path) -> None:
    """Delete a file of prepared answers, which may be missing, and those that SQLite adds."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


class Entries:
    """Prepared entries by system and key (see `predictor.matching.same_application.Identity`).

    They are kept as bytes: as objects, the entries of 10,000 applications take twice the memory.
    """

    def __init__(self) -> None:
        self.systems: set[str] = set()
        self._packed: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._packed)

    def get(self, which: tuple[str, str]) -> Entry | None:
        """Return the entry of a system and a key, or None."""
        packed = self._packed.get("\0".join(which))
        if packed is None:
            return None
        return [PreparedGroup(*group) for group in marshal.loads(packed)]  # noqa: S302

    def update(self, documents: Mapping[int, bytes], rows: Iterable[tuple[str, str, int]]) -> None:
        """Add or replace entries."""
        for system, key, document in rows:
            self._packed[f"{system}\0{key}"] = documents[document]
            self.systems.add(system)

    def keep(self, rows: Iterable[tuple[str, str]]) -> None:
        """Remove all entries but those of some systems and keys."""
        kept = {f"{system}\0{key}" for system, key in rows}
        for which in [which for which in self._packed if which not in kept]:
            del self._packed[which]


class Reader:
    """A process's copy of the file in memory; any thread may read it, one may refresh it.

    The first of the files that exists is read; all may be missing. Tokens are by hash. The keeper's
    sign of life is None until a file was read once.
    """

    def __init__(self, *paths: Path) -> None:
        self.entries = Entries()
        self.tokens: dict[str, KnownToken] = {}
        self.pauses: dict[str, Pause] = {}
        self.summaries: dict[str, StoredSummary] = {}
        self.heartbeat: KeeperHeartbeat | None = None
        self._has_all = False
        self._paths = paths
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._change = -1
        self._version = -1

    def keeper_state(self, now_s: float) -> KeeperState:
        """Judge the keeper by its heartbeat."""
        if self.heartbeat is None:
            return "unseen"
        return "late" if self.heartbeat.at_s < now_s - LATE_S else "ok"

    @property
    def database_state(self) -> DatabaseState:
        """Whether the keeper could use the database, "unknown" before its first heartbeat."""
        if self.heartbeat is None:
            return "unknown"
        return "ok" if self.heartbeat.database_ok else "unavailable"

    @property
    def state_folder_state(self) -> StateFolderState:
        """Whether the keeper could write to the state folder."""
        if self.heartbeat is None:
            return "unknown"
        return "ok" if self.heartbeat.state_ok else "unwritable"

    @property
    def not_ready(self) -> str | None:
        """Why runs of the history may be missing from the answers, as a clause; None if none is."""
        if self.heartbeat is not None and self._has_all:
            return None
        if self.database_state == "unavailable":
            return "the database is unavailable, so answers cannot be prepared"
        return "answers are still being prepared from the earlier runs"

    def refresh(self) -> bool:
        """Read the changes; True if anything changed. If reading fails, the old copy stays."""
        try:
            for path in self._paths:
                file = _file_of(path)
                if file is not None:
                    if self._connection is None or self._file != file:
                        return self._reopen(path, file)
                    return self._read(self.entries)
            return False
        except (OSError, sqlite3.Error, ValueError, TypeError):
            self.close()
            return False

    def close(self) -> None:
        """Close the file; the next refresh opens it again."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _reopen(self, path: Path, file: tuple[int, int]) -> bool:
        try:
            return self._load(path, file)
        except sqlite3.OperationalError:
            # Without a keeper on a full or read-only disk, SQLite cannot create its files there.
            if self._file is not None:
                raise
            with _copied(path) as copy:
                is_loaded = self._load(copy, file)
                self.close()
            return is_loaded

    def _load(self, path: Path, file: tuple[int, int]) -> bool:
        self.close()
        # In WAL mode even a reader must be able to create the -wal and -shm files.
        place = f"{path.absolute().as_uri()}?mode=rw"
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
            query = "SELECT sha256, name, role, expires_at_s FROM tokens"
            self.tokens = {row[0]: KnownToken(*row[1:]) for row in rows.execute(query)}
            paused = rows.execute("SELECT system, paused_by, paused_at, reason FROM pauses")
            self.pauses = {row[0]: Pause(*row[1:]) for row in paused}
            self._read_summaries(rows)
            beat = rows.execute("SELECT at_s, database_ok, state_ok FROM heartbeat").fetchone()
            # The keeper notes its progress when all answers are prepared.
            self._has_all = rows.execute("SELECT 1 FROM progress").fetchone() is not None
        self.heartbeat = None if beat is None else KeeperHeartbeat(beat[0], *map(bool, beat[1:]))
        self._change = change
        return True

    def _read_entries(self, rows: sqlite3.Connection, entries: Entries) -> None:
        since = (self._version,)
        newest, removed_at = rows.execute("SELECT version, removed_at FROM changes").fetchone()
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
        if removed_at > self._version:
            entries.keep(rows.execute("SELECT system, key FROM entries"))
        self._version = newest

    def _read_summaries(self, rows: sqlite3.Connection) -> None:
        known = {name: summary.at for name, summary in self.summaries.items()}
        found = dict(rows.execute("SELECT name, at FROM summaries"))
        if found == known:
            return
        self.summaries = {
            name: StoredSummary(json.loads(text), at)
            for name, text, at in rows.execute("SELECT name, json, at FROM summaries")
        }


class Writer:
    """Writes the file; only the keeper does so. All methods may raise sqlite3.Error and OSError."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = self._open()
        self._file = _file_of(path)
        # The last keeper may have ended before it removed them.
        self._has_traces = True
        # Whether `put_untried` changed anything since `new_untried`; the last keeper may have.
        self._has_new_untried = True

    def is_lost(self) -> bool:
        """Tell whether the file was deleted or replaced, so that nobody would read new content."""
        return _file_of(self._path) != self._file

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def renew(self) -> None:
        """Delete the file and begin an empty one."""
        self._connection.close()
        remove_prepared(self._path)
        self._connection = self._open()
        self._file = _file_of(self._path)
        self._has_new_untried = True

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Write everything that the block writes, or after an error nothing."""
        with _transaction(self._connection, "BEGIN IMMEDIATE"):
            yield
        if self._has_traces:
            self._remove_traces()

    def put_entries(self, system: str, entries: Mapping[str, Entry]) -> None:
        """Add or replace entries of a system, by key; an entry without groups removes the key."""
        execute = self._connection.execute
        execute("UPDATE changes SET version = version + 1")
        [newest] = execute("SELECT version FROM changes").fetchone()
        for key, entry in entries.items():
            which = system, key
            document = self._document(entry) if entry else None
            held = execute(
                "SELECT document FROM entries WHERE system = ? AND key = ?", which
            ).fetchone()
            if (held or (None,)) == (document,):
                continue
            if entry:
                execute("REPLACE INTO entries VALUES (?, ?, ?, ?)", (*which, document, newest))
            else:
                execute("DELETE FROM entries WHERE system = ? AND key = ?", which)
                execute("UPDATE changes SET removed_at = version")
                self._has_traces = True
            if held is not None:
                execute(
                    "DELETE FROM documents WHERE id = ? AND id NOT IN"
                    " (SELECT document FROM entries WHERE document = documents.id)",
                    held,
                )

    def put_tokens(self, tokens: Mapping[str, KnownToken]) -> None:
        """Replace all tokens by those that are not revoked, by hash."""
        self._replace("tokens", [(sha256, *token) for sha256, token in tokens.items()])

    def put_pauses(self, pauses: Mapping[str, Pause]) -> None:
        """Replace all pauses of decisions, by system."""
        self._replace("pauses", [(system, *pause) for system, pause in pauses.items()])

    def put_untried(self, application_id: int, system: str, untried: Untried | None) -> None:
        """Replace what an application of a system may try; None if nothing is worth it."""
        self._has_new_untried = True
        self._connection.execute("DELETE FROM untried WHERE application = ?", (application_id,))
        if untried is not None:
            values = (application_id, system, *untried)
            self._connection.execute("INSERT INTO untried VALUES (?, ?, ?, ?, ?, ?)", values)

    def new_untried(self) -> list[tuple[int, str, Untried]] | None:
        """Id and system of each application with a number to try; the largest gains first.

        None if nothing was replaced since the last call.
        """
        if not self._has_new_untried:
            return None
        self._has_new_untried = False
        query = "SELECT * FROM untried ORDER BY gain DESC, application"
        return [(row[0], row[1], Untried(*row[2:])) for row in self._connection.execute(query)]

    def put_summary(self, name: str, value: object, at: str) -> None:
        """Add or replace a summary."""
        # The earlier value may have names of users who are deleted.
        self._has_traces = True
        row = (name, json.dumps(value), at)
        self._connection.execute("REPLACE INTO summaries VALUES (?, ?, ?)", row)

    def beat(self, at_s: float, *, database_ok: bool, state_ok: bool) -> None:
        """Write the keeper's sign of life."""
        self._replace("heartbeat", [(at_s, database_ok, state_ok)])

    def progress(self) -> dict[str, str]:
        """Read how far the keeper was, as `put_progress` wrote it."""
        return dict(self._connection.execute("SELECT name, value FROM progress"))

    def put_progress(self, progress: Mapping[str, str]) -> None:
        """Write how far the keeper is."""
        self._replace("progress", list(progress.items()))

    def wanted(self) -> list[WantedSize]:
        """Read the sizes that schedulers asked for, the oldest first."""
        query = "SELECT application, tasks, nodes FROM wanted ORDER BY number"
        return [WantedSize(*row) for row in self._connection.execute(query)]

    def put_wanted(self, wanted: Iterable[WantedSize]) -> None:
        """Replace the sizes that schedulers asked for."""
        self._replace("wanted", [(number, *size) for number, size in enumerate(wanted)])

    def _replace(self, table: str, rows: Sequence[tuple[object, ...]]) -> None:
        """Replace all rows of a small table, if they are others."""
        if set(rows) == set(self._connection.execute(f"SELECT * FROM {table}")):  # noqa: S608
            return
        self._connection.execute(f"DELETE FROM {table}")  # noqa: S608
        for row in rows:
            marks = ", ".join("?" * len(row))
            self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)  # noqa: S608

    def _remove_traces(self) -> None:
        """Empty the WAL, which has earlier pages with removed keys and summaries.

        While a worker reads the file it is not possible; the next transaction tries it again.
        """
        execute = self._connection.execute
        execute("PRAGMA busy_timeout = 0")
        try:
            is_busy, *_ = execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            execute(f"PRAGMA busy_timeout = {round(1000 * _BUSY_S)}")
        self._has_traces = bool(is_busy)

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
            # After a failure of the disk the file may still be good.
            if isinstance(error, sqlite3.OperationalError):
                raise
        remove_prepared(self._path)
        return _opened(self._path)


def _opened(path: Path) -> sqlite3.Connection:
    """Open the file for writing; a missing file is created."""
    with contextlib.suppress(FileExistsError):
        # The file holds hashes of tokens, so only its owner may read it.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        # Keys have names of users, which must not stay in free space after their runs were deleted.
        connection.execute("PRAGMA secure_delete = ON")
        version = _version_of(connection)
        if version == 0:
            with _transaction(connection, "BEGIN IMMEDIATE"):
                for statement in _TABLES.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif version != _VERSION:
            raise sqlite3.DatabaseError(f"version {version} instead of {_VERSION}")
        elif connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise sqlite3.DatabaseError("damaged")
    except BaseException:
        connection.close()
        raise
    return connection


def keep_reading(reader: Reader) -> None:
    """Read the file now, and its changes as long as the process lives."""
    reader.refresh()
    threading.Thread(target=_read_changes, args=(reader,), daemon=True).start()


def _read_changes(reader: Reader) -> None:
    pause = threading.Event()
    while not pause.wait(_BETWEEN_READINGS_S):
        try:
            reader.refresh()
        except Exception:
            # Go on: the process answers from its copy, and the next attempt may succeed.
            _LOG.exception("prepared answers cannot be read")


@contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Copy a file and those that SQLite adds to a folder in memory, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="ioncast-", dir=memory_folder()) as folder:
        for each in path.parent.glob(f"{path.name}*"):
            shutil.copy(each, folder)
        yield Path(folder) / path.name


def _file_of(path: Path) -> tuple[int, int] | None:
    """Return device and inode of the file at a path; None if it is missing."""
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
        # On a full disk SQLite rolls back by itself.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
