"""Lock files: at most one process at a time does something."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import BinaryIO

from ioncast_base.errors import InputError


def locked_file(path: str | Path, taken: str) -> BinaryIO:
    """Open a file and lock it until it is closed."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    file = os.fdopen(descriptor, "r+b", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(taken, where=str(path), remedy="stop it first") from None
    return file
