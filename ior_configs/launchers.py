"""Command lines of launchers such as mpiexec, with IOR behind them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ioncast_base.errors import InputError
from ioncast_base.sizes import parse_count
from ior_configs.hints import hints_in, is_hint

_PROGRAM = re.compile(r"ior(?:[-_.0-9][^=]*)?", re.IGNORECASE)


@dataclass(frozen=True)
class _Launcher:
    """The options of one launcher for the number of tasks, of nodes and of tasks per node.

    jsrun starts `tasks_per_set` tasks, one by default, in each of its `sets` of resources.
    """

    tasks: tuple[str, ...]
    nodes: tuple[str, ...] = ()
    tasks_per_node: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    tasks_per_set: tuple[str, ...] = ()
    sets_per_node: tuple[str, ...] = ()


# Launchers by their names, which may have the name of an MPI library behind them: mpirun.mpich,
# mpiexec.hydra, mpirun_rsh.
_LAUNCHERS = {
    re.compile(r"(?:mpi(?:exec|run)(?:[-._].*)?|orterun|prterun|prun)"): _Launcher(
        tasks=("-n", "-np", "--n", "--np"),
        tasks_per_node=("-ppn", "-perhost", "-npernode", "--npernode", "-N"),
    ),
    re.compile("srun"): _Launcher(("-n", "--ntasks"), ("-N", "--nodes"), ("--ntasks-per-node",)),
    re.compile("flux"): _Launcher(("-n", "--ntasks"), ("-N", "--nodes"), ("--tasks-per-node",)),
    re.compile("aprun"): _Launcher(("-n", "--pes"), (), ("-N", "--pes-per-node")),
    re.compile("ibrun"): _Launcher(("-n", "-np")),
    re.compile("jsrun"): _Launcher(
        ("-p", "--np"),
        sets=("-n", "--nrs"),
        tasks_per_set=("-a", "--tasks_per_rs"),
        sets_per_node=("-r", "--rs_per_host"),
    ),
}


@dataclass(frozen=True)
class CommandLine:
    """The parts of a command line; `hints` are those of MPI-IO in the environment of IOR."""

    tasks: int | None
    nodes: int | None
    args: tuple[str, ...]
    launch: tuple[str, ...]
    hints: tuple[str, ...]


def split_command_line(text: str) -> CommandLine:
    """Split a command line such as ``mpiexec -n 32 -genv X Y ior -w -b 16m`` at the word ior.

    Tasks and nodes are None if no known launcher gives them.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"the command line cannot be split into words: {error}") from error
    program = _program_position(words)
    tasks, nodes = _placement(words[:program])
    launch, args = tuple(words[:program]), tuple(words[program + 1 :])
    return CommandLine(tasks, nodes, args, launch, tuple(hints_in(launch)))


def _program_position(words: Sequence[str]) -> int:
    for position, word in enumerate(words):
        following = words[position + 1 : position + 2]
        is_last_or_has_options = not following or following[0].startswith("-")
        is_program = _PROGRAM.fullmatch(PurePosixPath(word).name) and not is_hint(word)
        if is_program and is_last_or_has_options:
            return position
    raise InputError(
        "there is no ior in the command line", remedy='write it like "mpiexec -n 32 ior -w -b 16m"'
    )


def _placement(words: Sequence[str]) -> tuple[int | None, int | None]:
    """Read the numbers of tasks and nodes in the options of the launcher that starts IOR."""
    for position in reversed(range(len(words))):
        name = PurePosixPath(words[position]).name
        launcher = next((_LAUNCHERS[known] for known in _LAUNCHERS if known.fullmatch(name)), None)
        if launcher:
            return _numbers(launcher, words[position + 1 :])
    return None, None


def _numbers(launcher: _Launcher, arguments: Sequence[str]) -> tuple[int | None, int | None]:
    tasks = _number_after(arguments, launcher.tasks)
    nodes = _number_after(arguments, launcher.nodes)
    per_node = _number_after(arguments, launcher.tasks_per_node)
    sets = _number_after(arguments, launcher.sets)
    sets_per_node = _number_after(arguments, launcher.sets_per_node)
    if sets and tasks is None:
        tasks = sets * (_number_after(arguments, launcher.tasks_per_set) or 1)
    if sets and sets_per_node:
        nodes = -(-sets // sets_per_node)
    if per_node and tasks and nodes is None:
        nodes = -(-tasks // per_node)
    if per_node and nodes and tasks is None:
        tasks = nodes * per_node
    return tasks, nodes


def _number_after(arguments: Sequence[str], names: tuple[str, ...]) -> int | None:
    """Find the number of ``-n 32``, ``-n32``, ``--ntasks 32`` or ``--ntasks=32``."""
    for position, word in enumerate(arguments):
        if word in names:
            return parse_count("".join(arguments[position + 1 : position + 2]))
        for name in names:
            attached = word.removeprefix(name)
            if word.startswith(f"{name}=") or (word.startswith(name) and attached.isdecimal()):
                return parse_count(attached.removeprefix("="))
    return None
