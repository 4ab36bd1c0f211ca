"""Changes of a machine, such as a new file system: older measurements and outcomes do not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, func, select, update

from benchdb.store.accepted_values import check_text, stored_time
from benchdb.store.schema import imports, measurements, systems
from benchdb.store.systems import require_system, revise, system_id_of
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.times import instant, now

# Older versions of SQLite allow 999 values in a statement.
_IDS_AT_ONCE = 500
_ROWS_AT_ONCE = 10_000
_DAY = len("2026-11-21")
_MIDNIGHT = "T00:00:00.000000+00:00"


@dataclass(frozen=True)
class SystemChange:
    """The last change of a machine: nothing from before `since` counts. Times are in UTC."""

    system: str
    since: str
    why: str
    noted_at: str

    @property
    def day(self) -> str:
        """The date of the change; with its time in UTC unless that is midnight."""
        if self.since.endswith(_MIDNIGHT):
            return self.since[:_DAY]
        return f"{self.since[:_DAY]} {self.since[_DAY + 1 :][: len('04:15:02')]} UTC"

    def is_followed_by(self, time: str) -> bool:
        """Whether a stored time of a run, in UTC, is not from before the change."""
        return time >= self.since

    @property
    def mark(self) -> str:
        """The mark of everything that no longer counts, as people read it."""
        return f"before the change of {self.day}: {self.why}"


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_CHANGES = (
    select(systems.c.name, systems.c.valid_since, systems.c.change_why, systems.c.change_noted_at)
    .where(systems.c.valid_since.is_not(None))
    .order_by(systems.c.name)
)
_CHANGE_OF_SYSTEM = _CHANGES.where(systems.c.name == bindparam("system"))
_SINCE = select(systems.c.valid_since).where(systems.c.id == bindparam("of_system"))
_NOTE = (
    update(systems)
    .where(systems.c.id == bindparam("of_system"))
    .values(
        valid_since=bindparam("since"),
        change_why=bindparam("why"),
        change_noted_at=bindparam("noted_at"),
    )
)
_TIMES = (
    select(
        measurements.c.id,
        measurements.c.started,
        imports.c.imported_at,
        measurements.c.before_change,
    )
    .join_from(measurements, imports)
    .where(measurements.c.system_id == bindparam("of_system"))
)
_MARK = (
    update(measurements)
    .where(measurements.c.id.in_(bindparam("ids", expanding=True)))
    .values(before_change=bindparam("mark"))
)
_COUNTS = (
    select(measurements.c.before_change, func.count())
    .join_from(measurements, systems)
    .where(systems.c.name == bindparam("system"), measurements.c.used)
    .group_by(measurements.c.before_change)
)

_IS_MEASURED = select(
    select(measurements.c.id)
    .join_from(measurements, systems)
    .where(
        systems.c.name == bindparam("system"),
        measurements.c.used,
        ~measurements.c.before_change,
    )
    .exists()
)


def changes(connection: Connection) -> dict[str, SystemChange]:
    """Look up the change of each system, by name; systems without a change are left out."""
    return {row.name: SystemChange(*row) for row in connection.execute(_CHANGES)}


def change_of(connection: Connection, system: str) -> SystemChange | None:
    """Look up the change of a system; None if the system never changed."""
    row = connection.execute(_CHANGE_OF_SYSTEM, {"system": system}).one_or_none()
    return SystemChange(*row) if row else None


def note_change(connection: Connection, system: str, *, since: str, why: str) -> SystemChange:
    """Note that a machine changed: measurements and outcomes from before no longer count.

    The change replaces the one that was noted before. `since` is a date or a time, ISO 8601;
    without a zone in UTC. A time in the future is an InputError.
    """
    system_change = SystemChange(
        require_system(connection, system), _past(since), _printable(why), now()
    )
    _apply(
        connection,
        system,
        since=system_change.since,
        why=system_change.why,
        noted_at=system_change.noted_at,
    )
    return system_change


def undo_change(connection: Connection, system: str) -> SystemChange:
    """Take the change of a system back: everything counts again as if it had never been noted."""
    undone = change_of(connection, require_system(connection, system))
    if undone is None:
        raise UnknownNameError(f"no change of {system} is noted")
    _apply(connection, system, since=None, why=None, noted_at=None)
    return undone


def counts_of_measurements(connection: Connection, system: str) -> tuple[int, int]:
    """The number of a system's measurements that count, and of those from before its change."""
    rows = connection.execute(_COUNTS, {"system": system})
    found = {bool(is_before_change): count for is_before_change, count in rows}
    return found.get(False, 0), found.get(True, 0)


def is_measured(connection: Connection, system: str) -> bool:
    """Whether a system has measurements that count."""
    return bool(connection.scalar(_IS_MEASURED, {"system": system}))


def deciding_time(connection: Connection, system_id: int) -> datetime | None:
    """The time of the change of a system; None if the system never changed."""
    return instant(connection.scalar(_SINCE, {"of_system": system_id}))


def is_before(since: datetime | None, started: str | None, imported_at: str) -> bool:
    """Whether a measurement is from before a change; without a known start its import counts."""
    if since is None:
        return False
    measured_at = instant(started) or instant(imported_at)
    return measured_at is not None and measured_at < since


def _apply(connection: Connection, system: str, **change: str | None) -> None:
    """Store the change of a system, and mark its measurements as the change wants it."""
    system_id = system_id_of(connection, system)
    connection.execute(_NOTE, {"of_system": system_id, **change})
    since = instant(change["since"])
    rows = connection.execute(
        _TIMES.execution_options(yield_per=_ROWS_AT_ONCE), {"of_system": system_id}
    )
    wrong: dict[bool, list[int]] = {False: [], True: []}
    for key, started, imported_at, is_marked in rows:
        mark = is_before(since, started, imported_at)
        if mark != is_marked:
            wrong[mark].append(key)
    for mark, keys in wrong.items():
        for ids in _in_chunks(keys):
            connection.execute(_MARK, {"ids": ids, "mark": mark})
    revise(connection, system_id)


def _in_chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(keys), _IDS_AT_ONCE):
        yield keys[start : start + _IDS_AT_ONCE]


def _past(text: str) -> str:
    since = stored_time("the time of the change", text)
    if since > now():
        raise InputError(
            f"{text} is in the future",
            remedy="note the change when the machine has changed",
        )
    return since


def _printable(why: str) -> str:
    check_text("the reason", why, systems.c.change_why)
    if not why.strip() or not why.isprintable():
        raise InputError(f"the reason is {why!r}", remedy="use printable characters in one line")
    return why.strip()
