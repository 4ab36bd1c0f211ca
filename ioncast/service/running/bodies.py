"""Limits how many requests with a body, which may come slowly, a worker answers at once."""

from __future__ import annotations

from threading import BoundedSemaphore

from flask import Flask, g, request

from ioncast_base.errors import BusyError

_BODY_METHODS = frozenset(["POST", "PUT", "PATCH", "DELETE"])
# Schedulers wait for this answer, and their body is small.
_ALWAYS = "decisions.ask_with_script"


def register(app: Flask, threads: int) -> None:
    """Let requests with a body take at most half of an application's threads.

    Parameters
    ----------
    app : Flask
        The application.
    threads : int
        Number of requests that a worker answers at the same time.
    """
    places = BoundedSemaphore(max(threads // 2, 1))

    @app.before_request
    def enter() -> None:
        if request.method in _BODY_METHODS and request.endpoint != _ALWAYS:
            if not places.acquire(blocking=False):
                raise BusyError("too many uploads arrive at the same time")
            g.has_place = True

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        if g.pop("has_place", False):
            places.release()
