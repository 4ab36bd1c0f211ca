"""Reads benchmark results from files; the format is recognised by the content.

An importer is a function from the text of a file to measurements. It is registered with a function
that recognises its format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Boolean, Column, String

from benchdb.measurements.csv_rows import (
    Row,
    checked_operation,
    columns_of,
    count_cell,
    first_line,
    flag_cell,
    number_cell,
    positive_cell,
    read_rows,
    text_cell,
)
from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.progress import Progress, silently
from benchdb.measurements.rates_csv import is_rates, rate_of
from benchdb.measurements.read_fio import fio_measurements, is_fio
from benchdb.measurements.read_mdtest import is_mdtest, read_rates
from benchdb.measurements.restore import Origin, Repetition
from benchdb.measurements.storing import MEASUREMENT_FIELDS, Measurement, joined_note, unstorable
from benchdb.store.schema import CONFIGURATION_FIELDS, configurations
from ioncast_base.errors import InputError, Remedy
from ioncast_base.kinds import FSYNCS
from ioncast_base.visible_text import from_cell
from ior_configs import IorConfig, IorResult, read_outputs, sniff
from ior_configs.conditions import conditions_of_text
from ior_configs.launchers import split_command_line

_T = TypeVar("_T")

MIB = 1 << 20
KIB = 1 << 10


def _say_nothing(warning: str) -> None:
    """Leave a warning to the notes of the measurements."""


@dataclass(frozen=True)
class ImportOptions:
    """Facts that the user tells about a file, because the file may lack them.

    IOR does not know the number of I/O nodes, and may report wrong numbers of tasks and nodes
    (nodes that share a host name count as one). If each row of the file has a number of I/O nodes,
    `io_nodes` is ignored. `progress` returns the rows unchanged and shows how many have passed;
    `warn` gets each warning, maybe several times.
    """

    system: str | None = None
    io_nodes: int | None = None
    tasks: int | None = None
    nodes: int | None = None
    command: str | None = None
    progress: Progress = silently
    warn: Callable[[str], object] = _say_nothing


@dataclass(frozen=True, eq=False)
class ResultFile:
    """The text of a file, or a regular file that is read again each time.

    Bytes that are not UTF-8 are replaced.
    """

    where: str
    content: str | Path

    def lines(self) -> Iterable[str]:
        """The lines of the text; those of a regular file are not held in memory."""
        if isinstance(self.content, str):
            return self.content.splitlines()
        return self._lines_of(self.content)

    @cached_property
    def whole(self) -> str:
        """The whole text, in memory from now on."""
        if isinstance(self.content, str):
            return self.content
        return self.content.read_bytes().decode("utf-8-sig", "replace")

    def header(self) -> str:
        """The first line."""
        if isinstance(self.content, str):
            return first_line(self.content)
        return next(self._lines_of(self.content), "").strip()

    @staticmethod
    def _lines_of(path: Path) -> Iterator[str]:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            for line in file:
                yield line.rstrip("\n")


NOTHING_TOLD = ImportOptions()
Importer = Callable[[ResultFile, ImportOptions], Sequence[Measurement] | Sequence[FileRate]]
_importers: dict[str, tuple[Callable[[ResultFile], bool], Importer]] = {}

# The columns of ioncast's own CSV that give the configuration: either its fields, of which some
# are required, or an IOR command line with its surroundings.
_CONFIG_COLUMNS = ("operation", *CONFIGURATION_FIELDS)
_REQUIRED_COLUMNS = {"api", "operation", "transfer_size", "block_size"}
_COMMAND_COLUMNS = ("command", "operation", "tasks", "nodes", "bytes", "fsync")
# The word beside a command that does not tell whether the run called fsync.
UNKNOWN_FSYNC = "unknown"
_FORGE_CONFIG_COLUMNS = (
    "clients",
    "processes",
    "layout",
    "spatiality",
    "odirect",
    "request",
    "total",
    "operation",
)
_PLAIN_FIELDS = tuple(n for n in CONFIGURATION_FIELDS if n not in {"fsync", "conditions"})
_CACHED = (
    "the processes read data that their own nodes had written, without -C, -Z or a pause (-d), so"
    " the page cache of the nodes may have answered"
)
_LARGEST_REPETITION = 2**31 - 1
_LINE_BREAKS = re.compile("[\\r\\n]+")
_ORIGIN_COLUMNS = ("system", "file", "file_sha256", "file_format", "imported_at")


def importer(name: str, recognises: Callable[[ResultFile], bool]) -> Callable[[Importer], Importer]:
    """Register an importer under the name of its format."""

    def register(function: Importer) -> Importer:
        _importers[name] = (recognises, function)
        return function

    return register


def read_measurements(
    file: ResultFile, options: ImportOptions = NOTHING_TOLD
) -> tuple[str, Sequence[Measurement] | Sequence[FileRate]]:
    """Recognise the format of a file and read its measurements or rates, at least one.

    An unknown format, or a line that cannot be used, is an InputError.
    """
    for name, (recognises, function) in _importers.items():
        if recognises(file):
            try:
                rows = function(file, options)
            except InputError as error:
                raise InputError(
                    error.what,
                    where=error.where or file.where,
                    line=error.line,
                    remedy=error.remedy,
                ) from error
            if not rows:
                raise InputError("the file has no measurements", where=file.where)
            return name, rows
    raise InputError(
        "not a benchmark result of a known format",
        where=file.where,
        remedy="give an output of IOR, mdtest or fio (JSON), results of FORGE, an export of"
        " ioncast, or CSV with the columns io_nodes, bandwidth_mib_s and command, separated by"
        " commas",
    )


def text_of(content: bytes, where: str) -> str:
    """The text of a file, in UTF-8.

    Bytes that are not UTF-8 are replaced in the outputs of other programs.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("utf-8-sig", "replace")
        if not is_ours(text):
            return text
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            "not text in UTF-8",
            where=where,
            line=line,
            remedy="save it as UTF-8",
        ) from error


