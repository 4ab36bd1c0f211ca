"""The options of `ioncast match --verify`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce, wraps
from typing import Any

import click

from ioncast_base.command_options import database_option
from ioncast_base.errors import InputError, as_option
from ioncast_base.times import parse_duration

_TIME_LIMIT = "10m"
Command = Callable[..., None]

_OPTIONS = (
    click.option(
        "--verify",
        is_flag=True,
        help="Run each IOR line under Darshan, and tell how far its log agrees with the phase.",
    ),
    click.option(
        "--platform",
        "platform",
        metavar="FILE.toml",
        type=click.Path(),
        help="With --verify: the platform file with the launcher, IOR and the folder for the runs."
        " Without it, mpiexec and ior of the PATH run on this machine.",
    ),
    click.option(
        "--work-dir",
        metavar="DIR",
        type=click.Path(),
        help="With --verify: the folder in which each run gets a new folder; by default that of"
        " the platform file, or of temporary files.",
    ),
    click.option(
        "--darshan-lib",
        metavar="FILE",
        envvar="IONCAST_DARSHAN_LIB",
        show_envvar=True,
        type=click.Path(),
        help="With --verify: Darshan's libdarshan.so; by default that of LD_PRELOAD, of"
        " the module's variables, of darshan-config, or of common folders.",
    ),
    click.option(
        "--time-limit",
        metavar="TIME",
        help=f"With --verify: the longest time of a run, such as 90s or 1h.  [default:"
        f" {_TIME_LIMIT}]",
    ),
    click.option(
        "--system",
        help="With --verify: store the fidelities for predictions on this system of the database.",
    ),
    database_option,
)


@dataclass(frozen=True)
class VerifySettings:
    """The settings of `--verify`; see the help of the options.

    Attributes
    ----------
    time_limit_s : int
        The longest time of a run, in seconds.
    """

    platform: str | None
    work_dir: str | None
    darshan_lib: str | None
    system: str | None
    location: str | None
    time_limit_s: int


def verify_options(command: Command) -> Command:
    """Add the options to a command, which gets them as `verification`; None without `--verify`."""

    @wraps(command)
    def with_settings(**options: Any) -> None:
        wanted = options.pop("verify")
        limit = options.pop("time_limit")
        given = {
            field.name: options.pop(field.name)
            for field in fields(VerifySettings)
            if field.name != "time_limit_s"
        }
        useless = [name for name in ("platform", "work_dir", "system") if given[name]]
        if limit is not None:
            useless.append("time_limit")
        if useless and not wanted:
            raise InputError("has a meaning only with --verify", where=as_option(useless[0]))
        settings = VerifySettings(**given, time_limit_s=parse_duration(limit or _TIME_LIMIT))
        command(**options, verification=settings if wanted else None)

    return reduce(lambda made, option: option(made), reversed(_OPTIONS), with_settings)
