"""Files that root owns, one part of ioncast writes, and slurmctld reads inside its lock."""

from __future__ import annotations

import os
from pathlib import Path

from ioncast_base.errors import InputError


def write_in_place(path: Path, content: bytes, setting: str) -> None:
    """Replace the content of a file, and not the file.

    File and folder belong to root, so that the writer can neither put a pipe in the place of the
    file nor take a lease on it: slurmctld would wait when it opens the file.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.pwrite(file, content, 0)
            os.ftruncate(file, len(content))
        finally:
            os.close(file)
    except OSError as error:
        raise InputError(
            f"{setting} cannot be written: {error.strerror}",
            where=str(path),
            remedy="let root create the file and this user's group write to it, as the units of"
            " watch and arbiter do",
        ) from error
