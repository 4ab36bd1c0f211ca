"""Small disks for tests, which only root can mount."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.services import use


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system of 24 MiB at a new folder."""
    use("root")
    folder.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=24m", folder.name, str(folder)]
    subprocess.run(mounting, check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(folder: Path, option: str) -> None:
    """Make a mounted file system read-only ("ro") or writable ("rw")."""
    subprocess.run(["mount", "-o", f"remount,{option}", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leave no byte on the disk of a folder."""
    with (folder / "full").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * (64 << 10))
    with (folder / "fuller").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x")
