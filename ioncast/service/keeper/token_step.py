"""The keeper's step that gives the workers the tokens, and warns before one expires."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import cast

from sqlalchemy import Engine

from benchdb.store.database import transaction
from benchdb.store.tokens import valid_tokens
from ioncast.service.answering.prepared import KnownToken, Role
from ioncast.service.keeper.state_file import StateFile
from ioncast_base.times import instant

_WARN_BEFORE_S = 14 * 86_400.0

_LOG = logging.getLogger("ioncast.keeper")


class TokenStep:
    """Copies hashes of tokens from the database to the state file.

    Parameters
    ----------
    database : Engine
        The database.
    file : StateFile
        The file that workers read.
    """

    def __init__(self, database: Engine, file: StateFile) -> None:
        self._database = database
        self._file = file
        # Warnings that were logged; a keeper that begins anew logs them again.
        self._warned: set[str] = set()

    def step(self, now_s: float) -> None:
        """Copy the tokens that are not revoked now."""
        with transaction(self._database) as connection:
            tokens = {
                sha256: KnownToken(name, cast("Role", role), _seconds(expires_at))
                for sha256, name, role, expires_at in valid_tokens(connection)
            }
        writer = self._file.writer
        with writer.transaction():
            writer.put_tokens(tokens)
        self._warn(tokens.values(), now_s)

    def _warn(self, tokens: Iterable[KnownToken], now_s: float) -> None:
        for token in tokens:
            if token.expires_at_s is None or not token.has_expired(now_s + _WARN_BEFORE_S):
                continue
            when = "has expired" if token.has_expired(now_s) else "expires within 14 days"
            warning = f"the token {token.name!r} {when}"
            if warning not in self._warned:
                self._warned.add(warning)
                _LOG.warning("%s; `ioncast token add` makes another one", warning)


def _seconds(time: str | None) -> float | None:
    moment = instant(time)
    return None if moment is None else moment.timestamp()
