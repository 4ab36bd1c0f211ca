"""What those who run the service ask it."""

from __future__ import annotations

import time
from typing import Literal

from flask import Blueprint, Response
from pydantic import BaseModel, Field

from ioncast.service.answering.prepared import LATE_S, DatabaseState, KeeperState
from ioncast.service.api import openapi
from ioncast.service.api.framework import JSON, operation
from ioncast.service.context import service
from ioncast.service.running import metrics

operations = Blueprint("operations", __name__)


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """What the service can do now."""

    ready: bool = Field(description="Whether decisions are answered from prepared answers.")
    entries: int = Field(description="Keys with a prepared answer.")
    keeper: KeeperState = Field(
        description="Whether decisions are stored and answers are prepared: late when the keeper"
        f" gave no sign for {LATE_S:.0f} s, unseen when it gave none yet."
    )
    database: DatabaseState = Field(
        description="As the keeper last found it. Decisions do not need it."
    )


@operations.get("/healthz")
@operation("Is the process alive?", role=None, answers={200: Health}, limited=False)
def healthz() -> Health:
    """Answer whenever a worker does."""
    return Health()


@operations.get("/readyz")
@operation(
    "Can decisions be answered?",
    role=None,
    answers={200: Readiness, 503: Readiness},
    limited=False,
)
def readyz() -> tuple[Readiness, int]:
    """Answer 503 until prepared answers were read once."""
    prepared = service().prepared
    found = Readiness(
        ready=prepared.heartbeat is not None,
        entries=len(prepared.entries),
        keeper=prepared.keeper_state(time.time()),
        database=prepared.database_state,
    )
    return found, 200 if found.ready else 503


@operations.get("/metrics")
@operation(
    "Numbers for Prometheus, over all workers",
    answers={200: metrics.CONTENT_TYPE},
    limited=False,
)
def numbers() -> Response:
    """Answer in Prometheus' text format 0.0.4."""
    return Response(metrics.exposition(service()), content_type=metrics.CONTENT_TYPE)


@operations.get("/openapi.json")
@operation("This interface in OpenAPI 3.1", role=None, answers={200: JSON}, limited=False)
def openapi_json() -> Response:
    """Answer with the document that the operations describe."""
    return Response(openapi.document_text(), mimetype=JSON)
