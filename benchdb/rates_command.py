"""`ioncast bench rates`: the rates of operations on files, as mdtest measured them."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict
from typing import Any

import click

from benchdb.command_database import reading_database
from benchdb.measurements.file_rates import FileRate, rates_of_system
from benchdb.store.systems import require_system, system_names
from ioncast_base.command_options import database_option, system_option, table_format_option
from ioncast_base.text_tables import text_table
from ioncast_base.wording import counted, in_digits

_LEGEND = (
    "files per second by number of I/O nodes: the median, of several runs with their number;"
    " rates that are set apart are left out"
)


@click.command("rates", epilog="\b\nExample:\n  ioncast bench rates --system mysite --format json")
@system_option
@table_format_option
@database_option
def rates_command(system: str | None, output_format: str, location: str | None) -> None:
    """Show the rates of creating, reading, stating and removing files (from mdtest).

    Rates from before the newest change of a system do not count, and are left out.
    """
    with reading_database(location) as connection:
        names = system_names(connection) if system is None else [require_system(connection, system)]
        found = [(name, rate) for name in names for rate in rates_of_system(connection, name)]
    if output_format == "json":
        click.echo(json.dumps([{"system": name, **asdict(rate)} for name, rate in found], indent=1))
    else:
        click.echo(_text(found))


def _text(found: list[tuple[str, FileRate]]) -> str:
    """A table with a row for each kind of run, and how many rates it leaves out."""
    rows: dict[tuple[Any, ...], dict[int, list[float]]] = {}
    for name, rate in found:
        if rate.used:
            kind = (
                name,
                rate.operation,
                rate.tasks,
                rate.nodes,
                rate.files_per_process,
                rate.bytes_per_file,
                "own" if rate.unique_directory else "shared",
            )
            rows.setdefault(kind, {}).setdefault(rate.io_nodes, []).append(rate.files_per_s)
    apart = sum(not rate.used for _, rate in found)
    left_out = f"{counted(apart, 'rate')} set apart (see --format json)" if apart else ""
    if not rows:
        return "\n".join(filter(None, ["no rates", left_out]))
    names = ("system", "operation", "tasks", "nodes", "files/process", "bytes/file", "directory")
    numbers = sorted({n for cells in rows.values() for n in cells})
    table = text_table(
        [
            dict(zip(names, kind, strict=True)) | {str(n): _cell(cells.get(n, [])) for n in numbers}
            for kind, cells in rows.items()
        ],
        right=["tasks", "nodes", "files/process", "bytes/file", *map(str, numbers)],
        optional=["system", "nodes", "files/process"],
        missing="?",
    )
    return "\n".join(filter(None, [table, _LEGEND, left_out]))


def _cell(rates: list[float]) -> str:
    if not rates:
        return "-"
    times = f" ({len(rates)})" if len(rates) > 1 else ""
    return f"{in_digits(statistics.median(rates), 4)}{times}"
