"""`ioncast trace`: run a program under Darshan, and show its causes and its time line."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import click

from ioncast.checks_command import check
from ioncast.timeline_command import timeline
from ioncast.timeline_of_run import ranks_of_text
from ioncast.trace_settings import darshan_configuration, is_static
from ioncast_base import signals
from ioncast_base.command_options import WholeNumber, warn
from ioncast_base.darshan_runtime import darshan_variables, find_darshan, without_darshan
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_digits

# The processes of an MPI program start Darshan in MPI_Init. With DARSHAN_ENABLE_NONMPI the
# launcher would write a log too.
_LAUNCHERS = ("mpiexec", "mpirun", "srun", "aprun", "jsrun", "prun", "flux", "ibrun", "orterun")
_HOW_TO_GET = (
    "load its module, `spack install darshan-runtime`, or Darshan-runtime of EasyBuild; Debian has"
    " no package; then give --darshan LIB"
)
_WHY_NO_LOG = (
    "likely reasons: the program is static; it was killed, or did not call MPI_Finalize; it is not"
    " an MPI program, but has a launcher (set DARSHAN_ENABLE_NONMPI=1); the launcher does not pass"
    " LD_PRELOAD (Open MPI on other nodes: mpirun -x); the compute nodes cannot write this folder;"
    " a runtime built with --with-log-path-by-env wrote to the folder of its variable"
)


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="""\b
Examples:
  ioncast trace -- mpiexec -n 4 ./app input
  ioncast trace --html timeline.html --log app.darshan -- srun -n 64 ./app
  ioncast trace --dxt-memory 64 --files '*.h5' --ranks 0-3 -- mpiexec -n 16 ./app
  ioncast trace --overhead 5 -- python3 serial.py
