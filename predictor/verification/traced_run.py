"""Runs IOR once under Darshan, in a folder of its own, and reads the log of the run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from benchdb.campaigns.engines import ENGINES
from ioncast_base.errors import IoncastError
from ioncast_base.visible_text import visible
from ior_configs import IorConfig
from predictor.verification.verifying_machine import Machine
from summario.reading.log import DarshanLog, read_log

# Launchers need a moment to end the processes that they started.
_STOP_SECONDS = 10.0
_LONGEST_SHOWN = 300
_DARSHANS_OWN = ("DARSHAN_", "DXT_")


def traced(config: IorConfig, machine: Machine, time_limit_s: float) -> DarshanLog:
    """Run IOR once under Darshan, and read its log.

    A configuration that reads gets its file first, in a run that Darshan does not trace. All files
    are in a new folder, which is removed at the end.

    Parameters
    ----------
    config : IorConfig
        A configuration that the machine can run (see `Machine.hindrances`).
    machine : Machine
        The programs and the folder.
    time_limit_s : float
        The longest time of a command, in seconds.

    Raises
    ------
    IoncastError
        If IOR fails or does not end, or Darshan writes no log that can be used.
    """
    with tempfile.TemporaryDirectory(prefix="ioncast-verify-", dir=machine.test_directory) as path:
        return _run(config, machine, Path(path), time_limit_s)


def _run(config: IorConfig, machine: Machine, folder: Path, time_limit_s: float) -> DarshanLog:
    engine, job, file = ENGINES["ior"], machine.job(config, folder), folder / "run.darshan"
    # The site's or the user's settings may leave files out of the log, or put it elsewhere.
    plain = {
        name: value for name, value in os.environ.items() if not name.startswith(_DARSHANS_OWN)
    }
    for command in engine.prepare(job):
        _finish(command, plain | {"DARSHAN_DISABLE": "1"}, folder, time_limit_s)
    settings = _settings(machine.darshan, file, plain.get("LD_PRELOAD"))
    under_darshan = replace(job, launch=f"{job.launch} {settings}".strip())
    said = _finish(engine.measure(under_darshan), plain, folder, time_limit_s)
    if not file.exists():
        raise IoncastError(
            f"IOR ended, but Darshan wrote no log{_quoted(said, 'darshan')}",
            where=machine.darshan,
            remedy="check that this library is built with the MPI of the launcher and of IOR",
        )
    log = read_log(file)
    if log.job.nprocs != job.config.tasks:
        raise IoncastError(
            f"the run had {log.job.nprocs} processes instead of {job.config.tasks}",
            where=job.launch,
            remedy="use the launcher of the MPI that IOR and Darshan are built with",
        )
    return log


def _settings(library: str, log: Path, preloaded: str | None) -> str:
    """The words before IOR that trace it, and it alone: launchers would be traced too."""
    variables = {
        "LD_PRELOAD": ":".join(filter(None, [library, preloaded])),
        "DARSHAN_LOGFILE": str(log),
        # After MPI_Abort Darshan leaves files here instead of a log.
        "DARSHAN_MMAP_LOGPATH": str(log.parent),
        # By default Darshan leaves out files below /var, /usr and others.
        "DARSHAN_EXCLUDE_DIRS": "none",
    }
    return shlex.join(["env", *(f"{name}={value}" for name, value in variables.items())])


def _finish(command: str, environment: Mapping[str, str], folder: Path, time_limit_s: float) -> str:
    """Run a shell command to its end, and return what it printed.

    Raises
    ------
    IoncastError
        If it fails, or has not ended after the time limit.
    """
    output = folder / "said"
    with output.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - the user's launcher and programs
            ["/bin/bash", "-c", command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(time_limit_s)
        except subprocess.TimeoutExpired:
            raise IoncastError(
                f"the run has not ended after {time_limit_s:.0f} s",
                where=command,
                remedy="give it more time with --time-limit, or verify a smaller run",
            ) from None
        finally:
            _stop(process)
    said = output.read_text(encoding="utf-8", errors="replace")
    if code:
        raise IoncastError(
            f"the run failed with exit code {code}{_quoted(said, 'error')}",
            where=command,
            remedy="try this command by itself",
        )
    return said


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that is still running, and its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)


def _quoted(said: str, word: str) -> str:
    """Quote the first line with a word, or else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = next((line for line in lines if word in line.casefold()), "".join(lines[-1:]))
    return f": {visible(telling[:_LONGEST_SHOWN])}" if telling else " and printed nothing"
