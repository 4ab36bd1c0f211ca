"""`ioncast bench export`: every measurement, for other programs and other databases."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from benchdb.exports import csv_lines, export_rows
from benchdb.files import whole_file
from benchdb.measurements import require_system
from benchdb.options import database_option, system_option
from benchdb.parquet import write_parquet
from benchdb.store import reading
from ioncast_errors import InputError

_ROWS_AT_ONCE = 1_000


@click.command(
    "export",
    epilog="""\b
Examples:
  ioncast bench export --system mysite > my.csv
  ioncast bench export --format parquet --output my.parquet
""",
)
@system_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "parquet"]),
    default="csv",
    show_default=True,
    help="What to write; Parquet needs --output.",
)
@click.option("--output", type=click.Path(path_type=Path), help="The file to write.")
@database_option
def export(
    system: str | None, output_format: str, output: Path | None, location: str | None
) -> None:
    """Write every measurement, to standard output or a file, for other programs and import."""
    if output_format == "parquet" and output is None:
        raise InputError("Parquet needs a file", where="--format", remedy="name it with --output")
    with reading(location) as connection:
        if system:
            require_system(connection, system)
        rows = export_rows(connection, system)
        if output is None:
            _print(csv_lines(rows))
        else:
            _write(rows, output, output_format)


def _print(lines: Iterator[str]) -> None:
    while some := list(islice(lines, _ROWS_AT_ONCE)):
        click.echo("".join(some), nl=False)


def _write(rows: Iterator[dict[str, Any]], output: Path, output_format: str) -> None:
    if output.exists() and not output.is_file():
        raise InputError("there is something else than a file", where=str(output))
    with whole_file(output) as place:
        if output_format == "parquet":
            write_parquet(rows, place)
        else:
            with place.open("w", encoding="utf-8", newline="") as file:
                file.writelines(csv_lines(rows))
