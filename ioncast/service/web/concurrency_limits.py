"""Limits how many threads of a worker may wait: for slow bodies, and for the database."""

from __future__ import annotations

from threading import BoundedSemaphore

from flask import Flask, g, request

from ioncast_base.errors import BusyError

_BODY_METHODS = frozenset(["POST", "PUT", "PATCH", "DELETE"])
# Schedulers wait for these answers, and their bodies are small.
_DECISIONS = frozenset(["decisions.ask", "decisions.ask_with_script"])
# These neither, so they have an answer while the database has none.
_WITHOUT_DATABASE = _DECISIONS | {
    "operations.healthz",
    "operations.readyz",
    "operations.numbers",
    "operations.token_rights",
    "operations.openapi_json",
    "assets.asset",
    "pages.docs",
    "pages.login",
}
# Longer than pages take together while the database answers.
_LONGEST_WAIT_S = 0.5


class Places:
    """Places for requests that may wait."""

    def __init__(self, number: int) -> None:
        self._free = BoundedSemaphore(max(number, 1))
        self._is_stuck = False

    def enter(self, longest_wait_s: float) -> bool:
        """Take a place; False if none becomes free in this time, or did for another request."""
        if self._free.acquire(timeout=0 if self._is_stuck else longest_wait_s):
            return True
        self._is_stuck = True
        return False

    def leave(self) -> None:
        """Give a place back."""
        self._is_stuck = False
        self._free.release()


def register(app: Flask, threads: int) -> None:
    """Limit the requests that an application answers at the same time.

    Requests with a body take at most half of the threads. Requests that may wait for the database
    leave one thread free.
    """
    for_bodies, for_database = Places(threads // 2), Places(threads - 1)

    def take(places: Places, longest_wait_s: float, reason: str) -> None:
        if not places.enter(longest_wait_s):
            raise BusyError(reason)
        g.setdefault("places", []).append(places)

    @app.before_request
    def enter() -> None:
        if request.method in _BODY_METHODS and request.endpoint not in _DECISIONS:
            take(for_bodies, 0, "too many uploads arrive at the same time")
        if request.endpoint not in _WITHOUT_DATABASE:
            take(for_database, _LONGEST_WAIT_S, "too many requests wait for the database")

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        for places in g.pop("places", ()):
            places.leave()
