"""`ioncast experiment placement`: slow I/O nodes, and jobs that share I/O nodes, measured."""

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
    "placement",
    epilog="""\b
Examples:
  ioncast experiment placement
  ioncast experiment placement --series 1 --rounds 3 --output quick
""",
)
@click.option(
    "--series",
    type=WholeNumber(1, 1000),
    default=3,
    show_default=True,
    help="Series of 40 jobs with a slow I/O node, and as many without one.",
)
@click.option(
    "--rounds",
    type=WholeNumber(1, 1000),
    default=15,
    show_default=True,
    help="Rounds of the queue, each placed and at random.",
)
@seed_option("Seed of the slow I/O node, of the jobs' nodes, and of the order of both arms.")
@output_option("placement")
@table_format_option
def placement(series: int, rounds: int, seed: int, output: Path, output_format: str) -> None:
    """Find slow I/O nodes by the bandwidths of jobs, and measure the gain of placement.

    The study runs on an emulated platform (root only). In a series, each job uses two of eight I/O
    nodes at random, of which one may have a quarter of its rate. In a queue, eight jobs share four
    I/O nodes, placed as the arbiter does or at random.

    DIR gets a data set, which `ioncast experiment check` can check. If a run fails, it has the runs
    before.
    """
    # These import scipy and SQLAlchemy.
    from experiments.studies.placement import conduct  # noqa: PLC0415

    tables = conduct(output, series, rounds, seed, command_as_given())
    print_tables(tables, output, output_format)
