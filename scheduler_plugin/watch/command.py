"""`ioncast slurm watch`: tells the service what jobs did, from their Darshan logs."""

from __future__ import annotations

import logging
import math
import os
import sys
import time
from typing import Any, BinaryIO

import click

from ioncast_base.errors import InputError
from scheduler_plugin.clients import clients
from scheduler_plugin.service_client import LOG_TIMEOUT_S, Ioncast, RunOf
from scheduler_plugin.settings import DarshanSettings, Settings, read_settings
from scheduler_plugin.slurm import Slurm
from scheduler_plugin.stopping import ended_by_signals
from scheduler_plugin.visible_text import visible
from scheduler_plugin.watch.darshan_logs import LogFolder
from scheduler_plugin.watch.state import WatchState, copied_state, opened_state
from scheduler_plugin.watch.watching import Watch

_LOG = logging.getLogger("ioncast.watch")


@click.command(
    "watch",
    epilog="""\b
Examples:
  ioncast slurm watch --config /etc/ioncast/watch.toml
  ioncast slurm watch --config watch.toml --dry-run
""",
)
@click.option(
    "--config", metavar="FILE.toml", required=True, type=click.Path(), help="The settings."
)
@click.option(
    "--once",
    is_flag=True,
    help="Look once and end: with 1 if Slurm or the service is away or refuses the token, or a"
    " file cannot be read. That a log is refused is final, and no failure.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Look once, ask the service whether it takes the token, say what would be sent, and send"
    " nothing. It ends as --once does.",
)
@click.option("--verbose", is_flag=True, help="Name jobs without a log too.")
def watch(config: str, once: bool, dry_run: bool, verbose: bool) -> None:
    """Follow jobs to their end and send their Darshan logs to the service.

    What jobs got with the I/O nodes that they had is the history that later decisions rest on.
    Settings are explained in docs/slurm.md.
    """
    settings = read_settings(config)
    if settings.darshan is None:
        raise InputError(
            "key `darshan` is missing",
            where=config,
            remedy='add a table [darshan] with `folder = "/var/log/darshan"`',
        )
    level = logging.DEBUG if verbose else logging.INFO
    logging.basicConfig(level=logging.WARNING, format="ioncast: %(message)s", stream=sys.stderr)
    _LOG.setLevel(level)
    logs = LogFolder(settings.darshan.folder, settings.darshan.layout)
    logs.check()
    state_of = copied_state if dry_run else opened_state
    with (
        ended_by_signals() as came,
        clients(settings, LOG_TIMEOUT_S) as (slurm, service),
        state_of(settings.watch.state) as state,
    ):
        watcher = _watcher(settings, settings.darshan, state, slurm, service, logs, is_dry=dry_run)
        try:
            if once or dry_run:
                sys.exit(0 if watcher.round(math.inf) else 1)
            _LOG.info(
                "jobs of %s are followed; logs come from %s",
                settings.system,
                settings.darshan.folder,
            )
            _go_on(watcher, settings.watch.period_s, came)
        finally:
            watcher.sum_up()


def _watcher(
    settings: Settings,
    darshan: DarshanSettings,
    state: WatchState,
    slurm: Slurm,
    service: Ioncast,
    logs: LogFolder,
    *,
    is_dry: bool,
) -> Watch:
    return Watch(
        state,
        slurm,
        _Nobody(service) if is_dry else service,
        logs,
        system=settings.system,
        licence=settings.licence.name,
        period_s=settings.watch.period_s,
        wait_s=darshan.wait_s,
        is_dry=is_dry,
    )


def _go_on(watcher: Watch, period_s: float, came: list[int]) -> None:
    while not came:
        next_s = time.monotonic() + period_s
        watcher.round(period_s)
        time.sleep(max(next_s - time.monotonic(), 0))


class _Nobody:
    """Says what would be sent, once the service could be asked."""

    def __init__(self, service: Ioncast) -> None:
        self._service = service

    def measured_systems(self) -> list[str]:
        """Ask the service, which refuses a wrong token."""
        return self._service.measured_systems()

    def send_trace(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Say it of a trace."""
        return self._say("trace", log, file_name, run)

    def send_outcome(self, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        """Say it of an outcome."""
        return self._say("outcome", log, file_name, run)

    def _say(self, kind: str, log: BinaryIO, file_name: str, run: RunOf) -> dict[str, Any]:
        known = " ".join(
            f"{name}={visible(value)}" for name, value in vars(run).items() if value is not None
        )
        click.echo(f"would send {kind} {visible(file_name)}: {known}")
        # Only the service knows how many bytes it moved; a larger log mostly more.
        return {"bytes": os.fstat(log.fileno()).st_size}
