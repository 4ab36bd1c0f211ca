"""Runs applications on a platform and measures their bandwidth."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from experiments.applications import rank
from experiments.applications.barrier import barrier
from experiments.applications.counters import FileUse, Request, write_counters_log
from experiments.applications.darshan_writer import check_writer
from experiments.applications.installed import has_mpi4py
from experiments.applications.launching import Launch, Platform
from experiments.applications.spec import Access, Application, Step, hacc_io_particles
from ioncast_base.errors import InputError, IoncastError
from ior_configs.hints import PREFIX, buffering_hints, with_places

LogSource = Literal["darshan", "counters"]
"""The origin of a log: Darshan's runtime, or the bundled ranks' own counters."""

_MIB = 1024**2
# No run takes longer to start, and none is slower: this is half of the lowest bandwidth in
# experiments/data.
_LONGEST_START_S = 600.0
_SLOWEST_MIB_S = 1.0
_HACC_IO_RESULT = re.compile(r"WRITE Checkpoint Perf:.*\] (\d+) Bytes (\S+) MaxTime")


@dataclass(frozen=True)
class StepRun:
    """A step of a run: its bytes, and the seconds from the first open to the last close."""

    name: str
    bytes: int
    time_s: float

    @property
    def bandwidth_mib_s(self) -> float:
        """Bytes over time."""
        return self.bytes / _MIB / self.time_s


@dataclass(frozen=True)
class Run:
    """One run of an application.

    Attributes
    ----------
    application : str
        Name of the application.
    io_nodes : int
        Number of I/O nodes of the run; 0 is direct access.
    started : str
        Time of the start, in UTC, ISO 8601.
    steps : tuple of StepRun
        The steps in their order.
    log_source : {"darshan", "counters"} or None
        Origin of the run's Darshan log; None without a log.
    """

    application: str
    io_nodes: int
    started: str
    steps: tuple[StepRun, ...]
    log_source: LogSource | None

    @property
    def bytes(self) -> int:
        """Bytes of all steps."""
        return sum(step.bytes for step in self.steps)

    @property
    def time_s(self) -> float:
        """Seconds of all steps, without the pauses."""
        return sum(step.time_s for step in self.steps)

    @property
    def bandwidth_mib_s(self) -> float:
        """Bytes of all steps over their time."""
        return self.bytes / _MIB / self.time_s


def run_application(
    application: Application,
    platform: Platform,
    io_nodes: int,
    *,
    log: Path | None = None,
    darshan: Path | None = None,
    hacc_io_program: Path | None = None,
    limit_s: float | None = None,
    start: threading.Barrier | None = None,
) -> Run:
    """Run an application once, on files that are created before and removed after it.

    The files have the same names in every run, so they lie on the same servers.

    Parameters
    ----------
    application : Application
        The application. Its processes are in Python, and start before the first step begins.
    platform : Platform
        The platform to run on.
    io_nodes : int
        Number of I/O nodes; 0 is direct access.
    log : Path, optional
        Path at which a Darshan log of the run is written.
    darshan : Path, optional
        Darshan's library (`find_darshan`), which then writes the log; the processes run under
        MPI (mpi4py). Without it, the log holds the processes' own counters.
    hacc_io_program : Path, optional
        HACC-IO itself (`find_hacc_io`), to run under MPI in place of the bundled processes.
        Only Darshan can write its log.
    limit_s : float, optional
        A run that takes longer is ended, and is an error. By default `longest_s`.
    start : threading.Barrier, optional
        A barrier at which bundled processes wait for those of other runs before the first step.

    Returns
    -------
    Run
        The measured steps.

    Raises
    ------
    IoncastError
        If a process fails, the run takes too long, or a program that it needs is missing.
    """
    _check_programs(application, log, darshan, hacc_io_program)
    traced = darshan if log else None
    with (
        tempfile.TemporaryDirectory(prefix="ioncast-") as temporary,
        _data_folder(application, platform.scratch) as data,
    ):
        folder = Path(temporary)
        allowed_s = longest_s(application) if limit_s is None else limit_s
        launch = Launch(application, platform, io_nodes, folder, traced, allowed_s)
        started_s = time.time()
        if hacc_io_program:
            steps = [_run_hacc_io(launch, hacc_io_program, data)]
        else:
            uses = _run_bundled(launch, data, start)
            steps = [_step_run(step, uses[step.name]) for step in application.steps]
        if log and traced:
            _keep_darshan_log(launch.darshan_log, log)
        elif log:
            write_counters_log(
                log,
                itertools.chain.from_iterable(uses.values()),
                tasks=application.tasks,
                program=application.name,
                started_s=started_s,
                run_time_s=time.time() - started_s,
                scratch=platform.scratch,
            )
    return Run(
        application=application.name,
        io_nodes=io_nodes,
        started=datetime.fromtimestamp(started_s, timezone.utc).isoformat(timespec="seconds"),
        steps=tuple(steps),
        log_source=("darshan" if traced else "counters") if log else None,
    )


def longest_s(application: Application) -> float:
    """Seconds after which a run of an application must be stuck.

    Parameters
    ----------
    application : Application
        The application that runs.

    Returns
    -------
    float
        10 minutes, the pauses, and the time for all bytes at 1 MiB/s.
    """
    pauses_s = application.pause_s * (len(application.steps) - 1)
    return _LONGEST_START_S + pauses_s + application.bytes / _MIB / _SLOWEST_MIB_S


def _check_programs(
    application: Application, log: Path | None, darshan: Path | None, hacc_io_program: Path | None
) -> None:
    if hacc_io_program:
        if hacc_io_particles(application) is None:
            raise InputError(
                "HACC-IO cannot do this: its header is always 24 MiB",
                where=application.name,
                remedy="run it at scale 1, or with the bundled processes",
            )
        if log and not darshan:
            raise InputError(
                "HACC-IO does not count its requests, so it cannot write a log",
                where=application.name,
                remedy="give Darshan's library, or run the bundled processes",
            )
    elif _needs_mpi(application, darshan if log else None) and not has_mpi4py():
        raise InputError(
            "this run needs MPI in Python",
            where=application.name,
            remedy="install mpi4py for the MPI of this machine",
        )
    if log and not darshan:
        check_writer()


def _needs_mpi(application: Application, darshan: Path | None) -> bool:
    return darshan is not None or any(step.api == "MPIIO" for step in application.steps)


@contextlib.contextmanager
def _data_folder(application: Application, scratch: Path) -> Iterator[Path]:
    """Create the folder for the run's files, with the files that the run reads."""
    folder = scratch / application.name
    # A run that was killed may have left files.
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _fill(application, folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(application: Application, folder: Path) -> None:
    try:
        folder.mkdir()
        for step in application.steps:
            if step.files > 1:
                for task in range(application.tasks):
                    (folder / step.file_name(task)).mkdir()
            if step.operation == "read":
                _write_input(application, step, folder)
    except OSError as error:
        raise IoncastError(
            f"the application's files cannot be created: {error.strerror}", where=str(folder)
        ) from None


def _write_input(application: Application, step: Step, folder: Path) -> None:
    zeros = bytes(_MIB)
    sizes: dict[str, int] = {}
    for task in range(application.tasks):
        for name, accesses in step.uses(task, application.tasks):
            ends = [offset + size for offset, size in accesses]
            sizes[name] = max(sizes.get(name, 0), *ends, 0)
    for name, size in sizes.items():
        with (folder / name).open("wb", buffering=0) as file:
            for offset in range(0, size, _MIB):
                file.write(zeros[: size - offset])


def _run_bundled(
    launch: Launch, data: Path, start: threading.Barrier | None
) -> dict[str, list[FileUse]]:
    """Run the bundled processes; return the I/O of each in each step, with times since now."""
    application, folder = launch.application, launch.folder
    origin_s = time.monotonic()
    for task in range(application.tasks):
        (folder / f"plan.{task}.json").write_text(json.dumps(_plan(application, task, data)))
    mpi = _needs_mpi(application, launch.darshan)
    if mpi:
        (folder / "mpi").touch()
    # Ranks start faster without site-packages, which only mpi4py needs.
    python = [sys.executable, "-I", *([] if mpi else ["-S"])]
    with barrier(folder / "barrier", application.tasks, start):
        launch.run([*python, str(rank.__file__), str(folder)], mpi=mpi)
    results = [
        iter(json.loads((folder / f"result.{task}.json").read_text()))
        for task in range(application.tasks)
    ]
    return {
        step.name: [
            _file_use(step, task, data / name, accesses, result, origin_s)
            for task, of_files in enumerate(results)
            for name, accesses in step.uses(task, application.tasks)
            if (result := next(of_files)) is not None
        ]
        for step in application.steps
    }


def _plan(application: Application, task: int, data: Path) -> list[dict[str, Any]]:
    return [
        {
            "path": str(data / name),
            "operation": step.operation,
            "api": step.api,
            "hints": _hints(step, application.nodes),
            "accesses": accesses,
            "begins": number == 0,
            "pause_s": 0.0 if step is application.steps[0] else application.pause_s,
        }
        for step in application.steps
        for number, (name, accesses) in enumerate(step.uses(task, application.tasks))
    ]


def _file_use(
    step: Step,
    task: int,
    path: Path,
    accesses: Sequence[Access],
    result: dict[str, Any],
    origin_s: float,
) -> FileUse:
    def since_origin(times: Sequence[float]) -> tuple[float, float]:
        return times[0] - origin_s, times[1] - origin_s

    return FileUse(
        path=str(path),
        rank=task,
        api=step.api,
        operation=step.operation,
        opened_s=since_origin(result["opened"]),
        closed_s=since_origin(result["closed"]),
        requests=tuple(
            Request(*access, *since_origin(times))
            for access, times in zip(accesses, result["requests"], strict=True)
        ),
    )


def _hints(step: Step, nodes: int) -> dict[str, str]:
    """Write the hints of MPI-IO with which a step has its aggregators, evenly on all nodes."""
    if not step.aggregators:
        return {}
    hints = with_places(buffering_hints(step.operation, step.aggregators), nodes)
    return dict(hint.removeprefix(PREFIX).split("=", 1) for hint in hints)


def _step_run(step: Step, uses: Sequence[FileUse]) -> StepRun:
    first = min(use.opened_s[0] for use in uses)
    last = max(use.closed_s[1] for use in uses)
    return StepRun(step.name, sum(use.bytes for use in uses), last - first)


def _run_hacc_io(launch: Launch, program: Path, data: Path) -> StepRun:
    """Run HACC-IO; it prints the time of its slowest process, from the open to the close."""
    (step,) = launch.application.steps
    particles = hacc_io_particles(launch.application)
    output = launch.run([str(program), str(particles), str(data / step.name)], mpi=True)
    found = _HACC_IO_RESULT.search(output)
    if found is None:
        raise IoncastError("HACC-IO printed no result", where=str(program))
    return StepRun(step.name, int(found[1]), float(found[2]))


def _keep_darshan_log(written: Path, log: Path) -> None:
    if not written.exists():
        raise IoncastError(
            "Darshan wrote no log",
            where=str(log),
            remedy="is its library built for this machine's MPI?",
        )
    shutil.move(written, log)
