"""Slow I/O nodes, for the arbiter and for people."""

from __future__ import annotations

from flask import Blueprint
from pydantic import BaseModel, Field

from ioncast.diagnosis.slow_io_nodes import SlowIoNode
from ioncast.service.context import service
from ioncast.service.monitoring.slow_io_nodes import SLOW_IO_NODES, WINDOW
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.lists import ChosenSystem

slow = Blueprint("slow_io_nodes", __name__)


class SlowIoNodesAnswer(BaseModel):
    """The slow I/O nodes of the last weeks."""

    at: str | None = Field(
        description="When the outcomes were last compared; null before the first time."
    )
    items: list[SlowIoNode] = Field(
        description=f"By outcomes of the last {WINDOW.days} days; at most 20 for each system, the"
        " surest first."
    )


@slow.get("/v1/slow-io-nodes")
@operation("Which I/O nodes are slow?")
def list_slow_io_nodes(query: ChosenSystem) -> SlowIoNodesAnswer:
    """Answer with the I/O nodes that were found last, once a minute if outcomes came."""
    found = service().prepared.summaries.get(SLOW_IO_NODES)
    if found is None:
        return SlowIoNodesAnswer(at=None, items=[])
    rows = [row for row in found.value if query.system in {None, row["system"]}]
    return SlowIoNodesAnswer(at=found.at, items=rows)
