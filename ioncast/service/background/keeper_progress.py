"""How far the keeper is: the state of the database that answers were prepared from."""

from __future__ import annotations

import json

from ioncast.service.background.state_file import StateFile
from ioncast.service.decide.prepared import Writer

_NOTHING = "[[0, 0], null, {}]"


class KeeperProgress:
    """The state of the database that answers are prepared from, kept in the state file.

    Attributes
    ----------
    newest : tuple of int
        The greatest revisions of runs and of outcomes that were noted.
    deleted : int or None
        The number of the last deleted run that was noted; None in a new file.
    bases : dict of str to str
        The fingerprint of the measurements and settings noted for each system.
    """

    def __init__(self, file: StateFile) -> None:
        self.newest = 0, 0
        self.deleted: int | None = None
        self.bases: dict[str, str] = {}
        self._database = file.database
        self._is_stored = False
        file.when_opened(self._load)

    def store(self, writer: Writer) -> None:
        """Write everything that was noted into the state file."""
        self._put(writer, json.dumps([self.newest, self.deleted, self.bases]))

    def store_nothing_new(self, writer: Writer) -> None:
        """Note in a file that does not say so that nothing waits to be prepared."""
        if not self._is_stored:
            with writer.transaction():
                self._put(writer, _NOTHING)

    def _put(self, writer: Writer, noted: str) -> None:
        writer.put_progress({"database": self._database, "noted": noted})
        self._is_stored = True

    def _load(self, writer: Writer) -> None:
        found = writer.progress()
        self._is_stored = bool(found)
        newest, self.deleted, self.bases = json.loads(found.get("noted", _NOTHING))
        self.newest = newest[0], newest[1]
