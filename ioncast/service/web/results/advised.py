"""Advice on the phases of a run, for its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ioncast.service.context import service
from ioncast.service.web.http.problems import words_of
from ioncast.service.web.http.uploads import limit_in_seconds, place
from ioncast.service.web.sandbox.advice_tasks import advise_job
from ioncast.service.web.sandbox.child import TooMuchWorkError
from ioncast.service.web.sandbox.insight_documents import hints_from
from ioncast_base.errors import IoncastError
from ioncast_base.wording import counted
from predictor.curve.asking import PredictionRequest
from predictor.what_if.attempts import Hints

# Advice on 166 genuine logs takes 0.08 s on average and at most 1 s. A page does not wait a minute
# for advice on thousands of phases that are all different.
_ADVICE_S = 10


def advice_on(
    phases: Sequence[Mapping[str, Any]], checks: Mapping[str, Any] | None, asked: PredictionRequest
) -> dict[str, Any] | str:
    """Advise on a run in a process of its own.

    Parameters
    ----------
    checks : mapping or None
        The stored document of its checks; None without insights. Then only another file access is
        tried.

    Returns
    -------
    dict or str
        The advice as `ioncast advise --format json` prints it, or the reason why nothing is known,
        as a clause.
    """
    hints = Hints(frozenset()) if checks is None else hints_from(checks)
    try:
        advice = service().children.run_within(
            advice_limit_s(), advise_job, place(), list(phases), hints, asked
        )
    except (IoncastError, RuntimeError) as error:
        return advice_or_reason(error, len(phases))
    return advice


def advice_limit_s() -> int:
    """The time limit of advice, in seconds."""
    return limit_in_seconds(_ADVICE_S)


def advice_or_reason(
    made: dict[str, Any] | IoncastError | RuntimeError, phases: int
) -> dict[str, Any] | str:
    """Return the advice on so many phases, or the reason why it failed, as a clause."""
    if isinstance(made, TooMuchWorkError):
        return f"advice on its {counted(phases, 'phase')} takes too much time or memory"
    if isinstance(made, Exception):
        return words_of(made) or "the service failed to predict it; try again later"
    return made
