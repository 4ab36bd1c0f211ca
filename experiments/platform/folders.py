"""The folder of each platform, the paths in it, and the names of the platforms on this machine."""

from __future__ import annotations

import stat
from contextlib import suppress
from pathlib import Path

from experiments.platform.description import is_name
from ioncast_base.errors import IoncastError

PLATFORMS = Path("/run/ioncast-platform")


def folder_of(name: str) -> Path:
    """Folder of a platform's files."""
    return PLATFORMS / name


def description_of(name: str) -> Path:
    """Path of the description that a platform was built from."""
    return folder_of(name) / "description.json"


def platform_file_of(name: str) -> Path:
    """Path of the platform file for `ioncast campaign`; it exists while the platform is up."""
    return folder_of(name) / "platform.toml"


def scratch_of(name: str) -> Path:
    """Mount point of the file system for programs: everybody uses this path."""
    return folder_of(name) / "scratch"


def mount_of(name: str, io_nodes: int | str, node: int | str) -> Path:
    """Mount point of the file system as one compute node sees it.

    Parameters
    ----------
    name : str
        The platform's name.
    io_nodes : int or str
        Number of I/O nodes of the run; 0 is direct access. A text is a placeholder.
    node : int or str
        Number of the compute node, from 0. A text is a placeholder.
    """
    return folder_of(name) / "mounts" / f"io{io_nodes}" / f"cn{node}"


def mount_through(name: str, io_node: int, node: int) -> Path:
    """Mount point of the file system as a compute node sees it through the I/O node `io_node`."""
    return folder_of(name) / "mounts" / f"through-io{io_node}" / f"cn{node}"


def make_platforms() -> None:
    """Create the folder of all platforms if it is missing, and check it (`check_platforms`)."""
    with suppress(FileExistsError):
        PLATFORMS.mkdir(mode=0o700)
    check_platforms()


def check_platforms() -> None:
    """Reject a folder of platforms that other users may change, because root runs its programs.

    Raises
    ------
    IoncastError
        If it is not a directory, or if others than root have access.
    """
    with suppress(FileNotFoundError):
        found = PLATFORMS.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o077:
            raise IoncastError(
                "must be a directory that only root can use",
                where=str(PLATFORMS),
                remedy="find out who made it, and move it away",
            )


def names() -> list[str]:
    """Names of the platforms that are up or left files behind, in alphabetical order."""
    with suppress(FileNotFoundError):
        folders = [path for path in PLATFORMS.iterdir() if path.is_dir() and is_name(path.name)]
        return sorted(folder.name for folder in folders)
    return []
