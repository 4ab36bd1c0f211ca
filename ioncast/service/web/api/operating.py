"""Operations for those who run the service: health, readiness, numbers, this interface."""

from __future__ import annotations

import time
from typing import Literal

from flask import Blueprint, Response, request
from pydantic import BaseModel, Field

from ioncast.service.context import service
from ioncast.service.decide.prepared import (
    LATE_S,
    DatabaseState,
    KeeperState,
    Role,
    StateFolderState,
)
from ioncast.service.web import metrics
from ioncast.service.web.http import openapi
from ioncast.service.web.http.access import known_token
from ioncast.service.web.http.framework import operation
from ioncast.service.web.http.given import JSON

operations = Blueprint("operations", __name__)


class Health(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(BaseModel):
    """The state of the service."""

    ready: bool = Field(description="Whether decisions are answered from all earlier runs.")
    reason: str | None = Field(description="Why not, as a clause; null if they are.")
    entries: int = Field(description="The number of keys with a prepared answer.")
    paused: int = Field(description="The number of systems whose decisions are paused.")
    keeper: KeeperState = Field(
        description="Whether decisions are stored and answers are prepared: late when the keeper"
        f" gave no sign for {LATE_S:.0f} s, unseen when it gave none yet."
    )
    database: DatabaseState = Field(
        description="As the keeper last found it. Decisions do not need it."
    )
    state_folder: StateFolderState = Field(
        description="As the keeper last found it. While it is unwritable, decisions are answered"
        " but not recorded."
    )


class TokenRights(BaseModel):
    """The rights of a token."""

    name: str | None = Field(description="The token's name; null without a token.")
    role: Role | None = Field(description="Its role; null without a token.")
    expires_s: float | None = Field(
        description="When it expires, in seconds since 1970; null if it does not."
    )


@operations.get("/healthz")
@operation("Is the process alive?", role=None, limited=False)
def healthz() -> Health:
    """Answer as long as the process does."""
    return Health()


@operations.get("/readyz")
@operation(
    "Can decisions be answered?", role=None, answers={200: Readiness, 503: Readiness}, limited=False
)
def readyz() -> tuple[Readiness, int]:
    """Answer 503 until answers are prepared from all earlier runs."""
    prepared = service().prepared
    not_ready = prepared.not_ready
    readiness = Readiness(
        ready=not_ready is None,
        reason=not_ready,
        entries=len(prepared.entries),
        paused=len(prepared.pauses),
        keeper=prepared.keeper_state(time.time()),
        database=prepared.database_state,
        state_folder=prepared.state_folder_state,
    )
    return readiness, 200 if readiness.ready else 503


@operations.get("/v1/token")
@operation("Which rights does my token have?", role=None)
def token_rights() -> TokenRights:
    """Answer about the token in the header; a wrong or expired one is rejected."""
    found = known_token(service(), request)
    if found is None:
        return TokenRights(name=None, role=None, expires_s=None)
    return TokenRights(name=found.name, role=found.role, expires_s=found.expires_at_s)


@operations.get("/metrics")
@operation(
    "Numbers of the whole service for Prometheus",
    answers={200: metrics.CONTENT_TYPE},
    limited=False,
)
def numbers() -> Response:
    """Answer in text format 0.0.4 of Prometheus."""
    return Response(metrics.exposition(service()), content_type=metrics.CONTENT_TYPE)


@operations.get("/openapi.json")
@operation("This interface in OpenAPI 3.1", role=None, answers={200: JSON}, limited=False)
def openapi_json() -> Response:
    """Answer with the OpenAPI document of all operations."""
    return Response(openapi.document_text(), mimetype=JSON)
