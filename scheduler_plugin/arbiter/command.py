"""`ioncast slurm arbitrate`: divide free I/O nodes among waiting jobs, again and again."""

from __future__ import annotations

import click

from scheduler_plugin.arbiter.arbiter_loop import Arbiter, share_once, share_until_stopped
from scheduler_plugin.clients import clients
from scheduler_plugin.rounds import log_to_stderr
from scheduler_plugin.settings import read_settings

# Slurm's users wait while the arbiter reads decisions.
_SERVICE_TIMEOUT_S = 5.0


@click.command(
    "arbitrate",
    epilog="""\b
Examples:
  ioncast slurm arbitrate --config /etc/ioncast/arbiter.toml
  ioncast slurm arbitrate --config arbiter.toml --once --dry-run
""",
)
@click.option(
    "--config", metavar="FILE.toml", required=True, type=click.Path(), help="The settings."
)
@click.option("--once", is_flag=True, help="Do one round and exit.")
@click.option("--dry-run", is_flag=True, help="Do one round and only say what would be changed.")
def arbitrate(config: str, once: bool, dry_run: bool) -> None:
    """Divide free I/O nodes among all waiting jobs, for the highest total bandwidth.

    Jobs that job_submit.lua holds (mode "arbitrate") are released with the licences that they
    get. The licences of other waiting jobs are changed until they start. Running jobs keep
    theirs. When the arbiter stops, it releases all held jobs with the licences that were decided
    at submission.
    """
    settings = read_settings(config)
    log_to_stderr("ioncast.arbiter")
    with clients(settings, _SERVICE_TIMEOUT_S) as (slurm, service):
        arbiter = Arbiter(settings, slurm, service, is_dry=dry_run)
        if once or dry_run:
            share_once(arbiter)
        else:
            share_until_stopped(arbiter)