""",
)
@click.option(
    "--dxt-memory",
    "memory_mib",
    type=WholeNumber(1, 1 << 20),
    metavar="MIB",
    help="Memory of a process for requests, for POSIX and for MPI-IO each.  [default: Darshan's]",
)
@click.option("--files", metavar="GLOB", help="Only files with such a path, such as '*.h5'.")
@click.option("--ranks", metavar="RANKS", help="Only these ranks, such as 0-63 or 0,8,16-23.")
@click.option(
    "--darshan",
    "library",
    metavar="LIB",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Darshan's library, libdarshan.so.  [default: searched]",
)
@click.option(
    "--log",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Keep the log here.  [default: PROGRAM-TIME.darshan]",
)
@click.option(
    "--overhead",
    "repetitions",
    type=WholeNumber(1, 1000),
    help="Run the program N times plain and N times traced, in turn, and compare their times.",
)
@click.option("--html", "page", metavar="FILE", type=click.Path(), help="Write a time line.")
@click.argument("command", metavar="COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def trace(
    context: click.Context,
    memory_mib: int | None,
    files: str | None,
    ranks: str | None,
    library: Path | None,
    log: Path | None,
    repetitions: int | None,
    page: str | None,
    command: tuple[str, ...],
) -> None:
    """Run a program under Darshan, and tell why its I/O is slow.

    COMMAND is the program or its launcher, such as mpiexec or srun, with all arguments. Darshan is
    loaded into its processes with LD_PRELOAD and traces each request (DXT). The log is kept, and
    the causes are those of `ioncast check`.

    The exit code is that of COMMAND, or 2 if there is no log.
    """
    library = library or find_darshan()
    if library is None:
        raise InputError("Darshan's runtime is not on this machine", remedy=_HOW_TO_GET)
    if any(each in " :" for each in str(library)):
        what = "LD_PRELOAD cannot name a path with a space or a colon"
        raise InputError(what, where=visible(str(library)), remedy="move the library")
    program = _program(command)
    name = f"{program.name}-{datetime.now().astimezone():%Y%m%dT%H%M%S}.darshan"
    log = log or Path(visible(name))
    folder = log.with_name(f"{log.stem}-logs")
    if log.exists() or folder.exists():
        what = f"the file or its folder {visible(folder.name)} exists"
        raise InputError(what, where=visible(str(log)), remedy="give another --log")
    # The process of rank 0 writes the log, perhaps on another node, which does not see /tmp.
    with tempfile.TemporaryDirectory(dir=log.absolute().parent, prefix=".ioncast-trace-") as place:
        configuration = Path(place, "darshan.conf")
        selected = None if ranks is None else ranks_of_text(ranks, "--ranks")
        configuration.write_text(darshan_configuration(files, memory_mib, selected), "utf-8")
        variables = _variables(library.absolute(), configuration, program.name in _LAUNCHERS)
        if repetitions is None:
            code, written, _seconds = _traced(command, variables, Path(place, "logs"))
        else:
            code, written = _compared(command, variables, Path(place), repetitions)
        kept = _keep(written, log, folder) if written else None
    if code:
        warn(f"{visible(command[0])} ended with exit code {code}")
    if kept is None and code and repetitions is not None:
        # The plain run failed, before any traced one.
        sys.exit(code)
    if kept is None:
        what = f"{visible(program.name)} left no log of Darshan in a temporary folder here"
        raise IoncastError(what, where=visible(str(log.absolute().parent)), remedy=_WHY_NO_LOG)
    with suppress(SystemExit):
        context.invoke(check, logs=(str(kept),))
    if page is not None:
        context.invoke(timeline, logs=(str(kept),), page=page)
    sys.exit(code)


def _program(command: Sequence[str]) -> Path:
    """Find the program or launcher, which must be able to load libraries."""
    found = shutil.which(command[0])
    if found is None:
        raise InputError("there is no such program", where=visible(command[0]))
    if is_static(Path(found)):
        raise InputError(
            "the program is static, so LD_PRELOAD does not reach it",
            where=visible(found),
            remedy="link it dynamically, or with Darshan's `darshan-config --pre-ld-flags`",
        )
    return Path(found)


def _variables(library: Path, configuration: Path, has_launcher: bool) -> dict[str, str]:
    plain = without_darshan(os.environ)
    variables = plain | darshan_variables(library, configuration.parent, plain)
    # Versions before 3.4 know only this name, and newer ones still do.
    variables |= {"DXT_ENABLE_IO_TRACE": "1", "DARSHAN_CONFIG_PATH": str(configuration)}
    if not has_launcher or "DARSHAN_ENABLE_NONMPI" in os.environ:
        variables["DARSHAN_ENABLE_NONMPI"] = "1"
    return variables


def _traced(
    command: Sequence[str], variables: Mapping[str, str], folder: Path
) -> tuple[int, list[Path], float]:
    """Run a program; return its exit code, its logs and its seconds."""
    today = datetime.now().astimezone()
    # Darshan writes into a folder of the date at which a process starts, and does not make it.
    for day in (today, today + timedelta(days=1)):
        Path(folder, f"{day.year}/{day.month}/{day.day}").mkdir(parents=True, exist_ok=True)
    target = {"DARSHAN_LOGPATH": str(folder)}
    # This name holds with each runtime, but only for one log: that of an MPI program.
    if "DARSHAN_ENABLE_NONMPI" not in variables:
        target = {"DARSHAN_LOGFILE": str(folder / "run.darshan")}
    code, seconds = _run(command, {**variables, **target})
    return code, sorted(folder.rglob("*.darshan")), seconds


def _compared(
    command: Sequence[str], variables: Mapping[str, str], folder: Path, repetitions: int
) -> tuple[int, list[Path]]:
    """Run a program plain and traced in turn, and print the times; stop when a run fails."""
    plain, traced = [], []
    written: list[Path] = []
    untraced = without_darshan(os.environ) | {"DARSHAN_DISABLE": "1"}
    for repetition in range(repetitions):
        code, seconds = _run(command, untraced)
        plain.append(seconds)
        if code == 0:
            code, written, seconds = _traced(command, variables, folder / f"logs-{repetition}")
            traced.append(seconds)
        if code:
            return code, written
    more = statistics.median(traced) / statistics.median(plain) - 1
    # A time is as likely above the median as below it, so all N are on one side with 2 / 2^N.
    sure = 1 - 0.5 ** (repetitions - 1)
    click.echo(
        f"execution time, median of {counted(repetitions, 'run')} each"
        f" (the range holds the true median with {sure:.1%}):\n"
        f"  plain   {_spread(plain)}\n  traced  {_spread(traced)}\n  overhead {more:+.1%}"
    )
    return 0, written


def _spread(seconds: Sequence[float]) -> str:
    shortest, longest = in_digits(min(seconds)), in_digits(max(seconds))
    return f"{in_digits(statistics.median(seconds))} s ({shortest} to {longest} s)"


def _run(command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, float]:
    """Run a program with these variables; return its exit code, as shells have it, and seconds."""
    start = time.perf_counter()
    with signals.passed_on() as begun:
        try:
            program = subprocess.Popen(command, env=variables)  # noqa: S603
        except OSError as error:
            raise InputError(str(error.strerror), where=visible(command[0])) from error
        begun(program)
        code = program.wait()
    return (code if code >= 0 else 128 - code), time.perf_counter() - start


def _keep(written: Sequence[Path], log: Path, folder: Path) -> Path:
    """Move a log to LOG, or several into the folder; return the log with most data."""
    if len(written) == 1:
        shutil.move(written[0], log)
        click.echo(f"log: {visible(str(log))}")
        return log
    kept = folder / max(written, key=lambda each: each.stat().st_size).name
    folder.mkdir()
    for path in written:
        shutil.move(path, folder)
    click.echo(f"{counted(len(written), 'log')} of processes; the largest: {visible(str(kept))}")
    return kept