def _is_ior(file: ResultFile) -> bool:
    return sniff(file.lines()) is not None


def _is_mdtest(file: ResultFile) -> bool:
    return is_mdtest(file.lines())


def _is_fio(file: ResultFile) -> bool:
    return is_fio(file.whole)


def _is_forge(file: ResultFile) -> bool:
    return file.header().startswith("forwarders;clients;processes;layout;spatiality;")


def _is_ours(file: ResultFile) -> bool:
    return is_ours(file.header())


def is_ours(text: str) -> bool:
    """Whether a text is ioncast's own CSV, by its first line."""
    return {"io_nodes", "bandwidth_mib_s"} <= columns_of(text)


@importer("ioncast-csv", _is_ours)
def read_csv(file: ResultFile, options: ImportOptions) -> list[Measurement]:
    """Read ioncast's own CSV, as `ioncast bench export` writes it.

    The columns io_nodes and bandwidth_mib_s are required, and either `command` (an IOR command
    line) or the columns of the configuration (api, operation, transfer_size, block_size …).
    """
    rows = _read_rows(file, options, _as_exported(file, _row_reader(file, options)))
    if "api" not in columns_of(file.header()):
        _check_launches(rows)
    return rows


def measurements_of(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Measurement]:
    """Make measurements of values that the columns of ioncast's own CSV would have.

    `rows` has for each measurement the name of its place, for errors, and the values; `command`,
    `io_nodes` and `bandwidth_mib_s` are required.
    """
    config_of_row = _memoised(_cells(_COMMAND_COLUMNS), _config_of_values)
    measurements = []
    for where, row in rows:
        # An empty text is as good as none, and a line break in a command means a blank.
        told: dict[str, Any] = {
            name: _LINE_BREAKS.sub(" ", value).strip() if isinstance(value, str) else value
            for name, value in row.items()
            if value not in {None, ""}
        }
        values = {name: told[name] for name in MEASUREMENT_FIELDS if name in told}
        try:
            measurements.append(_measurement(config_of_row(told), **values))
        except InputError as error:
            raise InputError(error.what, where=where, remedy=error.remedy) from error
        except (ValueError, TypeError, ArithmeticError) as error:
            raise InputError(str(error), where=where) from error
    _check_launches(measurements)
    return measurements


def _config_of_values(row: Mapping[str, Any]) -> IorConfig:
    told = {name: row[name] for name in _COMMAND_COLUMNS if name in row}
    return _config_of_line(**told).pattern()


def _check_launches(rows: Iterable[Measurement]) -> None:
    """Reject commands that start the same run with unknown, maybe different, process counts."""
    launches: dict[IorConfig, tuple[str, ...]] = {}
    for row in {id(row.config): row for row in rows if row.config.tasks is None}.values():
        launch = split_command_line(row.command).launch if row.command else ()
        if launches.setdefault(row.config, launch) != launch:
            raise InputError(
                f"{' '.join(launch) or 'nothing'!r} and {' '.join(launches[row.config])!r} start"
                " the same run, with unknown numbers of processes",
                remedy="add a column `tasks` with these numbers",
            )


