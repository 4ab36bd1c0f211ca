"""`ioncast experiment check`: every published table made again from the measurements."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
from tabulate import tabulate

from experiments.datasets import read, shipped
from experiments.published import Comparison, PrintedTable, compare, publish
from ioncast_base.command_options import format_option

_DIFFERENCES_SHOWN = 20


@dataclass(frozen=True)
class Checked:
    """A data set whose tables were made again.

    Attributes
    ----------
    folder : Path
        Where it is.
    tables : tuple of PrintedTable
        As they are made now.
    comparison : Comparison
        The published ones against these.
    """

    folder: Path
    tables: tuple[PrintedTable, ...]
    comparison: Comparison

    @property
    def choices(self) -> list[dict[str, str]]:
        """What is lost by predictions, of each application and of all."""
        return next(
            [dict(row) for row in table.rows] for table in self.tables if table.name == "choices"
        )


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
    checked = [_check(folder, write=write) for folder in folders or shipped()]
    if output_format == "json":
        click.echo(json.dumps([_record(one) for one in checked], indent=1))
    else:
        click.echo("\n\n".join(map(_text, checked)))
    sys.exit(any(one.comparison.differences for one in checked))


def _check(folder: Path, *, write: bool) -> Checked:
    # Fitting needs libraries that take longer to import than other commands take.
    from experiments.evaluation import evaluate  # noqa: PLC0415
    from experiments.published_tables import tables_of  # noqa: PLC0415

    click.echo(f"ioncast: {folder}: making all tables again", err=True)
    data = read(folder)
    tables = tables_of(data, evaluate(data))
    if write:
        publish(folder, tables)
    return Checked(folder, tables, compare(folder, tables))


def _text(checked: Checked) -> str:
    found = checked.comparison
    lines = [
        f"{checked.folder}: {len(checked.tables)} tables, {found.cells:,} cells",
        tabulate(checked.choices, headers="keys", disable_numparse=True),
    ]
    for one in found.differences[:_DIFFERENCES_SHOWN]:
        place = ", ".join(filter(None, [one.row, one.column]))
        where = f"{one.table}.csv{': ' if place else ''}{place}"
        lines.append(f"{where}: published is {one.published}, recomputed {one.recomputed}")
    if len(found.differences) > _DIFFERENCES_SHOWN:
        lines.append(f"and {len(found.differences) - _DIFFERENCES_SHOWN} more differences")
    elif not found.differences:
        lines.append("every published table recomputes")
    if found.rounded:
        are = (
            "cell that a model estimates is"
            if found.rounded == 1
            else "cells that a model estimates are"
        )
        lines.append(f"{found.rounded} {are} off by one in the last digit")
    return "\n".join(lines)


def _record(checked: Checked) -> dict[str, Any]:
    return {
        "folder": str(checked.folder),
        "tables": [table.name for table in checked.tables],
        "choices": checked.choices,
        "comparison": asdict(checked.comparison),
    }
