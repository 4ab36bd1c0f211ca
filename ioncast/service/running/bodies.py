"""Requests with a body, which may come slowly, never take all threads of a worker."""

from __future__ import annotations

from threading import BoundedSemaphore

from flask import Flask, g, request

from ioncast_base.errors import BusyError

_BODY_METHODS = frozenset(["POST", "PUT", "PATCH", "DELETE"])
# Schedulers wait for it, and send little.
_ALWAYS = "decisions.ask_with_script"


def register(app: Flask, threads: int) -> None:
    """Let the requests of an application that have a body take half of its threads.

    Parameters
    ----------
    app : Flask
        The application.
    threads : int
        How many requests it answers at once.
    """
    places = BoundedSemaphore(max(threads // 2, 1))

    @app.before_request
    def enter() -> None:
        if request.method in _BODY_METHODS and request.endpoint != _ALWAYS:
            if not places.acquire(blocking=False):
                raise BusyError("too many uploads come at the same time")
            g.has_place = True

    @app.teardown_request
    def leave(_error: BaseException | None) -> None:
        if g.pop("has_place", False):
            places.release()
