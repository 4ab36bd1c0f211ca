"""Who may do what, and how often."""

from __future__ import annotations

import time
from typing import Literal

from flask import Response, request

from benchdb.store.tokens import ROLES, digest
from ioncast.service.api.problems import RequestError
from ioncast.service.context import Service, service

Role = Literal["reader", "scheduler", "admin"]

COOKIE = "ioncast_token"
_BEARER = "bearer "
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="ioncast"'}


def authorise(role: Role | None) -> None:
    """Refuse a request whose sender has not a role or a higher one.

    Parameters
    ----------
    role : str or None
        Reading needs no token where it is open; None needs none anywhere. A token that is
        none is refused also where none is needed, so that its owner notices.

    Raises
    ------
    RequestError
        401 without a valid token, 403 with one of a lower role, 429 after too many wrong ones.
    """
    header = request.headers.get("Authorization")
    needs_none = role is None or (role == "reader" and service().settings.reading == "open")
    if header is None and needs_none:
        return
    token = _token(header, role)
    if token is None:
        raise RequestError(
            401,
            "token-needed",
            "this needs a token",
            remedy="send one as Authorization: Bearer …",
            headers=_CHALLENGE,
        )
    has = role_of(service(), token)
    if role is not None and ROLES.index(has) < ROLES.index(role):
        raise RequestError(
            403, "not-allowed", f"this is for the role {role}", remedy=f"the token is a {has}'s"
        )


def limit_client() -> None:
    """Refuse a client that asks too often; who comes over a unix socket is never refused.

    Raises
    ------
    RequestError
        429, with the seconds to wait.
    """
    of = service()
    client = request.remote_addr
    if client and not of.limiter.hit(of.requests, "requests", client):
        _refuse(of, of.requests, "requests", client)


def _token(header: str | None, role: Role | None) -> str | None:
    if header is not None:
        if header[: len(_BEARER)].lower() != _BEARER:
            raise RequestError(
                401, "token-needed", "the authorisation is no bearer token", headers=_CHALLENGE
            )
        return header[len(_BEARER) :].strip()
    # A cookie comes also with what another site made the browser send: it may not write.
    return request.cookies.get(COOKIE) if role == "reader" else None


def role_of(of: Service, token: str) -> Role:
    """The role of a token.

    Raises
    ------
    RequestError
        When it is none; 503 while nobody can know, as after a first start without the database.
    """
    found = of.prepared.tokens.get(digest(token))
    if found is not None:
        return found
    beat = of.prepared.heartbeat
    if beat is None or not (beat.database_ok or of.prepared.tokens):
        raise RequestError(503, "not-ready", "tokens are not known yet")
    client = request.remote_addr
    if client and not of.limiter.hit(of.wrong_tokens, "tokens", client):
        _refuse(of, of.wrong_tokens, "tokens", client)
    raise RequestError(
        401, "unknown-token", "the token is unknown or was revoked", headers=_CHALLENGE
    )


def _refuse(of: Service, limit: object, *key: str) -> None:
    reset = of.limiter.get_window_stats(limit, *key).reset_time  # type: ignore[arg-type]
    wait_s = max(round(reset - time.time()), 1)
    raise RequestError(
        429,
        "too-many-requests",
        f"more than {limit}",
        remedy=f"wait {wait_s} s",
        headers={"Retry-After": str(wait_s)},
    )


def without_cookie(response: Response) -> Response:
    """Forget the token of a browser."""
    response.delete_cookie(COOKIE)
    return response
