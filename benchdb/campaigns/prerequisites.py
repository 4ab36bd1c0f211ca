"""Checks before the first run of a campaign: engine, commands, launcher and directories."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence

from benchdb.campaigns.disk_room import room_problems
from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.folder import CampaignCell
from benchdb.campaigns.launcher_starts import (
    find_program,
    launch_problems,
    missing_here,
    unknown_commands,
)
from benchdb.campaigns.mdtest_engine import MDTEST, is_launched
from benchdb.campaigns.platform_file import Platform
from ioncast_base.errors import InputError, require_package
from ior_configs import MdtestConfig
from ior_configs.campaign_files import Campaign

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
    raise _missing(engine or " and ".join(ENGINES))


def find_mdtest(platform: Platform, campaign: Campaign) -> str | None:
    """Find mdtest as `find_engine` does; None if the campaign does not need it."""
    if not campaign.files:
        return None
    program = find_program(platform, MDTEST.name)
    if program is None:
        raise _missing(MDTEST.name)
    _check_tells_io_nodes(platform, MDTEST.name)
    return program


def _missing(programs: str) -> InputError:
    return InputError(
        f"not found on this machine: {programs}",
        remedy="install it, or name it in the platform file's table [programs]",
    )


def problems_before(
    platform: Platform,
    programs: Mapping[str, str | None],
    cells: Sequence[CampaignCell],
    warn: Callable[[str], None],
) -> list[InputError]:
    """Everything that would let runs fail, as far as this machine can tell before the first one.

    `programs` are those of the engine and, if some cells are for it, of mdtest. Jobs of Slurm run
    on other machines, so for them only the commands of Slurm are looked for. A command before each
    run may create the directories and start what the launcher needs. With such a command, neither
    the directories nor a launcher that fails are a problem. `warn` gets a sentence for each check
    that was not possible.

    Raises
    ------
    MissingPackageError
        If IOPS, which runs campaigns, is not installed.
    """
    require_package("iops", "ioncast campaign")
    if platform.slurm is not None:
        return list(_missing_slurm_commands())
    room = [] if platform.io_nodes_switch.before else room_problems(platform, cells)
    commands: list[InputError] = []
    launch: list[InputError] = []
    for engine, program in programs.items():
        is_mdtest = engine == MDTEST.name
        own_cells = [cell for cell in cells if isinstance(cell.config, MdtestConfig) == is_mdtest]
        if own_cells:
            unknown = list(unknown_commands(platform, engine, program, own_cells[0]))
            commands += unknown
            launch += _launch_problems(platform, engine, program, own_cells, warn, unknown)
    known = {problem.where for problem in room}
    problems = [*commands, *(problem for problem in launch if problem.where not in known), *room]
    return list({str(problem): problem for problem in problems}.values())


def _launch_problems(
    platform: Platform,
    engine: str,
    program: str | None,
    cells: Sequence[CampaignCell],
    warn: Callable[[str], None],
    unknown: Sequence[InputError],
) -> list[InputError]:
    """The problems of a program that a launcher starts; `unknown` are commands without a file."""
    if not is_launched(engine):
        return []
    return (
        list(missing_here(program)) if unknown else launch_problems(platform, program, cells, warn)
    )


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
    launched = is_launched(engine)
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
