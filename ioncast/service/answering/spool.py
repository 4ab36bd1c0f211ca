"""The spool: files of decisions that are not in the database yet, one file for each worker.

An answer waits only for one write. The written decision survives the worker, and the keeper
(`ioncast.service.keeper.process`) moves it into the database. A worker holds a lock on its file as
long as it lives, so that the keeper knows when it can delete the file.
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
# A keeper that finds a database without the places in files reads each file from its start.
_LONGEST_FILE_BYTES = 16 << 20
# A system call for each line would make threads wait for each other once more.
_BETWEEN_LOOKS_S = 1.0
# About a million decisions. Where reading is open, anybody could fill the disk with questions.
_MOST_WAITING_BYTES = 1 << 30


def spool_folder(state: str | Path) -> Path:
    """Return the folder of the spool in a state folder."""
    return Path(state) / "spool"


def spool_files(folder: Path) -> list[Path]:
    """List all files of the spool, in any order."""
    return list(folder.glob(f"*{_SUFFIX}"))


def waiting_bytes(folder: Path) -> int:
    """Add up the sizes of all files; the keeper may delete some meanwhile."""
    total = 0
    for path in spool_files(folder):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


class SpoolWriter:
    """Appends lines to a file of this process; any thread may append.

    Parameters
    ----------
    folder : Path
        From `spool_folder`; created if it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._descriptor = -1
        self._bytes = 0
        self._looked_at_s = 0.0

    def append(self, line: bytes) -> None:
        """Append a line; when this returns, the whole line is in the file.

        Raises
        ------
        OSError
            When the line cannot be written: the disk is full, the folder is not writable, or
            too many decisions wait for the database.
        """
        with self._lock:
            if self._must_begin():
                self._begin_file()
            written = os.write(self._descriptor, line)
            self._bytes += written
            if written < len(line):
                # Only part of the line fitted on the disk. End it, so that the keeper can skip it.
                with contextlib.suppress(OSError):
                    os.write(self._descriptor, b"\n")
                raise OSError("the disk is full")

    def close(self) -> None:
        """Close the file; the next line begins a new one."""
        with self._lock:
            self._end_file()

    def _must_begin(self) -> bool:
        if self._descriptor < 0 or self._bytes > _LONGEST_FILE_BYTES:
            return True
        now_s = time.monotonic()
        if now_s < self._looked_at_s + _BETWEEN_LOOKS_S:
            return False
        self._looked_at_s = now_s
        # Nobody would read lines in a deleted file.
        return os.fstat(self._descriptor).st_nlink == 0

    def _begin_file(self) -> None:
        self._end_file()
        if waiting_bytes(self._folder) > _MOST_WAITING_BYTES:
            raise OSError("too many decisions wait for the database")
        self._folder.mkdir(parents=True, exist_ok=True)
        name = self._folder / uuid4().hex
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            # Lock the file before it gets the name that the keeper looks for.
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            name.rename(name.with_suffix(_SUFFIX))
        except OSError:
            # On a full disk this happens for every decision, so leave no file behind.
            os.close(descriptor)
            name.unlink(missing_ok=True)
            raise
        self._descriptor, self._bytes = descriptor, 0

    def _end_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
