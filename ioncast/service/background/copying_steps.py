"""The keeper's steps that copy small tables for the workers: tokens, and pauses of decisions."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import cast

from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.background.state_file import StateFile
from ioncast.service.decide.answers import Pause
from ioncast.service.decide.prepared import KnownToken, Role, Writer
from ioncast.service.store.paused_systems import pauses
from ioncast.service.store.tokens import valid_tokens
from ioncast_base.clock import ClockCheck
from ioncast_base.times import instant

_WARN_BEFORE_S = 14 * 86_400.0

_LOG = logging.getLogger("ioncast.keeper")


class TokenStep:
    """Copies hashes of tokens from the database to the state file; warns before one expires."""

    def __init__(self, database: Engine, file: StateFile) -> None:
        self._database = database
        self._file = file
        # Warnings that were logged; a keeper that begins anew logs them again.
        self._warned: set[str] = set()

    def step(self, clock: ClockCheck) -> None:
        """Copy the tokens that are not revoked now."""
        with transaction(self._database) as connection:
            tokens = {
                sha256: KnownToken(name, cast("Role", role), _seconds(expires_at))
                for sha256, name, role, expires_at in valid_tokens(connection)
            }
        writer = self._file.writer
        with writer.transaction():
            writer.put_tokens(tokens)
        self._warn(tokens.values(), clock.wall_s)

    def _warn(self, tokens: Iterable[KnownToken], now_s: float) -> None:
        for token in tokens:
            if token.expires_at_s is None or not token.has_expired(now_s + _WARN_BEFORE_S):
                continue
            when = "has expired" if token.has_expired(now_s) else "expires within 14 days"
            warning = f"the token {token.name!r} {when}"
            if warning not in self._warned:
                self._warned.add(warning)
                _LOG.warning("%s; `ioncast token add` makes another one", warning)


class PauseStep:
    """Copies pauses of decisions from the database to the state file."""

    def __init__(self, database: Engine, file: StateFile) -> None:
        self._database = database
        self._file = file
        self._known: dict[str, Pause] = {}
        file.when_opened(self._begin)

    def step(self, _clock: ClockCheck) -> None:
        """Copy the pauses, and log those that began or ended."""
        with transaction(self._database) as connection:
            found = {
                pause.system: Pause(pause.paused_by, pause.paused_at, pause.reason)
                for pause in pauses(connection)
            }
        writer = self._file.writer
        with writer.transaction():
            writer.put_pauses(found)
        for system in sorted(found.keys() - self._known.keys()):
            _LOG.warning("decisions for %r are %s", system, found[system].in_words())
        for system in sorted(self._known.keys() - found.keys()):
            _LOG.info("decisions for %r are made again", system)
        self._known = found

    def _begin(self, writer: Writer) -> None:
        """Let an emptied file have the pauses from its first moment on."""
        if self._known:
            with writer.transaction():
                writer.put_pauses(self._known)


def _seconds(time: str | None) -> float | None:
    moment = instant(time)
    return None if moment is None else moment.timestamp()
