"""Which database a state folder is of, so that none is created in the place of one that is away."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ioncast.service.settings import Settings


def is_known(settings: Settings) -> bool:
    """Whether a service with this state folder has had this database.

    Parameters
    ----------
    settings : Settings
        The service's.

    Raises
    ------
    OSError
        When the folder cannot be read.
    """
    try:
        return _note(settings).read_bytes() == _digest(settings)
    except FileNotFoundError:
        return False


def remember(settings: Settings) -> None:
    """Note that the database is there.

    Parameters
    ----------
    settings : Settings
        The service's.

    Raises
    ------
    OSError
        When the folder cannot be written.
    """
    note = _note(settings)
    new = note.with_name(f"{note.name}.{os.getpid()}")
    new.write_bytes(_digest(settings))
    new.replace(note)


def _note(settings: Settings) -> Path:
    return Path(settings.state) / "database"


def _digest(settings: Settings) -> bytes:
    # Its address may hold a password.
    return hashlib.sha256(str(settings.database).encode()).hexdigest().encode()
