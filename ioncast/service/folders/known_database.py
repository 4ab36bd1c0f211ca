"""Notes in the state folder which database it had, so that a missing one is not created anew."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ioncast.service.settings import Settings


def is_known(settings: Settings) -> bool:
    """Tell whether a service with this state folder has used this database before."""
    try:
        return _note(settings).read_bytes() == _digest(settings)
    except FileNotFoundError:
        return False


def remember(settings: Settings) -> None:
    """Note that this state folder has used this database."""
    note = _note(settings)
    new = note.with_name(f"{note.name}.{os.getpid()}")
    new.write_bytes(_digest(settings))
    new.replace(note)


def _note(settings: Settings) -> Path:
    return Path(settings.state) / "database"


def _digest(settings: Settings) -> bytes:
    # The address may contain a password, so only its digest is written.
    return hashlib.sha256(str(settings.database).encode()).hexdigest().encode()
