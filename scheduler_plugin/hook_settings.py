"""hooks.conf, the settings of the hooks, which are in sh's syntax."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from ioncast_base.errors import InputError
from scheduler_plugin.check.asking_sources import said_by

INSTALL = "install -D -t /etc/ioncast/hooks scheduler_plugin/hooks/* (all but hooks.conf)"
_VALUES = (
    *("LICENCE", "JOBS_FOLDER", "SITE_SCRIPT"),
    *("IO_NODES", "JOBS_PER_IO_NODE", "PLACEMENT"),
)
_READ = 'LICENCE=ionode; . "$1"; IO_NODES=$(echo $IO_NODES); printf "%s\\n" ' + " ".join(
    f'"${name}"' for name in _VALUES
)
_MOST_JOBS = 64


class HookSettings(NamedTuple):
    """The values in hooks.conf."""

    licence: str
    folder: str
    script: str
    io_nodes: tuple[str, ...] = ()
    jobs_per_io_node: int = 1
    placement: str = ""


def read_hook_settings(path: Path, user: str | None = None) -> HookSettings:
    """Let a shell read hooks.conf, as a user.

    Raises
    ------
    InputError
        If the file is missing, the shell rejects it, or JOBS_PER_IO_NODE is not a small number.
    """
    if not path.is_file():
        raise InputError("this file is missing", where=str(path), remedy=INSTALL)
    said = said_by("/bin/sh", "-c", _READ, "sh", str(path), user=user).splitlines()
    values = [*said, *[""] * len(_VALUES)]
    licence, folder, script, io_nodes, jobs, placement = values[: len(_VALUES)]
    if jobs and not (jobs.isdecimal() and jobs.isascii() and 1 <= int(jobs[:9]) <= _MOST_JOBS):
        what = f"JOBS_PER_IO_NODE {jobs!r} is not a number from 1 to {_MOST_JOBS}"
        raise InputError(what, where=str(path))
    names = tuple(io_nodes.split())
    return HookSettings(licence, folder, script, names, int(jobs or 1), placement)
