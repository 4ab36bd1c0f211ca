"""Programs that run to their end, claims with a verdict, and the machine: for all benchmarks."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Claim:
    text: str
    measured: str
    holds: bool | None

    def __str__(self) -> str:
        verdict = {True: "PASS", False: "MISS", None: "----"}[self.holds]
        return f"{verdict}  {self.text}: {self.measured}"


@dataclass(frozen=True)
class Run:
    """Cost of a program, and its output.

    Attributes
    ----------
    whole_seconds : float
        Time from before the start of the process until its end.
    cpu_seconds : float
        Time of its processes on all cores.
    peak_kib : int
        Peak memory of the process or of its largest child, and at least that of this process.
    output : str
        Its standard output.
    """

    whole_seconds: float
    cpu_seconds: float
    peak_kib: int
    output: str


class ProgramFailedError(Exception):
    """A program ended with an error; the message has its output."""


def run_once(command: Sequence[str]) -> Run:
    """Run a program to its end."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(command, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        whole_seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            lines = errors.read().decode("utf-8", "replace").split("\n")
            said = next((line for line in lines if line.strip()), "nothing")
            raise ProgramFailedError(
                f"{' '.join(command[:2])} ended with {process.returncode} and said: {said}"
            )
        cpu_seconds = usage.ru_utime + usage.ru_stime
        text = output.read().decode("utf-8", "replace")
        return Run(whole_seconds, cpu_seconds, usage.ru_maxrss, text)


def ioncast() -> Path:
    return Path(sys.executable).with_name("ioncast")


def machine() -> str:
    today = datetime.datetime.now(tz=datetime.timezone.utc).date()
    return f"{today}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def floor() -> str:
    """The lowest peak that can be measured: each process starts as a copy of this one."""
    return f"peaks below {run_once(['true']).peak_kib / 1024:.0f} MiB cannot be told apart"
