"""Tests whose processes are in Python and use MPI."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest


def _mpi_in_python() -> str | None:
    """Reason why Python cannot use MPI; None if it can."""
    if find_spec("mpi4py") is None or shutil.which("mpiexec") is None:
        return "mpi4py or mpiexec is not installed"
    loaded = subprocess.run(
        [sys.executable, "-c", "from mpi4py import MPI"], capture_output=True, check=False
    )
    return None if loaded.returncode == 0 else "mpi4py is not built for this machine's MPI"


_NO_MPI = _mpi_in_python()
needs_mpi = pytest.mark.skipif(_NO_MPI is not None, reason=_NO_MPI or "")
