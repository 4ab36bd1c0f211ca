"""The hooks' history in JOBS_FOLDER: the names of the I/O nodes of jobs, also of ended ones."""

from __future__ import annotations

import os
import stat
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ioncast_base.errors import InputError
from ioncast_base.io_node_names import names_in

# As in io_nodes.sh, the older file first.
_FILES = ("history.old", "history")
# The hooks begin another file after 1 MiB. Of a longer file only the end is read.
_LONGEST_BYTES = 4 << 20

Names = tuple[str, ...]


class NameHistory:
    """The history in the hooks' JOBS_FOLDER.

    Parameters
    ----------
    folder : str
        JOBS_FOLDER of hooks.conf.
    """

    def __init__(self, folder: str) -> None:
        self._paths = [Path(folder) / name for name in _FILES]
        self._texts: dict[Path, bytes] = {}
        # Unix times and names by job, in the order in which they were given.
        self._given: dict[int, list[tuple[int, Names]]] = {}

    def refresh(self) -> None:
        """Read the history again.

        Raises
        ------
        InputError
            If a file cannot be read. A missing file is empty.
        """
        texts = {path: _end_of(path) for path in self._paths}
        if texts == self._texts:
            return
        given = defaultdict(list)
        for text in texts.values():
            for job_id, at_s, names in _given_names(text.decode("ascii", "replace")):
                given[job_id].append((at_s, names))
        self._texts, self._given = texts, dict(given)

    def names_of(self, job_id: int, since_s: float, until_s: float) -> Names:
        """The names that a job got last in ``since_s <= time <= until_s``; empty if unknown."""
        found = [names for at_s, names in self._given.get(job_id, []) if since_s <= at_s <= until_s]
        return found[-1] if found else ()


def _given_names(text: str) -> Iterator[tuple[int, int, Names]]:
    """Read the whole lines: job, Unix time and names. Nothing in a line is trusted."""
    for line in text.splitlines():
        with suppress(InputError, ValueError):
            job_id, at_s, names, end = line.split(" ")
            if end == "end":
                yield int(job_id), int(at_s), names_in(names)


def _end_of(path: Path) -> bytes:
    """Read a file; without waiting for a pipe in its place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise InputError("this is not a regular file", where=str(path))
            file.seek(max(status.st_size - _LONGEST_BYTES, 0))
            return file.read(_LONGEST_BYTES)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
