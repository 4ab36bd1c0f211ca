"""Decisions that expire: those that are too old, and the least useful ones of too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    and_,
    bindparam,
    case,
    delete,
    exists,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from benchdb.history.decision_sizes import SIZE, SIZE_COUNTER
from benchdb.history.decisions import HOUR
from benchdb.store.schema import decisions, expired_decisions, outcomes, systems
from benchdb.store.stored_counters import add_to_counter, count, counter
from benchdb.store.systems import system_names
from ioncast_base.times import in_utc

# Deleting more rows in one transaction would keep other writers waiting.
_AT_ONCE = 500
# Ranks of decisions, by which the least useful ones are deleted first: of no known user, without an
# outcome, with one.
_NOBODYS, _UNFOLLOWED, _FOLLOWED = range(3)

_HAS_OUTCOME = or_(
    exists().where(outcomes.c.decision_id == decisions.c.id),
    exists().where(
        systems.c.name == decisions.c.system,
        outcomes.c.system_id == systems.c.id,
        outcomes.c.job_id == decisions.c.job_id,
    ),
)
_RANK = case(
    (_HAS_OUTCOME, _FOLLOWED),
    (and_(decisions.c.user.is_(None), decisions.c.job_id.is_(None)), _NOBODYS),
    else_=_UNFOLLOWED,
)
_OLDEST = (
    select(
        *(decisions.c.id, decisions.c.asked_at, decisions.c.system, decisions.c.source),
        SIZE.label("size"),
    )
    .order_by(decisions.c.asked_at, decisions.c.id)
    .limit(_AT_ONCE)
)
_BY_ID = _OLDEST.limit(None).where(decisions.c.id.in_(bindparam("keys", expanding=True)))
_TOO_OLD = _OLDEST.limit(bindparam("most")).where(decisions.c.asked_at < bindparam("first_kept"))
_FROM = _OLDEST.add_columns(_RANK.label("rank")).where(
    tuple_(decisions.c.asked_at, decisions.c.id)
    > tuple_(bindparam("asked_at"), bindparam("last_id"))
)


# Where the search for useless decisions goes on: time and id of the last decision that was looked
# at, for each rank.
Place = tuple[tuple[str, str], ...]
BEGINNING: Place = (("", ""),) * 3
# A function that gets the ids of decisions just before they are deleted, in the same transaction.
Before = Callable[[Connection, Sequence[str]], None]


def count_too_old(connection: Connection, first_kept: datetime) -> int:
    """Count the decisions from before a time."""
    return count(connection, _TOO_OLD, first_kept=in_utc(first_kept))


def delete_too_old(
    connection: Connection, first_kept: datetime, before: Before, most: int = _AT_ONCE
) -> int:
    """Delete some of the decisions from before a time, the oldest first.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes. It takes a part of a second.
    first_kept : datetime
        Decisions of this time and newer ones stay; it needs a time zone.
    before : callable
        As in `Before`.
    most : int
        Delete at most so many.

    Returns
    -------
    int
        Number of deleted decisions; 0 if no older ones are left. `decisions_per_hour` still counts
        them.
    """
    values = {"first_kept": in_utc(first_kept), "most": min(most, _AT_ONCE)}
    rows = connection.execute(_TOO_OLD, values).all()
    before(connection, [row.id for row in rows])
    _delete(connection, rows)
    return len(rows)


def delete_decisions(connection: Connection, ids: Sequence[str]) -> None:
    """Delete decisions by their ids, some hundred at once; `decisions_per_hour` counts them."""
    _delete(connection, connection.execute(_BY_ID, {"keys": ids}).all() if ids else [])


def takes_too_much(connection: Connection, most_bytes: int) -> bool:
    """Whether the decisions take more space than they may."""
    return counter(connection, SIZE_COUNTER) > most_bytes


def delete_least_useful(
    connection: Connection, most_bytes: int, place: Place, before: Before
) -> Place:
    """Delete some decisions, if all of them take more space than they may.

    Of each rank the oldest are deleted first: decisions that name neither user nor job, then
    decisions without an outcome, then all others. Each call begins with the first rank, so that
    decisions that came since the last call are deleted before more useful ones.

    Parameters
    ----------
    connection : Connection
        A connection in a transaction that writes. It takes a part of a second.
    most_bytes : int
        The space that decisions may take, as `size_of` estimates it.
    place : Place
        The result of the last call; `BEGINNING` for the first one.
    before : callable
        As in `Before`.

    Returns
    -------
    Place
        Where the next call goes on, after this transaction has ended well.
    """
    excess = counter(connection, SIZE_COUNTER) - most_bytes
    if excess <= 0:
        return place
    for rank, last in enumerate(place):
        rows = connection.execute(_FROM, {"asked_at": last[0], "last_id": last[1]}).all()
        if rows:
            useless, reached = _useless(rows, rank, excess)
            before(connection, [row.id for row in useless])
            _delete(connection, useless)
            return (*place[:rank], reached, *place[rank + 1 :])
    if place == BEGINNING:
        # There is no decision at all: somebody else deleted rows.
        add_to_counter(connection, SIZE_COUNTER, -counter(connection, SIZE_COUNTER))
    return BEGINNING


def _useless(rows: Sequence[Any], rank: int, excess: int) -> tuple[Sequence[Any], tuple[str, str]]:
    """Choose decisions up to a rank until the others fit; return the last one looked at, too."""
    useless = []
    for row in rows:
        if row.rank <= rank:
            useless.append(row)
            excess -= row.size
        if excess <= 0:
            break
    return useless, (row.asked_at, row.id)


def _delete(connection: Connection, rows: Sequence[Any]) -> None:
    """Delete decisions, and add them to the counts of their hours."""
    if not rows:
        return
    connection.execute(delete(decisions).where(decisions.c.id.in_([row.id for row in rows])))
    add_to_counter(connection, SIZE_COUNTER, -sum(row.size for row in rows))
    known = set(system_names(connection))
    numbers = Counter(
        (row.asked_at[:HOUR], row.system if row.system in known else None, row.source)
        for row in rows
    )
    for (hour, system, source), number in numbers.items():
        _count(connection, hour, system, source, number)


def _count(connection: Connection, hour: str, system: str | None, source: str, number: int) -> None:
    table = expired_decisions.c
    same = and_(
        table.hour == hour,
        table.system.is_(None) if system is None else table.system == system,
        table.source == source,
    )
    more = update(expired_decisions).where(same).values(number=table.number + number)
    if not connection.execute(more).rowcount:
        values = {"hour": hour, "system": system, "source": source, "number": number}
        connection.execute(insert(expired_decisions).values(values))
