"""`ioncast experiment`: experiments that anyone can rerun."""

from __future__ import annotations

import click

from experiments.scheduling.command import scheduling


@click.group(
    epilog="""\b
Example:
  ioncast experiment scheduling --jobs 10000 --load 0.8
"""
)
def experiment() -> None:
    """Rerun experiments, on measured data or on your own."""


experiment.add_command(scheduling)
