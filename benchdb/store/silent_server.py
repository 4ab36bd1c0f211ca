"""Connections to PostgreSQL that give up on a server that does not answer.

The kernel of a server whose processes are stopped goes on accepting bytes, so neither TCP's time
limits nor the server's own ever end a statement there.
"""

from __future__ import annotations

from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from sqlalchemy import Engine, event
from sqlalchemy.engine import ExceptionContext

_Result = TypeVar("_Result")


class SilentServerError(psycopg.OperationalError):
    """The server sent and accepted nothing for too long."""


class ImpatientConnection(psycopg.Connection[Any]):
    """A connection that closes itself after `patience_s` without a byte from or to the server."""

    patience_s = float("inf")

    def wait(self, gen: PQGen[_Result], *args: Any, **options: Any) -> _Result:
        """Wait for a step of the driver; every wait of a connection comes here."""
        try:
            return super().wait(answered(gen, self.patience_s), *args, **options)
        except SilentServerError:
            # An answer that comes later would belong to no statement.
            self.close()
            raise


def answered(step: PQGen[_Result], patience_s: float) -> PQGen[_Result]:
    """Pass a step of the driver on, and end it if the server does not answer."""
    since = monotonic()
    try:
        wanted = next(step)
        while True:
            ready = yield wanted
            if ready:
                since = monotonic()
            elif monotonic() - since > patience_s:
                raise SilentServerError(f"the server has not answered for {patience_s:g} s")
            wanted = step.send(ready)
    except StopIteration as end:
        result: _Result = end.value
        return result


def limit_silence(engine: Engine, patience_s: float) -> None:
    """Let all connections of an engine give up on a server that does not answer."""

    def connect(_dialect: Any, _record: Any, arguments: Any, options: Any) -> ImpatientConnection:
        limited = {"connect_timeout": max(int(patience_s), 2)} | options
        connection = ImpatientConnection.connect(*arguments, **limited)
        connection.patience_s = patience_s
        return connection

    event.listen(engine, "do_connect", connect)
    event.listen(engine, "handle_error", _wait_once)


def _wait_once(context: ExceptionContext) -> None:
    # For a lost connection of the pool SQLAlchemy makes another one, which would wait once more.
    if context.is_pre_ping and isinstance(context.original_exception, SilentServerError):
        context.is_disconnect = False
