"""The machine that verifies benchmarks: its launcher, IOR, Darshan's library, folder and limits."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchdb.campaigns.engines import ENGINES, Engine, Job
from benchdb.campaigns.folder import Cell, obstacles
from benchdb.campaigns.platform_file import Platform, checked_directory, read_platform
from benchdb.campaigns.script import filled
from ioncast_base.errors import InputError
from ioncast_base.wording import size
from ior_configs import IorConfig

_LIBRARY = "libdarshan.so"
_IOR: Engine = ENGINES["ior"]
# More processes than that spend their time in waiting for a core.
_PROCESSES_PER_CORE = 32
_COMMON_PLACES = (
    "usr/local/lib/libdarshan.so",
    "usr/lib*/libdarshan.so",
    "usr/lib/*/libdarshan.so",
    "opt/darshan*/lib/libdarshan.so",
)


@dataclass(frozen=True)
class Machine:
    """The programs, the folder and the limits of runs.

    Attributes
    ----------
    platform : Platform
        Launcher, folder of the test files and limits.
    ior : str
        IOR's program.
    darshan : str
        Path of Darshan's library.
    is_described : bool
        Whether a platform file describes the machine. Otherwise all processes run here.
    """

    platform: Platform
    ior: str
    darshan: str
    is_described: bool

    def cell(self, config: IorConfig) -> Cell:
        """A configuration as the platform runs it, with its fewest I/O nodes."""
        tasks = config.tasks or 1
        fewest = -(-tasks // self.platform.processes_per_node)
        nodes = (config.nodes or min(fewest, tasks)) if self.is_described else 1
        return Cell(
            "verify", replace(config, tasks=tasks, nodes=nodes), min(self.platform.io_nodes)
        )

    @property
    def test_directory(self) -> str:
        """The folder in which each run gets a folder of its own."""
        return self.platform.test_directory.replace("{io_nodes}", str(min(self.platform.io_nodes)))

    def job(self, config: IorConfig, folder: Path) -> Job:
        """The run of a configuration in a folder."""
        cell = self.cell(config)
        return Job(
            config=cell.config,
            program=self.ior,
            launch=filled(self.platform.launch, cell),
            test_file=str(folder / "f"),
            output="output.json",
        )

    def hindrances(self, config: IorConfig) -> list[str]:
        """List the reasons why the machine cannot run a configuration, as clauses."""
        cell = self.cell(config)
        found = obstacles(cell.config, self.platform, "ior")
        needed = cell.bytes + self.platform.free_space_limit
        free = shutil.disk_usage(self.test_directory).free
        if free < needed:
            found.append(
                f"it needs {size(needed)} in {self.test_directory}, with the space that must"
                f" stay free, and {size(free)} are free"
            )
        return found


def find_machine(platform_file: str | None, work_dir: str | None, library: str | None) -> Machine:
    """Find the programs and the folder for runs, and check that they exist.

    Parameters
    ----------
    platform_file : str or None
        The platform file; None for this machine, with mpiexec and IOR from the PATH.
    work_dir : str or None
        The folder in which each run gets a folder of its own; None for that of the platform
        file, or the folder of temporary files.
    library : str or None
        Path of Darshan's library; None to look for it.

    Raises
    ------
    InputError
        If a program, the library or the folder is missing.
    """
    folder = None if work_dir is None else checked_directory(str(Path(work_dir).absolute()))
    if platform_file is None:
        platform = _this_machine(folder or checked_directory(tempfile.gettempdir()))
    else:
        platform = read_platform(platform_file)
        if folder is not None:
            platform = platform.model_copy(update={"test_directory": folder})
    machine = Machine(
        platform=platform,
        ior=_program(platform.programs.ior or "ior"),
        darshan=_darshan(library),
        is_described=platform_file is not None,
    )
    _check_launcher(machine)
    if not os.access(machine.test_directory, os.W_OK | os.X_OK):
        raise InputError(
            "the folder for the runs does not exist or cannot be written to",
            where=machine.test_directory,
            remedy="create it, or name another one with --work-dir",
        )
    return machine


def _this_machine(folder: str) -> Platform:
    return Platform(
        system="this machine",
        io_nodes=(0,),
        nodes=1,
        processes_per_node=_PROCESSES_PER_CORE * (os.cpu_count() or 1),
        test_directory=folder,
        launch="mpiexec -n {tasks}",
    )


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise InputError(
            f"{name} is not an installed program",
            remedy="put IOR's folder on the PATH, or name IOR as programs.ior in a platform file"
            " (--platform)",
        )
    return found


def _check_launcher(machine: Machine) -> None:
    words = shlex.split(machine.job(IorConfig(), Path("/")).launch)
    program = next((word for word in words if "=" not in word), None)
    if program is not None and shutil.which(program) is None:
        raise InputError(
            f"the launcher {program} is not an installed program",
            remedy="put its folder on the PATH, or name another one as launch in a platform file"
            " (--platform)",
        )


def _darshan(given: str | None) -> str:
    found = next((path for path in _libraries(given) if path.is_file()), None)
    if found is None:
        raise InputError(
            "not a file" if given else f"Darshan's {_LIBRARY} is not found on this machine",
            where=given,
            remedy=f"name Darshan's {_LIBRARY} with --darshan-lib; it must be built with the MPI of"
            " the launcher",
        )
    return str(found.absolute())


def _libraries(given: str | None) -> Iterator[Path]:
    """List the places where Darshan's library may be, the most telling first."""
    if given is not None:
        yield Path(given)
        return
    for preloaded in os.environ.get("LD_PRELOAD", "").replace(":", " ").split():
        if Path(preloaded).name.startswith(_LIBRARY):
            yield Path(preloaded)
    script = shutil.which("darshan-config")
    if script is not None:
        yield from Path(script).resolve().parent.parent.glob(f"lib*/{_LIBRARY}")
    for pattern in _COMMON_PLACES:
        yield from sorted(Path("/").glob(pattern))
