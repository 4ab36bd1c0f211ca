"""The state folder, or a folder in memory while it cannot be written."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ioncast.service.decide.prepared import prepared_file
from ioncast.service.decide.spool import check_writable
from ioncast_base.command_options import warn

_IN_MEMORY = Path("/dev/shm")  # noqa: S108
# Files and folders that stay on the disk: written again as soon as the disk allows it.
_ON_DISK = ("spool", "results.key", "database")


@contextmanager
def usable_state(state: str, shared: Path | None = None) -> Iterator[str]:
    """Return a state folder that can be written, until the block ends.

    If the given one cannot be written, it is a folder in memory with the last prepared answers.
    Decisions are then lost until the given one can be written.

    Parameters
    ----------
    state : str
        The state folder of the settings.
    shared : Path, optional
        The folder in memory for a part of the service, which others use too; it stays.
    """
    folder = Path(state).absolute()
    # Only one service uses the given folder, so a folder in memory is one that a kill left.
    prefix = f"ioncast-state-{hashlib.sha256(bytes(folder)).hexdigest()[:16]}-"
    for left in _IN_MEMORY.glob(f"{prefix}*") if shared is None else ():
        shutil.rmtree(left, ignore_errors=True)
    try:
        check_writable(folder)
    except OSError as error:
        warn(
            f"the state folder {state} cannot be written ({error.strerror}): decisions are answered"
            " but not recorded until it can"
        )
    else:
        yield state
        return
    in_memory = _IN_MEMORY if os.access(_IN_MEMORY, os.W_OK) else None
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=in_memory if shared is None else shared.parent))
    try:
        _fill(made, folder)
        if shared is not None:
            # Another part, which starts at the same time, must find a whole folder or make one.
            with suppress(OSError):
                made.rename(shared)
        yield str(shared or made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _fill(made: Path, folder: Path) -> None:
    """Link what stays on the disk, and copy the prepared answers."""
    for name in _ON_DISK:
        (made / name).symlink_to(folder / name)
    prepared = prepared_file(folder)
    for path in prepared.parent.glob(f"{prepared.name}*"):
        # Without this file answers are prepared from the database.
        with suppress(OSError):
            shutil.copy(path, made)
