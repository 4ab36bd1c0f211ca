"""The state folder, or a folder in memory while it cannot be written."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ioncast.service.decide.prepared import prepared_file, remove_prepared, shared_state
from ioncast.service.decide.spool import check_writable
from ioncast_base.command_options import warn
from ioncast_base.files import memory_folder

# Files and folders that stay on the disk: written again as soon as the disk allows it.
_ON_DISK = ("spool", "results.key", "database")
_UNFINISHED = "unfinished-state-"


@contextmanager
def usable_state(state: str) -> Iterator[str]:
    """Return a state folder that a whole service can write, until the block ends.

    If the given one cannot be written, it is a folder in memory with the last prepared answers.
    Decisions are then lost until the given one can be written.
    """
    folder, memory = Path(state).absolute(), memory_folder()
    # Only one service uses the given folder, so a folder in memory is one that a kill left.
    prefix = f"ioncast-state-{hashlib.sha256(bytes(folder)).hexdigest()[:16]}-"
    for left in Path(memory).glob(f"{prefix}*") if memory else ():
        shutil.rmtree(left, ignore_errors=True)
    if _is_writable(folder):
        yield state
        return
    made = Path(tempfile.mkdtemp(prefix=prefix, dir=memory))
    try:
        _fill(made, folder)
        yield str(made)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def state_of_keeper(state: str) -> str:
    """Return a state folder that the keeper can write, for as long as it runs.

    If the given one cannot be written, it is `shared_state`, in which readers look first. It stays
    after the keeper's end. The next keeper moves its prepared answers back if it can. Only one
    keeper may run.
    """
    shared, folder = shared_state(), Path(state).absolute()
    if shared is None:
        return state
    for left in shared.parent.glob(f"{_UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    # Without room in memory too, the keeper tries again in each round.
    with suppress(OSError):
        if _is_writable(folder):
            if shared.exists():
                _move_back(shared, folder)
        elif not shared.exists():
            made = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=shared.parent))
            _fill(made, folder)
            made.rename(shared)
    return str(shared) if shared.exists() else state


def _is_writable(folder: Path) -> bool:
    try:
        check_writable(folder)
    except OSError as error:
        warn(
            f"the state folder {folder} cannot be written ({error.strerror}): decisions are"
            " answered but not recorded until it can"
        )
        return False
    return True


def _fill(made: Path, folder: Path) -> None:
    """Link what stays on the disk, and copy the prepared answers."""
    for name in _ON_DISK:
        (made / name).symlink_to(folder / name)
    # Without this file answers are prepared from the database.
    with suppress(OSError):
        _copy(folder, made)


def _move_back(shared: Path, folder: Path) -> None:
    remove_prepared(prepared_file(folder))
    _copy(shared, folder)
    # Its content goes at once: after half of it, a kill would leave a part of the file.
    gone = shared.with_name(f"{_UNFINISHED}gone")
    shared.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _copy(source: Path, target: Path) -> None:
    prepared = prepared_file(source)
    for path in prepared.parent.glob(f"{prepared.name}*"):
        shutil.copy(path, target)
