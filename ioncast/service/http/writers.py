"""The writer of a request: the name of its token, for the list of who wrote what."""

from __future__ import annotations

from flask import request

from benchdb.store.writes import by_token
from ioncast.service.context import service
from ioncast.service.http.access import known_token


def writer() -> str:
    """Name the token of the authorised request that is answered."""
    token = known_token(service(), request)
    # It may have been revoked since the request was authorised.
    return by_token(token.name if token else "that was revoked meanwhile")
