"""`ioncast experiment background`: an application beside background load on one I/O node."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import click

from ioncast_base.command_options import WholeNumber, table_format_option
from ioncast_base.text_tables import text_table


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
@click.option(
    "--seed",
    type=WholeNumber(0, 2**32 - 1),
    default=1,
    show_default=True,
    help="Seed of the random order of the runs.",
)
@click.option(
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default="background-testbed",
    show_default=True,
    help="A new folder for the results.",
)
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

    tables = conduct(output, repetitions, seed, shlex.join(["ioncast", *sys.argv[1:]]))
    if output_format == "json":
        record = {table.name: [dict(row) for row in table.rows] for table in tables}
        click.echo(json.dumps({"folder": str(output), **record}, indent=1))
        return
    click.echo("\n\n".join(text_table(table.rows) for table in tables))
    click.echo(f"\nmeasurements, logs and tables are in {output}")
