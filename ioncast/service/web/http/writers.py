"""Transactions of requests, with lines in the service's log that say whose token wrote what."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flask import request
from sqlalchemy import Connection

from benchdb.store.database import transaction
from benchdb.store.writes import WriteKind, write_line
from ioncast.service.context import service
from ioncast.service.web.http.access import known_token

_LOG = logging.getLogger("ioncast.writes")


# A function that notes a change of stored data: its kind, what it is, and the system.
Note = Callable[[WriteKind, object, str], None]


def log_write(kind: WriteKind, what: object, system: str) -> None:
    """Log a change that the request which is answered has made."""
    token = known_token(service(), request)
    # It may have been revoked since the request was authorised.
    by = f"token {token.name}" if token else "token that was revoked meanwhile"
    _LOG.info("%s", write_line(by, kind, what, system))


@contextmanager
def writing() -> Iterator[tuple[Connection, Note]]:
    """Open a transaction that writes; its changes are logged when it is committed."""
    noted: list[tuple[WriteKind, object, str]] = []
    with transaction(service().database, write=True) as connection:
        yield connection, lambda *change: noted.append(change)
    for each in noted:
        log_write(*each)