@importer("rates-csv", lambda file: is_rates(file.header()))
def read_rates_csv(file: ResultFile, options: ImportOptions) -> list[FileRate]:
    """Read rates of files with the columns of the table `file_rates`."""
    return read_rows(
        file.whole, _as_exported(file, rate_of), where=file.where, progress=options.progress
    )


def is_export(text: str) -> bool:
    """Whether a text is an export, which has its imports and repetitions."""
    return is_ours(text) and {"repetition", *_ORIGIN_COLUMNS} <= columns_of(text)


def read_export(
    file: ResultFile, options: ImportOptions = NOTHING_TOLD
) -> dict[Origin, list[Repetition]]:
    """Read an export: the repetitions of each import."""
    measurement_of, origin_of = _row_reader(file, options), _origin_reader(options)

    def read(row: Row) -> tuple[Origin, Repetition]:
        repetition = count_cell(row, "repetition")
        if repetition > _LARGEST_REPETITION:
            raise InputError(f"repetition is {repetition}, above {_LARGEST_REPETITION}")
        return origin_of(row), (repetition, measurement_of(row))

    return _by_origin(file, options, read)


def is_rates_export(text: str) -> bool:
    """Whether a text is an export of rates of files, by its first line."""
    return is_rates(text) and set(_ORIGIN_COLUMNS) <= columns_of(text)


def read_rates_export(
    file: ResultFile, options: ImportOptions = NOTHING_TOLD
) -> dict[Origin, list[FileRate]]:
    """Read an export of rates: those of each import."""
    origin_of = _origin_reader(options)
    return _by_origin(file, options, lambda row: (origin_of(row), rate_of(row)))


def _by_origin(
    file: ResultFile, options: ImportOptions, read: Callable[[Row], tuple[Origin, _T]]
) -> dict[Origin, list[_T]]:
    """Read the rows of an export, by their imports."""
    export: dict[Origin, list[_T]] = {}
    reader = _as_exported(file, read)
    for origin, value in read_rows(file.whole, reader, where=file.where, progress=options.progress):
        export.setdefault(origin, []).append(value)
    return export


def _origin_reader(options: ImportOptions) -> Callable[[Row], Origin]:
    """The function that reads the import of a row of an export."""
    system = options.system
    origins: dict[tuple[str, ...], Origin] = {}
    names: dict[tuple[str, str], Origin] = {}

    def origin_of(row: Row) -> Origin:
        cells = tuple(row[name] for name in _ORIGIN_COLUMNS)
        if cells not in origins:
            if system is not None and any(other[0] != cells[0] for other in origins):
                raise InputError(
                    "the export has several systems, which cannot get one name",
                    remedy=Remedy(
                        "leave {} out, or export one system with `ioncast bench export --system`",
                        ("system",),
                    ),
                )
            origin = Origin(cells[0] if system is None else system, *cells[1:])
            if names.setdefault((origin.system, origin.sha256), origin) != origin:
                raise InputError(f"an earlier line contradicts it about the file {origin.sha256}")
            origins[cells] = origin
        return origins[cells]

    return origin_of


@importer("forge-csv", _is_forge)
def read_forge(file: ResultFile, options: ImportOptions) -> list[Measurement]:
    """Read results of the FORGE forwarding emulator.

    The columns are forwarders (I/O nodes), clients (compute nodes), processes, layout (0 file per
    process, 1 shared), spatiality (0 contiguous, 1 1D-strided), odirect, request in KiB, total in
    MiB (planned; a stone wall ends most runs earlier), time in seconds, transfered in MiB, and
    bandwidth in MiB/s. Rows of a `population` other than A are stored but not used.
    """
    config_of_row = _memoised(
        _cells(_FORGE_CONFIG_COLUMNS), lambda row: _located(_forge_config(row), options)
    )

    def read(row: Row) -> Measurement:
        population = row.get("population") or "A"
        return Measurement(
            config=config_of_row(row),
            io_nodes=count_cell(row, "forwarders"),
            bandwidth_mib_s=number_cell(row, "bandwidth"),
            bytes=round(number_cell(row, "transfered") * MIB),
            time_s=number_cell(row, "time"),
            engine="forge",
            used=population == "A",
            note=None if population == "A" else f"population {population}",
        )

    return _read_rows(file, options, read, delimiter=";")


