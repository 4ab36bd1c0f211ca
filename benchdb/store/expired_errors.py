"""Sums of the errors of decisions by month, which stay when decisions and outcomes expire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, insert, select, update

from benchdb.store.schema import expired_errors


@dataclass(frozen=True)
class MonthlyErrors:
    """The errors of decisions on a system whose outcomes were reported in a month.

    Attributes
    ----------
    system, month : str
        The system, and the month in UTC: 2026-11.
    number : int
        Number of outcomes with an expected bandwidth, at least 1.
    error_sum : float
        The sum of their relative errors.
    inside : int
        Number of outcomes between p10 and p90.
    """

    system: str
    month: str
    number: int
    error_sum: float
    inside: int


def add_expired(connection: Connection, found: Iterable[MonthlyErrors]) -> None:
    """Add errors to the sums of their months, in the transaction that makes them expire."""
    table = expired_errors.c
    for each in found:
        sums = {
            "number": table.number + each.number,
            "error_sum": table.error_sum + each.error_sum,
            "inside": table.inside + each.inside,
        }
        same = update(expired_errors).where(table.system == each.system, table.month == each.month)
        if not connection.execute(same.values(sums)).rowcount:
            connection.execute(insert(expired_errors).values(asdict(each)))


def expired_by_month(connection: Connection, system: str | None = None) -> list[MonthlyErrors]:
    """The sums of expired errors of a system, by default of all, by system and month."""
    table = expired_errors.c
    columns = (table.system, table.month, table.number, table.error_sum, table.inside)
    query = select(*columns).order_by(table.system, table.month)
    if system is not None:
        query = query.where(table.system == system)
    return [MonthlyErrors(*row) for row in connection.execute(query)]
