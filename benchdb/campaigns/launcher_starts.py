"""Checks of a platform's commands: the shell finds them, and the launcher starts processes."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from benchdb.campaigns.failing import comparable, error_line, named_error
from benchdb.campaigns.folder import CampaignCell
from benchdb.campaigns.mdtest_engine import is_launched
from benchdb.campaigns.platform_file import Platform, fill
from benchdb.campaigns.script import exports, filled
from ioncast_base.errors import InputError
from ioncast_base.wording import listed

_START_SECONDS = 30.0
_STOP_SECONDS = 10.0
# Words that the shell takes as they are: no variable, no assignment, no path in the run's folder.
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_/+-][A-Za-z0-9_./+-]*")
_LOOK = 'for word; do type -t -- "$word" > /dev/null || echo "$word"; done'
_STARTED = "ioncast:started"
_PROBE = f"""echo {_STARTED}
type -t -- "$1" > /dev/null || echo "ioncast:program $HOSTNAME"
[ -w "$2" ] && [ -x "$2" ] || echo "ioncast:directory $HOSTNAME"
"""


def find_program(platform: Platform, engine: str) -> str | None:
    """The program of an engine: as the platform file names it, else on the PATH of the runs."""
    named = platform.programs.get(engine)
    if named or "PATH" not in platform.io_nodes_switch.environment:
        return named or shutil.which(engine)
    one = partial(fill, tasks=1, nodes=1, processes_per_node=1, io_nodes=platform.io_nodes[0])
    return _bash(f"{exports(platform, one)}\ntype -P -- {engine}").strip() or None


def _bash(script: str, *arguments: str) -> str:
    """The output of a shell script that only looks for commands."""
    return subprocess.run(  # noqa: S603 - the platform's own settings
        ["/bin/bash", "-c", script, "bash", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        errors="replace",
        check=False,
    ).stdout


def unknown_commands(
    platform: Platform, engine: str, program: str | None, cell: CampaignCell
) -> Iterator[InputError]:
    """Find the commands of the platform that the shell of a run on this machine would not find.

    Only the first word of a command is looked for.
    """
    keys = _keys_by_word(platform, engine, program, cell)
    script = f"{exports(platform, partial(filled, cell=cell))}\n{_LOOK}"
    for word in _bash(script, *keys).splitlines():
        if word in keys:
            yield InputError(
                "not found on this machine, or not executable",
                where=word,
                remedy=f"install it, or correct {keys[word]} in the platform file",
            )


def _keys_by_word(
    platform: Platform, engine: str, program: str | None, cell: CampaignCell
) -> Mapping[str, str]:
    """The first words of the platform's commands, with their keys in the platform file."""
    switch = platform.io_nodes_switch
    commands = {"io_nodes_switch.before": switch.before, "io_nodes_switch.after": switch.after}
    if is_launched(engine) and platform.launch.split():
        commands["launch"] = platform.launch
    elif program is not None:
        commands[f"programs.{engine}"] = program
    first = {(filled(text, cell).split() or [""])[0]: key for key, text in commands.items()}
    return {word: key for word, key in first.items() if _PLAIN_WORD.fullmatch(word)}


def launch_problems(
    platform: Platform,
    program: str | None,
    cells: Sequence[CampaignCell],
    warn: Callable[[str], None],
) -> list[InputError]:
    """Start as many processes as the largest run has; they look for the program and the folder.

    A command before each run may start what the launcher needs and create the folder. With such a
    command, only a program that is missing is a problem.
    """
    found: dict[str, InputError] = {}
    for launch, cell in _launches(platform, cells).items():
        directory = platform.test_directory.replace("{io_nodes}", str(cell.io_nodes))
        probe = shlex.join(["bash", "-c", _PROBE, "bash", program or "bash", directory])
        environment = exports(platform, partial(filled, cell=cell))
        started = _start(f"{environment}\n{launch} {probe}")
        if started.code is None and not named_error(started.output):
            warn(f"{launch}: waits for more than {_START_SECONDS:.0f} s, so it was not checked")
            continue
        for problem in _problems_of(started, cell, launch, program, directory, platform):
            found.setdefault(comparable(str(problem)), problem)
    return list(found.values())


