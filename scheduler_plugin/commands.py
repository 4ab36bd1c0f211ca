"""`ioncast slurm`: what runs beside Slurm."""

from __future__ import annotations

import click

from scheduler_plugin.arbiter.command import arbitrate
from scheduler_plugin.watch.command import watch


@click.group(
    epilog="""\b
Examples:
  ioncast slurm watch --config /etc/ioncast/watch.toml
  ioncast slurm arbitrate --config /etc/ioncast/arbiter.toml
""",
)
def slurm() -> None:
    """Tell ioncast what jobs got, and share I/O nodes among those that wait."""


slurm.add_command(watch)
slurm.add_command(arbitrate)
