"""`ioncast experiment`: the group of the commands that run experiments."""

from __future__ import annotations

import click

from experiments.check_command import check
from experiments.scheduling.command import scheduling
from experiments.studies.background_command import background
from experiments.studies.change_command import change
from experiments.studies.commands import resume, study_command
from experiments.studies.interference_command import interference
from experiments.studies.placement_command import placement
from experiments.studies.study import STUDIES
from ioncast_base.command_options import CommandGroup


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast experiment hacc
  ioncast experiment resume hacc-testbed
  ioncast experiment check
  ioncast experiment scheduling --jobs 10000 --load 0.8
""",
)
def experiment() -> None:
    """Rerun case studies on an emulated platform, check published tables, and simulate queues."""


for study in STUDIES:
    experiment.add_command(study_command(study))
experiment.add_command(resume)
experiment.add_command(interference)
experiment.add_command(placement)
experiment.add_command(background)
experiment.add_command(change)
experiment.add_command(check)
experiment.add_command(scheduling)
