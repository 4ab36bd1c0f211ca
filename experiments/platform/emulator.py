"""Brings an emulated platform up and down, and finds those that are up."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from experiments.platform import folders, remains
from experiments.platform.building import build
from experiments.platform.description import Description, check_name
from experiments.platform.emulated import Emulated
from experiments.platform.network import namespaces
from experiments.platform.requirements import check_machine, check_memory, check_root
from ioncast_base import signals
from ioncast_base.errors import BusyError, InputError, IoncastError, UnknownNameError


def up(description: Description) -> Emulated:
    """Bring a platform up.

    If anything fails, or a signal stops it (SIGINT, SIGTERM, SIGHUP), everything that it made
    is removed again.

    Parameters
    ----------
    description : Description
        The platform.

    Returns
    -------
    Emulated
        The platform; all its mounts answer.

    Raises
    ------
    IoncastError
        If this machine cannot run it, or a platform of that name exists.
    """
    check_machine()
    check_memory(description)
    with signals.raised(), locked(description.name):
        _check_absent(description)
        try:
            return build(description)
        except BaseException:
            with signals.ignored():
                remains.clear(description.name)
            raise


def down(name: str) -> bool:
    """Remove a platform, or everything that is left of it.

    Parameters
    ----------
    name : str
        The platform's name.

    Returns
    -------
    bool
        Whether there was anything to remove.

    Raises
    ------
    IoncastError
        If something cannot be removed.
    """
    check_name(name)
    check_root()
    with locked(name):
        found = bool(remains.remains(name))
        remains.clear(name)
    return found


def find(name: str) -> Emulated:
    """Find a platform that is up.

    Parameters
    ----------
    name : str
        The platform's name.

    Returns
    -------
    Emulated
        The platform.

    Raises
    ------
    UnknownNameError
        If it is not up.
    IoncastError
        If this process is not root's.
    """
    check_name(name)
    check_root()
    folders.check_platforms()
    if not _is_up(name):
        raise _not_up(name)
    text = folders.description_of(name).read_text(encoding="utf-8")
    return Emulated(Description.model_validate_json(text))


def chosen_name(name: str | None) -> str:
    """Check the name that was given, or without one take the only platform on this machine.

    The platform need not be up.

    Raises
    ------
    InputError
        If the name is not possible, or if there are several platforms and no name was given.
    UnknownNameError
        If there is no platform and no name was given.
    IoncastError
        If this process is not root's.
    """
    check_root()
    there = folders.names()
    if name is not None:
        return check_name(name)
    if not there:
        raise UnknownNameError("no platform is up", remedy="bring one up: `ioncast platform up`")
    if len(there) > 1:
        raise InputError(f"several platforms are up: {', '.join(there)}", remedy="name one of them")
    return there[0]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let only one process at a time bring a platform up or down.

    Raises
    ------
    BusyError
        If another process does so now.
    """
    folders.make_platforms()
    # The names of platforms begin with a letter, so none is called like this file.
    file = folders.PLATFORMS / f".{name}.lock"
    with file.open("wb") as lock:
        if not _hold(lock, file):
            raise BusyError(
                f"another process brings the platform {name} up or down", remedy="wait for it"
            )
        try:
            yield
        finally:
            file.unlink()


def _is_up(name: str) -> bool:
    # `build` writes the platform file last.
    return folders.platform_file_of(name).exists()


def _not_up(name: str) -> UnknownNameError:
    if folders.folder_of(name).exists():
        return UnknownNameError(
            f"the platform {name} did not come up, or is not up yet",
            remedy=f"`ioncast platform down {name}` removes what exists of it",
        )
    others = ", ".join(folders.names())
    remedy = f"up are {others}" if others else f"bring it up: `ioncast platform up --name {name}`"
    return UnknownNameError(f"no platform called {name} is up", remedy=remedy)


def _check_absent(description: Description) -> None:
    """Reject a name of which anything exists."""
    name = description.name
    remedy = f"remove it first: `ioncast platform down {name}`"
    if not remains.remains(name):
        _check_foreign_namespaces(description)
    elif _is_up(name):
        raise IoncastError(f"the platform {name} is up already", remedy=remedy)
    else:
        raise IoncastError(f"parts of an earlier platform {name} still exist", remedy=remedy)


def _check_foreign_namespaces(description: Description) -> None:
    for namespace in namespaces(description):
        if os.path.lexists(remains.NAMESPACES / namespace):
            raise IoncastError(
                f"the network namespace {namespace} exists already and is not a platform's",
                remedy="give the platform another name: `ioncast platform up --name NAME`",
            )


def _hold(lock: IO[bytes], file: Path) -> bool:
    """Lock a file; False if another process holds it, or has removed it since it was opened."""
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock.fileno()), file.stat())
    return False
