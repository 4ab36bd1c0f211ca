"""Sessions of browsers: a cookie names a session, and never holds a token.

A session is a file in the state folder: its name is the hash of the cookie, its content that of the
token. So all workers know it, also after a restart, and it ends with its file or its token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from pathlib import Path

from ioncast.service.store.credentials import digest
from ioncast_base.errors import BusyError

LIFE_S = 30 * 24 * 3600
# A token that a group shares has a session for each browser. Each session takes an inode.
_MOST_OF_TOKEN = 100
_FOLDER = "sessions"
_RANDOM_BYTES = 32


def begin(state: str, token_sha256: str) -> str:
    """Begin a session; remove the oldest of too many of this token.

    A session that is too old is only rejected, because the clock may be wrong.
    """
    session = secrets.token_urlsafe(_RANDOM_BYTES)
    path = _path(state, session)
    try:
        path.parent.resolve().mkdir(parents=True, exist_ok=True, mode=0o700)
        _make_room(path.parent, token_sha256)
        with os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(token_sha256)
    except OSError as error:
        raise BusyError(f"a session cannot be written: {error.strerror}", where=state) from error
    return session


def token_of(state: str, session: str) -> str | None:
    """The hash of the token of a session; None if there is no such session or it is too old."""
    path = _path(state, session)
    try:
        if _is_old(path):
            return None
        return path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BusyError(f"a session cannot be read: {error.strerror}", where=state) from error


def end(state: str, session: str) -> None:
    """End a session; its cookie is worth nothing afterwards."""
    try:
        _path(state, session).unlink(missing_ok=True)
    except OSError as error:
        raise BusyError(f"a session cannot be ended: {error.strerror}", where=state) from error


def _path(state: str, session: str) -> Path:
    return Path(state) / _FOLDER / digest(session)


def _is_old(path: Path) -> bool:
    return path.stat().st_mtime < time.time() - LIFE_S


def _make_room(folder: Path, token_sha256: str) -> None:
    theirs = []
    for path in folder.iterdir():
        # Another worker may remove it at the same time.
        with contextlib.suppress(FileNotFoundError):
            if path.read_text() == token_sha256:
                theirs.append((path.stat().st_mtime_ns, path))
    for _, path in sorted(theirs, reverse=True)[_MOST_OF_TOKEN - 1 :]:
        path.unlink(missing_ok=True)
