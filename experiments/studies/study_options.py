"""Options and output that the commands of several studies share."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from experiments.published import PrintedTable
from ioncast_base.command_options import WholeNumber
from ioncast_base.text_tables import text_table

_Command = TypeVar("_Command", bound=Callable[..., Any])


def seed_option(help_text: str) -> Callable[[_Command], _Command]:
    """Make the option of the seed of a study."""
    numbers = WholeNumber(0, 2**32 - 1)
    return click.option("--seed", type=numbers, default=1, show_default=True, help=help_text)


def output_option(default: str) -> Callable[[_Command], _Command]:
    """Make the option of the folder of the results."""
    return click.option(
        "--output",
        metavar="DIR",
        type=click.Path(path_type=Path),
        default=default,
        show_default=True,
        help="A new folder for the results.",
    )


def command_as_given() -> str:
    """The command line of this process, for the provenance."""
    return shlex.join(["ioncast", *sys.argv[1:]])


def print_tables(tables: Sequence[PrintedTable], output: Path, output_format: str) -> None:
    """Print the tables of a data set, and its folder."""
    if output_format == "json":
        record = {table.name: [dict(row) for row in table.rows] for table in tables}
        click.echo(json.dumps({"folder": str(output), **record}, indent=1))
        return
    click.echo("\n\n".join(text_table(table.rows) for table in tables))
    click.echo(f"\nmeasurements and tables are in {output}")
