"""Runs IOR once under Darshan, in a folder of its own, and reads the log of the run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.failing import error_line
from ioncast_base import signals
from ioncast_base.darshan_runtime import darshan_variables, without_darshan
from ioncast_base.errors import IoncastError
from ioncast_base.files import end_of_log
from ior_configs import IorConfig
from predictor.verification.verifying_machine import VerifyingMachine
from summario.reading.log import DarshanLog, read_log

# Launchers need a moment to end the processes that they started.
_STOP_SECONDS = 10.0
_POLL_SECONDS = 0.1
_LONGEST_SHOWN = 300


def traced(config: IorConfig, machine: VerifyingMachine, time_limit_s: float) -> DarshanLog:
    """Run IOR once under Darshan, and read its log.

    A configuration that reads gets its file first, in a run that Darshan does not trace. All files
    are in a new folder, which is removed at the end.
    """
    parent = machine.platform.test_directory
    with tempfile.TemporaryDirectory(prefix="ioncast-verify-", dir=parent) as path:
        return _run(config, machine, Path(path), time_limit_s)


def _run(
    config: IorConfig, machine: VerifyingMachine, folder: Path, time_limit_s: float
) -> DarshanLog:
    engine, job, file = ENGINES["ior"], machine.job(config, folder), folder / "run.darshan"
    shell = _Shell(
        folder, time_limit_s, machine.environment, where=config.command_line(launcher=True)
    )
    plain = without_darshan(os.environ)
    for command in engine.prepare(job):
        shell.run(command, plain | {"DARSHAN_DISABLE": "1"})
    settings = _settings(machine.darshan, file, plain)
    under_darshan = replace(job, launch=f"{job.launch} {settings}".strip())
    said = shell.run(engine.measure(under_darshan), plain)
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


def _settings(library: str, log: Path, plain: Mapping[str, str]) -> str:
    """The words before IOR that trace it, and it alone: launchers would be traced too."""
    variables = darshan_variables(Path(library), log.parent, plain)
    variables["DARSHAN_LOGFILE"] = str(log)
    return shlex.join(["env", *(f"{name}={value}" for name, value in variables.items())])


@dataclass(frozen=True)
class _Shell:
    """Runs commands in a folder, each at most for the time limit; `where` names them in errors.

    `exports` are shell commands before each.
    """

    folder: Path
    time_limit_s: float
    exports: str
    where: str

    def run(self, command: str, environment: Mapping[str, str]) -> str:
        """Run a command to its end, and return what it printed."""
        output = self.folder / "said"
        with output.open("wb") as file, signals.noted() as asked_to_stop:
            process = subprocess.Popen(  # noqa: S603 - the user's launcher and programs
                ["/bin/bash", "-c", f"{self.exports}\n{command}".strip()],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = _wait(process, self.time_limit_s, asked_to_stop)
            finally:
                _stop(process)
        if asked_to_stop():
            raise KeyboardInterrupt
        said = end_of_log(output)
        if code is None:
            raise IoncastError(
                f"the run has not ended after {self.time_limit_s:.0f} s",
                where=self.where,
                remedy="give it more time with --time-limit, or verify a smaller run",
            )
        if code:
            raise IoncastError(
                f"the run failed with exit code {code}{_quoted(said)}",
                where=self.where,
                remedy="try this command by itself",
            )
        return said


def _wait(
    process: subprocess.Popen[bytes], time_limit_s: float, asked_to_stop: Callable[[], bool]
) -> int | None:
    """Wait for the exit code; None if a signal or the time limit comes first."""
    deadline = time.monotonic() + time_limit_s
    while not asked_to_stop() and time.monotonic() < deadline:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_POLL_SECONDS)
    return process.poll()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that is still running, and its group, of which some may ignore SIGTERM."""
    if process.poll() is not None:
        return
    os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_SECONDS)


def _quoted(said: str, word: str = "") -> str:
    """Quote the lines with a word, or else the line that names the error."""
    lines = [line for line in said.splitlines() if word in line]
    telling = error_line("\n".join(lines)) or error_line(said)
    return f": {telling[:_LONGEST_SHOWN]}" if telling else " and printed nothing"
