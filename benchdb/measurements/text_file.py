"""`TextFile`: the text of a file, which can be read line by line without holding it in memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path


class TextFile:
    """The text of a file in UTF-8; bytes that are not UTF-8 are replaced.

    Parameters
    ----------
    path : Path
        A regular file, which is read again each time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def lines(self) -> Iterator[str]:
        """Yield each line, without its end."""
        with self.path.open(encoding="utf-8-sig", errors="replace") as file:
            for line in file:
                yield line.rstrip("\n")

    @cached_property
    def whole(self) -> str:
        """The whole text, in memory from now on."""
        return self.path.read_bytes().decode("utf-8-sig", "replace")
