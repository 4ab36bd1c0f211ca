"""From a request to the number of I/O nodes for a job.

The question is answered from memory and never waits for a database, a log or a model. All servers
answer it with these functions, so that an answer does not depend on the address.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from random import getrandbits
from typing import TYPE_CHECKING

from werkzeug.wrappers import Request, Response

from ioncast.service.decide.answers import (
    NO_TRIAL,
    PreparedAnswer,
    answer,
    default_answer,
    paused_answer,
)
from ioncast.service.decide.counts import ASK
from ioncast.service.decide.questions import Question, QuestionWithScript
from ioncast.service.decide.resources import Resources
from ioncast.service.decide.scripts import programs
from ioncast.service.web.http.access import authorise
from ioncast.service.web.http.given import JSON, body_of, checked_json, checked_query, wrong_type
from ioncast.service.web.http.problems import RequestError
from ioncast.service.web.security_headers import FOR_PROGRAMS
from predictor.matching.same_application import Identity, each_identity

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PATH = "/v1/decisions"

_LOG = logging.getLogger("ioncast.service")
_TEXT = "text/plain"


def answer_at_once(
    of: Resources, environ: WSGIEnvironment, respond: StartResponse
) -> Iterable[bytes] | None:
    """Answer a plain question: correct, by GET, without a token; a framework would double its time.

    None leaves the request to `ask` and `ask_with_script`, which repeat any failure.
    """
    began_s = time.perf_counter()
    reply = _reply_at_once(of, environ)
    if reply is None:
        return None
    length = [("Content-Length", str(len(reply.body)))] if reply.body else []
    respond(reply.status, [*reply.headers, *length, *FOR_PROGRAMS])
    of.counts.answered(ASK, int(reply.status[:3]), began_s)
    return [reply.body]


def ask(
    of: Resources, request: Request, session_token: Callable[[], str | None] | None = None
) -> Response:
    """Answer any question by GET; an unusable token or question is a RequestError."""
    authorise("reader", of, request, session_token)
    question = checked_query(Question, request.environ)
    return _answered(of, request, question, [question.executable])


def ask_with_script(of: Resources, request: Request) -> Response:
    """Answer a question by POST, which may have a job script."""
    authorise("scheduler", of, request)
    if request.mimetype != JSON:
        raise wrong_type(request, [JSON])
    question = checked_json(QuestionWithScript, body_of(request))
    launched = programs(question.script) if question.script else []
    known = [question.executable] if question.executable else []
    return _answered(of, request, question, [*known, *launched] or [None])


def find(
    of: Resources, question: Question, executables: Sequence[str | None], drawn: int = NO_TRIAL
) -> PreparedAnswer:
    """Find the answer for the first program that the history knows, best match first."""
    entries = of.prepared.entries
    for identity in _identities(question, executables):
        entry = entries.get((question.system, identity.key))
        if entry is not None:
            asked = question.tasks, question.nodes, question.available
            return answer(entry, identity.says, *asked, drawn)
    default = of.settings.of_system(question.system).default_io_nodes
    unheard_of = None if question.system in entries.systems else question.system
    return default_answer(
        default, question.available, unheard_of, entries.systems, of.prepared.not_ready
    )


def _answer_to(
    of: Resources, number: str, question: Question, executables: Sequence[str | None]
) -> PreparedAnswer:
    """Answer a question; the end of the decision's id, which is random, decides on a trial."""
    pause = of.prepared.pauses.get(question.system)
    if pause is not None:
        return paused_answer(pause)
    drawn = int(number[-8:], 16) if question.explore else NO_TRIAL
    return find(of, question, executables, drawn)


def _reply_at_once(of: Resources, environ: WSGIEnvironment) -> _Reply | None:
    try:
        question = _plain_question(of, environ)
        if question is None:
            return None
        as_text = environ.get("HTTP_ACCEPT") == _TEXT
        return _reply(of, question, [question.executable], as_text=as_text)
    except Exception:
        _LOG.exception("a question that failed is answered once more")
        return None


def _plain_question(of: Resources, environ: WSGIEnvironment) -> Question | None:
    """A correct question that needs no token."""
    if environ["PATH_INFO"] != PATH or environ["REQUEST_METHOD"] != "GET":
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


def _answered(
    of: Resources, request: Request, question: Question, executables: Sequence[str | None]
) -> Response:
    accepted = request.headers.get("Accept", JSON)
    as_text = _TEXT in accepted and request.accept_mimetypes.best_match((JSON, _TEXT)) == _TEXT
    reply = _reply(of, question, executables, as_text=as_text)
    return Response(reply.body, reply.status, reply.headers)


@dataclass(frozen=True)
class _Reply:
    """An answer, before it becomes that of a framework or of WSGI."""

    status: str
    headers: list[tuple[str, str]]
    body: bytes


def _reply(
    of: Resources, question: Question, executables: Sequence[str | None], *, as_text: bool
) -> _Reply:
    """Decide, record and count the decision, and write the answer."""
    number = _new_number()
    found = _answer_to(of, number, question, executables)
    _record(of, number, question, found.body)
    of.counts.decided(found.source)
    if not as_text:
        body = b'{"decision_id":"%b",%b' % (number.encode(), found.body[1:])
        return _Reply("200 OK", [("Content-Type", JSON)], body)
    # For the log of a scheduler that reads no JSON.
    headers = [
        ("Content-Type", f"{_TEXT}; charset=utf-8"),
        ("X-Decision-Id", number),
        ("X-Decision-Source", found.source),
        ("X-Decision-Why", "".join(c if " " <= c <= "~" else "?" for c in found.why)),
    ]
    if found.io_nodes is None:
        return _Reply("204 NO CONTENT", headers, b"")
    return _Reply("200 OK", headers, str(found.io_nodes).encode())


def _new_number() -> str:
    """Make a unique id for a decision: the time and 64 random bits.

    A UUID needs a system call, and other threads take over meanwhile. Ids in the order of time
    lie near each other in the database's index.
    """
    return f"{time.time_ns():016x}{getrandbits(64):016x}"


def _identities(question: Question, executables: Sequence[str | None]) -> Iterator[Identity]:
    """Yield the keys to look up; the job's name alone comes last, because it says least."""
    for executable in executables:
        for identity in each_identity(executable, question.user, question.name):
            if identity.executable is not None:
                yield identity
    yield from each_identity(None, question.user, question.name)


def _record(of: Resources, number: str, question: Question, body: bytes) -> None:
    """Write the decision to the spool; the answer is sent even if that fails."""
    line = b'{"id":"%b","at":"%b","query":%b,"answer":%b}\n' % (
        number.encode(),
        datetime.now(timezone.utc).isoformat(timespec="milliseconds").encode(),
        question.model_dump_json(exclude_none=True, exclude={"script", "explore"}).encode(),
        body,
    )
    try:
        of.spool.append(line)
    except OSError:
        of.counts.could_not_record()
