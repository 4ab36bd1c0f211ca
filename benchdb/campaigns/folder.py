"""The folder of a campaign: its runs, and the files that each run leaves.

campaign.toml, platform.toml   copies of the files given to `ioncast campaign run`
settings.json                  engine, programs and database; written last
cells/CELL.sh                  the script of a cell: it runs the benchmark once
runs/CELL-rREPETITION/         one run: its log, the output of the benchmark, its exit code
results.csv                    the finished runs, for `iops report`
iops.yaml, iops.log, iops/     the orchestrator's configuration, log and working folder
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.mdtest_engine import engine_for
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.measurements.storing import pattern_of
from benchdb.store.database import without_password
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ior_configs import IorConfig, MdtestConfig
from ior_configs.campaign_files import Campaign, read_campaign

_SETTINGS = "settings.json"
_NAMES = ("system", "engine", "program", "mdtest", "database")
# An orchestrator whose parent was killed needs a moment to stop and to release its lock.
_LOCK_SECONDS = 2.0


@dataclass(frozen=True)
class CampaignCell:
    """A configuration with one number of I/O nodes.

    The name for files is computed from these two alone, so it stays the same when cells are added.
    """

    name: str
    config: IorConfig | MdtestConfig
    io_nodes: int

    @property
    def ior_config(self) -> IorConfig:
        """The configuration of a cell that IOR or fio runs; a TypeError for one of mdtest."""
        if isinstance(self.config, MdtestConfig):
            raise TypeError(f"mdtest runs the cell {self.name}")
        return self.config

    @property
    def tasks(self) -> int:
        """Number of processes."""
        return self.config.tasks or 1

    @property
    def nodes(self) -> int:
        """Number of compute nodes."""
        return self.config.nodes or 1

    @property
    def processes_per_node(self) -> int:
        """Largest number of processes on a node."""
        return -(-self.tasks // self.nodes)

    @property
    def bytes(self) -> int:
        """Size of the test files together."""
        return self.tasks * self.config.bytes_per_process

    @property
    def files(self) -> int:
        """Number of the test files."""
        if isinstance(self.config, MdtestConfig):
            return self.tasks * self.config.files_per_process
        return self.tasks if self.config.file_per_process else 1


@dataclass(frozen=True)
class CampaignRun:
    """One repetition of a cell, with the folder of its files."""

    cell: CampaignCell
    repetition: int
    path: Path


@dataclass(frozen=True)
class AdaptiveGoal:
    """The end of a campaign that chooses each run by the results so far.

    It ends when the expected regret is at most `regret` (0 to 1), or before a run that is not
    expected to end within `budget_s` seconds since the start; None is no limit.
    """

    regret: float | None
    budget_s: int | None


@dataclass(frozen=True)
class CampaignFolder:
    """A campaign on a platform; `database` is None for the default database of the user.

    `program` is that of `engine`; `mdtest` is None if the campaign has no configuration for it.
    `cells` has every configuration that can run, with each number of I/O nodes. A campaign with a
    `goal` chooses among their runs; without one, all of them run.
    """

    path: Path
    campaign: Campaign
    platform: Platform
    engine: str
    program: str
    mdtest: str | None
    database: str | None
    cells: tuple[CampaignCell, ...]
    goal: AdaptiveGoal | None = None

    @property
    def runs(self) -> list[CampaignRun]:
        """All repetitions of all cells."""
        return [
            CampaignRun(cell, repetition, self.path / "runs" / f"{cell.name}-r{repetition}")
            for cell in self.cells
            for repetition in range(1, self.campaign.repetitions + 1)
        ]


def obstacles(config: IorConfig | MdtestConfig, platform: Platform, engine: str) -> list[str]:
    """The reasons why a configuration cannot run, as clauses; empty if it can run."""
    runs_it = engine_for(config, engine)
    found = list(runs_it.refusals(config))
    cell = CampaignCell("", config, 0)
    most = platform.processes_per_node
    if cell.nodes > 1 and platform.node_directory is None and not runs_it.launched:
        found.append(f"{engine} runs on one node, because {platform.system} has no node_directory")
    if cell.nodes > platform.nodes:
        found.append(f"it needs {cell.nodes} nodes, {platform.system} has nodes = {platform.nodes}")
    elif cell.processes_per_node > most:
        found.append(
            f"it needs {cell.processes_per_node} processes per node, {platform.system} has"
            f" processes_per_node = {most}"
        )
    return found


def usual_path(campaign: str, system: str) -> Path:
    """The folder of a campaign in the current folder, if the user names no other."""
    return Path(re.sub(r"[^\w.-]+", "-", f"{campaign}-{system}"))


def create(
    path: Path,
    *,
    campaign: str,
    platform: str,
    system: str,
    engine: str,
    program: str,
    database: str | None,
    mdtest: str | None = None,
    goal: AdaptiveGoal | None = None,
) -> CampaignFolder:
    """Create the folder of a new campaign."""
    if not str(path).isprintable():
        raise InputError(
            f"{str(path)!r} is not a valid name of a folder", remedy="choose another with --dir"
        )
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            known = is_campaign(path)
            resume = f"ioncast campaign resume {shlex.quote(str(path))}"
            raise InputError(
                "the folder already has a campaign" if known else "the folder is not empty",
                where=str(path),
                remedy=f"continue with `{resume}`, or choose another folder with --dir"
                if known
                else "choose another folder with --dir",
            )
        (path / "campaign.toml").write_text(campaign, encoding="utf-8")
        (path / "platform.toml").write_text(platform, encoding="utf-8")
        settings = {
            "system": system,
            "engine": engine,
            "program": program,
            "mdtest": mdtest,
            "database": database and without_password(database),
            "goal": goal and asdict(goal),
        }
        write_file(path / _SETTINGS, json.dumps(settings, indent=1))
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
    return read(path)


def is_campaign(path: Path) -> bool:
    """Whether a folder is that of a campaign, complete as `create` made it."""
    return (path / _SETTINGS).exists()


def read(path: Path) -> CampaignFolder:
    """Read the folder of a campaign; a missing campaign or damaged files are an InputError."""
    settings = _settings(path / _SETTINGS)
    platform = read_platform(path / "platform.toml")
    system = settings.pop("system")
    if platform.system != system:
        raise InputError(
            f"the campaign began on {system!r}, not on {platform.system!r}",
            where=str(path / "platform.toml"),
            remedy="start another campaign for another system",
        )
    campaign = read_campaign(
        path / "campaign.toml",
        nodes=platform.nodes,
        processes_per_node=platform.processes_per_node,
    )
    return CampaignFolder(
        path=path.absolute(),
        campaign=campaign,
        platform=platform,
        **settings,
        cells=cells_of(campaign, platform, settings["engine"]),
    )


def cells_of(campaign: Campaign, platform: Platform, engine: str) -> tuple[CampaignCell, ...]:
    """Every configuration that can run on the platform, with each number of I/O nodes."""
    configs: tuple[IorConfig | MdtestConfig, ...] = (*campaign.configurations, *campaign.files)
    return tuple(
        CampaignCell(f"{digest_of(config)}-n{io_nodes}", config, io_nodes)
        for config in configs
        if not obstacles(config, platform, engine)
        for io_nodes in platform.io_nodes
    )


def _settings(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        chosen = {name: settings[name] for name in _NAMES}
        goal = settings["goal"]
        chosen["goal"] = None if goal is None else AdaptiveGoal(**goal)
        optional = [chosen[name] or "" for name in ("mdtest", "database")]
        texts = (chosen["system"], chosen["program"], *optional)
        if chosen["engine"] not in ENGINES or not all(isinstance(text, str) for text in texts):
            raise ValueError("ioncast does not write such values")
    except FileNotFoundError as error:
        raise InputError(
            "not the folder of a campaign",
            where=str(file.parent),
            remedy="start one with `ioncast campaign run`",
        ) from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"cannot be read: {error}", where=str(file)) from error
    return chosen


@contextmanager
def locked(folder: CampaignFolder) -> Iterator[int]:
    """Lock the folder for one orchestrator; yield the lock, which a child process may inherit."""
    descriptor = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _acquire(descriptor, folder.path)
        yield descriptor
    finally:
        os.close(descriptor)


def is_running(folder: CampaignFolder) -> bool:
    """Whether an orchestrator is running in the folder."""
    try:
        descriptor = os.open(folder.path / "lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # A shared lock, so that two processes that look at once do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _acquire(descriptor: int, path: Path) -> None:
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() > deadline:
                raise InputError(
                    "the campaign is already running",
                    where=str(path),
                    remedy="watch it with `ioncast campaign status`",
                ) from error
            time.sleep(0.1)
        else:
            return


def digest_of(config: IorConfig | MdtestConfig) -> str:
    """A short name of a configuration for files."""
    if isinstance(config, MdtestConfig):
        text = f"{config.command_line(launcher=True)} nodes={config.nodes}"
    else:
        text = pattern_of(config)
    return hashlib.sha256(text.encode()).hexdigest()[:8]
