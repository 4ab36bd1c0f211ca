"""Errors in slurmrestd's answers: from numbers of slurm_errno.h and HTTP statuses to exceptions.

Up to 24.05 slurmrestd gives the same answer, HTTP 500 with error -1 (1000 for a change), whether
slurmctld rejects the token or does not run. The two differ in time: a rejected token is
answered at once, a missing slurmctld after `MessageTimeout` (10 s by default) minus one second.
An expired token is recognised by the expiry time in it. With 23.11 a wrong token looks like a
database that cannot be reached.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from scheduler_plugin.slurm.errors import (
    SlurmAnswerError,
    SlurmError,
    SlurmRefusedError,
    SlurmUnreachableError,
)
from scheduler_plugin.slurm.jwt_claims import claims_of

UNKNOWN_JOB = 2017
# Slurm 22.05 calls an empty list an error.
_NOTHING_FOUND = 9003

# Numbers that slurmrestd gives for every kind of failure.
_SAYS_NOTHING = frozenset({-1, 1000})
# An answer after this time means that slurmrestd has tried to reach slurmctld.
_TRIED_S = 3.0
_TOKEN = frozenset({1007, *range(6000, 6011)})
_RIGHTS = frozenset({2002, 2010})
_CONTROLLER_AWAY = frozenset(
    {1001, 1002, 1003, 1004, *range(1800, 1806), 2029, 5003, 5004, 5005, 7000}
)
_TOKEN_STATUSES = frozenset({401, 403, 511})
_AWAY_STATUSES = frozenset({502, 503, 504})
# The text of Slurm 25.11.0, with HTTP 500 and no JSON, for a request without a token. Nothing else
# in that answer tells the reason.
_NO_TOKEN = b"Authentication does not apply"


def real_errors(document: Mapping[str, Any]) -> list[Mapping[str, Any]] | None:
    """Errors of an answer that have a number; None if they do not have Slurm's form.

    After a change, 22.05 lists the changed tasks of an array as errors without a number. It says
    "Nothing found" beside an empty list.
    """
    try:
        entries = [*(document.get("errors") or []), *(document.get("results") or [])]
        return [entry for entry in entries if _number(entry) not in {0, _NOTHING_FOUND}]
    except (TypeError, AttributeError):
        return None


def refusal(
    where: str, token: str, took_s: float, status: int, errors: Sequence[Mapping[str, Any]]
) -> SlurmError:
    """The error to raise for an answer with errors in it."""
    numbers = {_number(entry) for entry in errors}
    words = _words(errors)
    if numbers & _TOKEN or status in _TOKEN_STATUSES or _has_ended(token):
        return refused_token(where, token)
    if numbers & _RIGHTS:
        return SlurmRefusedError(
            words, where=where, remedy="the token's user must be an operator of Slurm"
        )
    if numbers & _CONTROLLER_AWAY or status in _AWAY_STATUSES:
        return _away(where, words)
    if numbers and numbers <= _SAYS_NOTHING:
        return refused_token(where, token) if took_s < _TRIED_S else _away(where, words)
    return SlurmAnswerError(words, where=where)


def not_slurm(where: str, token: str, status: int, body: bytes) -> SlurmError:
    """The error to raise for an answer that is not slurmrestd's JSON."""
    if status in _TOKEN_STATUSES or body.startswith(_NO_TOKEN):
        return refused_token(where, token)
    if status in _AWAY_STATUSES:
        return _away(where, f"HTTP {status}")
    return SlurmAnswerError(
        f"the answer (HTTP {status}) is not slurmrestd's JSON",
        where=where,
        remedy="check that slurmrestd listens there",
    )


def refused_token(where: str, token: str) -> SlurmRefusedError:
    """The error to raise for a rejected token, with its expiry time if it has expired."""
    why = "the token is not accepted"
    if _has_ended(token):
        ended = time.gmtime(claims_of(token).ends_s)
        why = f"the token expired at {time.strftime('%Y-%m-%dT%H:%M:%SZ', ended)}"
    return SlurmRefusedError(
        why, where=where, remedy="create a new one with `scontrol token lifespan=SECONDS`"
    )


def _away(where: str, words: str) -> SlurmUnreachableError:
    return SlurmUnreachableError(
        f"slurmrestd cannot reach slurmctld or slurmdbd ({words})",
        where=where,
        remedy="check that they run and that the token is valid",
    )


def _number(entry: Mapping[str, Any]) -> int:
    found = entry.get("error_number", entry.get("error_code"))
    return found if isinstance(found, int) else 0


def _words(errors: Sequence[Mapping[str, Any]]) -> str:
    """The first error in Slurm's words; a repeated text only once."""
    first = errors[0] if errors else {}
    texts = [first.get(key) for key in ("error", "description", "why")]
    return ": ".join(dict.fromkeys(str(words) for words in texts if words)) or "an unknown error"


def _has_ended(token: str) -> bool:
    return claims_of(token).ends_s <= time.time()
