"""Decisions on their way into the database: each worker appends them to a file of its own.

One write is all that an answer waits for. What was written outlives the worker, and the
keeper (`predictor.service.keeper`) moves it into the database. A worker holds a lock on its
file while it lives, which tells the keeper when to delete it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path
from uuid import uuid4

_SUFFIX = ".jsonl"
# The keeper reads a file again from its start after it was ended.
_LONGEST_FILE_BYTES = 16 << 20


def spool_folder(state: str | Path) -> Path:
    """Where the files of a state folder are."""
    return Path(state) / "spool"


def spool_files(folder: Path) -> list[Path]:
    """All files, in any order."""
    return list(folder.glob(f"*{_SUFFIX}"))


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

    def append(self, line: bytes) -> None:
        """Append a line; it is there as a whole when this returns.

        Raises
        ------
        OSError
            When it cannot be kept: a full disk, a folder that is gone or not writable.
        """
        with self._lock:
            if self._descriptor < 0 or self._bytes > _LONGEST_FILE_BYTES:
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

    def _begin_file(self) -> None:
        self._end_file()
        self._folder.mkdir(parents=True, exist_ok=True)
        name = self._folder / uuid4().hex
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        # Locked before it has the name by which the keeper knows it.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        name.rename(name.with_suffix(_SUFFIX))
        self._descriptor, self._bytes = descriptor, 0

    def _end_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
