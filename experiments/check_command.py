"""`ioncast experiment check`: makes the published tables again and compares them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from experiments.datasets import shipped
from ioncast_base.command_options import table_format_option


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
    help="Publish the new tables; other *.csv files in DIR/tables are removed.",
)
@table_format_option
def check(folders: tuple[Path, ...], write: bool, output_format: str) -> None:
    """Make the tables of data sets again, and compare them with the published tables.

    DIR is a folder with provenance.json, benchmarks.csv, applications.csv and logs. Without
    DIR, the data sets that come with ioncast are checked.

    Tables that follow from the measurements alone must be the same in every character. In
    tables that rest on a fitted model, a number may be off by one in its last digit, because
    libraries of different versions round differently. The exit code is 1 if anything else
    differs.

    The output has the errors of the predictions, and the share of bandwidth that the predicted
    best number of I/O nodes and the decision lose.
    """
    # Fitting models needs SciPy, which takes longer to import than other commands run.
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
