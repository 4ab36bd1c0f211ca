"""Checks that the service can listen at its addresses, before gunicorn tries."""

from __future__ import annotations

import errno
import grp
import os
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from ioncast.service.settings import Settings
from ioncast_base.errors import InputError
from ioncast_base.files import runtime_folder

_UNIX = "unix:"
_SOCKET = "decisions.sock"
_ELSEWHERE = "choose another address with --bind or --decisions-bind"
_REMEDIES = {
    errno.EADDRINUSE: f"stop the program that listens there, or {_ELSEWHERE}",
    errno.EADDRNOTAVAIL: "give an address of this machine",
    errno.ENOENT: "create its folder",
}


def counts_folder(settings: Settings) -> Path:
    """Return the folder for counts of decisions; under systemd it is in memory, never full."""
    return Path(runtime_folder(os.environ) or settings.state)


@contextmanager
def listening(settings: Settings) -> Iterator[list[int]]:
    """Listen for decisions, as gunicorn does at its own addresses, until the block ends.

    Yields
    ------
    list of int
        The descriptors of the sockets. They outlive a killed process, so clients that connect
        meanwhile wait for another one.
    """
    from gunicorn.config import Config  # noqa: PLC0415
    from gunicorn.glogging import Logger  # noqa: PLC0415
    from gunicorn.sock import close_sockets, create_sockets  # noqa: PLC0415

    config = Config()
    config.set("bind", list(settings.decisions_bind))
    # Nobody connects before the rights of a socket are set.
    config.set("umask", 0o777)
    sockets: list[Any] = create_sockets(config, Logger(config))
    for bind in settings.decisions_bind:
        whom = opened(bind, settings.decisions_group)
        click.echo(f"ioncast: decisions on {bind}{whom}", err=True)
    try:
        yield [each.fileno() for each in sockets]
    finally:
        # Somebody may have deleted the folder.
        with suppress(OSError):
            close_sockets(sockets)


def with_decisions_bind(settings: Settings, environment: Mapping[str, str]) -> Settings:
    """Return settings that say where decisions are answered.

    An older file of settings, and a user who has no right to write to /run, need not name it.
    """
    if settings.decisions_bind:
        return settings
    folder = Path(runtime_folder(environment) or settings.state).absolute()
    return settings.model_copy(update={"decisions_bind": (f"{_UNIX}{folder / _SOCKET}",)})


def opened(bind: str, group: str) -> str:
    """Let a group connect to a new unix socket, else every user; return this in words."""
    if not bind.startswith(_UNIX):
        return ""
    path = bind.removeprefix(_UNIX)
    try:
        os.chown(path, -1, grp.getgrnam(group).gr_gid)
    except KeyError:
        reason = f"there is no group {group}"
    except OSError as error:
        reason = f"this user cannot give it to the group {group}: {error.strerror}"
    else:
        Path(path).chmod(0o660)
        return f", open to the group {group}"
    Path(path).chmod(0o777)
    return f", open to every user: {reason}"


def check_binds(binds: Iterable[str]) -> None:
    """Listen at all addresses for a moment."""
    known: set[str] = set()
    with ExitStack() as listening_there:
        for bind in binds:
            if bind in known:
                remedy = "name it for decisions only, or for everything"
                raise InputError("the service cannot listen there twice", where=bind, remedy=remedy)
            known.add(bind)
            _check(bind, listening_there)


def _check(bind: str, until_end: ExitStack) -> None:
    """Listen at an address until the others are checked too: 0.0.0.0 contains all of IPv4."""
    try:
        if bind.startswith(_UNIX):
            _check_path(bind.removeprefix(_UNIX))
        else:
            until_end.enter_context(_listening_at(bind))
    except OSError as error:
        # The error of a path that is too long has neither errno nor strerror.
        reason = error.strerror or str(error)
        raise InputError(
            f"the service cannot listen there: {reason}",
            where=bind,
            remedy=_REMEDIES.get(error.errno or 0, _ELSEWHERE),
        ) from error


@contextmanager
def _listening_at(bind: str) -> Iterator[None]:
    name, _, port = bind.rpartition(":")
    host = name.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with closing(socket.socket(family, socket.SOCK_STREAM)) as probe:
        # As gunicorn does, so that connections that have ended do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, int(port)))
        probe.listen(1)
        yield


def _check_path(bind: str) -> None:
    path = Path(bind)
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.stat().st_mode):
            raise OSError(errno.EEXIST, "this is a file, not a socket")
        if _answers(bind):
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        path.unlink()
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        probe.bind(bind)
    path.unlink()


def _answers(path: str) -> bool:
    """Tell whether a program listens at a socket, which gunicorn would replace."""
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return False
    return True
