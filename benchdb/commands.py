"""`ioncast bench`: import benchmark results, show them and export them."""

from __future__ import annotations

import json
from collections.abc import Collection

import click
from sqlalchemy import Connection

from benchdb.command_database import reading_database
from benchdb.coverage_command import coverage_command
from benchdb.export_command import export
from benchdb.import_command import import_files
from benchdb.measurements.curves import curves, curves_of_ids
from benchdb.measurements.measurement_formats import (
    curves_to_json,
    curves_to_text,
    list_to_json,
    list_to_text,
)
from benchdb.rates_command import rates_command
from benchdb.store.system_changes import SystemChange, changes
from benchdb.store.systems import require_system, system_names
from ioncast_base.command_options import (
    CommandGroup,
    WholeNumber,
    database_option,
    system_option,
    table_format_option,
)
from ioncast_base.errors import UnknownNameError
from ioncast_base.limits import LARGEST_ID


@click.group(
    cls=CommandGroup,
    epilog="""\b
Examples:
  ioncast bench import run-*.json --system mysite --io-nodes 4
  ioncast bench list --system mysite
  ioncast bench export > measurements.csv
""",
)
def bench() -> None:
    """Import benchmark results into the database, show them and export them."""


bench.add_command(import_files)


@bench.command("list", epilog="\b\nExample:\n  ioncast bench list --system mysite --format json")
@system_option
@table_format_option
@database_option
def list_curves(system: str | None, output_format: str, location: str | None) -> None:
    """List the measured configurations and their repetitions by number of I/O nodes."""
    with reading_database(location) as connection:
        names = _systems(connection, system)
        found = [(name, curve) for name in names for curve in curves(connection, name)]
        older = [
            (change, curve)
            for change in _changes(connection, names)
            for curve in curves(connection, change.system, before_change=True)
        ]
    if output_format == "json":
        click.echo(json.dumps(list_to_json(found, older), indent=1))
    else:
        click.echo(list_to_text(found, older))


@bench.command("show", epilog="\b\nExample:\n  ioncast bench show 3 --system mysite")
@click.argument("configuration", metavar="ID", type=WholeNumber(1, LARGEST_ID))
@system_option
@table_format_option
@database_option
def show(configuration: int, system: str | None, output_format: str, location: str | None) -> None:
    """Show the curves of configuration ID (from `ioncast bench list`)."""
    with reading_database(location) as connection:
        names = _systems(connection, system)
        found = [
            (name, curve)
            for name in names
            for curve in curves_of_ids(connection, name, [configuration])
        ]
        older = [
            (change, curve)
            for change in _changes(connection, names)
            for curve in curves_of_ids(
                connection, change.system, [configuration], before_change=True
            )
        ]
    if not found and not older:
        raise UnknownNameError(
            f"the database has no configuration {configuration}", remedy="see `ioncast bench list`"
        )
    if output_format == "json":
        click.echo(json.dumps(curves_to_json(found, older), indent=1))
    else:
        click.echo(curves_to_text(found, older))


def _systems(connection: Connection, system: str | None) -> list[str]:
    return system_names(connection) if system is None else [require_system(connection, system)]


def _changes(connection: Connection, names: Collection[str]) -> list[SystemChange]:
    return [each for name, each in changes(connection).items() if name in names]


bench.add_command(coverage_command)
bench.add_command(rates_command)
bench.add_command(export)
