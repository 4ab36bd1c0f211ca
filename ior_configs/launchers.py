"""Command lines of launchers such as mpiexec, with IOR behind them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from ioncast_base.errors import InputError
from ioncast_base.sizes import parse_count

_PROGRAM = re.compile(r"ior(?:[-_.0-9][^=]*)?", re.IGNORECASE)


@dataclass(frozen=True)
class _Launcher:
    """The options of one launcher for the number of tasks, of nodes and of tasks per node."""

    tasks: tuple[str, ...]
    nodes: tuple[str, ...]
    tasks_per_node: tuple[str, ...]


_MPIEXEC = _Launcher(
    tasks=("-n", "-np", "--n", "--np"),
    nodes=(),
    tasks_per_node=("-ppn", "-perhost", "-npernode", "--npernode", "-N"),
)
_LAUNCHERS = {
    "mpiexec": _MPIEXEC,
    "mpiexec.hydra": _MPIEXEC,
    "mpirun": _MPIEXEC,
    "srun": _Launcher(("-n", "--ntasks"), ("-N", "--nodes"), ("--ntasks-per-node",)),
    "aprun": _Launcher(("-n",), (), ("-N",)),
}


@dataclass(frozen=True)
class CommandLine:
    """The parts of a command line.

    Attributes
    ----------
    tasks, nodes : int or None
        The numbers in the launcher's options.
    args : tuple of str
        IOR's own arguments.
    """

    tasks: int | None
    nodes: int | None
    args: tuple[str, ...]


def split_command_line(text: str) -> CommandLine:
    """Split a command line into the launcher's numbers and IOR's arguments.

    Parameters
    ----------
    text : str
        A command line such as ``mpiexec -n 32 -genv X Y ior -w -b 16m``.

    Returns
    -------
    CommandLine
        The parts; tasks and nodes are None if no known launcher gives them.

    Raises
    ------
    InputError
        If the quotes do not match, or no program is called ior.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"the command line cannot be split into words: {error}") from error
    program = _program_position(words)
    tasks, nodes = _placement(words[:program])
    return CommandLine(tasks, nodes, tuple(words[program + 1 :]))


def _program_position(words: Sequence[str]) -> int:
    for position, word in enumerate(words):
        following = words[position + 1 : position + 2]
        is_last_or_has_options = not following or following[0].startswith("-")
        if _PROGRAM.fullmatch(PurePosixPath(word).name) and is_last_or_has_options:
            return position
    raise InputError(
        "there is no ior in the command line", remedy='write it like "mpiexec -n 32 ior -w -b 16m"'
    )


def _placement(words: Sequence[str]) -> tuple[int | None, int | None]:
    names = [PurePosixPath(word).name for word in words]
    start = next((i for i, name in enumerate(names) if name in _LAUNCHERS), None)
    if start is None:
        return None, None
    launcher, arguments = _LAUNCHERS[names[start]], words[start + 1 :]
    tasks = _number_after(arguments, launcher.tasks)
    nodes = _number_after(arguments, launcher.nodes)
    per_node = _number_after(arguments, launcher.tasks_per_node)
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
