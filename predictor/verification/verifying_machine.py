"""The machine that verifies benchmarks: its launcher, IOR, Darshan's library, folder and limits."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchdb.campaigns.disk_room import room_problems
from benchdb.campaigns.engines import BenchmarkJob
from benchdb.campaigns.folder import CampaignCell, obstacles
from benchdb.campaigns.launcher_starts import find_program
from benchdb.campaigns.platform_file import Platform, Switch, checked_directory, read_platform
from benchdb.campaigns.prerequisites import problems_before
from benchdb.campaigns.script import exports, filled
from ioncast_base.darshan_runtime import LIBRARY, find_darshan
from ioncast_base.errors import InputError
from ior_configs import IorConfig

# More processes than that spend their time in waiting for a core.
_PROCESSES_PER_CORE = 16


@dataclass(frozen=True)
class VerifyingMachine:
    """The programs, the folder and the limits of runs.

    Attributes
    ----------
    is_described : bool
        Whether a platform file describes the machine. Otherwise all processes run here.
    """

    platform: Platform
    ior: str
    darshan: str
    is_described: bool

    def cell(self, config: IorConfig) -> CampaignCell:
        """A configuration with the number of nodes on which it runs."""
        tasks = config.tasks or 1
        fewest = -(-tasks // self.platform.processes_per_node)
        nodes = (config.nodes or min(fewest, tasks)) if self.is_described else 1
        # The log of a phase may not tell whether it calls fsync; the proposed line has none.
        known = replace(config, fsync=config.fsync or "none", tasks=tasks, nodes=nodes)
        return CampaignCell("verify", known, self.platform.io_nodes[0])

    def job(self, config: IorConfig, folder: Path) -> BenchmarkJob[IorConfig]:
        """The run of a configuration in a folder."""
        cell = self.cell(config)
        return BenchmarkJob(
            config=cell.ior_config,
            program=self.ior,
            launch=filled(self.platform.launch, cell),
            test_file=str(folder / "f"),
            output="output.json",
        )

    @property
    def environment(self) -> str:
        """Shell commands that set the platform's environment variables."""
        return exports(self.platform, partial(filled, cell=self.cell(IorConfig())))

    def hindrances(self, config: IorConfig) -> list[str]:
        """List the reasons why the machine cannot run a configuration, as clauses."""
        cell = self.cell(config)
        room = room_problems(self.platform, [cell])
        return [
            *obstacles(cell.config, self.platform, "ior"),
            *(f"{problem.where}: {problem.what}" for problem in room),
        ]

    def check(self, configs: Sequence[IorConfig], warn: Callable[[str], None]) -> None:
        """Check that the launcher starts the processes of some configurations, with IOR."""
        cells = [self.cell(config) for config in configs]
        problems = problems_before(self.platform, {"ior": self.ior}, cells, warn)
        for problem in problems[1:]:
            warn(str(problem))
        for problem in problems[:1]:
            raise problem


def find_machine(
    platform_file: str | None, work_dir: str | None, library: str | None
) -> VerifyingMachine:
    """Find the programs and the folder for runs.

    Parameters
    ----------
    work_dir : str or None
        The folder in which each run gets a folder of its own; None for that of the platform
        file, or the folder of temporary files.
    """
    folder = None if work_dir is None else checked_directory(str(Path(work_dir).absolute()))
    if platform_file is None:
        platform = _this_machine(folder or checked_directory(tempfile.gettempdir()))
    else:
        platform = _without_io_nodes(read_platform(platform_file), folder)
    ior = find_program(platform, "ior")
    if ior is None:
        raise InputError(
            "IOR is not found on this machine",
            remedy="put its folder on the PATH, or name it as programs.ior in a platform file"
            " (--platform)",
        )
    return VerifyingMachine(
        platform=platform,
        ior=ior,
        darshan=_darshan(library),
        is_described=platform_file is not None,
    )


def _this_machine(folder: str) -> Platform:
    return Platform(
        system="this machine",
        io_nodes=(0,),
        nodes=1,
        processes_per_node=_PROCESSES_PER_CORE * (os.cpu_count() or 1),
        test_directory=folder,
        launch="mpiexec -n {tasks}",
    )


def _without_io_nodes(platform: Platform, folder: str | None) -> Platform:
    """The platform as it runs processes from here, with its fewest I/O nodes."""
    fewest = min(platform.io_nodes)
    return platform.model_copy(
        update={
            "io_nodes": (fewest,),
            "io_nodes_switch": Switch(environment=platform.io_nodes_switch.environment),
            "slurm": None,
            "test_directory": folder or platform.test_directory.replace("{io_nodes}", str(fewest)),
        }
    )


def _darshan(given: str | None) -> str:
    found = find_darshan() if given is None else Path(given).absolute()
    if found is None or not found.is_file():
        raise InputError(
            "not a file" if given else f"Darshan's {LIBRARY} is not found on this machine",
            where=given,
            remedy=f"name Darshan's {LIBRARY} with --darshan-lib; it must be built with the MPI of"
            " the launcher",
        )
    return str(found)
