"""Temporary folders; a lock tells whether a process still uses a folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path

# Nobody else may give a folder such a name: folders without a lock are removed.
_PREFIX = "ioncast-locked-folder-"
_IN_MEMORY = "/dev/shm"  # noqa: S108


@contextmanager
def locked_folder(*, in_memory: bool = False) -> Iterator[Path]:
    """Make a folder, and remove it afterwards; if this process is killed, others remove it."""
    owner = os.getpid()
    folder, lock = _made(_IN_MEMORY if in_memory and os.access(_IN_MEMORY, os.W_OK) else None)
    try:
        yield folder
    finally:
        # A fork of this process that ends gets here, too.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def remove_leftovers() -> None:
    """Remove this user's folders of killed processes, which hold no lock on them any more."""
    places = (Path(tempfile.gettempdir()), Path(_IN_MEMORY))
    for folder in chain.from_iterable(place.glob(f"{_PREFIX}*") for place in places):
        # A symbolic link, and a folder of another user or of a living process stay.
        with suppress(OSError):
            descriptor = _open(folder)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(descriptor)


def _made(where: str | None) -> tuple[Path, int]:
    """Make a folder, and hold a lock on it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=where))
        # Another process may remove it before it is locked.
        with suppress(FileNotFoundError):
            descriptor = _open(folder)
            fcntl.flock(descriptor, fcntl.LOCK_SH)
            if os.fstat(descriptor).st_nlink:
                return folder, descriptor
            os.close(descriptor)


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
