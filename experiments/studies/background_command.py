"""`ioncast experiment background`: an application beside background load on one I/O node."""

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
    "background",
    epilog="""\b
Examples:
  ioncast experiment background
  ioncast experiment background --repetitions 6 --output quick
""",
)
@click.option(
    "--repetitions",
    type=WholeNumber(6, 1000),
    default=10,
    show_default=True,
    help="Runs with 4 and with 8 I/O nodes alone; a third as many have background load.",
)
@seed_option("Seed of the random order of the runs.")
@output_option("background-testbed")
@table_format_option
def background(repetitions: int, seed: int, output: Path, output_format: str) -> None:
    """Run an application with and without background load on one of its I/O nodes.

    The study runs on an emulated platform (root only) and needs Darshan's runtime and mpi4py. The
    bytes that the I/O nodes receive are sampled each second. `ioncast diagnose` then names the
    cause of each run, and the runs become outcomes for a decision.

    DIR gets a data set, which `ioncast experiment check` can check.
    """
    # These import scipy and SQLAlchemy.
    from experiments.studies.background import conduct  # noqa: PLC0415

    tables = conduct(output, repetitions, seed, command_as_given())
    print_tables(tables, output, output_format)
