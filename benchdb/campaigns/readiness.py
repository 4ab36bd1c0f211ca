"""Checks before the first run of a campaign: the engine's program and the directories."""

from __future__ import annotations

import os
import shutil

from benchdb.campaigns.engines import ENGINES
from benchdb.campaigns.platform_file import Platform
from ioncast_base.errors import InputError


def find_engine(platform: Platform, engine: str | None) -> tuple[str, str]:
    """Choose the engine and find its program.

    Parameters
    ----------
    platform : Platform
        The platform. A program that its file names is not looked for, because it may exist only
        on the compute nodes.
    engine : str or None
        The engine that the user asks for; None for the first one that this machine has.

    Returns
    -------
    engine, program : str
        The name of the engine, and the path or name of its program.

    Raises
    ------
    InputError
        If no program is found, or the number of I/O nodes would not change the engine's runs.
    """
    for name in [engine] if engine else ENGINES:
        program = platform.programs.get(name) or shutil.which(name)
        if program:
            _check_tells_io_nodes(platform, name)
            return name, program
    missing = engine or " and ".join(ENGINES)
    raise InputError(
        f"not found on this machine: {missing}",
        remedy="install it, or name it in the platform file's table [programs]",
    )


def check_directories(platform: Platform) -> None:
    """Reject directories that would let every run fail.

    Nothing is checked for Slurm jobs, which run on other machines, nor if a command before each
    run may create the directory.

    Raises
    ------
    InputError
        If a directory is missing or cannot be written to.
    """
    if platform.slurm is not None or platform.io_nodes_switch.before:
        return
    for io_nodes in platform.io_nodes:
        directory = platform.test_directory.replace("{io_nodes}", str(io_nodes))
        _check_directory(directory, "the test directory", "test_directory")
        for directory in platform.node_directories(platform.nodes, io_nodes):
            _check_directory(directory, "the directory of a node", "node_directory")


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


def _check_directory(directory: str, name: str, key: str) -> None:
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(
            f"{name} does not exist or cannot be written to",
            where=directory,
            remedy=f"create it, or correct {key} in the platform file",
        )
