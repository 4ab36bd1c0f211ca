"""`ioncast bench import`: benchmark results and exports into the database."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import click
from sqlalchemy import Connection, Engine

from benchdb.measurements.importers import (
    Source,
    is_export,
    read_export,
    read_measurements,
    text_of,
)
from benchdb.measurements.parquet import MAGIC, csv_of
from benchdb.measurements.progress import counted
from benchdb.measurements.restore import Origin, Repetition, restore
from benchdb.measurements.storing import Measurement, count, store
from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import check_system_name
from ioncast_base.command_options import database_option
from ioncast_base.errors import InputError, IoncastError


@click.command(
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
    if system is not None:
        _check(system)
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


def _check(system: str) -> None:
    try:
        check_system_name(system)
    except InputError as error:
        raise InputError(error.what, where="--system", remedy=error.remedy) from error


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
    text = csv_of(content, file) if is_parquet else text_of(content, file)
    progress = counted(f"reading {file}")
    source = Source(file, text, io_nodes, tasks, nodes, command, progress)
    if is_export(text):
        # Its text is enough, and exports are large.
        content = b""
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
        before = count(connection) if replace else 0
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
        replaced = _replaced(connection, before, rows) if replace else ""
    if not stored:
        return f"{file}: {system} has this file already, nothing changed"
    return f"{file}: {_counts(rows)} ({file_format}){replaced}{_reservations(rows)}"


def _restore(
    engine: Engine, file: str, found: dict[Origin, list[Repetition]], replace: bool
) -> str:
    if not found:
        return f"{file}: no measurements in it, nothing changed"
    progress = counted(f"storing {file}")
    with transaction(engine, write=True) as connection:
        before = count(connection) if replace else 0
        restored = restore(connection, found, file=file, replace=replace, progress=progress)
        rows = [row for origin in restored for _, row in found[origin]]
        replaced = _replaced(connection, before, rows) if replace else ""
    if not restored:
        return f"{file}: the database has its measurements already, nothing changed"
    line = f"{file}: {_counts(rows)} from {len(restored)} imports restored{replaced}"
    if len(restored) < len(found):
        line += f", {len(found) - len(restored)} imports were there already"
    return line + _reservations(rows)


def _replaced(connection: Connection, before: int, rows: list[Measurement]) -> str:
    gone = before + len(rows) - count(connection)
    return f", in the place of {gone}" if gone else ""


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
