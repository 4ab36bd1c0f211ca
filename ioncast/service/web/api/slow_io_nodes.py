"""Slow I/O nodes, for the arbiter and for people."""

from __future__ import annotations

from flask import Blueprint
from pydantic import BaseModel, Field

from ioncast.service.context import service
from ioncast.service.monitoring.slow_io_nodes import SLOW_IO_NODES, WINDOW
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.lists import ChosenSystem

slow = Blueprint("slow_io_nodes", __name__)


class SlowIoNodeItem(BaseModel):
    """An I/O node on which jobs get less of their usual bandwidth than on others."""

    system: str
    name: str
    jobs: int = Field(description="Jobs that had it.")
    elsewhere: int = Field(description="Jobs that did not have it.")
    ratio: float = Field(
        description="The median of the jobs' bandwidths, each relative to its usual one, elsewhere"
        " by that on the I/O node."
    )
    p: float = Field(description="The probability that chance makes any of the I/O nodes as slow.")


class SlowIoNodesAnswer(BaseModel):
    """The slow I/O nodes of the last weeks."""

    at: str | None = Field(
        description="When the outcomes were last compared; null before the first time."
    )
    items: list[SlowIoNodeItem] = Field(
        description=f"By outcomes of the last {WINDOW.days} days; at most 20 for each system, the"
        " surest first."
    )


@slow.get("/v1/slow-io-nodes")
@operation("Which I/O nodes are slow?", query=ChosenSystem, answers={200: SlowIoNodesAnswer})
def list_slow_io_nodes(query: ChosenSystem) -> SlowIoNodesAnswer:
    """Answer with the I/O nodes that were found last, once a minute if outcomes came."""
    found = service().prepared.summaries.get(SLOW_IO_NODES)
    if found is None:
        return SlowIoNodesAnswer(at=None, items=[])
    rows = [row for row in found.value if query.system in {None, row["system"]}]
    return SlowIoNodesAnswer(at=found.at, items=[SlowIoNodeItem(**row) for row in rows])
