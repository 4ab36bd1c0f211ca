"""The scheduler's question: how many I/O nodes a job gets.

Answered from memory; nothing here waits for a database, a log or a model.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from typing import Annotated, Literal
from uuid import uuid4

from flask import Blueprint, Response, request
from pydantic import BaseModel, Field

from predictor.history import Identity, each_identity
from predictor.service import metrics
from predictor.service.answers import PreparedAnswer, answer, default_answer
from predictor.service.api import JSON, Given, operation
from predictor.service.context import service
from predictor.service.fields import (
    LARGEST_COUNT,
    TEXT,
    Count,
    JobId,
    JobName,
    Nodes,
    SystemName,
    UserName,
)
from predictor.service.scripts import programs

decisions = Blueprint("decisions", __name__)

_LOG = logging.getLogger("ioncast.service")
_TEXT = "text/plain"
_LONGEST_SCRIPT = 1 << 20


class Question(Given):
    """A job at its submission."""

    system: SystemName
    user: UserName | None = None
    executable: str | None = Field(
        None,
        max_length=1000,
        pattern=TEXT,
        description="The program, with its folder where that is known.",
        examples=["/apps/hacc_io"],
    )
    name: JobName | None = None
    nodes: Nodes | None = None
    tasks: Count | None = Field(None, description="Processes.", examples=[128])
    available: Annotated[int, Field(ge=0, le=LARGEST_COUNT)] | None = Field(
        None, description="At most so many I/O nodes may be given.", examples=[8]
    )
    job_id: JobId | None = None


class QuestionWithScript(Question):
    """A job at its submission, with what it will run."""

    script: str | None = Field(
        None,
        max_length=_LONGEST_SCRIPT,
        description="The job script: the programs launched in it are looked up in the history,"
        " where no executable is given or it is unknown.",
        examples=["#!/bin/sh\nsrun ./hacc_io 100000 out\n"],
    )


class Alternative(BaseModel):
    """What is expected with another number of I/O nodes."""

    io_nodes: int
    expected_mib_s: float
    p10_mib_s: float
    p90_mib_s: float


class DecisionAnswer(BaseModel):
    """How many I/O nodes a job gets, and why."""

    decision_id: str = Field(description="To be named when the job's outcome is reported.")
    io_nodes: int | None = Field(
        description="How many; 0 is direct access, null no answer: the scheduler's default holds."
    )
    source: Literal["history", "model", "default"] = Field(
        description="Earlier runs of this size; the model, for runs of very different size;"
        " or the site's default."
    )
    expected_mib_s: float | None = Field(description="Bandwidth that is expected, in MiB/s.")
    p10_mib_s: float | None = Field(description="One run in ten is below.")
    p90_mib_s: float | None = Field(description="One run in ten is above.")
    alternatives: list[Alternative] = Field(description="The other numbers of I/O nodes.")
    confidence: float | None = Field(
        description="The probability that it gives at least 0.9 of the best bandwidth, times"
        " the share of runs that do this I/O; null where only runs of very different size, yet to"
        " be scaled, are known."
    )
    why: str = Field(description="In a sentence.")
    application_id: int | None = Field(description="The application in the history.")


_ANSWERS = {200: DecisionAnswer, 204: None}


@decisions.get("/v1/decisions")
@operation(
    "How many I/O nodes should a job get?",
    query=Question,
    answers=_ANSWERS,
    text=True,
    limited=False,
)
def ask(query: Question) -> Response:
    """Answer from what was prepared; with `Accept: text/plain` just the number, 204 for none."""
    return _answered(query, [query.executable])


@decisions.post("/v1/decisions")
@operation(
    "How many I/O nodes should the job of a script get?",
    role="scheduler",
    body=QuestionWithScript,
    answers=_ANSWERS,
    text=True,
    limited=False,
)
def ask_with_script(body: QuestionWithScript) -> Response:
    """The same with the job script, from which schedulers that know no executable learn it."""
    launched = programs(body.script) if body.script else []
    return _answered(body, [body.executable, *launched] if body.executable else launched or [None])


def _answered(question: Question, executables: Sequence[str | None]) -> Response:
    found = find(question, executables)
    number = uuid4().hex
    _record(number, question, found.body)
    metrics.decisions(found.source).inc()
    accepted = request.headers.get("Accept", JSON)
    if _TEXT in accepted and request.accept_mimetypes.best_match((JSON, _TEXT)) == _TEXT:
        headers = _headers(number, found)
        if found.io_nodes is None:
            return Response(status=204, headers=headers)
        return Response(str(found.io_nodes), mimetype=_TEXT, headers=headers)
    return Response(b'{"decision_id":"%b",%b' % (number.encode(), found.body[1:]), mimetype=JSON)


def _headers(number: str, found: PreparedAnswer) -> dict[str, str]:
    """What a scheduler without a JSON reader wants for its log beside the number."""
    why: str = json.loads(found.body)["why"]
    return {
        "X-Decision-Id": number,
        "X-Decision-Source": found.source,
        "X-Decision-Why": "".join(c if " " <= c <= "~" else "?" for c in why),
    }


def find(question: Question, executables: Sequence[str | None]) -> PreparedAnswer:
    """The answer for the first of the programs that the history knows, best match first.

    Parameters
    ----------
    question : Question
        The job.
    executables : sequence of str or None
        The programs that it may run.
    """
    of = service()
    entries = of.prepared.entries
    for identity in _identities(question, executables):
        entry = entries.get((question.system, identity.key))
        if entry is not None:
            return answer(entry, identity.says, question.tasks, question.nodes, question.available)
    unheard_of = None if question.system in entries.systems else question.system
    default = of.settings.default_of(question.system)
    return default_answer(default, question.available, unheard_of)


def _identities(question: Question, executables: Sequence[str | None]) -> Iterator[Identity]:
    """What to look up: a job's name alone says less than any program of its script."""
    for executable in executables:
        for identity in each_identity(executable, question.user, question.name):
            if identity.executable is not None:
                yield identity
    yield from each_identity(None, question.user, question.name)


def _record(number: str, question: Question, body: bytes) -> None:
    """Leave the decision for the keeper; that it cannot be kept is no reason not to answer."""
    line = b'{"id":"%b","at":"%b","query":%b,"answer":%b}\n' % (
        number.encode(),
        datetime.now(timezone.utc).isoformat(timespec="milliseconds").encode(),
        question.model_dump_json(exclude_none=True, exclude={"script"}).encode(),
        body,
    )
    try:
        service().spool.append(line)
    except OSError as error:
        metrics.UNRECORDED.inc()
        _LOG.error("a decision cannot be kept: %s", error)
