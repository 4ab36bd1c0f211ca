"""Checks of the folders that runs write to: permission, free space, free inodes and quota."""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Iterator, Sequence

import humanize

from benchdb.campaigns.folder import CampaignCell
from benchdb.campaigns.platform_file import Platform
from ioncast_base.errors import InputError
from ioncast_base.wording import counted

_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.ENOSYS)
# All files together may be too large for one file, or for the one server that would hold it.
_LIMITS_OF_FILE = (errno.EFBIG, errno.ENOSPC)


def room_problems(platform: Platform, cells: Sequence[CampaignCell]) -> list[InputError]:
    """Reasons why the test files of some cells would not fit, one for each folder."""
    wanted: dict[str, list[CampaignCell]] = {}
    node_directories: dict[str, None] = {}
    for cell in cells:
        directory = platform.test_directory.replace("{io_nodes}", str(cell.io_nodes))
        wanted.setdefault(directory, []).append(cell)
        node_directories |= dict.fromkeys(platform.node_directories(platform.nodes, cell.io_nodes))
    problems = [
        *(_problem(directory, some, platform) for directory, some in wanted.items()),
        *(
            _unusable(directory, "the directory of a node", "node_directory")
            for directory in node_directories
        ),
    ]
    return [problem for problem in problems if problem]


def _unusable(directory: str, name: str, key: str) -> InputError | None:
    if os.access(directory, os.W_OK | os.X_OK):
        return None
    return InputError(
        f"{name} does not exist or cannot be written to",
        where=directory,
        remedy=f"create it, or correct {key} in the platform file",
    )


def _problem(
    directory: str, cells: Sequence[CampaignCell], platform: Platform
) -> InputError | None:
    unusable = _unusable(directory, "the test directory", "test_directory")
    return unusable or next(_shortages(directory, cells, platform), None)


def _shortages(
    directory: str, cells: Sequence[CampaignCell], platform: Platform
) -> Iterator[InputError]:
    """The first shortage says most: a full file system has neither space nor a quota."""
    needed_bytes = max(cell.bytes for cell in cells)
    needed_files = max(cell.files for cell in cells)
    system = os.statvfs(directory)
    free_bytes = system.f_bavail * system.f_frsize
    limit = platform.free_space_limit
    if free_bytes < needed_bytes + limit:
        yield InputError(
            f"has {_size(free_bytes)} free, but the largest run needs {_size(needed_bytes)}"
            f" and must leave {_size(limit)} free",
            where=directory,
            remedy="free space there, correct test_directory, or lower free_space_limit in the"
            " platform file",
        )
    # File systems that create inodes as needed, such as Btrfs, count none.
    if system.f_files and system.f_favail < needed_files:
        yield InputError(
            f"has {counted(system.f_favail, 'inode')} free, but the largest run writes"
            f" {counted(needed_files, 'file')}",
            where=directory,
            remedy="remove files there, or correct test_directory in the platform file",
        )
    refusal = _refusal(directory, needed_bytes, max(-(-cell.bytes // cell.files) for cell in cells))
    if refusal:
        yield InputError(
            f"{_size(needed_bytes)}, the files of the largest run, cannot be written: {refusal}",
            where=directory,
            remedy="check the quota and the file system, or correct test_directory in the platform"
            " file",
        )


def _refusal(directory: str, size_bytes: int, largest_file_bytes: int) -> str | None:
    """Why the file system rejects files of a size, in its own words; None if it does not.

    The file has no name and is removed when it is closed, also after a crash. Reserving its blocks
    costs no I/O and counts in the user's quota.
    """
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            file.write(b"ioncast")
            os.fsync(file.fileno())
            failed = _fallocate(file.fileno(), size_bytes)
            if failed in _LIMITS_OF_FILE:
                failed = _fallocate(file.fileno(), largest_file_bytes)
    except OSError as error:
        return error.strerror or str(error)
    return os.strerror(failed) if failed not in (0, *_CANNOT_RESERVE) else None


def _size(size_bytes: int) -> str:
    return humanize.naturalsize(size_bytes, binary=True)


def _fallocate(descriptor: int, size_bytes: int) -> int:
    """Reserve the first bytes of a file; return 0 or the number of an error.

    Where a file system cannot reserve, Python's `os.posix_fallocate` would write to every block.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    length = ctypes.c_longlong(max(size_bytes, 1))
    failed = libc.fallocate(descriptor, 0, ctypes.c_longlong(0), length)
    return ctypes.get_errno() if failed else 0
