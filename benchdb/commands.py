"""`ioncast bench`: fill the benchmark database and look into it."""

from __future__ import annotations

import csv
import io
import json
import statistics
import sys
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection
from tabulate import tabulate

from benchdb.importers import Source, read_measurements
from benchdb.measurements import Curve, Measurement, curves, export_rows, store, system_names
from benchdb.options import database_option, format_option, system_option
from benchdb.store import open_database, transaction
from ioncast_errors import InputError, IoncastError, UnknownNameError

EXPORT_COLUMNS = (
    "system",
    "api",
    "operation",
    "layout",
    "spatiality",
    "file_access",
    "file_per_process",
    "collective",
    "random_offsets",
    "transfer_size",
    "block_size",
    "segments",
    "tasks",
    "nodes",
    "odirect",
    "fsync",
    "reorder_tasks",
    "intra_test_barriers",
    "io_nodes",
    "repetition",
    "bandwidth_mib_s",
    "bytes",
    "time_s",
    "started",
    "engine",
    "engine_version",
    "used",
    "note",
    "command",
)


@click.group(
    epilog="""\b
Examples:
  ioncast bench import run-*.json --system mysite --io-nodes 4
  ioncast bench list --system mysite
  ioncast bench export > measurements.csv
"""
)
def bench() -> None:
    """Fill the benchmark database and look into it."""


