"""Checks before the first run of a campaign: engine, commands, launcher and directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence

from benchdb.campaigns.disk_room import room_problems
from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.folder import CampaignCell
from benchdb.campaigns.launcher_starts import (
    find_program,
    launch_problems,
    missing_here,
    unknown_commands,
)
from benchdb.campaigns.platform_file import Platform
from ioncast_base.errors import InputError

# IOPS submits, follows and cancels jobs with them.
_SLURM_COMMANDS = ("sbatch", "squeue", "scontrol", "scancel")


def find_engine(platform: Platform, engine: str | None) -> tuple[str, str]:
    """Choose the engine and find its program: the user's, or the first one that this machine has.

    A program that the platform's file names is not looked for, because it may exist only on the
    compute nodes. Without a program, or if the number of I/O nodes would not change the engine's
    runs, an InputError is raised.
    """
    for name in [engine] if engine else ENGINES:
        program = find_program(platform, name)
        if program:
            _check_tells_io_nodes(platform, name)
            return name, program
    missing = engine or " and ".join(ENGINES)
    raise InputError(
        f"not found on this machine: {missing}",
        remedy="install it, or name it in the platform file's table [programs]",
    )


def problems_before(
    platform: Platform,
    engine: str,
    program: str | None,
    cells: Sequence[CampaignCell],
    warn: Callable[[str], None],
) -> list[InputError]:
    """Everything that would let runs fail, as far as this machine can tell before the first one.

    Jobs of Slurm run on other machines, so for them only the commands of Slurm are looked for. A
    command before each run may create the directories and start what the launcher needs. With such
    a command, neither the directories nor a launcher that fails are a problem. `warn` gets a
    sentence for each check that was not possible.
    """
    if platform.slurm is not None:
        return list(_missing_slurm_commands())
    commands = list(unknown_commands(platform, engine, program, cells[0]))
    room = [] if platform.io_nodes_switch.before else room_problems(platform, cells)
    launch: list[InputError] = []
    if ENGINES[engine].launched and commands:
        launch = list(missing_here(program))
    elif ENGINES[engine].launched:
        launch = launch_problems(platform, program, cells, warn)
    known = {problem.where for problem in room}
    return [*commands, *(problem for problem in launch if problem.where not in known), *room]


def _missing_slurm_commands() -> Iterator[InputError]:
    for command in _SLURM_COMMANDS:
        if shutil.which(command) is None:
            yield InputError(
                "not found on this machine",
                where=command,
                remedy="run the campaign where Slurm's commands are, or remove [slurm] from the"
                " platform file",
            )


def _check_tells_io_nodes(platform: Platform, engine: str) -> None:
    launched = ENGINES[engine].launched
    if platform.tells_io_nodes(launched=launched):
        return
    directory = "node_directory" if platform.node_directory else "test_directory"
    own = "test_directory, launch" if launched else directory
    raise InputError(
        f"with {engine} every number of I/O nodes would give the same run: no setting that"
        f" {engine} uses contains {{io_nodes}}",
        where=platform.system,
        remedy=f"put {{io_nodes}} into {own} or [io_nodes_switch] of the platform file",
    )
