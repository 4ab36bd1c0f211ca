"""Completes rows of databases and exports before version 0008 by their commands."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import PurePosixPath

from ioncast_base.errors import InputError
from ior_configs import IorConfig

_FIO = re.compile(r"fio(?:[-_.0-9].*)?")
# Each run may have its own files and its own seed. Without them, a million runs have few commands.
_FILES = re.compile(r"(\s-[oG][\s=]+|testFile=|summaryFile=|stoneWallingStatusFile=)[^\s,]+")
# Commands are cut at the length of their column, and end with this character then.
_CUT = "…"


@dataclass(frozen=True)
class Said:
    """The meaning of a command.

    Attributes
    ----------
    fsync : {"none", "end", "each"}
        When the run called fsync.
    conditions : tuple of str
        As in `IorConfig`.
    """

    fsync: str
    conditions: tuple[str, ...] = ()


def said_by(command: str | None) -> Said | None:
    """Read the command of a run of IOR or fio; None for no command, or one that cannot be read."""
    if not command:
        return None
    if command.endswith(_CUT) or any(quote in command for quote in "'\"\\"):
        return _said_by(command)
    return _said_by(_FILES.sub(r"\1f", command))


@lru_cache(maxsize=1 << 16)
def _said_by(command: str) -> Said | None:
    try:
        words = shlex.split(command)
    except ValueError:
        # IOR prints its command without quotes.
        words = command.split()
    if words and _FIO.fullmatch(PurePosixPath(words[0]).name):
        return _said_by_fio(words)
    if command.endswith(_CUT):
        return None
    try:
        config = IorConfig.from_command_line(shlex.join(words))
    except InputError:
        return None
    return Said(config.fsync or "none", config.conditions)


def completed(config: IorConfig, at_end: bool | None, said: Said | None) -> IorConfig:
    """Add fsync and conditions to a configuration that was stored without them.

    Parameters
    ----------
    config : IorConfig
        The configuration.
    at_end : bool or None
        Whether an fsync at the end was stored, which also means False if nobody said it; None if
        there is no such column.
    said : Said or None
        The meaning of the run's command.
    """
    if said is None:
        return replace(config, fsync="end" if at_end else None)
    fsync = "end" if at_end and said.fsync == "none" else said.fsync
    return replace(config, fsync=fsync, conditions=said.conditions)


def _said_by_fio(words: list[str]) -> Said | None:
    """Read the options of all jobs, which stand before the second ``--name``."""
    jobs = [position for position, word in enumerate(words) if word.startswith("--name=")]
    if words[-1].endswith(_CUT) and len(jobs) < 2:
        return None
    if "--fsync=1" in words:
        return Said("each")
    return Said("end" if "--end_fsync=1" in words else "none")