def missing_here(program: str | None) -> Iterator[InputError]:
    """A problem if this machine has no such program; for launchers that cannot tell."""
    if program is not None and shutil.which(program) is None:
        yield InputError(
            "not found on this machine, or not executable",
            where=program,
            remedy="install it, or name it in the platform file's table [programs]",
        )


def _launches(platform: Platform, cells: Sequence[CampaignCell]) -> dict[str, CampaignCell]:
    """The launch of the largest run with each number of I/O nodes; equal ones once."""
    largest: dict[int, CampaignCell] = {}
    for cell in sorted(cells, key=lambda cell: (cell.tasks, cell.nodes)):
        largest[cell.io_nodes] = cell
    return {filled(platform.launch, cell): cell for cell in largest.values()}


@dataclass(frozen=True)
class _Started:
    """The output of a launcher and its processes, and its exit code; None if it did not end."""

    output: str
    code: int | None

    def hosts(self, lack: str) -> list[str]:
        """The nodes whose processes lack something."""
        return sorted(set(re.findall(rf"ioncast:{lack} (\S+)", self.output)))


def _start(script: str) -> _Started:
    """Run a script to its end, but not forever: it may wait in the queue of a scheduler."""
    process = subprocess.Popen(  # noqa: S603 - the platform's own launcher
        ["/bin/bash", "-c", script],
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        return _Started(process.communicate(timeout=_START_SECONDS)[0], process.returncode)
    except subprocess.TimeoutExpired:
        return _Started(_output_after_stop(process), None)
    finally:
        # Ctrl-C stops the launcher too, which is in a session of its own.
        if process.poll() is None:
            _output_after_stop(process)


def _output_after_stop(process: subprocess.Popen[str]) -> str:
    """Stop a launcher, which stops its processes; return the rest of its output.

    A process that ignores SIGTERM keeps the pipe open after the end of the launcher.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_STOP_SECONDS)[0]
    return ""


def _problems_of(
    started: _Started,
    cell: CampaignCell,
    launch: str,
    program: str | None,
    directory: str,
    platform: Platform,
) -> Iterator[InputError]:
    has_before = bool(platform.io_nodes_switch.before)
    number = started.output.count(_STARTED)
    if started.code != 0 or number != cell.tasks:
        if not has_before:
            yield _start_problem(started, number, cell, launch)
            yield from missing_here(program)
        return
    hosts = started.hosts("program")
    if hosts and program is not None:
        yield InputError(
            f"not found, or not executable, on {_shown(hosts)}",
            where=program,
            remedy="install it there, or name it in the platform file's table [programs]",
        )
    hosts = started.hosts("directory")
    if hosts and not has_before:
        yield InputError(
            f"the test directory does not exist or cannot be written to on {_shown(hosts)}",
            where=directory,
            remedy="create it there, or correct test_directory in the platform file",
        )


def _start_problem(started: _Started, number: int, cell: CampaignCell, launch: str) -> InputError:
    wanted = "1 process" if cell.tasks == 1 else f"{cell.tasks:,} processes"
    if started.code is None:
        what = f"does not start {wanted}: {named_error(started.output)}"
    elif started.code:
        said = error_line(started.output) or f"exit code {started.code}"
        what = f"cannot start {wanted}: {said}"
    else:
        what = f"starts {number} of {wanted}, going by their output"
    return InputError(
        what,
        where=launch or "without a launcher",
        remedy="correct launch, nodes or processes_per_node in the platform file",
    )


def _shown(hosts: Sequence[str]) -> str:
    """Names of nodes; of many, only the first three."""
    more = [f"{len(hosts) - 3} more"] if len(hosts) > 3 else []
    return listed([*hosts[:3], *more])
