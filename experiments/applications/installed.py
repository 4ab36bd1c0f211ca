"""The programs that runs of applications can use, where they are installed."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path


def has_mpi4py() -> bool:
    """Whether Python can use MPI."""
    return importlib.util.find_spec("mpi4py") is not None


def find_hacc_io() -> Path | None:
    """Find HACC-IO's program that writes a file per process over POSIX, on the PATH.

    Returns
    -------
    Path or None
        None if it is not installed.
    """
    program = shutil.which("hacc_io_write")
    return Path(program) if program else None
