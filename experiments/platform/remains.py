"""What there is of a platform on this machine, found by its name alone, and its removal."""

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
# What uses files of a file system that went away fails by itself, and may tidy up.
_GRACE_S = 3.0


@dataclass(frozen=True)
class Remains:
    """What there is of a platform.

    Attributes
    ----------
    namespaces : tuple of Path
        Of its nodes, those that it wrote down before it made them.
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


def write_namespaces(name: str, namespaces: Iterable[str]) -> None:
    """Write down which network namespaces are a platform's, before it makes them.

    Parameters
    ----------
    name : str
        Of the platform; its folder is there.
    namespaces : iterable of str
        Their names. Nobody else has such namespaces.
    """
    text = "".join(f"{namespace}\n" for namespace in namespaces)
    (folder_of(name) / _NAMESPACES_FILE).write_text(text, encoding="utf-8")


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
        Of the platform. Nothing is removed that it did not make.

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
        # Where another process removes a file of its own meanwhile, rmtree stops halfway.
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def detach(mount: Path) -> None:
    """Unmount what is at a place, and what is below it; who uses it still has it until it ends."""
    try:
        run("umount", "--lazy", "--no-canonicalize", "--internal-only", str(mount))
    except IoncastError:
        # What one who was killed had started may have done so meanwhile.
        if mount in mounts(mount):
            raise


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


@contextmanager
def _held(places: Iterable[Path]) -> Iterator[frozenset[int]]:
    """Hold mounts and yield their ids: no later mount gets one of them meanwhile."""
    with ExitStack() as stack:
        ids: set[int] = set()
        for place in places:
            # Who opens a path only never waits for a file system's daemon.
            descriptor = os.open(place, os.O_PATH)
            stack.callback(os.close, descriptor)
            ids |= _mount_id(Path(f"/proc/self/fdinfo/{descriptor}"))
        yield frozenset(ids)


def _end_users(mount_ids: frozenset[int]) -> None:
    """Wait for those whose files went away; who keeps them open is killed."""
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
    # It may end meanwhile.
    with suppress(OSError):
        files = Path(f"/proc/{pid}/fdinfo").iterdir()
        return {mount_id for file in files for mount_id in _mount_id(file)}
    return set()


def _mount_id(fdinfo: Path) -> set[int]:
    """Id of the mount that an open file is on; none if it was closed meanwhile."""
    with suppress(OSError):
        return {int(found) for found in _MOUNT_ID.findall(fdinfo.read_bytes())}
    return set()


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
    with suppress(FileNotFoundError):
        written = (folder_of(name) / _NAMESPACES_FILE).read_text(encoding="utf-8")
        return tuple(filter(os.path.lexists, (NAMESPACES / line for line in written.split())))
    return ()


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
