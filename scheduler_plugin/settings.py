"""What a site sets of `ioncast slurm`: one TOML file for the watch and for the arbiter."""

from __future__ import annotations

import os
import re
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import httpx
from pydantic import AfterValidator, Field

from ioncast_base.errors import InputError
from ioncast_base.toml_files import Line, Name, Table, read_toml, refusing

_LARGEST_PORT = 65_535
_ADDRESS = re.compile(r"unix:/.+|https?://[^\s/]+/?")


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text) or not _is_url(text):
        raise InputError(f"{text!r} is no address", remedy="give unix:/PATH or http://HOST:PORT")
    return text.rstrip("/")


def _is_url(text: str) -> bool:
    try:
        port = httpx.URL(text).port
    except httpx.InvalidURL:
        return False
    return port is None or 0 < port <= _LARGEST_PORT


def _layout(text: str) -> str:
    folder = PurePosixPath(date(2026, 1, 31).strftime(text))
    if folder.is_absolute() or ".." in folder.parts:
        raise InputError(
            "must be below the folder of the logs", remedy='Darshan\'s own is "%Y/%-m/%-d"'
        )
    return text


def default_state() -> str:
    """The watch's file of a user who names none."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return str(Path(home) / "ioncast" / "watch.sqlite")


Address = Annotated[Line, AfterValidator(refusing(_address))]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Share = Annotated[float, Field(ge=0, le=1)]


class SlurmrestdSettings(Table):
    """Where Slurm's REST interface is, and who asks it."""

    address: Address = Field(
        description="unix:/PATH or http://HOST:PORT.", examples=["unix:/run/slurmrestd.sock"]
    )
    user: Name = Field(description="Whose token it is.", examples=["ioncast-watch"])
    token_file: Line = Field(
        description="A file with the JWT; read anew for each request.",
        examples=["/etc/ioncast/watch/slurm.jwt"],
    )
    timeout_s: Seconds = Field(10.0, description="How long one request may take in all.")


class ServiceSettings(Table):
    """Where ioncast's service is."""

    address: Address = Field("http://127.0.0.1:8420", description="unix:/PATH or http://HOST:PORT.")
    token_file: Line = Field(
        description="A file with a token of the service: for the watch of the role scheduler, for"
        " the arbiter of the role reader.",
        examples=["/etc/ioncast/watch/ioncast.token"],
    )


class LicenceSettings(Table):
    """What an I/O node is to Slurm."""

    name: Name = Field(
        default="ionode", description="The licence that jobs have one of per I/O node."
    )


class DarshanSettings(Table):
    """Where Darshan puts its logs."""

    folder: Line = Field(description="The folder of all logs.", examples=["/var/log/darshan"])
    layout: Annotated[Line, AfterValidator(refusing(_layout))] = Field(
        default="%Y/%-m/%-d",
        description="The folder of a day below it, as strftime has it; `.` for none.",
    )
    wait_s: Annotated[float, Field(ge=0, le=604_800)] = Field(
        default=300.0, description="How long after its end a job's logs may still come."
    )


class WatchSettings(Table):
    """`ioncast slurm watch`."""

    state: Line = Field(
        default_factory=default_state,
        description="The file of jobs and of what is still to be sent; on a local disk.",
    )
    period_s: Seconds = Field(default=10.0, description="How often Slurm is asked for its jobs.")


class ArbitrateSettings(Table):
    """`ioncast slurm arbitrate`."""

    period_s: Annotated[float, Field(gt=0, le=15)] = Field(
        default=5.0, description="How often waiting jobs are looked at, which are held meanwhile."
    )
    policy: Literal["mckp", "best", "static", "equal"] = Field(
        default="mckp", description="How the I/O nodes are shared."
    )
    weight: Literal["none", "nodes", "priority"] = Field(
        default="none", description="What a job's bandwidth counts by."
    )
    floor: Share = Field(
        default=0.0, description="The share of what `static` gives it that every job gets at least."
    )
    minimum_gain: Share = Field(
        default=0.05,
        description="The share of bandwidth that a job's number must gain to be changed.",
    )
    machine_nodes: Annotated[int, Field(gt=0)] | None = Field(
        default=None,
        description="Compute nodes of the machine: jobs that they could run at once share.",
    )
    heartbeat: Line = Field(
        default="/run/ioncast-arbiter/heartbeat",
        description="The file that tells job_submit.lua that it runs.",
    )


class Settings(Table):
    """All that can be set; times are in seconds."""

    system: Name = Field(description="The machine's name in ioncast.", examples=["mn4"])
    slurmrestd: SlurmrestdSettings = Field(description="Slurm's REST interface.")
    service: ServiceSettings = Field(description="ioncast's service.")
    licence: LicenceSettings = LicenceSettings()
    darshan: DarshanSettings | None = Field(None, description="Darshan's logs, for the watch.")
    watch: WatchSettings = WatchSettings()
    arbitrate: ArbitrateSettings = ArbitrateSettings()


def read_settings(path: str | Path) -> Settings:
    """Read the file of `--config`.

    Raises
    ------
    InputError
        Naming the line that cannot be used.
    """
    return read_toml(Path(path), Settings)
