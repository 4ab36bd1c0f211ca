"""Runs a program's processes on the compute nodes of a platform, until all have ended."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from tempfile import NamedTemporaryFile
from typing import IO

from experiments.platform import remains
from experiments.platform.emulated import Emulated, Placement
from experiments.platform.programs import marked
from ioncast_base import signals
from ioncast_base.errors import IoncastError

_POLL_S = 0.01
_GRACE_S = 5.0
# MPICH's ranks are in different network namespaces of one machine, so only shared memory connects
# them. Open MPI's options let many ranks share few cores: a rank that waits lets others run.
_MPI = {
    "UCX_TLS": "posix,sysv,cma,self",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


def run_ranks(
    emulated: Emulated, program: Sequence[str], placement: Placement, *, mpi: bool
) -> int:
    """Run a program, wait for its end, and end all processes that it leaves running.

    Parameters
    ----------
    emulated : Emulated
        The platform.
    program : sequence of str
        The program and its arguments.
    placement : Placement
        The compute nodes of its processes.
    mpi : bool
        Whether mpiexec starts the processes.

    Returns
    -------
    int
        0, or the exit code of the first process that failed; the others are then ended.

    Raises
    ------
    IoncastError
        If mpiexec is not installed.
    KeyboardInterrupt
        If a signal stopped the run (SIGINT, SIGTERM, SIGHUP).
    """
    if mpi and shutil.which("mpiexec") is None:
        raise IoncastError(
            "mpiexec cannot be found", remedy="install an MPI library, such as Debian's mpich"
        )
    run = f"{emulated.name}/run-{uuid.uuid4().hex}"
    common = marked(run)
    rank = [str(emulated.folder / "rank"), " ".join(map(str, placement.mounts)), *program]
    processes: list[subprocess.Popen[bytes]] = []
    with signals.raised(), NamedTemporaryFile("r", dir=emulated.folder) as failures:
        try:
            if mpi:
                launch = ["mpiexec", "-n", str(placement.tasks), *rank]
                told = {"IONCAST_FAILURES": failures.name, **_preloaded(emulated)}
                processes.append(_start(launch, {**_MPI, **common, **told}))
            else:
                for number in range(placement.tasks):
                    who = {"IONCAST_RANK": str(number), "IONCAST_TASKS": str(placement.tasks)}
                    processes.append(_start(rank, {**common, **who}))
            return _first_failure(processes, failures)
        finally:
            with signals.ignored():
                _end(processes, run)


def _preloaded(emulated: Emulated) -> dict[str, str]:
    if not emulated.yielding.exists():
        return {}
    before = os.environ.get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{emulated.yielding}{f':{before}' if before else ''}"}


def _start(command: Sequence[str], variables: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the user's own program
        # The kernel ends the program if this process is killed.
        ["setpriv", "--pdeathsig=TERM", *command],  # noqa: S607
        stdin=subprocess.DEVNULL,
        env=variables,
        start_new_session=True,
    )


def _first_failure(processes: Sequence[subprocess.Popen[bytes]], failures: IO[str]) -> int:
    """Wait until all processes have ended or one has failed; MPI ranks write failures to a file."""
    running = list(processes)
    while running:
        codes = [process.poll() for process in running]
        # Read the file after polling: a rank writes to it before its launcher ends.
        if told := failures.readline():
            return int(told)
        if code := next(filter(None, codes), 0):
            # As shells do, report 128 plus the number of the signal that ended the process.
            return code if code > 0 else 128 - code
        running = [process for process in running if process.returncode is None]
        time.sleep(_POLL_S)
    return 0


def _end(processes: Sequence[subprocess.Popen[bytes]], run: str) -> None:
    """End the processes that still run: first with SIGTERM, then with SIGKILL."""
    for process in processes:
        if process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
    give_up_at = time.monotonic() + _GRACE_S
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, give_up_at - time.monotonic()))
    remains.end(lambda: remains.members(run))
    for process in processes:
        process.wait()
