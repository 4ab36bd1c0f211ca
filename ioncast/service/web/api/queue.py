"""The scheduler's queue, as the collector reports it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

from flask import Blueprint
from pydantic import BaseModel, Field

from benchdb.store.database import transaction
from ioncast.service.context import service
from ioncast.service.store.queue_reports import QueueReport, store_queue_report
from ioncast.service.web.http.fields import SystemName
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import RequestModel
from ioncast_base.limits import LARGEST_COUNT
from ioncast_base.quantities import IoNodes, Whole

queue = Blueprint("queue", __name__)

_Jobs = Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)]


class QueueNow(RequestModel):
    """The queue of a system at the moment."""

    system: SystemName
    io_nodes: IoNodes = Field(description="I/O nodes that the scheduler has.", examples=[8])
    in_use: IoNodes = Field(description="Those of running jobs.", examples=[6])
    waiting: _Jobs = Field(description="Waiting jobs.", examples=[12])
    for_io_nodes: _Jobs = Field(
        description="Those of them that could start with free I/O nodes.", examples=[3]
    )
    arbiter_works: bool | None = Field(
        None, description="Whether the arbiter's last round was in time; null without an arbiter."
    )


class StoredQueue(BaseModel):
    """A report that is stored."""

    reported_at: str


@queue.post("/v1/queue")
@operation("Report I/O nodes in use and waiting jobs", role="scheduler", answers={201: StoredQueue})
def report_queue(body: QueueNow) -> tuple[StoredQueue, int]:
    """Store a report, which the overview shows; send one every five minutes."""
    at = datetime.now(timezone.utc)
    with transaction(service().database, write=True) as connection:
        store_queue_report(connection, QueueReport(**body.model_dump()), at)
    return StoredQueue(reported_at=at.isoformat(timespec="seconds")), 201