# Before IOR, which takes the command line of mdtest for the beginning of its own text.
@importer("mdtest", _is_mdtest)
def read_mdtest(file: ResultFile, options: ImportOptions) -> list[FileRate]:
    """Read the text of mdtest: its rates of files (see `read_mdtest.py`)."""
    rates = read_rates(
        file.lines(),
        io_nodes=options.io_nodes,
        tasks=options.tasks,
        nodes=options.nodes,
        where=file.where,
    )
    for note in dict.fromkeys(rate.note for rate in rates if rate.note):
        options.warn(note)
    return rates


@importer("ior", _is_ior)
def read_ior(file: ResultFile, options: ImportOptions) -> list[Measurement]:
    """Read the outputs of IOR: JSON, text, CSV, and CSV by rank."""
    results = read_outputs(
        file.lines(),
        where=file.where,
        command=options.command,
        tasks=options.tasks,
        nodes=options.nodes,
    )
    for warning in dict.fromkeys(warning for result in results for warning in _warnings(result)):
        options.warn(warning)
    if options.io_nodes is None:
        raise InputError(
            "IOR does not know the number of I/O nodes",
            where=file.where,
            remedy=Remedy("give it with {}", ("io_nodes",)),
        )
    configs: dict[tuple[int, str], IorConfig] = {}
    for result in results:
        key = (id(result.config), result.operation)
        if key not in configs:
            configs[key] = _located(result.config.for_operation(result.operation), options)
    return [
        _measurement(
            config=configs[id(result.config), result.operation],
            io_nodes=options.io_nodes,
            bandwidth_mib_s=result.bandwidth_mib_s,
            bytes=result.bytes,
            time_s=result.time_s,
            started=result.started,
            engine="ior",
            engine_version=result.ior_version,
            command=result.command,
            note="; ".join(_warnings(result))[:1000] or None,
        )
        for result in results
    ]


def _warnings(result: IorResult) -> tuple[str, ...]:
    return (_CACHED, *result.warnings) if result.maybe_cached else result.warnings


@importer("fio", _is_fio)
def read_fio(file: ResultFile, options: ImportOptions) -> list[Measurement]:
    """Read fio's JSON; the user gives the IOR command line that means the same as its jobs."""
    if options.command is None or options.io_nodes is None:
        raise InputError(
            "fio knows neither the configuration nor the number of I/O nodes",
            where=file.where,
            remedy=Remedy(
                "give {} and, with {}, an IOR command line that does the same",
                ("io_nodes", "command"),
            ),
        )
    config = _located(IorConfig.from_command_line(options.command), options)
    if reason := unstorable(config):
        raise InputError(reason, where=file.where, remedy="give a command without this option")
    measured = fio_measurements(file.whole, config, io_nodes=options.io_nodes, where=file.where)
    for note in filter(None, (measurement.note for measurement in measured)):
        options.warn(note)
    return [replace(measurement, command=options.command) for measurement in measured]


def _read_rows(
    file: ResultFile,
    options: ImportOptions,
    read: Callable[[Row], Measurement],
    *,
    delimiter: str = ",",
) -> list[Measurement]:
    return read_rows(
        file.whole, read, where=file.where, delimiter=delimiter, progress=options.progress
    )


def _as_exported(file: ResultFile, read: Callable[[Row], _T]) -> Callable[[Row], _T]:
    """Let `read` get texts as they were before an export made them safe for spreadsheets."""
    if "'" not in file.whole:
        return read
    return lambda row: read({name: from_cell(cell) for name, cell in row.items()})


def _row_reader(file: ResultFile, options: ImportOptions) -> Callable[[Row], Measurement]:
    """The function that reads a row of ioncast's own CSV, chosen by the columns of the file."""
    columns = columns_of(file.header())
    has_config = columns >= _REQUIRED_COLUMNS
    if not has_config and "command" not in columns:
        raise InputError(
            "the column `command` is missing, or api, operation, transfer_size and block_size",
            where=file.where,
            remedy="add the benchmark's IOR command line as column `command`",
        )
    config_of_row = _config_reader(options) if has_config else _command_reader(options)

    def read(row: Row) -> Measurement:
        return _measurement(
            config=config_of_row(row),
            io_nodes=count_cell(row, "io_nodes"),
            bandwidth_mib_s=number_cell(row, "bandwidth_mib_s"),
            bytes=count_cell(row, "bytes") if row.get("bytes") else None,
            time_s=number_cell(row, "time_s") if row.get("time_s") else None,
            started=row.get("started") or None,
            engine=text_cell(row, "engine") or "ior",
            engine_version=text_cell(row, "engine_version"),
            command=text_cell(row, "command"),
            used=flag_cell(row, "used") if row.get("used") else True,
            note=text_cell(row, "note"),
            campaign=text_cell(row, "campaign"),
        )

    return read


