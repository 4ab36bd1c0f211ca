"""`ioncast slurm import-history`: send the Darshan logs of past jobs to the service."""

from __future__ import annotations

import logging
import sys
import time
from collections import Counter
from datetime import datetime
from pathlib import Path

import click

from ioncast_base.errors import InputError, IoncastError
from scheduler_plugin.clients import clients
from scheduler_plugin.collector.darshan_logs import LogFolder
from scheduler_plugin.collector.dry_run import DryReceiver
from scheduler_plugin.collector.import_history import HistoryImport
from scheduler_plugin.collector.sending import LogSender
from scheduler_plugin.collector.state import copied_state, opened_state
from scheduler_plugin.collector.steady_time import SteadyTime
from scheduler_plugin.collector.stored_logs import StoredLogs
from scheduler_plugin.rounds import log_to_stderr
from scheduler_plugin.service_client import LOG_TIMEOUT_S
from scheduler_plugin.settings import DarshanSettings, read_settings

_LOG = logging.getLogger("ioncast.import")
_TIME = click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"])
# The first pause after a failure.
_PAUSE_S = 1.0
# 1971. Slurm 22.05 rejects times of the first days of 1970.
_OLDEST_S = 365 * 86_400


@click.command(
    "import-history",
    epilog="""\b
Examples:
  ioncast slurm import-history --config /etc/ioncast/watch.toml --since 2026-08-01
  ioncast slurm import-history --config watch.toml --since 2026-08-01 --until 2026-09-01 --dry-run
  ioncast slurm import-history --config watch.toml --since 2024-01-01 --store /srv/ioncast-store
""",
)
@click.option(
    "--config",
    metavar="FILE.toml",
    required=True,
    type=click.Path(),
    help="The settings of the watch.",
)
@click.option(
    "--since",
    required=True,
    type=_TIME,
    metavar="TIME",
    help="Import jobs that ended at this local time or later, such as 2026-08-01 or"
    " 2026-08-01T12:00:00.",
)
@click.option(
    "--until",
    type=_TIME,
    metavar="TIME",
    help="Import jobs that ended before this local time. Default: now, without the last minutes"
    " (`darshan.wait_s`), whose jobs belong to the watch.",
)
@click.option(
    "--store",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Take the logs that `ioncast ingest` found, wherever they are, instead of those in"
    " Darshan's folder.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Ask slurmdbd, and ask the service whether it accepts the token; print what would be"
    " sent, and send nothing.",
)
def import_history(
    config: str, since: datetime, until: datetime | None, store: Path | None, dry_run: bool
) -> None:
    """Send the Darshan logs of past jobs to the service, so that decisions begin at once.

    The jobs come from slurmdbd. An interrupted import goes on where it was if you start it again,
    and nothing is sent twice. It may run beside the watch. The exit code is 1 if Slurm or the
    service does not answer or rejects the token, or if a file cannot be read.
    """
    settings = read_settings(config)
    darshan = settings.needed_darshan(config)
    since_s, until_s = _span(since, until, darshan)
    log_to_stderr("ioncast.import")
    logs = _logs(darshan, store, settings.system)
    location = _state_of_import(settings.watch.state)
    with (
        clients(settings, LOG_TIMEOUT_S) as (slurm, service),
        copied_state(location) if dry_run else opened_state(location, "import") as state,
    ):
        count: Counter[str] = Counter()
        clock = SteadyTime()
        sender = LogSender(
            state,
            DryReceiver(service, click.echo) if dry_run else service,
            count,
            system=settings.system,
            period_s=_PAUSE_S,
            is_dry=dry_run,
            clock=clock,
        )
        past = HistoryImport(
            state, slurm, logs, sender, count, licence=settings.licence.name, clock=clock
        )
        is_done = _run(past, since_s, until_s)
    sys.exit(0 if is_done else 1)


def _logs(darshan: DarshanSettings, store: Path | None, system: str) -> LogFolder | StoredLogs:
    if store is not None:
        stored = StoredLogs(store, system)
        _LOG.info("the store has %d logs of system %s", stored.number, system)
        if stored.in_tar_files:
            _LOG.warning("%d logs in tar files are left out: unpack them", stored.in_tar_files)
        return stored
    logs = LogFolder(darshan.folder, darshan.layout)
    logs.check()
    return logs


def _run(past: HistoryImport, since_s: int, until_s: int) -> bool:
    try:
        return past.run(since_s, until_s)
    except IoncastError as error:
        _LOG.error("the import stops: %s", error)
        return False
    finally:
        past.sum_up()


def _span(since: datetime, until: datetime | None, darshan: DarshanSettings) -> tuple[int, int]:
    """The Unix times of `--since` and `--until`."""
    newest_s = int(time.time() - darshan.wait_s)
    since_s = _unix_time(since)
    until_s = newest_s if until is None else min(_unix_time(until), newest_s)
    if since_s >= until_s:
        raise InputError(
            "no job can have ended between --since and --until",
            where=f"--since {since.isoformat()}",
            remedy="name an earlier time",
        )
    return since_s, until_s


def _unix_time(time_of_user: datetime) -> int:
    try:
        seconds = int(time_of_user.timestamp())
    except (OverflowError, ValueError, OSError):
        seconds = -1
    if seconds < _OLDEST_S:
        raise InputError("Slurm has no such time", where=time_of_user.isoformat())
    return seconds


def _state_of_import(watch: str) -> str:
    """The state of the import beside the watch's: ``watch-import.sqlite``."""
    path = Path(watch)
    return str(path.with_name(f"{path.stem}-import{path.suffix}"))
