"""Changes of a machine, such as a new file system: older measurements and outcomes do not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from benchdb.store.accepted_values import check_text, stored_time
from benchdb.store.schema import imports, longest, measurements, system_changes, systems
from benchdb.store.systems import require_system, revise, system_id_of
from benchdb.store.writes import note_write
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.times import instant, now

# Older versions of SQLite allow 999 values in a statement.
_IDS_AT_ONCE = 500
_ROWS_AT_ONCE = 10_000
_DAY = len("2026-11-21")
_MIDNIGHT = "T00:00:00.000000+00:00"


@dataclass(frozen=True)
class SystemChange:
    """A change of a machine.

    Attributes
    ----------
    id : int
        The change's id in the database.
    system : str
        Name of the system.
    since : str
        When the machine changed, ISO 8601 in UTC. Everything from before no longer counts.
    why : str
        The change in words.
    noted_by : str
        The writer of the change, see `benchdb.store.writes`.
    noted_at : str
        When the change was noted, ISO 8601 in UTC.
    """

    id: int
    system: str
    since: str
    why: str
    noted_by: str
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
    select(
        system_changes.c.id,
        systems.c.name,
        *(system_changes.c[name] for name in ("since", "why", "noted_by", "noted_at")),
    )
    .join_from(system_changes, systems)
    .order_by(system_changes.c.since, system_changes.c.id)
)
_CHANGES_OF_SYSTEM = _CHANGES.where(systems.c.name == bindparam("system"))
_NEWEST_SINCE = select(func.max(system_changes.c.since)).where(
    system_changes.c.system_id == bindparam("of_system")
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


def changes(connection: Connection, system: str | None = None) -> list[SystemChange]:
    """List the changes of a system, by default of all; the change of the latest time is last."""
    query, values = (_CHANGES, {}) if system is None else (_CHANGES_OF_SYSTEM, {"system": system})
    return [SystemChange(*row) for row in connection.execute(query, values)]


def newest_changes(connection: Connection) -> dict[str, SystemChange]:
    """Look up the change that decides for each system; systems without a change are left out."""
    return {change.system: change for change in changes(connection)}


def newest_change(connection: Connection, system: str) -> SystemChange | None:
    """Look up the change that decides for a system; None if the system never changed."""
    return next(reversed(changes(connection, system)), None)


def note_change(
    connection: Connection, system: str, *, since: str, why: str, by: str
) -> SystemChange:
    """Note that a machine changed: measurements and outcomes from before no longer count.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes (see `benchdb.store.database.transaction`).
    system : str
        Name of a system of the database.
    since : str
        When the machine changed: a date or a time, ISO 8601; without a zone in UTC.
    why : str
        The change in words: one printable line.
    by : str
        The writer, from `benchdb.store.writes`.

    Raises
    ------
    InputError
        If the time is not valid or in the future, the text is not valid, or the same change is
        noted already.
    UnknownNameError
        If the database does not have the system.
    """
    require_system(connection, system)
    system_id = system_id_of(connection, system)
    values = {
        "system_id": system_id,
        "since": _past(since),
        "why": _printable(why),
        "noted_by": by[: longest(system_changes.c.noted_by)],
        "noted_at": now(),
    }
    if any(each.since == values["since"] for each in changes(connection, system)):
        raise InputError(
            f"{system} already has a change of {since}",
            remedy="take it back with `ioncast system undo`, or give another time",
        )
    [key] = connection.scalars(insert(system_changes).values(values).returning(system_changes.c.id))
    _apply(connection, system_id)
    found = next(each for each in changes(connection, system) if each.id == key)
    note_write(connection, by, "change", f"since {found.day}: {found.why}", system)
    return found


def undo_change(
    connection: Connection, change_id: int, *, by: str, system: str | None = None
) -> SystemChange:
    """Take a change back: everything counts again as if it had never been noted.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes.
    change_id : int
        The change's id.
    by : str
        The writer, from `benchdb.store.writes`.
    system : str, optional
        Name of the system that must have the change.

    Raises
    ------
    UnknownNameError
        If the database does not have the system, or the system no such change.
    """
    if system is not None:
        require_system(connection, system)
    undone = next((each for each in changes(connection, system) if each.id == change_id), None)
    if undone is None:
        raise UnknownNameError(
            f"{system or 'the database'} has no change {change_id}",
            remedy="`ioncast system show` lists the changes of a system",
        )
    connection.execute(delete(system_changes).where(system_changes.c.id == change_id))
    _apply(connection, system_id_of(connection, undone.system))
    what = f"undone: since {undone.day}: {undone.why}"
    note_write(connection, by, "change", what, undone.system)
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
    """The time of the change that decides for a system; None if the system never changed."""
    return instant(connection.scalar(_NEWEST_SINCE, {"of_system": system_id}))


def is_before(since: datetime | None, started: str | None, imported_at: str) -> bool:
    """Whether a measurement is from before a change; without a known start its import counts."""
    if since is None:
        return False
    measured_at = instant(started) or instant(imported_at)
    return measured_at is not None and measured_at < since


def _apply(connection: Connection, system_id: int) -> None:
    """Mark the measurements as the changes of their system want it now."""
    since = deciding_time(connection, system_id)
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
    check_text("the reason", why, system_changes.c.why)
    if not why.strip() or not why.isprintable():
        raise InputError(f"the reason is {why!r}", remedy="use printable characters in one line")
    return why.strip()
