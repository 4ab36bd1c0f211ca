"""A wall clock that tests set for one program; its boot clock stays right."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.services import use

DAY_S = 86_400
_SOURCE = Path(__file__).with_name("wall_clock.c")


class FakedClock:
    """The wall clock of all programs with an environment.

    Parameters
    ----------
    folder : Path
        A folder of the test.
    """

    def __init__(self, folder: Path) -> None:
        use("compiler")
        self._file, self._library = folder / "ahead", folder / "wall_clock.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", self._library, _SOURCE], check=True)
        self.set_ahead(0)

    def set_ahead(self, days: int) -> None:
        """Let the clock be ahead by so many days from now on."""
        new = self._file.with_suffix(".new")
        new.write_text(str(days * DAY_S))
        new.replace(self._file)

    @property
    def environment(self) -> dict[str, str]:
        """The variables that give a program this clock."""
        return {"LD_PRELOAD": str(self._library), "AHEAD_FILE": str(self._file)}
