"""The machine that a study runs on, and the versions of the programs that take part."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from importlib.metadata import version

from experiments.platform.programs import system_path
from experiments.provenance import Machine

_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def this_machine() -> Machine:
    """Cores, memory and kernel of this machine."""
    return Machine(
        cores=os.cpu_count(),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        kernel=platform.release(),
    )


def versions() -> dict[str, str]:
    """Versions of the programs that take part in a study, without those that print none."""
    programs = {"GlusterFS": "glusterfs", "mpiexec": "mpiexec"}
    told = {name: _version(program) for name, program in programs.items()}
    known = {name: number for name, number in told.items() if number}
    return {"ioncast": version("ioncast"), "Python": platform.python_version(), **known}


def _version(program: str) -> str | None:
    """The first number with a point in the output of a program's --version."""
    path = shutil.which(program, path=system_path())
    if path is None:
        return None
    done = subprocess.run(  # noqa: S603
        [path, "--version"], capture_output=True, text=True, errors="replace", check=False
    )
    found = _NUMBER.search(done.stdout + done.stderr)
    return found[0] if found else None
