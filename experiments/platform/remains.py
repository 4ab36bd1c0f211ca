"""Finds everything of a platform on this machine by its name alone, and removes it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from experiments.platform.folders import folder_of
from experiments.platform.programs import MEMBER, run
from ioncast_base.errors import IoncastError

NAMESPACES = Path("/run/netns")
_NAMESPACES_FILE = "namespaces"
_MOUNT_ID = re.compile(rb"^mnt_id:\s*([0-9]+)$", re.MULTILINE)
_MARK = f"{MEMBER}=".encode()
_PATIENCE_S = 20.0
# A program whose file system is gone fails by itself. Give it this time to tidy up.
_GRACE_S = 3.0


@dataclass(frozen=True)
class Remains:
    """Everything of a platform that exists on this machine; false if nothing does.

    Attributes
    ----------
    namespaces : tuple of Path
        Files of its nodes' network namespaces.
    processes : tuple of int
        Ids of its daemons, and of all programs on its nodes.
    mounts : tuple of Path
        Mount points below its folder, in the order in which they were mounted.
    folder : Path or None
        Its folder; None if it does not exist.
    """

    namespaces: tuple[Path, ...]
    processes: tuple[int, ...]
    mounts: tuple[Path, ...]
    folder: Path | None

    def __bool__(self) -> bool:
        return bool(self.namespaces or self.processes or self.mounts or self.folder)


def write_namespaces(name: str, namespaces: Iterable[str]) -> None:
    """Write the names of a platform's network namespaces to a file, before they are created.

    Parameters
    ----------
    name : str
        The platform's name; its folder exists.
    namespaces : iterable of str
        The names; no namespaces of these names exist.
    """
    text = "".join(f"{namespace}\n" for namespace in namespaces)
    (folder_of(name) / _NAMESPACES_FILE).write_text(text, encoding="utf-8")


def remains(name: str) -> Remains:
    """Find everything that belongs to the platform of this name."""
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
        The platform's name. Things that the platform did not create stay.

    Raises
    ------
    IoncastError
        If something cannot be removed.
    """
    folder = folder_of(name)
    end(lambda: members(name, _namespaces(name)))
    with _held(mounts(folder)) as mount_ids:
        for mount in reversed(mounts(folder)):
            if mount in mounts(folder):
                detach(mount)
        _end_users(mount_ids)
    for path in _namespaces(name):
        _remove_namespace(path)
    if mounts(folder):
        raise IoncastError("cannot be unmounted", where=str(mounts(folder)[0]))
    while os.path.lexists(folder):
        # rmtree stops halfway if another process removes one of its own files meanwhile.
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def detach(mount: Path) -> None:
    """Unmount a file system and those below it; programs that use it keep it until they end."""
    try:
        run("umount", "--lazy", "--no-canonicalize", "--internal-only", str(mount))
    except IoncastError:
        # A program that a killed process had started may have unmounted it meanwhile.
        if mount in mounts(mount):
            raise


def members(name: str, namespaces: tuple[Path, ...] = ()) -> tuple[int, ...]:
    """Find the processes of a platform, or of one run on it.

    Parameters
    ----------
    name : str
        The mark of the processes, or its part before a slash.
    namespaces : tuple of Path
        Network namespaces whose processes belong to the platform too.

    Returns
    -------
    tuple of int
        Ids of the processes, without this one.
    """
    # Leave out the host's network, so that a wrong file never makes its processes members.
    networks = {_identity(path) for path in namespaces} - {_identity(Path("/proc/self/ns/net"))}
    return tuple(
        pid
        for pid in _processes()
        if pid != os.getpid() and (_has_mark(pid, name) or _network(pid) in networks)
    )


def marks(name: str) -> dict[int, str]:
    """Find the daemons and runs that the processes of a platform belong to.

    Parameters
    ----------
    name : str
        The platform's name.

    Returns
    -------
    dict of int to str
        Name of a daemon or a run, by id of each process with the platform's mark.
    """
    found = {pid: _mark(pid) for pid in _processes()}
    begins = f"{name}/"
    return {pid: mark[len(begins) :] for pid, mark in found.items() if mark.startswith(begins)}


def end(find: Callable[[], tuple[int, ...]]) -> None:
    """Kill processes until no more are found.

    Parameters
    ----------
    find : callable
        Finds the processes, also those that were started meanwhile.

    Raises
    ------
    IoncastError
        If a process does not end.
    """
    give_up_at = time.monotonic() + _PATIENCE_S
    while found := find():
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > give_up_at:
            raise IoncastError(f"process {found[0]} cannot be ended")
        time.sleep(0.02)


@contextmanager
def _held(places: Iterable[Path]) -> Iterator[frozenset[int]]:
    """Keep mounts in use and yield their ids, so that no new mount gets one of these ids."""
    with ExitStack() as stack:
        ids: set[int] = set()
        for place in places:
            # With O_PATH, open never waits for the file system's daemon.
            descriptor = os.open(place, os.O_PATH)
            stack.callback(os.close, descriptor)
            ids |= _mount_id(Path(f"/proc/self/fdinfo/{descriptor}"))
        yield frozenset(ids)


def _end_users(mount_ids: frozenset[int]) -> None:
    """Wait until programs have closed their files on unmounted file systems; then kill the rest."""
    give_up_at = time.monotonic() + _GRACE_S
    while _users(mount_ids) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    end(lambda: _users(mount_ids))


def _users(mount_ids: frozenset[int]) -> tuple[int, ...]:
    """Other processes that have files on one of these mounts open."""
    return tuple(
        pid for pid in _processes() if pid != os.getpid() and mount_ids & _open_mounts(pid)
    )


def _open_mounts(pid: int) -> set[int]:
    # The process may end meanwhile.
    with suppress(OSError):
        files = Path(f"/proc/{pid}/fdinfo").iterdir()
        return {mount_id for file in files for mount_id in _mount_id(file)}
    return set()


def _mount_id(fdinfo: Path) -> set[int]:
    """Id of the mount that an open file is on; empty if the file was closed meanwhile."""
    with suppress(OSError):
        return {int(found) for found in _MOUNT_ID.findall(fdinfo.read_bytes())}
    return set()


def _processes() -> list[int]:
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if _lives(pid)]


def _lives(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}
    return False


def _has_mark(pid: int, name: str) -> bool:
    return f"{_mark(pid)}/".startswith(f"{name}/")


def _mark(pid: int) -> str:
    """Mark of a process; empty if it has none."""
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
    with suppress(FileNotFoundError):
        written = (folder_of(name) / _NAMESPACES_FILE).read_text(encoding="utf-8")
        return tuple(filter(os.path.lexists, (NAMESPACES / line for line in written.split())))
    return ()


def _remove_namespace(path: Path) -> None:
    # If its creation was cut short, the namespace is a file without a mount.
    if path in mounts(path):
        detach(path)
    path.unlink()


def mounts(folder: Path) -> tuple[Path, ...]:
    """Mount points at or below a folder; /proc/self/mountinfo never waits for a file system."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    places = [line.split()[4] for line in lines]
    # The file writes blanks in paths as octal numbers; the paths of platforms have no blanks.
    return tuple(Path(place) for place in places if f"{place}/".startswith(f"{folder}/"))
