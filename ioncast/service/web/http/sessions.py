"""Sessions of browsers: a signed cookie with the hash of a token, and never with the token itself.

All workers know the key of the signature, also after a restart. A session ends with its token,
after 30 days, or at the logout of its browser.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import cast

from flask import Flask, Request, request, session
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface
from itsdangerous import URLSafeTimedSerializer

from ioncast.service.context import service
from ioncast.service.web.results.service_key import service_key
from ioncast_base.errors import BusyError

COOKIE = "ioncast_session"
_LIFE = timedelta(days=30)
_TOKEN = "token_sha256"  # noqa: S105


class _Sessions(SecureCookieSessionInterface):
    """Flask's sessions; the key is read when a browser has a session or begins one."""

    # Sealed results have the same key.
    salt = "ioncast session"
    digest_method = staticmethod(hashlib.sha256)

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        """Read the session of a request; without a valid cookie it is empty."""
        if COOKIE not in request.cookies:
            return self.session_class()
        try:
            return super().open_session(app, request)
        except OSError:
            # Pages that are open can be read without the state folder.
            return self.session_class()

    def get_signing_serializer(self, app: Flask) -> URLSafeTimedSerializer | None:
        """Sign with the key of the state folder."""
        app.secret_key = service_key(service().settings.state)
        return super().get_signing_serializer(app)

    def get_cookie_secure(self, app: Flask) -> bool:
        """Send the cookie of a page over https only over https."""
        return request.is_secure


def register(app: Flask) -> None:
    """Let an application have sessions."""
    app.session_interface = _Sessions()
    app.config.update(
        SESSION_COOKIE_NAME=COOKIE,
        SESSION_COOKIE_SAMESITE="Strict",
        PERMANENT_SESSION_LIFETIME=_LIFE,
        SESSION_REFRESH_EACH_REQUEST=False,
    )


def begin(token_sha256: str) -> None:
    """Begin a session of a token; BusyError if the key cannot be used."""
    state = service().settings.state
    try:
        service_key(state)
    except OSError as error:
        raise BusyError(f"a session cannot begin: {error}", where=state) from error
    session[_TOKEN] = token_sha256
    session.permanent = True


def token_of_session() -> str | None:
    """The hash of the token of the request's session; None without a session."""
    return cast("str | None", session.get(_TOKEN))
