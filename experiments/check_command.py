"""`ioncast experiment check`: every published table made again from the measurements."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from experiments.datasets import shipped
from ioncast_base.command_options import format_option


@click.command(
    "check",
    epilog="""\b
Examples:
  ioncast experiment check
  ioncast experiment check experiments/data/testbed --format json
  ioncast experiment check my-results --write
""",
)
@click.argument(
    "folders",
    metavar="[DIR...]",
    nargs=-1,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
)
@click.option(
    "--write",
    is_flag=True,
    help="Publish the tables as they are made now; other *.csv in DIR/tables are removed.",
)
@format_option
def check(folders: tuple[Path, ...], write: bool, output_format: str) -> None:
    """Make the tables of data sets again, and compare them with those that are published.

    DIR is a folder with provenance.json, benchmarks.csv, applications.csv and logs; without
    one, the data sets that come with ioncast are checked. Tables that follow from the
    measurements must be the same in every character. Those that a model was fitted for may
    be off by one in the last digit, which another version of a library can make of a number
    that is nearly halfway between two. The exit code is 1 where anything else differs.

    Printed are the errors of the predicted means against those of the reruns, and what is lost
    with the I/O nodes that are predicted best, and with those decided for.
    """
    # Fitting models needs scikit-learn, which takes longer to import than other commands run.
    from experiments.checking import check_data_set  # noqa: PLC0415

    checked = []
    for folder in folders or shipped():
        click.echo(f"ioncast: {folder}: making all tables again", err=True)
        checked.append(check_data_set(folder, write=write))
    if output_format == "json":
        click.echo(json.dumps([one.to_record() for one in checked], indent=1))
    else:
        click.echo("\n\n".join(one.to_text() for one in checked))
    sys.exit(any(one.comparison.differences for one in checked))
