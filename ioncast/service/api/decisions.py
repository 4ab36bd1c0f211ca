"""The scheduler's question: the number of I/O nodes for a job.

It is answered from memory and never waits for a database, a log or a model.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from random import getrandbits
from typing import TYPE_CHECKING, Literal

from flask import Blueprint, Flask, Response, request
from pydantic import BaseModel, Field

from ioncast.service.answering.answers import PreparedAnswer, answer, default_answer
from ioncast.service.answering.scripts import programs
from ioncast.service.context import Service, service
from ioncast.service.http.fields import (
    TEXT,
    JobId,
    JobName,
    Nodes,
    SystemName,
    UserName,
)
from ioncast.service.http.framework import JSON, Given, checked_query, operation
from ioncast.service.http.problems import RequestError
from ioncast.service.running import metrics
from ioncast.service.running.security_headers import FOR_PROGRAMS
from ioncast_base.quantities import Count, IoNodes
from predictor.matching.same_application import Identity, each_identity

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from flask.blueprints import BlueprintSetupState

decisions = Blueprint("decisions", __name__)

_LOG = logging.getLogger("ioncast.service")
_PATH = "/v1/decisions"
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
        description="The program, with its folder if that is known.",
        examples=["/apps/hacc_io"],
    )
    name: JobName | None = None
    nodes: Nodes | None = None
    tasks: Count | None = Field(None, description="Processes.", examples=[128])
    available: IoNodes | None = Field(
        None, description="The largest number of I/O nodes that the job may get.", examples=[8]
    )
    job_id: JobId | None = None


class QuestionWithScript(Question):
    """A job at its submission, with its job script."""

    script: str | None = Field(
        None,
        max_length=_LONGEST_SCRIPT,
        description="The job script. The programs that it starts are looked up in the history if"
        " no executable is given or the executable is unknown.",
        examples=["#!/bin/sh\nsrun ./hacc_io 100000 out\n"],
    )


class Alternative(BaseModel):
    """Another number of I/O nodes with its expected bandwidth."""

    io_nodes: int
    expected_mib_s: float
    p10_mib_s: float
    p90_mib_s: float


class DecisionAnswer(BaseModel):
    """The number of I/O nodes of a job, with the reason."""

    decision_id: str = Field(description="Send it with the job's outcome.")
    io_nodes: int | None = Field(
        description="The number of I/O nodes; 0 is direct access. Null is no answer: the"
        " scheduler uses its own default."
    )
    source: Literal["history", "model", "default"] = Field(
        description="history: earlier runs of this size. model: runs of very different sizes,"
        " scaled by the model. default: the site's default."
    )
    expected_mib_s: float | None = Field(description="The expected bandwidth in MiB/s.")
    p10_mib_s: float | None = Field(description="One run in ten is slower.")
    p90_mib_s: float | None = Field(description="One run in ten is faster.")
    alternatives: list[Alternative] = Field(description="The other numbers of I/O nodes.")
    confidence: float | None = Field(
        description="The probability that the job gets at least 0.9 of the best bandwidth, times"
        " the share of the application's runs that do this I/O. Null if only runs of very"
        " different sizes are known and the model has not scaled them yet."
    )
    why: str = Field(description="The reason in a sentence.")
    application_id: int | None = Field(description="The id of the application in the history.")


_ANSWERS = {200: DecisionAnswer, 204: None}


@decisions.get(_PATH)
@operation(
    "How many I/O nodes should a job get?",
    query=Question,
    answers=_ANSWERS,
    text=True,
    limited=False,
)
def ask(query: Question) -> Response:
    """Give an answer that was prepared from earlier runs, in about a millisecond.

    With `Accept: text/plain` the answer is only the number, or 204 for no answer.
    """
    return _answered(query, [query.executable])


@decisions.post(_PATH)
@operation(
    "How many I/O nodes should the job of a script get?",
    role="scheduler",
    body=QuestionWithScript,
    answers=_ANSWERS,
    text=True,
    limited=False,
)
def ask_with_script(body: QuestionWithScript) -> Response:
    """Answer the same question for a job script, when the scheduler does not know the program."""
    launched = programs(body.script) if body.script else []
    return _answered(body, [body.executable, *launched] if body.executable else launched or [None])


@decisions.record_once
def _answer_at_once(state: BlueprintSetupState) -> None:
    """Answer the schedulers' usual question before Flask, which would double its time."""
    assert isinstance(state.app, Flask)  # noqa: S101
    app, answer_others = state.app, state.app.wsgi_app
    with app.app_context():
        of = service()

    def answer_any(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        began_s = time.perf_counter()
        reply = _reply_at_once(of, environ)
        if reply is None:
            return answer_others(environ, respond)
        length = [("Content-Length", str(len(reply.body)))] if reply.body else []
        respond(reply.status, [*reply.headers, *length, *FOR_PROGRAMS])
        metrics.answered("decisions.ask", int(reply.status[:3]), began_s)
        return [reply.body]

    app.wsgi_app = answer_any  # type: ignore[assignment, method-assign]


def _reply_at_once(of: Service, environ: WSGIEnvironment) -> _Reply | None:
    """Answer a plain question; None leaves the request to `ask`, which repeats any failure."""
    try:
        question = _plain_question(of, environ)
        if question is None:
            return None
        found = _found(of, question, [question.executable])
    except Exception:
        _LOG.exception("Flask answers a question that failed before it")
        return None
    as_text = environ.get("HTTP_ACCEPT") == _TEXT
    return _reply(_decided(of, question, found), found, as_text=as_text)


def _plain_question(of: Service, environ: WSGIEnvironment) -> Question | None:
    """A correct question that needs no token; None leaves the request to `ask`."""
    if environ["PATH_INFO"] != _PATH or environ["REQUEST_METHOD"] != "GET":
        return None
    if of.settings.reading != "open" or "HTTP_AUTHORIZATION" in environ:
        return None
    accepted = environ.get("HTTP_ACCEPT", JSON)
    if accepted != _TEXT and _TEXT in accepted:
        return None
    try:
        return checked_query(Question, environ)
    except RequestError:
        return None


def _answered(question: Question, executables: Sequence[str | None]) -> Response:
    accepted = request.headers.get("Accept", JSON)
    as_text = _TEXT in accepted and request.accept_mimetypes.best_match((JSON, _TEXT)) == _TEXT
    found = find(question, executables)
    reply = _reply(_decided(service(), question, found), found, as_text=as_text)
    return Response(reply.body, reply.status, reply.headers)


@dataclass(frozen=True)
class _Reply:
    """An answer for Flask and for WSGI."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


def _reply(number: str, found: PreparedAnswer, *, as_text: bool) -> _Reply:
    if not as_text:
        body = b'{"decision_id":"%b",%b' % (number.encode(), found.body[1:])
        return _Reply("200 OK", [("Content-Type", JSON)], body)
    headers = [("Content-Type", f"{_TEXT}; charset=utf-8"), *_headers(number, found)]
    if found.io_nodes is None:
        return _Reply("204 NO CONTENT", headers, b"")
    return _Reply("200 OK", headers, str(found.io_nodes).encode())


def _decided(of: Service, question: Question, found: PreparedAnswer) -> str:
    """Record a decision and return its id."""
    number = _new_number()
    _record(of, number, question, found.body)
    metrics.decided(found.source)
    return number


def _new_number() -> str:
    """Make a unique id for a decision: the time and 64 random bits.

    A UUID needs a system call, and other threads take over meanwhile. Ids in the order of time
    lie near each other in the database's index.
    """
    return f"{time.time_ns():016x}{getrandbits(64):016x}"


def _headers(number: str, found: PreparedAnswer) -> list[tuple[str, str]]:
    """Headers for the log of a scheduler that reads no JSON."""
    why: str = json.loads(found.body)["why"]
    return [
        ("X-Decision-Id", number),
        ("X-Decision-Source", found.source),
        ("X-Decision-Why", "".join(c if " " <= c <= "~" else "?" for c in why)),
    ]


def find(question: Question, executables: Sequence[str | None]) -> PreparedAnswer:
    """Find the answer for the first program that the history knows, best match first.

    Parameters
    ----------
    question : Question
        The job.
    executables : sequence of str or None
        The programs that the job may run.
    """
    return _found(service(), question, executables)


def _found(of: Service, question: Question, executables: Sequence[str | None]) -> PreparedAnswer:
    entries = of.prepared.entries
    for identity in _identities(question, executables):
        entry = entries.get((question.system, identity.key))
        if entry is not None:
            return answer(entry, identity.says, question.tasks, question.nodes, question.available)
    default = of.settings.default_of(question.system)
    if question.system in entries.systems:
        return default_answer(default, question.available)
    return default_answer(default, question.available, question.system, entries.systems)


def _identities(question: Question, executables: Sequence[str | None]) -> Iterator[Identity]:
    """Yield the keys to look up; the job's name alone comes last, because it says least."""
    for executable in executables:
        for identity in each_identity(executable, question.user, question.name):
            if identity.executable is not None:
                yield identity
    yield from each_identity(None, question.user, question.name)


def _record(of: Service, number: str, question: Question, body: bytes) -> None:
    """Write the decision to the spool; the answer is sent even if that fails."""
    line = b'{"id":"%b","at":"%b","query":%b,"answer":%b}\n' % (
        number.encode(),
        datetime.now(timezone.utc).isoformat(timespec="milliseconds").encode(),
        question.model_dump_json(exclude_none=True, exclude={"script"}).encode(),
        body,
    )
    try:
        of.spool.append(line)
    except OSError as error:
        metrics.could_not_record()
        _LOG.error("a decision cannot be written to the spool: %s", error)
