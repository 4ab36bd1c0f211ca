"""How far the keeper is: the state of the database that answers were prepared from."""

from __future__ import annotations

from ioncast.service.background.state_file import StateFile
from ioncast.service.decide.prepared import Writer

_NOTHING = {"runs": "0", "outcomes": "0"}


class KeeperProgress:
    """The state of the database that answers are prepared from, kept in the state file."""

    def __init__(self, file: StateFile) -> None:
        self._database = file.database
        self._values = dict(_NOTHING)
        self._is_stored = False
        file.when_opened(self._load)

    @property
    def newest(self) -> tuple[int, int]:
        """The ids of the newest run and of the newest outcome that were noted."""
        return int(self._values["runs"]), int(self._values["outcomes"])

    def note_newest(self, run: int, outcome: int) -> None:
        """Note the ids of the newest run and of the newest outcome."""
        self._values |= {"runs": str(run), "outcomes": str(outcome)}

    @property
    def deleted(self) -> int | None:
        """The number of the last deleted run that was noted; None in a new file."""
        number = self._values.get("deleted runs")
        return None if number is None else int(number)

    def note_deleted(self, number: int) -> None:
        """Note the number of the last deleted run."""
        self._values["deleted runs"] = str(number)

    def basis(self, system: str) -> str:
        """The fingerprint of the measurements and settings noted for a system, or nothing."""
        return self._values.get(f"basis of {system}", "")

    def note_basis(self, system: str, basis: str) -> None:
        """Note the fingerprint of the measurements and settings for a system."""
        self._values[f"basis of {system}"] = basis

    def store(self, writer: Writer) -> None:
        """Write everything that was noted into the state file."""
        writer.put_progress(self._values)
        self._is_stored = True

    def store_nothing_new(self, writer: Writer) -> None:
        """Note in a file that does not say so that nothing waits to be prepared."""
        if self._is_stored:
            return
        with writer.transaction():
            writer.put_progress({**_NOTHING, **writer.progress(), "database": self._database})
        self._is_stored = True

    def _load(self, writer: Writer) -> None:
        found = writer.progress()
        self._is_stored = bool(found)
        self._values = {**_NOTHING, **found, "database": self._database}
