"""Decisions on their way into the database: each worker appends them to a file of its own.

One write is all that an answer waits for. What was written outlives the worker, and the
keeper (`ioncast.service.keeper.process`) moves it into the database. A worker holds a lock on its
file while it lives, which tells the keeper when to delete it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import time
from pathlib import Path
from uuid import uuid4

_SUFFIX = ".jsonl"
# The keeper reads a file again from its start after it was ended.
_LONGEST_FILE_BYTES = 16 << 20
# To look for each line would make threads take turns once more.
_BETWEEN_LOOKS_S = 1.0
# About a million decisions: where reading is open anybody may ask for more, without end.
_MOST_WAITING_BYTES = 1 << 30


def spool_folder(state: str | Path) -> Path:
    """Where the files of a state folder are."""
    return Path(state) / "spool"


def spool_files(folder: Path) -> list[Path]:
    """All files, in any order."""
    return list(folder.glob(f"*{_SUFFIX}"))


def waiting_bytes(folder: Path) -> int:
    """The size of all files, of which the keeper may delete any meanwhile."""
    total = 0
    for path in spool_files(folder):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


class SpoolWriter:
    """Appends lines to a file of this process; any thread may.

    Parameters
    ----------
    folder : Path
        From `spool_folder`; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._descriptor = -1
        self._bytes = 0
        self._looked_at_s = 0.0

    def append(self, line: bytes) -> None:
        """Append a line; it is there as a whole when this returns.

        Raises
        ------
        OSError
            When it cannot be kept: a full disk, a folder that is not writable, too much that
            waits already.
        """
        with self._lock:
            if self._must_begin():
                self._begin_file()
            written = os.write(self._descriptor, line)
            self._bytes += written
            if written < len(line):
                # The rest of a cut line is its own end: the keeper passes over it.
                with contextlib.suppress(OSError):
                    os.write(self._descriptor, b"\n")
                raise OSError("the disk is full")

    def close(self) -> None:
        """End the file; another line begins another."""
        with self._lock:
            self._end_file()

    def _must_begin(self) -> bool:
        if self._descriptor < 0 or self._bytes > _LONGEST_FILE_BYTES:
            return True
        now_s = time.monotonic()
        if now_s < self._looked_at_s + _BETWEEN_LOOKS_S:
            return False
        self._looked_at_s = now_s
        # Nobody finds what is written to a file that was deleted.
        return os.fstat(self._descriptor).st_nlink == 0

    def _begin_file(self) -> None:
        self._end_file()
        if waiting_bytes(self._folder) > _MOST_WAITING_BYTES:
            raise OSError("too many decisions wait for the database")
        self._folder.mkdir(parents=True, exist_ok=True)
        name = self._folder / uuid4().hex
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # Locked before it has the name by which the keeper knows it.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            name.rename(name.with_suffix(_SUFFIX))
        except OSError:
            # On a full disk each decision comes here.
            os.close(descriptor)
            name.unlink(missing_ok=True)
            raise
        self._descriptor, self._bytes = descriptor, 0

    def _end_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