def _command_reader(options: ImportOptions) -> Callable[[Row], IorConfig]:
    """The function that reads the configuration in a row's command."""
    return _memoised(
        _cells(_COMMAND_COLUMNS), lambda row: _located(_config_of_command(row), options)
    )


def _config_reader(options: ImportOptions) -> Callable[[Row], IorConfig]:
    """The function that reads the configuration in a row's columns."""
    return _memoised(_cells(_CONFIG_COLUMNS), lambda row: _located(_config_of_row(row), options))


def _measurement(
    config: IorConfig, *, used: bool = True, note: str | None = None, **values: Any
) -> Measurement:
    """A measurement; it is set apart if a condition of its run cannot be stored."""
    if config.conditions and (reason := unstorable(config)):
        config, used, note = replace(config, conditions=()), False, joined_note(reason, note)
    return Measurement(config=config, used=used, note=note, **values)


def _cells(columns: Iterable[str]) -> Callable[[Row], Hashable]:
    names = tuple(columns)
    return lambda row: tuple(map(row.get, names))


def _memoised(
    key_of: Callable[[Row], Hashable], read: Callable[[Row], IorConfig]
) -> Callable[[Row], IorConfig]:
    """A function that reads a configuration once and shares it among rows with equal keys."""
    known: dict[Hashable, IorConfig] = {}

    def config_of_row(row: Row) -> IorConfig:
        key = key_of(row)
        if key not in known:
            known[key] = read(row)
        return known[key]

    return config_of_row


def _forge_config(row: Row) -> IorConfig:
    processes = positive_cell(row, "processes")
    request = positive_cell(row, "request") * KIB
    requests = max(1, round(count_cell(row, "total") * MIB / processes / request))
    strided = flag_cell(row, "spatiality")
    operation = checked_operation(row["operation"])
    return IorConfig(
        api="POSIX",
        file_per_process=not flag_cell(row, "layout"),
        transfer_size=request,
        block_size=request if strided else request * requests,
        segments=requests if strided else 1,
        odirect=flag_cell(row, "odirect"),
        # No version of FORGE calls fsync (github.com/jeanbez/forge, all commits up to 3c39204).
        fsync="none",
        tasks=processes,
        nodes=count_cell(row, "clients"),
        write=operation == "write",
        read=operation == "read",
    )


def _config_of_row(row: Row) -> IorConfig:
    operation = checked_operation(row["operation"])
    given = (name for name in _PLAIN_FIELDS if name in _REQUIRED_COLUMNS or row.get(name))
    values: dict[str, Any] = {name: _value(row, configurations.c[name]) for name in given}
    return IorConfig(
        **values,
        fsync=row.get("fsync") or None,
        conditions=conditions_of_text(row.get("conditions") or ""),
        write=operation == "write",
        read=operation == "read",
    )


def _value(row: Row, column: Column[Any]) -> str | int:
    """A field of a configuration, with the type of its column in the database."""
    if isinstance(column.type, String):
        return row[column.name]
    read = flag_cell if isinstance(column.type, Boolean) else count_cell
    return read(row, column.name)


def _config_of_command(row: Row) -> IorConfig:
    counts = {name: count_cell(row, name) for name in ("tasks", "bytes", "nodes") if row.get(name)}
    return _config_of_line(
        row["command"], row.get("operation") or None, row.get("fsync") or None, **counts
    )


def _config_of_line(
    command: str,
    operation: str | None = None,
    fsync: str | None = None,
    *,
    tasks: int | None = None,
    nodes: int | None = None,
    bytes: int | None = None,
) -> IorConfig:
    config = IorConfig.from_command_line(command)
    operation = checked_operation(operation or config.operation)
    tasks = config.tasks if tasks is None else tasks
    if tasks is None and bytes is not None:
        # Unless the run was cut short, its bytes are a multiple of the bytes of a process.
        processes, rest = divmod(bytes, config.bytes_per_process)
        tasks = None if rest else processes or None
    known = {UNKNOWN_FSYNC: None} | dict(zip(FSYNCS, FSYNCS, strict=True))
    return replace(
        config.for_operation(operation),
        fsync=known.get(fsync or "", config.fsync),
        tasks=tasks,
        nodes=config.nodes if nodes is None else nodes,
    )


def _located(config: IorConfig, options: ImportOptions) -> IorConfig:
    """The pattern of a configuration, with the numbers of tasks and nodes that the user gives."""
    return replace(
        config.pattern(),
        tasks=options.tasks or config.tasks,
        nodes=options.nodes or config.nodes,
    )
