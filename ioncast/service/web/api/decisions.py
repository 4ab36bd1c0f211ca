"""The scheduler's question among all other operations (see `ioncast.service.decide`)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from flask import Blueprint, Flask, request
from werkzeug.wrappers import Response

from ioncast.service.context import service
from ioncast.service.decide import replying
from ioncast.service.decide.questions import DecisionAnswer, Question, QuestionWithScript
from ioncast.service.web.http.framework import Operation, describe
from ioncast.service.web.http.sessions import token_of_session

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment
    from flask.blueprints import BlueprintSetupState

decisions = Blueprint("decisions", __name__)

_ANSWERS = {200: DecisionAnswer, 204: None}


@decisions.get(replying.PATH)
@describe(
    Operation(
        "How many I/O nodes should a job get?",
        "reader",
        query=Question,
        answers=_ANSWERS,
        text=True,
        limited=False,
    )
)
def ask() -> Response:
    """Give an answer that was prepared from earlier runs, in about a millisecond.

    With `Accept: text/plain` the answer is only the number, or 204 for no answer.
    """
    return replying.ask(service(), request, token_of_session)


@decisions.post(replying.PATH)
@describe(
    Operation(
        "How many I/O nodes should the job of a script get?",
        "scheduler",
        body=QuestionWithScript,
        answers=_ANSWERS,
        text=True,
        limited=False,
    )
)
def ask_with_script() -> Response:
    """Answer the same question for a job script, when the scheduler does not know the program."""
    return replying.ask_with_script(service(), request)


@decisions.record_once
def _answer_at_once(state: BlueprintSetupState) -> None:
    """Answer the schedulers' usual question before Flask, which would double its time."""
    assert isinstance(state.app, Flask)  # noqa: S101
    app, answer_others = state.app, state.app.wsgi_app
    with app.app_context():
        of = service()

    def answer_any(environ: WSGIEnvironment, respond: StartResponse) -> Iterable[bytes]:
        body = replying.answer_at_once(of, environ, respond)
        return answer_others(environ, respond) if body is None else body

    app.wsgi_app = answer_any  # type: ignore[assignment, method-assign]
