"""`ioncast bench export`: every measurement, for other programs and other databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from benchdb.measurements.exports import csv_lines, export_rows
from benchdb.measurements.parquet import write_parquet
from benchdb.store.database import reading
from benchdb.store.systems import require_system
from ioncast_base.command_options import database_option, system_option
from ioncast_base.errors import InputError
from ioncast_base.files import whole_file

_CHUNK_BYTES = 1 << 16


@click.command(
    "export",
    epilog="""\b
Examples:
  ioncast bench export --system mysite > my.csv
  ioncast bench export --output my.parquet
""",
)
@system_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["csv", "parquet"]),
    help="What to write; Parquet needs --output.  [default: parquet to FILE.parquet, else csv]",
)
@click.option("--output", type=click.Path(path_type=Path), help="The file to write.")
@database_option
def export(
    system: str | None, output_format: str | None, output: Path | None, location: str | None
) -> None:
    """Write every measurement, to standard output or a file, for other programs and import."""
    if output_format is None and output is not None and output.suffix == ".parquet":
        output_format = "parquet"
    if output_format == "parquet" and output is None:
        raise InputError("Parquet needs a file", where="--format", remedy="name it with --output")
    # Whoever reads slowly, such as a pager, does so when the database is closed.
    with (
        _standard_output() if output is None else whole_file(output) as place,
        reading(location) as connection,
    ):
        if system is not None:
            require_system(connection, system)
        rows = export_rows(connection, system)
        if output_format == "parquet":
            write_parquet(rows, place)
        else:
            with place.open("w", encoding="utf-8", newline="") as file:
                file.writelines(csv_lines(rows))


@contextmanager
def _standard_output() -> Iterator[Path]:
    """Give a place to write to, which is printed as it is when the block ends well."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "export"
        yield place
        with place.open("rb") as file:
            while chunk := file.read(_CHUNK_BYTES):
                click.echo(chunk, nl=False)
