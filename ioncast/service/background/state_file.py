"""The file of prepared answers as the keeper's steps share it."""

from __future__ import annotations

from collections.abc import Callable

from ioncast.service.decide.prepared import Writer, prepared_file
from ioncast.service.settings import Settings


class StateFile:
    """The file of prepared answers: opened when a step needs it, and again after a failure."""

    def __init__(self, settings: Settings) -> None:
        self.database = str(settings.database)
        self._path = prepared_file(settings.state)
        self._writer: Writer | None = None
        self._begin: list[Callable[[Writer], None]] = []

    def when_opened(self, begin: Callable[[Writer], None]) -> None:
        """Call a function each time when the file was opened or made anew.

        Parameters
        ----------
        begin : callable
            Reads from the file how far the last keeper was. The functions are called in the
            order in which they were given.
        """
        self._begin.append(begin)

    @property
    def writer(self) -> Writer:
        """The open file."""
        if self._writer is None:
            self._writer = Writer(self._path)
            # The answers in it were prepared from another database.
            if self._writer.progress().get("database", self.database) != self.database:
                self._writer.renew()
            self._tell()
        return self._writer

    def renew(self) -> None:
        """Empty the file, so that all steps begin again."""
        self.writer.renew()
        self._tell()

    def close_if_lost(self) -> None:
        """Close the file if somebody deleted or replaced it; the next step makes a new one."""
        if self._writer is not None and self._writer.is_lost():
            self.close()

    def close(self) -> None:
        """Close the file; the next step that needs it opens it again."""
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def _tell(self) -> None:
        if self._writer is not None:
            for begin in self._begin:
                begin(self._writer)
