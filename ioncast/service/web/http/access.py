"""Roles, tokens, and the number of requests that a client may send."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Literal

from limits import RateLimitItem
from werkzeug.wrappers import Request

from ioncast.service.decide.prepared import KnownToken
from ioncast.service.decide.resources import Resources
from ioncast.service.store.credentials import ROLES, digest
from ioncast.service.web.http.problems import RequestError

Role = Literal["reader", "scheduler", "admin"]

# The kind of the error for a token that was revoked or never existed.
UNKNOWN_TOKEN = "unknown-token"  # noqa: S105
_BEARER = "bearer "
# A page of the same scheme, host and port, and a request that no page made.
_OWN_SITE = frozenset(["same-origin", "none"])
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ioncast"'}
_HOW_TO_SEND = "send it in the header `Authorization: Bearer TOKEN`"
_HOW_TO_GET = "an admin makes tokens with `ioncast token add`"


def authorise(
    role: Role | None,
    of: Resources,
    request: Request,
    session_token: Callable[[], str | None] | None = None,
) -> None:
    """Reject a request whose token does not have a role or a higher one.

    Parameters
    ----------
    role : str or None
        The role that is needed; None needs no token. Reading needs no token when `reading` is
        "open". A wrong token is still rejected, so that its owner notices.
    session_token : callable, optional
        Returns the hash of the token of the browser's session, for a request without a token.
    """
    header = request.headers.get("Authorization")
    needs_none = role is None or (role == "reader" and of.settings.reading == "open")
    if header is None and needs_none:
        return
    if header is not None:
        token_sha256: str | None = _token_given(header)
    else:
        # Another site can make a browser send a request with its cookie, so a session only reads.
        token_sha256 = session_token() if role == "reader" and session_token else None
    if token_sha256 is None:
        raise _unauthorised("token-needed", "this needs a token", f"{_HOW_TO_SEND}; {_HOW_TO_GET}")
    has = role_of(of, token_sha256, request.remote_addr)
    if role is not None and ROLES.index(has) < ROLES.index(role):
        remedy = f"the token has the role {has}"
        raise RequestError(403, "not-allowed", f"this needs the role {role}", remedy=remedy)


def limit_client(of: Resources, request: Request) -> None:
    """Reject a client that sends too many requests; a unix socket has no limit."""
    _limit(of, of.requests, "requests", request.remote_addr)


def reject_other_origins(request: Request) -> None:
    """Reject a form that a browser sends from a page of another site.

    Browsers say it in `Sec-Fetch-Site`, but only over https and to this machine; otherwise
    `Origin` has the site of the page. A request with neither comes from another program.
    """
    fetched = request.headers.get("Sec-Fetch-Site")
    origin = request.headers.get("Origin")
    if fetched is not None:
        is_ours = fetched in _OWN_SITE
    else:
        is_ours = origin is None or origin.partition("://")[2] == request.host
    if not is_ours:
        what = f"the form is not from a page of {request.host}"
        remedy = "use the form of this service; a proxy in front of it must not change Host"
        raise RequestError(403, "other-origin", what, remedy=remedy)


def _token_given(header: str) -> str:
    """The hash of the token in a header."""
    if header[: len(_BEARER)].lower() != _BEARER:
        what = "the Authorization header has no bearer token"
        raise _unauthorised("token-needed", what, _HOW_TO_SEND)
    return digest(header[len(_BEARER) :].strip())


def role_of(of: Resources, token_sha256: str, client: str | None) -> Role:
    """The role of a token, given as its hash, from a client at an address; a unix socket has none.

    Raises
    ------
    RequestError
        401 for an unknown or expired token; 503 while no token is known yet, as after a first start
        without the database.
    """
    found = of.prepared.tokens.get(token_sha256)
    if found is not None:
        if found.expires_at_s is not None and found.has_expired(time.time()):
            when = datetime.fromtimestamp(found.expires_at_s, timezone.utc)
            what = f"the token expired at {when:%Y-%m-%d %H:%M} UTC"
            raise _unauthorised("expired-token", what, _HOW_TO_GET)
        return found.role
    beat = of.prepared.heartbeat
    if beat is None or not (beat.database_ok or of.prepared.tokens):
        raise RequestError(503, "not-ready", "the service has not read the tokens yet")
    _limit(of, of.wrong_tokens, "tokens", client)
    raise _unauthorised(UNKNOWN_TOKEN, "the token is unknown or was revoked", _HOW_TO_GET)


def known_token(of: Resources, request: Request) -> KnownToken | None:
    """The token in the header of an authorised request; None without one."""
    header = request.headers.get("Authorization")
    return None if header is None else of.prepared.tokens.get(_token_given(header))


def _unauthorised(kind: str, what: str, remedy: str) -> RequestError:
    return RequestError(401, kind, what, remedy=remedy, headers=_CHALLENGE)


def _limit(of: Resources, limit: RateLimitItem, name: str, client: str | None) -> None:
    """Count one more of a client, and raise 429 above the limit."""
    if not client or of.limiter.hit(limit, name, client):
        return
    reset = of.limiter.get_window_stats(limit, name, client).reset_time
    wait_s = max(round(reset - time.time()), 1)
    if wait_s > limit.get_expiry():
        # The clock was ahead when the client's minute began, perhaps by years.
        of.limiter.clear(limit, name, client)
        return
    what, remedy, headers = (
        f"the limit is {limit}",
        f"wait {wait_s} s",
        {"Retry-After": str(wait_s)},
    )
    raise RequestError(429, "too-many-requests", what, remedy=remedy, headers=headers)
