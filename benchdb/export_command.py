"""`ioncast bench export`: all measurements, for other programs and other databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchdb.command_database import reading_database
from benchdb.measurements.exports import (
    RATES_EXPORT_COLUMNS,
    export_rates,
    export_rows,
    write_csv,
)
from benchdb.measurements.parquet import write_parquet
from benchdb.store.systems import require_system
from ioncast_base.command_options import database_option
from ioncast_base.errors import InputError
from ioncast_base.files import whole_file

_CHUNK_BYTES = 1 << 16


@click.command(
    "export",
    epilog="""\b
Examples:
  ioncast bench export --system mysite > my.csv
  ioncast bench export --output my.parquet
  ioncast bench export --rates > rates.csv
""",
)
@click.option("--system", help="Write only the measurements of this system.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "parquet"]),
    help="The format; Parquet needs --output.  [default: parquet to FILE.parquet, else csv]",
)
@click.option("--rates", is_flag=True, help="Write the rates of files (from mdtest), as CSV.")
@click.option("--output", type=click.Path(path_type=Path), help="The file to write.")
@database_option
def export(
    system: str | None,
    output_format: str | None,
    rates: bool,
    output: Path | None,
    location: str | None,
) -> None:
    """Write all measurements to standard output or to a file, for other programs or an import.

    Measurements are bandwidths; rates of files (from mdtest) have other columns, and so a file of
    their own, with --rates.
    """
    if rates and (output_format == "parquet" or (output and output.suffix == ".parquet")):
        raise InputError("rates of files are written as CSV", where="--rates")
    if output_format is None and output is not None and output.suffix == ".parquet":
        output_format = "parquet"
    if output_format == "parquet" and output is None:
        raise InputError("Parquet needs a file", where="--format", remedy="name it with --output")
    # The database is closed before a slow reader, such as a pager, gets the output.
    with (
        _standard_output() if output is None else whole_file(output) as place,
        reading_database(location) as connection,
    ):
        if system is not None:
            require_system(connection, system)
        if rates:
            write_csv(export_rates(connection, system), place, RATES_EXPORT_COLUMNS)
        elif output_format == "parquet":
            write_parquet(export_rows(connection, system), place)
        else:
            write_csv(export_rows(connection, system), place)


@contextmanager
def _standard_output() -> Iterator[Path]:
    """Give a temporary file; print it when the block ends without an error."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "export"
        yield place
        with place.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                click.echo(chunk, nl=False)
