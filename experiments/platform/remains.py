"""What there is of a platform on this machine, found by its name alone, and its removal."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from experiments.platform.programs import MEMBER, run
from ioncast_errors import IoncastError

PLATFORMS = Path("/run/ioncast")
NAMESPACES = Path("/run/netns")
_NODE = re.compile(r"(?:cn|io|pf)[0-9]+|adm|sw")
_MARK = f"{MEMBER}=".encode()
_PATIENCE_S = 20.0
# What uses files of a file system that went away fails by itself, and may tidy up.
_GRACE_S = 3.0


@dataclass(frozen=True)
class Remains:
    """What there is of a platform.

    Attributes
    ----------
    namespaces : tuple of Path
        Of its nodes.
    processes : tuple of int
        Its daemons, and what runs on its nodes.
    mounts : tuple of Path
        Below its folder, in the order in which they were mounted.
    folder : Path or None
        Its folder, if it is there.
    """

    namespaces: tuple[Path, ...]
    processes: tuple[int, ...]
    mounts: tuple[Path, ...]
    folder: Path | None

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.processes or self.mounts or self.folder)


def folder_of(name: str) -> Path:
    """Say where a platform keeps its files."""
    return PLATFORMS / name


def names() -> list[str]:
    """List the platforms that are up, or that something was left of."""
    with suppress(FileNotFoundError):
        return sorted(path.name for path in PLATFORMS.iterdir())
    return []


def remains(name: str) -> Remains:
    """Look for everything that belongs to a platform.

    Parameters
    ----------
    name : str
        Of the platform.

    Returns
    -------
    Remains
        What is there; false if nothing is.
    """
    namespaces, folder = _namespaces(name), folder_of(name)
    return Remains(
        namespaces=namespaces,
        processes=members(name, namespaces),
        mounts=mounts(folder),
        folder=folder if os.path.lexists(folder) else None,
    )


def clear(name: str) -> None:
    """Remove everything that belongs to a platform, and wait until it is gone.

    Parameters
    ----------
    name : str
        Of the platform. Nothing is removed that does not bear it.

    Raises
    ------
    IoncastError
        If something cannot be removed.
    """
    folder = folder_of(name)
    users = _users(folder)
    end(lambda: members(name, _namespaces(name)))
    for mount in reversed(mounts(folder)):
        if mount in mounts(folder):
            detach(mount)
    _end_users(users)
    for path in _namespaces(name):
        _remove_namespace(path)
    if mounts(folder):
        raise IoncastError("cannot be unmounted", where=str(mounts(folder)[0]))
    with suppress(FileNotFoundError):
        shutil.rmtree(folder)


def detach(mount: Path) -> None:
    """Unmount what is at a place, and what is below it; who uses it still has it until it ends."""
    run("umount", "--lazy", "--no-canonicalize", "--internal-only", str(mount))


def members(name: str, namespaces: tuple[Path, ...] = ()) -> tuple[int, ...]:
    """Find the processes of a platform, or of one run on it.

    Parameters
    ----------
    name : str
        What they are marked with, or what the mark begins with.
    namespaces : tuple of Path
        Network namespaces whose processes belong to it as well.

    Returns
    -------
    tuple of int
        Their ids; this process is never among them.
    """
    # Whatever is wrong with a namespace's file: never the host's own processes.
    networks = {_identity(path) for path in namespaces} - {_identity(Path("/proc/self/ns/net"))}
    return tuple(
        pid
        for pid in _processes()
        if pid != os.getpid() and (_has_mark(pid, name) or _network(pid) in networks)
    )


def marks(name: str) -> dict[int, str]:
    """Find out what the processes of a platform are.

    Parameters
    ----------
    name : str
        Of the platform.

    Returns
    -------
    dict of int to str
        Id of each process that bears the platform's mark → the rest of the mark: the name of
        a daemon, or of a run.
    """
    found = {pid: _mark(pid) for pid in _processes()}
    begins = f"{name}/"
    return {pid: mark[len(begins) :] for pid, mark in found.items() if mark.startswith(begins)}


def end(find: Callable[[], tuple[int, ...]]) -> None:
    """Kill processes until none is found any more.

    Parameters
    ----------
    find : callable
        Finds them; what they start meanwhile is found the next time.

    Raises
    ------
    IoncastError
        If one does not end.
    """
    give_up_at = time.monotonic() + _PATIENCE_S
    while found := find():
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > give_up_at:
            raise IoncastError(f"process {found[0]} cannot be ended")
        time.sleep(0.02)


def _end_users(pids: tuple[int, ...]) -> None:
    """Wait for those whose files went away; who does not notice is killed."""
    give_up_at = time.monotonic() + _GRACE_S
    while any(map(_lives, pids)) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    end(lambda: tuple(filter(_lives, pids)))


def _users(folder: Path) -> tuple[int, ...]:
    """Processes outside of the nodes that have files of the platform's file system open."""
    begins = (f"{folder}/scratch/", f"{folder}/mounts/")
    return tuple(
        pid
        for pid in _processes()
        if pid != os.getpid() and any(file.startswith(begins) for file in _open_files(pid))
    )


def _open_files(pid: int) -> list[str]:
    # It may end, and close files, meanwhile.
    with suppress(OSError):
        return [_target(path) for path in Path(f"/proc/{pid}/fd").iterdir()]
    return []


def _target(path: Path) -> str:
    with suppress(OSError):
        return str(path.readlink())
    return ""


def _processes() -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _lives(pid)]


def _lives(pid: int) -> bool:
    """Whether a process is there and did not end yet."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return False


def _has_mark(pid: int, name: str) -> bool:
    return f"{_mark(pid)}/".startswith(f"{name}/")


def _mark(pid: int) -> str:
    """What a process is marked with, nothing if it is not."""
    with suppress(OSError):
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        values = [each.partition(b"=")[2] for each in variables if each.startswith(_MARK)]
        return values[0].decode(errors="replace") if values else ""
    return ""


def _network(pid: int) -> tuple[int, int] | None:
    with suppress(OSError):
        return _identity(Path(f"/proc/{pid}/ns/net"))
    return None


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _namespaces(name: str) -> tuple[Path, ...]:
    # A platform's name may be the beginning of another's.
    paths = sorted(NAMESPACES.glob(f"{name}-*"))
    return tuple(path for path in paths if _NODE.fullmatch(path.name[len(name) + 1 :]))


def _remove_namespace(path: Path) -> None:
    # A namespace whose making was cut short is a file that nothing is mounted on.
    if path in mounts(path):
        detach(path)
    path.unlink()


def mounts(folder: Path) -> tuple[Path, ...]:
    """What is mounted at or below a folder, from the file that never asks a file system."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    places = [line.split()[4] for line in lines]
    # Blanks are written as octal numbers there; names of platforms have none.
    return tuple(Path(place) for place in places if f"{place}/".startswith(f"{folder}/"))
