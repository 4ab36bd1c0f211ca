"""A launcher, IOR programs of many kinds, and a library, for machines without IOR and Darshan."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
# `mpiexec -n 4 PROGRAM …` starts the program four times, one after the other.
_LAUNCHER = """#!/bin/bash
export PMI_RANK=$(($2 - 1))
shift 2
while ((PMI_RANK > 0)); do "$@" || exit; export PMI_RANK=$((PMI_RANK - 1)); done
exec "$@"
"""
# Only the first process of IOR does something.
_IOR = """#!/bin/bash
[ "$PMI_RANK" = 0 ] || exit 0
"""


@dataclass(frozen=True)
class Programs:
    """A folder with the programs that a verification runs.

    Attributes
    ----------
    folder : Path
        The folder of the programs, first on the PATH.
    library : Path
        The file that stands for Darshan's library.
    work_dir : Path
        The folder for the runs.
    """

    folder: Path
    library: Path
    work_dir: Path

    def behave(self, script: str) -> None:
        """Let IOR run a shell script."""
        program(self.folder / "ior", f"{_IOR}{script}\n")

    @property
    def options(self) -> list[str]:
        """The options of a verification with these programs."""
        return ["--verify", "--work-dir", str(self.work_dir), "--darshan-lib", str(self.library)]


def _any_library() -> str:
    """Find a library that any program can load: that of C's mathematics, which Python loads."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8")
    return next(line.split()[-1] for line in maps.splitlines() if "/libm.so" in line)


def program(path: Path, script: str) -> None:
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Programs]:
    """Make programs, of which IOR is a shell script."""

    def make(ior: str) -> Programs:
        made = Programs(tmp_path / "bin", tmp_path / "libdarshan.so", tmp_path / "runs")
        made.folder.mkdir()
        made.work_dir.mkdir()
        shutil.copy(_any_library(), made.library)
        program(made.folder / "mpiexec", _LAUNCHER)
        made.behave(ior)
        monkeypatch.setenv("PATH", str(made.folder), prepend=":")
        return made

    return make


def leaves_log(name: str) -> str:
    """Write the script of an IOR whose run leaves a genuine log."""
    log = FIXTURES / f"variations/{name}.darshan"
    return f'[ -z "$DARSHAN_LOGFILE" ] || cp {log} "$DARSHAN_LOGFILE"'
