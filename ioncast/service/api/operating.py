"""What those who run the service ask it."""

from __future__ import annotations

import time
from typing import Literal

from flask import Blueprint, Response
from pydantic import BaseModel, Field

from ioncast.service.api import openapi
from ioncast.service.api.framework import JSON, operation
from ioncast.service.context import service
from ioncast.service.running import metrics

operations = Blueprint("operations", __name__)

# The keeper is seen every second; a fit of a model may keep it busy for longer.
_LATE_S = 60.0


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """What the service can do now."""

    ready: bool = Field(description="Whether decisions are answered from prepared answers.")
    entries: int = Field(description="Keys with a prepared answer.")
    keeper: Literal["ok", "late", "unseen"] = Field(
        description="Whether what happens is prepared and stored."
    )
    database: Literal["ok", "unavailable", "unknown"] = Field(
        description="As the keeper found it last. Decisions do not need it."
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
    beat = prepared.heartbeat
    found = Readiness(
        ready=beat is not None,
        entries=len(prepared.entries),
        keeper="unseen" if beat is None else "late" if beat.at_s < time.time() - _LATE_S else "ok",
        database="unknown" if beat is None else "ok" if beat.database_ok else "unavailable",
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
