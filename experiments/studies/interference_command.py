"""`ioncast experiment interference`: two applications on one I/O node, measured and judged."""

from __future__ import annotations

from pathlib import Path

import click

from experiments.studies.study_options import (
    command_as_given,
    output_option,
    print_tables,
    seed_option,
)
from ioncast_base.command_options import WholeNumber, table_format_option


@click.command(
    "interference",
    epilog="""\b
Examples:
  ioncast experiment interference
  ioncast experiment interference --repetitions 3 --output quick
""",
)
@click.option(
    "--repetitions",
    type=WholeNumber(1, 1000),
    default=10,
    show_default=True,
    help="Runs of each application alone, together and apart.",
)
@seed_option("Seed of the random order of the runs, and of the I/O node that both use.")
@output_option("interference-testbed")
@table_format_option
def interference(repetitions: int, seed: int, output: Path, output_format: str) -> None:
    """Run two applications alone, together on one I/O node, and apart.

    The study runs on an emulated platform (root only) and needs Darshan's runtime and mpi4py. Each
    repetition runs a checkpoint alone, an output alone, both at once with one common I/O node, and
    both at once without any, in random order. `ioncast interference` then judges the logs of each
    pair.

    DIR gets a data set, which `ioncast experiment check` can check. If a run fails, it has the
    repetitions before.
    """
    # These import scipy and SQLAlchemy.
    from experiments.studies.interference import conduct  # noqa: PLC0415

    tables = conduct(output, repetitions, seed, command_as_given())
    print_tables(tables, output, output_format)
