"""Settings of `ioncast slurm`: a TOML file for the watch and one for the arbiter."""

from __future__ import annotations

import os
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ioncast_base.errors import InputError
from ioncast_base.knapsack import ObjectiveName
from ioncast_base.toml_files import Line, Name, TomlTable, read_toml, refusing
from scheduler_plugin.addresses import Address
from scheduler_plugin.service_client import SCHEMES

# The plugin takes the arbiter for stopped if its heartbeat is older than 30 s (HEARTBEAT_S in
# ioncast.lua). A round may take as long as its period, so a period is at most half of that.
LONGEST_PERIOD_S = 15


def _slurm_address(text: str) -> str:
    return Address.of(text).text


def _service_address(text: str) -> str:
    return Address.of(text, SCHEMES).text


def _layout(text: str) -> str:
    folder = PurePosixPath(date(2026, 1, 31).strftime(text))
    if folder.is_absolute() or ".." in folder.parts:
        raise InputError(
            "must be a folder below that of the logs",
            remedy='Darshan\'s own layout is "%Y/%-m/%-d"',
        )
    return text


def default_state() -> str:
    """The watch's state file of a user, if the settings name no file."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return str(Path(home) / "ioncast" / "watch.sqlite")


SlurmAddress = Annotated[Line, AfterValidator(refusing(_slurm_address))]
ServiceAddress = Annotated[Line, AfterValidator(refusing(_service_address))]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Share = Annotated[float, Field(ge=0, le=1)]


class SlurmrestdSettings(TomlTable):
    """Where Slurm's REST interface is, and with which token it is asked."""

    address: SlurmAddress = Field(
        description="unix:/PATH or http://HOST:PORT.", examples=["unix:/run/slurmrestd.sock"]
    )
    user: Name = Field(description="The user of the token.", examples=["ioncast-watch"])
    token_file: Line = Field(
        description="The file with the JWT; it is read anew for each request.",
        examples=["/etc/ioncast/watch/slurm.jwt"],
    )
    timeout_s: Seconds = Field(10.0, description="Seconds that one request may take in all.")
    cluster: Name | None = Field(
        None, description="This cluster's name in slurmdbd, if slurmdbd has several clusters."
    )


class ServiceSettings(TomlTable):
    """Where ioncast's service is."""

    address: ServiceAddress = Field(
        "http://127.0.0.1:8420", description="unix:/PATH or http://HOST:PORT."
    )
    token_file: Line = Field(
        description="The file with a token of the service: role scheduler for the watch, role"
        " reader for the arbiter.",
        examples=["/etc/ioncast/watch/ioncast.token"],
    )


class LicenceSettings(TomlTable):
    """The licence of Slurm that stands for an I/O node."""

    name: Name = Field(
        default="ionode", description="Its name; a job has one licence for each of its I/O nodes."
    )


class DarshanSettings(TomlTable):
    """Where Darshan writes its logs."""

    folder: Line = Field(description="The folder of all logs.", examples=["/var/log/darshan"])
    layout: Annotated[Line, AfterValidator(refusing(_layout))] = Field(
        default="%Y/%-m/%-d",
        description="The folder of a day below it, in strftime's codes; `.` for none.",
    )
    wait_s: Annotated[float, Field(ge=0, le=604_800)] = Field(
        default=300.0, description="Seconds after a job's end in which its logs may still appear."
    )


class WatchSettings(TomlTable):
    """`ioncast slurm watch`."""

    state: Line = Field(
        default_factory=default_state,
        description="The file with jobs and logs that are not sent yet; on a local disk.",
    )
    period_s: Seconds = Field(
        default=10.0,
        description="Seconds between two questions to Slurm.",
    )
    limits: Line | None = Field(
        default=None,
        description="The file from which job_submit.lua reads Slurm's limits on the licence.",
    )
    jobs_folder: Line | None = Field(
        default=None,
        description="JOBS_FOLDER of hooks.conf, from which the watch reads the names of the I/O"
        " nodes of jobs.",
    )
    metrics: Line | None = Field(
        default=None, description="The file with numbers for Prometheus' node_exporter."
    )
    slurmctld_log: Line | None = Field(
        default=None,
        description="slurmctld's log, whose lines of job_submit.lua are counted in the metrics.",
    )


class ArbitrateSettings(TomlTable):
    """`ioncast slurm arbitrate`."""

    period_s: Annotated[float, Field(gt=0, le=LONGEST_PERIOD_S)] = Field(
        default=5.0, description="Seconds between two rounds; new jobs are held until the next one."
    )
    weight: Literal["none", "nodes", "priority"] = Field(
        default="none", description="The weight of a job's bandwidth in the sum."
    )
    objective: ObjectiveName = Field(
        default="sum",
        description="The highest `sum` of bandwidths, or `proportional`: of their shares of each"
        " job's own best.",
    )
    minimum_gain: Share = Field(
        default=0.05,
        description="A job's number is changed only for a gain of more than this share of its"
        " bandwidth.",
    )
    machine_nodes: Annotated[int, Field(gt=0)] | None = Field(
        default=None,
        description="Compute nodes of the machine: the waiting jobs that they can run at once"
        " share the I/O nodes.",
    )
    heartbeat: Line = Field(
        default="/run/ioncast-heartbeat/heartbeat",
        description="The file that tells job_submit.lua that the arbiter runs.",
    )
    hooks: Line | None = Field(
        default=None,
        description="The hooks.conf with JOBS_PER_IO_NODE, IO_NODES and PLACEMENT: the list that"
        " the arbiter writes if jobs share I/O nodes or some are slow.",
    )
    disturbances: Line | None = Field(
        default=None,
        description="The output of `ioncast interference --store DIR --format json`: programs"
        " that must not share I/O nodes.",
    )
    lock: Line = Field(
        default="/run/ioncast-arbiter/lock",
        description="The file that keeps a second arbiter from running.",
    )
    metrics: Line | None = Field(
        default=None, description="The file with numbers for Prometheus' node_exporter."
    )


class SiteSettings(TomlTable):
    """The settings of one site; times are in seconds."""

    system: Name = Field(description="The system's name in ioncast.", examples=["mn4"])
    slurmrestd: SlurmrestdSettings = Field(description="Slurm's REST interface.")
    service: ServiceSettings = Field(description="ioncast's service.")
    licence: LicenceSettings = LicenceSettings()
    darshan: DarshanSettings | None = Field(None, description="Darshan's logs, for the watch.")
    watch: WatchSettings = WatchSettings()
    arbitrate: ArbitrateSettings = ArbitrateSettings()

    def needed_darshan(self, path: str) -> DarshanSettings:
        """The table [darshan] of the file `path`; InputError if it is missing."""
        if self.darshan is None:
            raise InputError(
                "key `darshan` is missing",
                where=path,
                remedy='add a table [darshan] with `folder = "/var/log/darshan"`',
            )
        return self.darshan


def read_settings(path: str | Path) -> SiteSettings:
    """Read the file of `--config`.

    Raises
    ------
    InputError
        With the line of the first problem.
    """
    return read_toml(Path(path), SiteSettings)
