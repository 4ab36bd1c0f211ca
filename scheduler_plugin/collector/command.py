"""`ioncast slurm watch`: follow jobs and send their Darshan logs to the service."""

from __future__ import annotations

import logging
import math
import sys
from functools import partial

import click

from scheduler_plugin.clients import clients
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.dry_run import DryReceiver
from scheduler_plugin.collector.exporting import Exporter
from scheduler_plugin.collector.limits_file import LimitsFile
from scheduler_plugin.collector.name_history import NameHistory
from scheduler_plugin.collector.plugin_log import PluginLog
from scheduler_plugin.collector.state import copied_state, opened_state
from scheduler_plugin.collector.watching import Watch
from scheduler_plugin.metrics_file import MetricsFile
from scheduler_plugin.rounds import ended_by_signals, log_to_stderr, repeat
from scheduler_plugin.service_client import LOG_TIMEOUT_S
from scheduler_plugin.settings import SiteSettings, read_settings
from scheduler_plugin.slurm import Slurm
from scheduler_plugin.token_files import token_ends_s

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
    help="Do one round and exit: with 1 if Slurm or the service does not answer or rejects the"
    " token, or if a folder or a token cannot be read. A log that cannot be read or that the"
    " service rejects is not a failure.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Do one round: ask the service whether it accepts the token, print what would be sent,"
    " and send nothing. The exit code is that of --once.",
)
@click.option("--verbose", is_flag=True, help="Also name jobs without a log.")
def watch(config: str, once: bool, dry_run: bool, verbose: bool) -> None:
    """Follow jobs to their end and send their Darshan logs to the service.

    The service adds the runs to the history, and later decisions rest on them. The watch also
    sends how many I/O nodes each job had. docs/slurm.md explains the settings.
    """
    settings = read_settings(config)
    darshan = settings.needed_darshan(config)
    log_to_stderr("ioncast.watch", logging.DEBUG if verbose else logging.INFO)
    logs = LogFolder(darshan.folder, darshan.layout)
    logs.check()
    state_of = copied_state if dry_run else opened_state
    with (
        ended_by_signals() as came,
        clients(settings, LOG_TIMEOUT_S) as (slurm, service),
        state_of(settings.watch.state) as state,
    ):
        exporter = None if dry_run else _exporter(settings)
        watcher = Watch(
            state,
            slurm,
            DryReceiver(service, click.echo) if dry_run else service,
            logs,
            system=settings.system,
            licence=settings.licence.name,
            period_s=settings.watch.period_s,
            wait_s=darshan.wait_s,
            limits=None if dry_run else _limits_file(settings, slurm),
            name_history=_name_history(settings),
            exporter=exporter,
            heartbeat=settings.arbitrate.heartbeat,
            is_dry=dry_run,
        )
        try:
            if once or dry_run:
                sys.exit(0 if watcher.round(math.inf) else 1)
            _LOG.info("following jobs of %s; logs come from %s", settings.system, darshan.folder)
            period_s = settings.watch.period_s
            repeat(lambda: watcher.round(period_s), period_s, came)
        finally:
            watcher.sum_up()
            if exporter is not None:
                exporter.close()


def _limits_file(settings: SiteSettings, slurm: Slurm) -> LimitsFile | None:
    path = settings.watch.limits
    return LimitsFile(path, settings.licence.name, slurm) if path else None


def _name_history(settings: SiteSettings) -> NameHistory | None:
    folder = settings.watch.jobs_folder
    return NameHistory(folder) if folder else None


def _exporter(settings: SiteSettings) -> Exporter | None:
    of = settings.watch
    if of.metrics is None:
        return None
    plugin_log = None if of.slurmctld_log is None else PluginLog(of.slurmctld_log)
    file = MetricsFile(of.metrics, _LOG)
    return Exporter(file, plugin_log, partial(token_ends_s, settings.slurmrestd.token_file))
