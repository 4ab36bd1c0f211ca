"""`ioncast experiment change`: benchmarks before and after a change of the platform."""

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
    "change",
    epilog="""\b
Examples:
  ioncast experiment change
  ioncast experiment change --repetitions 2 --engine fio --output quick
""",
)
@click.option(
    "--repetitions",
    type=WholeNumber(2, 1000),
    default=3,
    show_default=True,
    help="Runs of each pattern with each number of I/O nodes, before and after the change.",
)
@click.option("--engine", help="The program for the benchmarks; by default IOR, or else fio.")
@seed_option("Seed of the random order of the runs.")
@output_option("change-testbed")
@table_format_option
def change(
    repetitions: int, engine: str | None, seed: int, output: Path, output_format: str
) -> None:
    """Measure the same benchmarks before and after a change of the platform.

    The study runs on an emulated platform (root only) whose I/O nodes and storage then get slower
    links. Patterns that were measured only before are predicted from a few of the new runs, with
    earlier measurements and without them.

    DIR gets a data set, which `ioncast experiment check` can check.
    """
    # These import scipy and SQLAlchemy.
    from experiments.studies.change import ChangeOptions, conduct  # noqa: PLC0415

    options = ChangeOptions(repetitions, seed, engine)
    tables = conduct(output, options, command_as_given())
    print_tables(tables, output, output_format)
