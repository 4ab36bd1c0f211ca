"""The spool: files of decisions that are not in the database yet, one file for each worker.

An answer waits only for one write. The written decision survives the worker, and the keeper
(background/process.py) moves it into the database. A worker holds a lock on its file as long as it
lives, so that the keeper knows when it can delete the file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import math
import os
import tempfile
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
_BETWEEN_MESSAGES_S = 60.0
# A hundred decisions.
_WRITABLE_BYTES = 64 << 10

_LOG = logging.getLogger("ioncast.service")


def spool_folder(state: str | Path) -> Path:
    """Return the folder of the spool in a state folder."""
    return Path(state) / "spool"


def check_writable(state: Path) -> None:
    """Write a file without a name in a state folder."""
    with tempfile.TemporaryFile(dir=state, buffering=0) as file:
        if file.write(bytes(_WRITABLE_BYTES)) < _WRITABLE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


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


class Losses:
    """Counts decisions that cannot be written, for the log.

    The log has a line when this begins, at most one a minute meanwhile, and one when it ends; all
    of them at most twice a minute, because on a full disk every other decision may still fit.
    """

    def __init__(self) -> None:
        self._number = 0
        self._is_told = False
        self._told_at_s = -math.inf

    def lost(self, error: OSError, now_s: float) -> None:
        """Count a decision that could not be written."""
        self._number += 1
        if now_s < self._told_at_s + _BETWEEN_MESSAGES_S:
            return
        reason = error.strerror or error
        if self._number == 1:
            _LOG.error("decisions are answered but cannot be recorded: %s", reason)
        else:
            _LOG.error("%d decisions could not be recorded so far: %s", self._number, reason)
        self._is_told, self._told_at_s = True, now_s

    def written(self, now_s: float) -> None:
        """Note that a decision was written."""
        if not self._number:
            return
        if self._is_told or now_s >= self._told_at_s + _BETWEEN_MESSAGES_S:
            _LOG.info("decisions are recorded again; %d could not be", self._number)
            self._number, self._is_told, self._told_at_s = 0, False, now_s


class SpoolWriter:
    """Appends lines to a file of this process in the spool's folder; any thread may append."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._descriptor = -1
        self._bytes = 0
        self._is_torn = False
        self._looked_at_s = 0.0
        self._losses = Losses()

    def append(self, line: bytes) -> None:
        """Append a line; when this returns, the whole line is in the file.

        An OSError says that the disk is full, the folder is not writable, or too many decisions
        wait for the database. The log tells it, but not for each line.
        """
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                self._losses.lost(error, time.monotonic())
                raise
            self._losses.written(time.monotonic())

    def close(self) -> None:
        """Close the file; the next line begins a new one."""
        with self._lock:
            self._end_file()

    def _append(self, line: bytes) -> None:
        if self._must_begin():
            self._begin_file()
        # If only a part of the last line fitted on the disk, end it, so that the keeper skips it.
        text = b"\n" + line if self._is_torn else line
        written = os.write(self._descriptor, text)
        self._bytes += written
        self._is_torn = written < len(text)
        if self._is_torn:
            raise OSError("the disk is full")

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
        # The folder may be a link to a folder that does not exist (`usable_state`).
        self._folder.resolve().mkdir(parents=True, exist_ok=True)
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
        self._descriptor, self._bytes, self._is_torn = descriptor, 0, False

    def _end_file(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
