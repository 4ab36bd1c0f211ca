"""Temporary folders for uploads; a lock tells whether the process of a folder still lives."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "ioncast-upload-"


@contextmanager
def upload_folder() -> Iterator[Path]:
    """Make a folder, and remove it afterwards; if this process is killed, others remove it.

    Raises
    ------
    OSError
        When it cannot be made.
    """
    folder, lock = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers() -> None:
    """Remove this user's folders of killed processes, which hold no lock on them any more."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # A symbolic link, and a folder of another user or of a living process stay.
        with suppress(OSError):
            descriptor = _open(folder)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(descriptor)


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Another process may remove it before it is locked.
        with suppress(FileNotFoundError):
            descriptor = _open(folder)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.fstat(descriptor).st_nlink:
                return folder, descriptor
            os.close(descriptor)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