@bench.command(
    "import",
    epilog="""\b
Examples:
  ioncast bench import ior.json --system mysite --io-nodes 4
  ioncast bench import ior.csv --system mysite --io-nodes 0 --nodes 8 \\
      --command "ior -a POSIX -w -F -b 16m -t 1m"
  ioncast bench import measurements.csv --system mysite
""",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--system", required=True, help="The system the runs were made on.")
@click.option(
    "--io-nodes",
    type=click.IntRange(min=0),
    help="I/O nodes of these runs, where the file does not say (IOR's outputs).",
)
@click.option("--tasks", type=click.IntRange(min=1), help="Processes, instead of the file's.")
@click.option("--nodes", type=click.IntRange(min=1), help="Compute nodes, instead of the file's.")
@click.option("--command", help="The IOR command line, for files that do not hold it.")
@click.option("--replace", is_flag=True, help="Correct an earlier import of the same file.")
@database_option
def import_files(
    files: tuple[str, ...],
    system: str,
    io_nodes: int | None,
    tasks: int | None,
    nodes: int | None,
    command: str | None,
    replace: bool,
    location: str | None,
) -> None:
    """Import benchmark results; the format of each file is recognised.

    Known are IOR's JSON, text and CSV outputs, results of the FORGE emulator, and our own
    CSV (see `ioncast bench export`). Every repetition is kept. A file that the system has
    already is left out. Each file is imported as a whole or not at all; one that cannot
    be used is reported, the others are imported, and the exit code is 2.
    """
    if not system.strip():
        raise InputError("a system needs a name", where="--system")
    engine = open_database(location)
    exit_code = 0
    for file in files:
        try:
            content = _read(file)
            text = content.decode("utf-8-sig", "replace")
            source = Source(file, text, io_nodes, tasks, nodes, command)
            file_format, rows = read_measurements(source)
            with transaction(engine, write=True) as connection:
                stored = store(
                    connection,
                    system=system,
                    file=file,
                    content=content,
                    file_format=file_format,
                    rows=rows,
                    replace=replace,
                )
        except IoncastError as error:
            click.echo(f"ioncast: {error}", err=True)
            exit_code = error.exit_code
            continue
        click.echo(_report(file, system, file_format, rows, stored))
    sys.exit(exit_code)


@bench.command("list", epilog="\b\nExample:\n  ioncast bench list --system mysite --format json")
@system_option
@format_option
@database_option
def list_curves(system: str | None, output_format: str, location: str | None) -> None:
    """List the measured configurations and their repetitions by number of I/O nodes."""
    rows: list[dict[str, Any]] = [
        {
            "id": curve.id,
            "system": name,
            "engine": curve.engine,
            "configuration": curve.config.command_line(),
            "tasks": curve.config.tasks,
            "nodes": curve.config.nodes,
            "spatiality": curve.config.spatiality,
            "repetitions": {n: len(values) for n, values in curve.bandwidths_mib_s.items()},
        }
        for name, curve in _curves(location, system)
    ]
    if output_format == "json":
        click.echo(json.dumps(rows, indent=1))
        return
    for row in rows:
        row["repetitions"] = " ".join(f"{n}:{count}" for n, count in row["repetitions"].items())
    click.echo(tabulate(rows, headers="keys", missingval="?") or "no measurements")


@bench.command("show", epilog="\b\nExample:\n  ioncast bench show 3 --system mysite")
@click.argument("configuration", metavar="ID", type=int)
@system_option
@format_option
@database_option
def show(configuration: int, system: str | None, output_format: str, location: str | None) -> None:
    """Show the curves of configuration ID (from `ioncast bench list`)."""
    found = [pair for pair in _curves(location, system) if pair[1].id == configuration]
    if not found:
        raise UnknownNameError(
            f"no configuration {configuration}", remedy="see `ioncast bench list`"
        )
    if output_format == "json":
        click.echo(json.dumps([_curve_record(*pair) for pair in found], indent=1))
        return
    for name, curve in found:
        click.echo(f"{name}, {curve.engine}: {curve.config.command_line(launcher=True)}")
        click.echo(tabulate(_curve_rows(curve), headers="keys", floatfmt=".4g") + "\n")


@bench.command("export", epilog="\b\nExample:\n  ioncast bench export --system mysite > my.csv")
@system_option
@database_option
def export(system: str | None, location: str | None) -> None:
    """Write every measurement as CSV to standard output."""
    with transaction(open_database(location, create=False)) as connection:
        if system:
            _known(connection, system)
        rows = export_rows(connection, system)
    text = io.StringIO()
    writer = csv.DictWriter(text, EXPORT_COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        flags = {name: int(value) for name, value in row.items() if isinstance(value, bool)}
        writer.writerow({**row, **flags})
    click.echo(text.getvalue(), nl=False)


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=file) from error


def _report(file: str, system: str, file_format: str, rows: list[Measurement], stored: bool) -> str:
    if not stored:
        return f"{file}: {system} has this file already, nothing changed"
    patterns = len({row.config for row in rows})
    unused = sum(not row.used for row in rows)
    line = f"{file}: {len(rows)} measurements of {patterns} configurations ({file_format})"
    if unused:
        line += f", {unused} of them set apart and not used"
    if any(row.config.tasks is None for row in rows):
        line += "; how many processes ran is not known (see --tasks), so they match nothing exactly"
    return line


def _curves(location: str | None, system: str | None) -> list[tuple[str, Curve]]:
    """Every curve with its system, of one system or of all."""
    with transaction(open_database(location, create=False)) as connection:
        names = [_known(connection, system)] if system else system_names(connection)
        return [(name, curve) for name in names for curve in curves(connection, name)]


def _known(connection: Connection, system: str) -> str:
    names = system_names(connection)
    if system not in names:
        raise UnknownNameError(
            f"no system {system!r} in the database",
            remedy=f"known are {', '.join(names)}" if names else "import measurements first",
        )
    return system


def _curve_rows(curve: Curve) -> list[dict[str, float]]:
    return [
        {
            "I/O nodes": n,
            "runs": len(values),
            "mean MiB/s": statistics.fmean(values),
            "median": statistics.median(values),
            "min": min(values),
            "max": max(values),
        }
        for n, values in curve.bandwidths_mib_s.items()
    ]


def _curve_record(system: str, curve: Curve) -> dict[str, Any]:
    return {
        "id": curve.id,
        "system": system,
        "engine": curve.engine,
        "command": curve.config.command_line(),
        "tasks": curve.config.tasks,
        "nodes": curve.config.nodes,
        "bandwidths_mib_s": {str(n): list(v) for n, v in curve.bandwidths_mib_s.items()},
    }
