"""The key with which a service recognises the results and sessions that it made itself."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from pathlib import Path

_BYTES = 32
_NAME = "results.key"


def service_key(state: str | Path) -> bytes:
    """Read the key in a state folder; it is made when it is first needed."""
    path = Path(state) / _NAME
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        _make(path)
        key = path.read_bytes()
    # Everybody can compute signatures with an empty key.
    if len(key) != _BYTES:
        raise OSError(f"{path} is damaged: it has {len(key)} bytes instead of {_BYTES}; delete it")
    return key


def _make(path: Path) -> None:
    """Write a new key as a whole; if another worker was faster, its key stays."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Python creates the file for its owner alone.
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{_NAME}-") as part:
        part.write(secrets.token_bytes(_BYTES))
        part.flush()
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(part.name)
