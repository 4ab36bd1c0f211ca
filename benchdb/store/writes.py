"""The list of changes of stored data with their writers: tokens, and users of commands."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from sqlalchemy import Connection, bindparam, delete, insert, select

from benchdb.store.accepted_values import is_text
from benchdb.store.schema import longest
from benchdb.store.schema import writes as writes_table
from benchdb.store.stored_counters import count
from ioncast_base.times import in_utc, now

WriteKind = Literal["run", "outcome", "measurements", "deletion", "token", "change"]
KINDS: tuple[WriteKind, ...] = get_args(WriteKind)
# Deleting more in one transaction would keep other writers waiting.
_AT_ONCE = 500
_NEWEST_FIRST = select(
    *(writes_table.c[name] for name in ("at", "by", "kind", "what", "system"))
).order_by(writes_table.c.id.desc())
_OLD = (
    select(writes_table.c.id)
    .where(writes_table.c.at < bindparam("first_kept"))
    .order_by(writes_table.c.at)
    .limit(bindparam("most"))
)


@dataclass(frozen=True)
class Write:
    """A change of stored data.

    Attributes
    ----------
    at : str
        The time, ISO 8601.
    by : str
        "token NAME" or "command of USER".
    kind : str
        One of `KINDS`.
    what : str
        The id of the run or outcome, the name of the file or of the token, the number of deleted
        rows, or the change of a system. It never names the user of a job, who may be deleted later.
    system : str or None
        The system, if there is only one.
    """

    at: str
    by: str
    kind: str
    what: str
    system: str | None


def by_token(name: str) -> str:
    """Name a token as a writer."""
    return f"token {name}"


def by_command() -> str:
    """Name the user of the command that runs as a writer."""
    number = os.getuid()
    try:
        return f"command of {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"command of uid:{number}"


def note_write(
    connection: Connection, by: str, kind: WriteKind, what: object, system: str | None = None
) -> None:
    """Note a change, in the transaction that makes it.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes.
    by : str
        From `by_token` or `by_command`.
    kind, what, system
        As in `Write`.
    """
    # A file may have any name.
    text = str(what).encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
    values = {
        "at": now(),
        "by": by[: longest(writes_table.c.by)],
        "kind": kind,
        "what": text[-longest(writes_table.c.what) :],
        "system": system,
    }
    connection.execute(insert(writes_table).values(values))


def writes(
    connection: Connection,
    *,
    by: str | None = None,
    kind: WriteKind | None = None,
    limit: int | None = None,
) -> list[Write]:
    """List changes, the newest first.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction.
    by : str, optional
        List only changes by this writer, as `Write` names it.
    kind : str, optional
        List only changes of this kind.
    limit : int, optional
        List at most this many.
    """
    if not is_text(by):
        return []
    query = _NEWEST_FIRST.limit(limit)
    if by is not None:
        query = query.where(writes_table.c.by == by)
    if kind is not None:
        query = query.where(writes_table.c.kind == kind)
    return [Write(*row) for row in connection.execute(query)]


def count_old_writes(connection: Connection, first_kept: datetime) -> int:
    """Count the changes from before a time."""
    return count(connection, _OLD, first_kept=in_utc(first_kept))


def delete_old_writes(connection: Connection, first_kept: datetime, most: int = _AT_ONCE) -> int:
    """Delete some of the changes from before a time, the oldest first; return their number."""
    values = {"first_kept": in_utc(first_kept), "most": min(most, _AT_ONCE)}
    ids = list(connection.scalars(_OLD, values))
    connection.execute(delete(writes_table).where(writes_table.c.id.in_(ids)))
    return len(ids)
