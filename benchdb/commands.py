"""`ioncast bench`: fill the benchmark database and look into it."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection, Engine
from tabulate import tabulate

from benchdb.coverage_command import coverage_command
from benchdb.curves import Curve, curves
from benchdb.exports import csv_lines, export_rows
from benchdb.files import whole_file
from benchdb.importers import Source, is_export, read_export, read_measurements
from benchdb.measurements import Measurement, store, system_names
from benchdb.options import database_option, format_option, system_option
from benchdb.parquet import MAGIC, csv_of, write_parquet
from benchdb.progress import counted
from benchdb.restore import Origin, Repetition, restore
from benchdb.store import opened_database, transaction
from ioncast_errors import InputError, IoncastError, UnknownNameError

_ROWS_AT_ONCE = 1_000


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


bench.add_command(coverage_command)


@bench.command(
    "import",
    epilog="""\b
Examples:
  ioncast bench import ior.json --system mysite --io-nodes 4
  ioncast bench import ior.csv --system mysite --io-nodes 0 --nodes 8 \\
      --command "ior -a POSIX -w -F -b 16m -t 1m"
  ioncast bench import measurements.csv --system mysite
  ioncast bench import export.parquet
""",
)
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@click.option("--system", help="The system the runs were made on; an export says it itself.")
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
    system: str | None,
    io_nodes: int | None,
    tasks: int | None,
    nodes: int | None,
    command: str | None,
    replace: bool,
    location: str | None,
) -> None:
    """Import benchmark results; the format of each file is recognised.

    Known are IOR's JSON, text and CSV outputs, results of the FORGE emulator, and our own
    CSV and Parquet. Every repetition is kept. A file that the system has already is left
    out. Each file is imported as a whole or not at all; one that cannot be used is
    reported, the others are imported, and the exit code is 2.

    What `ioncast bench export` wrote is restored with its systems, the files that its
    measurements are from, and their repetitions.
    """
    if system is not None and not system.strip():
        raise InputError("a system needs a name", where="--system")
    exit_code = 0
    with ExitStack() as stack:
        engine = None
        for file in files:
            try:
                store_file = _read_file(file, system, io_nodes, tasks, nodes, command, replace)
            except IoncastError as error:
                exit_code = _complain(error)
                continue
            # What cannot be used makes no database.
            engine = engine or stack.enter_context(opened_database(location))
            try:
                click.echo(store_file(engine))
            except IoncastError as error:
                exit_code = _complain(error)
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


@bench.command(
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
    with _reading(location) as connection:
        if system:
            _known(connection, system)
        rows = export_rows(connection, system)
        if output is None:
            _print(csv_lines(rows))
        else:
            _write(rows, output, output_format)


@contextmanager
def _reading(location: str | None) -> Iterator[Connection]:
    with opened_database(location, create=False) as engine, transaction(engine) as connection:
        yield connection


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


def _complain(error: IoncastError) -> int:
    click.echo(f"ioncast: {error}", err=True)
    return error.exit_code


def _read_file(
    file: str,
    system: str | None,
    io_nodes: int | None,
    tasks: int | None,
    nodes: int | None,
    command: str | None,
    replace: bool,
) -> Callable[[Engine], str]:
    """Read a file; what comes back stores it and gives the line to print."""
    content = _read(file)
    is_parquet = content.startswith(MAGIC)
    text = csv_of(content, file) if is_parquet else content.decode("utf-8-sig", "replace")
    progress = counted(f"reading {file}")
    source = Source(file, text, io_nodes, tasks, nodes, command, progress)
    if is_export(text):
        found = read_export(source, system)
        return lambda engine: _restore(engine, file, found, replace)
    file_format, rows = read_measurements(source)
    if system is None:
        raise InputError(
            "the file does not say on which system its runs were made",
            where=file,
            remedy="say it with --system",
        )
    shown = "parquet" if is_parquet else file_format
    return lambda engine: _store(engine, file, content, system, shown, rows, replace)


def _store(
    engine: Engine,
    file: str,
    content: bytes,
    system: str,
    file_format: str,
    rows: list[Measurement],
    replace: bool,
) -> str:
    with transaction(engine, write=True) as connection:
        stored = store(
            connection,
            system=system,
            file=file,
            content=content,
            file_format=file_format,
            rows=rows,
            replace=replace,
            progress=counted(f"storing {file}"),
        )
    if not stored:
        return f"{file}: {system} has this file already, nothing changed"
    return f"{file}: {_counts(rows)} ({file_format}){_reservations(rows)}"


def _restore(
    engine: Engine, file: str, found: dict[Origin, list[Repetition]], replace: bool
) -> str:
    progress = counted(f"storing {file}")
    with transaction(engine, write=True) as connection:
        restored = restore(connection, found, file=file, replace=replace, progress=progress)
    if not restored:
        return f"{file}: the database has its measurements already, nothing changed"
    rows = [row for origin in restored for _, row in found[origin]]
    line = f"{file}: {_counts(rows)} from {len(restored)} imports restored"
    if len(restored) < len(found):
        line += f", {len(found) - len(restored)} imports were there already"
    return line + _reservations(rows)


def _read(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=file) from error


def _counts(rows: list[Measurement]) -> str:
    patterns = {id(row.config): row.config for row in rows}
    return f"{len(rows)} measurements of {len(set(patterns.values()))} configurations"


def _reservations(rows: list[Measurement]) -> str:
    unused = sum(not row.used for row in rows)
    line = f", {unused} of them set apart and not used" if unused else ""
    if any(row.config.tasks is None for row in rows):
        line += "; how many processes ran is not known (see --tasks), so they match nothing exactly"
    return line


def _curves(location: str | None, system: str | None) -> list[tuple[str, Curve]]:
    """Every curve with its system, of one system or of all."""
    with _reading(location) as connection:
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
