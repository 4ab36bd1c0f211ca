"""`ioncast slurm`: the group of the programs that run beside Slurm."""

from __future__ import annotations

import click

from ioncast_base.command_options import CommandGroup
from scheduler_plugin.arbiter.command import arbitrate
from scheduler_plugin.check.command import check
from scheduler_plugin.collector.command import watch
from scheduler_plugin.collector.import_history_command import import_history
from scheduler_plugin.setup.command import setup


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast slurm setup --system mysite --pool 8
  ioncast slurm watch --config /etc/ioncast/watch.toml
  ioncast slurm import-history --config /etc/ioncast/watch.toml --since 2026-08-01
  ioncast slurm arbitrate --config /etc/ioncast/arbiter.toml
  ioncast slurm check
""",
)
def slurm() -> None:
    """Set up and check all parts, send Darshan logs, and divide I/O nodes among jobs."""


slurm.add_command(setup)
slurm.add_command(watch)
slurm.add_command(import_history)
slurm.add_command(arbitrate)
slurm.add_command(check)
