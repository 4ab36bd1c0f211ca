"""Starts the processes of a run on a platform, and ends them with their launcher."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from experiments.applications import rank
from experiments.applications.spec import Application
from ioncast_base.errors import IoncastError
from ioncast_base.wording import in_words

_PATIENCE_S = 10.0
# Leave out all files but the application's: Python also reads its own modules. Trace all requests.
_DARSHAN_CONFIGURATION = (
    "NAME_EXCLUDE .* *\nNAME_INCLUDE ^{scratch} *\nMOD_ENABLE DXT_POSIX,DXT_MPIIO\n"
)
# Keep the libraries that the platform preloads.
_PRELOAD = 'export LD_PRELOAD="$0${LD_PRELOAD:+:$LD_PRELOAD}"; exec "$@"'


class Platform(Protocol):
    """The platform of a run; `experiments.platform` emulates one."""

    @property
    def scratch(self) -> Path:
        """Folder of the parallel file system: the same path for every process."""

    def rank_command(
        self,
        program: Sequence[str],
        *,
        io_nodes: int,
        tasks: int,
        nodes: int | None = None,
        mpi: bool = False,
    ) -> list[str]:
        """Write the command that runs a program once for each process."""


@dataclass(frozen=True)
class Launch:
    """A way to start the processes of one run.

    Attributes
    ----------
    application : Application
        The application that runs.
    platform : Platform
        The platform to run on.
    io_nodes : int
        Number of I/O nodes; 0 is direct access.
    folder : Path
        Folder for files of this run that are not the application's.
    darshan : Path or None
        Darshan's library, to trace the processes with; None without tracing.
    limit_s : float
        Seconds after which the run is ended with an error.
    """

    application: Application
    platform: Platform
    io_nodes: int
    folder: Path
    darshan: Path | None
    limit_s: float

    @property
    def darshan_log(self) -> Path:
        """Path at which Darshan writes its log."""
        return self.folder / "log.darshan"

    def run(self, program: Sequence[str], *, mpi: bool) -> str:
        """Run a program once for each process, and return what it prints.

        Raises
        ------
        IoncastError
            If a process fails, or the run takes too long.
        """
        command = self.platform.rank_command(
            [*self._tracing(), *program],
            io_nodes=self.io_nodes,
            tasks=self.application.tasks,
            nodes=self.application.nodes,
            mpi=mpi,
        )
        where = f"{self.application.name} with {in_words(self.io_nodes)}"
        return _output(command, self.limit_s, where)

    def _tracing(self) -> list[str]:
        """Command line in front of the program, which traces the ranks but not their launcher."""
        if self.darshan is None:
            return []
        configuration = self.folder / "darshan.conf"
        configuration.write_text(
            _DARSHAN_CONFIGURATION.format(scratch=re.escape(str(self.platform.scratch)))
        )
        return [
            "env",
            f"DARSHAN_CONFIG_PATH={configuration}",
            f"DARSHAN_LOGFILE={self.darshan_log}",
            *("sh", "-c", _PRELOAD, str(self.darshan)),
        ]


def _output(command: Sequence[str], limit_s: float, where: str) -> str:
    """Run a command; it ends before this function does, or if this process is killed."""
    with subprocess.Popen(  # noqa: S603
        ["setpriv", "--pdeathsig=TERM", *command],  # noqa: S607
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            output, errors = process.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired as error:
            said = _reason((error.stderr or b"").decode(errors="replace"))
            raise IoncastError(f"it took longer than {limit_s:g} s: {said}", where=where) from None
        finally:
            _end(process)
    if process.returncode:
        reason = _reason(errors)
        raise IoncastError(f"a process failed ({process.returncode}): {reason}", where=where)
    return output


def _reason(errors: str) -> str:
    """First error of one of ioncast's programs, else the last line: MPI adds lines after both."""
    lines = errors.strip().splitlines()
    ours = [
        line.removeprefix(rank.ERROR_PREFIX) for line in lines if line.startswith(rank.ERROR_PREFIX)
    ]
    return (ours[:1] or lines[-1:] or ["no reason given"])[0]


def _end(process: subprocess.Popen[str]) -> None:
    """End a launcher that still runs; it ends the ranks that it started."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
