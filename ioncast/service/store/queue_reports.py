"""Reports of a scheduler's queue: I/O nodes in use, and waiting jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, func, insert, select

from ioncast.service.store.decisions import HOUR
from ioncast.service.store.tables import queue_reports
from ioncast_base.times import in_utc

_TIME = queue_reports.c.reported_at


@dataclass(frozen=True)
class QueueReport:
    """The queue of a system at a time.

    Attributes
    ----------
    io_nodes, in_use : int
        I/O nodes that the scheduler has, and those of running jobs.
    waiting, for_io_nodes : int
        Waiting jobs, and those of them that could start with free I/O nodes.
    arbiter_works : bool or None
        Whether the arbiter's last round was in time; None if the site has none.
    """

    system: str
    io_nodes: int
    in_use: int
    waiting: int
    for_io_nodes: int
    arbiter_works: bool | None


class HourOfQueue(NamedTuple):
    """Means of the reports of an hour; `hour` is its start, ISO 8601 in UTC."""

    hour: str
    io_nodes: float
    in_use: float
    waiting: float
    for_io_nodes: float


def store_queue_report(connection: Connection, report: QueueReport, at: datetime) -> None:
    """Store a report."""
    values = {**asdict(report), "reported_at": in_utc(at)}
    connection.execute(insert(queue_reports).values(values))


def hours_of_queues(connection: Connection, since: datetime) -> dict[str, list[HourOfQueue]]:
    """Read the means of each hour by system, from the hour of `since` on."""
    table = queue_reports.c
    hour = func.substr(_TIME, 1, HOUR).label("hour")
    numbers = table.io_nodes, table.in_use, table.waiting, table.for_io_nodes
    query = (
        select(table.system, hour, *(func.avg(each) for each in numbers))
        .where(in_utc(since)[:HOUR] <= _TIME)
        .group_by(table.system, hour)
        .order_by(table.system, hour)
    )
    found: dict[str, list[HourOfQueue]] = {}
    for system, begin, *means in connection.execute(query):
        row = HourOfQueue(f"{begin}:00:00+00:00", *map(float, means))
        found.setdefault(system, []).append(row)
    return found


def newest_queue_reports(
    connection: Connection, since: datetime
) -> Mapping[str, tuple[str, QueueReport]]:
    """Read the newest report of each system since a time, with the time of the report."""
    table = queue_reports.c
    newest = select(func.max(table.id)).where(in_utc(since) <= _TIME).group_by(table.system)
    query = select(queue_reports).where(table.id.in_(newest)).order_by(table.system)
    found = {}
    for row in connection.execute(query).mappings():
        values = {name: row[name] for name in QueueReport.__dataclass_fields__}
        found[row["system"]] = row["reported_at"], QueueReport(**values)
    return found
