"""`ioncast bench import`: benchmark results and exports into the database."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import replace as replaced

import click
from sqlalchemy import Engine

from benchdb.measurements.file_imports import (
    EXPORT,
    ExportFile,
    ImportCounts,
    MeasurementsFile,
    StoredFile,
    read_file,
)
from benchdb.measurements.importers import ImportOptions
from benchdb.measurements.progress import counting
from benchdb.store.database import opened_database, transaction
from benchdb.store.systems import check_system_name
from benchdb.store.writes import tell_syslog
from ioncast_base.command_options import WholeNumber, complain, database_option, warn
from ioncast_base.errors import InputError, IoncastError
from ioncast_base.wording import counted

_SHOWN_WARNINGS = 10


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
@click.option("--system", help="The system of the runs; an export names its systems itself.")
@click.option(
    "--io-nodes",
    type=WholeNumber(min=0),
    help="Number of I/O nodes of the runs, if the file lacks it (outputs of IOR, mdtest, fio).",
)
@click.option("--tasks", type=WholeNumber(min=1), help="Number of processes; overrides FILE.")
@click.option("--nodes", type=WholeNumber(min=1), help="Number of compute nodes; overrides FILE.")
@click.option("--command", help="The IOR command line of the runs, if the file lacks it.")
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

    Known formats are IOR's JSON, text and CSV outputs, mdtest's text, fio's JSON, results of the
    FORGE emulator, and ioncast's own CSV and Parquet. Every repetition is stored. A file that the
    system already has is left out. A file is imported completely or not at all: a file that cannot
    be used is reported, the others are imported, and the exit code is 2.

    A file from `ioncast bench export` is restored with its systems, its repetitions, and the names
    of the files that its measurements came from.
    """
    if system is not None:
        _check(system)
    told = ImportOptions(system, io_nodes, tasks, nodes, command)
    exit_code = 0
    with ExitStack() as stack:
        engine = None
        for file in files:
            try:
                read = read_results(file, told)
            except IoncastError as error:
                exit_code = _complain(error)
                continue
            _warn(file, read)
            # A file that cannot be used must not create a database.
            engine = engine or stack.enter_context(opened_database(location))
            try:
                stored = store_results(engine, file, read, replace=replace)
                click.echo(f"{file}: {result_in_words(stored, system)}")
            except IoncastError as error:
                exit_code = _complain(error)
    sys.exit(exit_code)


def _check(system: str) -> None:
    try:
        check_system_name(system)
    except InputError as error:
        raise InputError(error.what, where="--system", remedy=error.remedy) from error


def _complain(error: IoncastError) -> int:
    complain(str(error))
    return error.exit_code


def _warn(file: str, read: MeasurementsFile | ExportFile) -> None:
    warnings = read.warnings if isinstance(read, MeasurementsFile) else ()
    for warning in warnings[:_SHOWN_WARNINGS]:
        warn(f"{file}: {warning}")
    rest = len(warnings) - _SHOWN_WARNINGS
    if rest > 0:
        warn(f"{file}: {counted(rest, 'more warning')}, in the notes of the measurements")


def read_results(file: str, told: ImportOptions) -> MeasurementsFile | ExportFile:
    """Read a file of results; one that cannot be read is an InputError."""
    try:
        return read_file(file, replaced(told, progress=counting(f"reading {file}")))
    except OSError as error:
        raise InputError(error.strerror or str(error), where=file) from error


def store_results(
    engine: Engine, file: str, read: MeasurementsFile | ExportFile, *, replace: bool = False
) -> StoredFile:
    """Store the results of a file in one transaction, and tell the system's log."""
    with transaction(engine, write=True) as connection:
        stored = read.store(connection, replace=replace, progress=counting(f"storing {file}"))
    if stored.stored.measurements or stored.replaced:
        system = read.system if isinstance(read, MeasurementsFile) else None
        tell_syslog("measurements", file, system)
    return stored


def result_in_words(file: StoredFile, system: str | None) -> str:
    """The result of storing a file, in words."""
    is_export = file.file_format == EXPORT
    if not file.found.measurements:
        return "the export has no measurements, nothing changed"
    if not file.stored.measurements:
        place = "the database" if is_export else system
        thing = "these measurements" if is_export else "this file"
        return f"{place} already has {thing}, nothing changed"
    found = file.stored
    if found.rates:
        line = f"{counted(found.rates, 'rate')} of operations on files"
    else:
        line = counted(found.measurements, "measurement")
        line += f" of {counted(found.configurations, 'configuration')}"
    imports = f" from {counted(file.imports, 'import')} restored"
    line += imports if is_export else f" ({file.file_format})"
    if file.replaced:
        line += f", replacing {file.replaced}"
    if file.known_imports:
        line += f", {counted(file.known_imports, 'import')} already there"
    return line + _reservations(file.stored)


def _reservations(stored: ImportCounts) -> str:
    line = f", {stored.set_apart} of them set apart and not used" if stored.set_apart else ""
    if stored.lacks_tasks:
        line += "; the number of processes is unknown (see --tasks), so no match can be exact"
    return line
