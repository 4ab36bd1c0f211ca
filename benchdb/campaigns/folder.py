"""The folder of a campaign: what is to be run, and where each run leaves what it did.

campaign.toml, platform.toml   copies of what `ioncast campaign run` was given
settings.json                  engine, program and database; written last
cells/CELL.sh                  how a configuration runs with one number of I/O nodes
runs/CELL-rREPETITION/         one run: its log, the benchmark's output, its exit code
iops.yaml, iops.log, iops/     the orchestrator's configuration, log and working folder
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.platform_file import Platform, read_platform
from benchdb.measurements.storing import pattern_of
from benchdb.store.database import without_password
from ioncast_base.errors import InputError
from ioncast_base.files import write_file
from ior_configs import IorConfig
from ior_configs.campaign_files import Campaign, read_campaign

_SETTINGS = "settings.json"
_NAMES = ("system", "engine", "program", "database")
# An orchestrator whose parent was killed takes a moment to end.
_LOCK_SECONDS = 2.0


@dataclass(frozen=True)
class Cell:
    """A configuration with one number of I/O nodes.

    Attributes
    ----------
    name : str
        Of files; it depends on nothing but the two others, so a campaign may grow.
    config : IorConfig
        One operation, tasks and nodes known.
    io_nodes : int
        I/O nodes.
    """

    name: str
    config: IorConfig
    io_nodes: int

    @property
    def tasks(self) -> int:
        """Processes."""
        return self.config.tasks or 1

    @property
    def nodes(self) -> int:
        """Compute nodes."""
        return self.config.nodes or 1

    @property
    def processes_per_node(self) -> int:
        """Processes on a node, at most."""
        return -(-self.tasks // self.nodes)

    @property
    def bytes(self) -> int:
        """Bytes of the test files."""
        return self.tasks * self.config.bytes_per_process


@dataclass(frozen=True)
class Run:
    """One repetition of a cell, and the folder it is kept in."""

    cell: Cell
    repetition: int
    path: Path


@dataclass(frozen=True)
class CampaignFolder:
    """A campaign on a platform.

    Attributes
    ----------
    path : Path
        The folder, absolute.
    campaign, platform : Campaign, Platform
        What to run, and on what.
    engine, program : str
        Which engine runs it, and its program's path or name.
    database : str or None
        Where measurements go; None is the user's own.
    cells : tuple of Cell
        Every configuration that can be run, with each number of I/O nodes.
    """

    path: Path
    campaign: Campaign
    platform: Platform
    engine: str
    program: str
    database: str | None
    cells: tuple[Cell, ...]

    @property
    def runs(self) -> list[Run]:
        """Every repetition of every cell."""
        return [
            Run(cell, repetition, self.path / "runs" / f"{cell.name}-r{repetition}")
            for cell in self.cells
            for repetition in range(1, self.campaign.repetitions + 1)
        ]


def obstacles(config: IorConfig, platform: Platform, engine: str) -> list[str]:
    """Say in clauses why a configuration cannot be run; empty if it can."""
    found = list(ENGINES[engine].refusals(config))
    cell = Cell("", config, 0)
    most = platform.processes_per_node
    if cell.nodes > 1 and platform.node_directory is None and not ENGINES[engine].launched:
        found.append(f"{engine} runs on one node, {platform.system} has no node_directory")
    if cell.nodes > platform.nodes:
        found.append(f"it needs {cell.nodes} nodes, {platform.system} has nodes = {platform.nodes}")
    elif cell.processes_per_node > most:
        found.append(
            f"it needs {cell.processes_per_node} processes per node, {platform.system} has"
            f" processes_per_node = {most}"
        )
    return found


def create(
    path: Path,
    *,
    campaign: str,
    platform: str,
    system: str,
    engine: str,
    program: str,
    database: str | None,
) -> CampaignFolder:
    """Make the folder of a new campaign.

    Parameters
    ----------
    path : Path
        Where; new or empty.
    campaign, platform : str
        Contents of the two TOML files.
    system : str
        The platform's system; the folder is for no other.
    engine, program, database
        As in `CampaignFolder`.

    Raises
    ------
    InputError
        When there is something already, or nothing that can be run.
    """
    if not str(path).isprintable():
        raise InputError(f"{str(path)!r} is no name for a folder", remedy="name another with --dir")
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            known = (path / _SETTINGS).exists()
            resume = f"ioncast campaign resume {shlex.quote(str(path))}"
            raise InputError(
                "there is a campaign already" if known else "the folder is not empty",
                where=str(path),
                remedy=f"go on with `{resume}`, or name another with --dir"
                if known
                else "name another with --dir",
            )
        (path / "campaign.toml").write_text(campaign, encoding="utf-8")
        (path / "platform.toml").write_text(platform, encoding="utf-8")
        settings = {
            "system": system,
            "engine": engine,
            "program": program,
            "database": database and without_password(database),
        }
        write_file(path / _SETTINGS, json.dumps(settings, indent=1))
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
    return read(path)


def read(path: Path) -> CampaignFolder:
    """Read the folder of a campaign.

    Raises
    ------
    InputError
        When it is none, or its files were damaged.
    """
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
        cells=tuple(
            Cell(f"{digest_of(config)}-n{io_nodes}", config, io_nodes)
            for config in campaign.configurations
            if not obstacles(config, platform, settings["engine"])
            for io_nodes in platform.io_nodes
        ),
    )


def _settings(file: Path) -> dict[str, Any]:
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        chosen = {name: settings[name] for name in _NAMES}
        texts = (chosen["system"], chosen["program"], chosen["database"] or "")
        if chosen["engine"] not in ENGINES or not all(isinstance(text, str) for text in texts):
            raise ValueError("its values are not what ioncast writes")
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
    """Keep the folder to one orchestrator; yields the lock, which a child may inherit.

    Raises
    ------
    InputError
        When the campaign is running.
    """
    descriptor = os.open(folder.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _acquire(descriptor, folder.path)
        yield descriptor
    finally:
        os.close(descriptor)


def is_running(folder: CampaignFolder) -> bool:
    """Whether an orchestrator is at work in the folder."""
    try:
        descriptor = os.open(folder.path / "lock", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # Shared, so that two who look do not see each other.
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
                    "the campaign is running already",
                    where=str(path),
                    remedy="watch it with `ioncast campaign status`",
                ) from error
            time.sleep(0.1)
        else:
            return


def digest_of(config: IorConfig) -> str:
    """A short name of a configuration, for files."""
    return hashlib.sha256(pattern_of(config).encode()).hexdigest()[:8]
