"""The keeper's step that gives the workers the valid tokens."""

from __future__ import annotations

from sqlalchemy import Engine

from benchdb.store.database import transaction
from benchdb.store.tokens import valid_tokens
from ioncast.service.keeper.state_file import StateFile


class TokenStep:
    """Copies hashes of valid tokens from the database to the state file.

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

    def step(self, _now_s: float) -> None:
        """Copy the tokens that are valid now."""
        with transaction(self._database) as connection:
            tokens = valid_tokens(connection)
        writer = self._file.writer
        with writer.transaction():
            writer.put_tokens(tokens)
