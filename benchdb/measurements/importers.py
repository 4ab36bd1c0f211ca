"""Benchmark results in files to measurements; the format is recognised by its contents.

An importer is a function from a file's text to measurements, registered with a test that
recognises its format.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import Boolean, Column, String

from benchdb.measurements.progress import Progress, silently
from benchdb.measurements.read_fio import fio_measurement, is_fio
from benchdb.measurements.restore import Origin, Repetition
from benchdb.measurements.storing import Measurement
from benchdb.store.schema import CONFIGURATION_FIELDS, configurations
from ioncast_base.errors import InputError, Remedy
from ior_configs import IorConfig, read_outputs, sniff

MIB = 1 << 20
KIB = 1 << 10


@dataclass(frozen=True)
class Source:
    """A file's text and what its importer must be told besides.

    Attributes
    ----------
    where : str
        The file's name, for errors.
    text : str
        Its contents.
    io_nodes, tasks, nodes : int or None
        What the user says of the runs; IOR cannot know the first, and not always the
        others (nodes that share a host name count as one). A file that holds the I/O
        nodes of each row is right about them.
    command : str or None
        The IOR command line, for formats that do not hold it.
    progress : callable
        What the rows of long files pass through.
    """

    where: str
    text: str
    io_nodes: int | None = None
    tasks: int | None = None
    nodes: int | None = None
    command: str | None = None
    progress: Progress = silently


Importer = Callable[[Source], list[Measurement]]
_importers: dict[str, tuple[Callable[[str], bool], Importer]] = {}

_T = TypeVar("_T")
# The columns of our own CSV that say what was run: those of the configuration, of which some
# cannot be missing, or those around IOR's command line.
_CONFIG_COLUMNS = ("operation", *CONFIGURATION_FIELDS)
_NEEDED_COLUMNS = {"api", "operation", "transfer_size", "block_size"}
_COMMAND_COLUMNS = ("command", "operation", "tasks", "nodes", "bytes")
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
_LARGEST_REPETITION = 2**31 - 1
_ORIGIN_COLUMNS = ("system", "file", "file_sha256", "file_format", "imported_at")


def importer(name: str, recognises: Callable[[str], bool]) -> Callable[[Importer], Importer]:
    """Register an importer under the name of its format."""

    def register(function: Importer) -> Importer:
        _importers[name] = (recognises, function)
        return function

    return register


def read_measurements(source: Source) -> tuple[str, list[Measurement]]:
    """Recognise a file's format and read it.

    Returns
    -------
    file_format : str
        Its name.
    measurements : list of Measurement
        At least one.

    Raises
    ------
    InputError
        When no importer knows the file, or a line cannot be used.
    """
    for name, (recognises, function) in _importers.items():
        if recognises(source.text):
            try:
                rows = function(source)
            except InputError as error:
                raise InputError(
                    error.what,
                    where=error.where or source.where,
                    line=error.line,
                    remedy=error.remedy,
                ) from error
            if not rows:
                raise InputError("no measurements in it", where=source.where)
            return name, rows
    raise InputError(
        "not a benchmark result of a known format",
        where=source.where,
        remedy="known are outputs of IOR, results of FORGE, and CSV with the columns io_nodes,"
        " bandwidth_mib_s and command",
    )


def _first_line(text: str) -> str:
    # Not by splitting, which copies all of a large file.
    end = text.find("\n")
    return text[: end if end >= 0 else None].strip()


def text_of(content: bytes, where: str) -> str:
    """The text of a file; other programs' may hold stray bytes, our own formats' are UTF-8.

    Raises
    ------
    InputError
        For our own CSV in another encoding.
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = content.decode("utf-8-sig", "replace")
        if not _is_ours(text):
            return text
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            "not UTF-8",
            where=where,
            line=line,
            remedy="save it as UTF-8",
        ) from error


def _columns(text: str) -> set[str]:
    return {name.strip().strip('"').strip() for name in _first_line(text).split(",")}


def _is_ior(text: str) -> bool:
    return sniff(text) is not None


def _is_forge(text: str) -> bool:
    return _first_line(text).startswith("forwarders;clients;processes;layout;spatiality;")


def _is_ours(text: str) -> bool:
    return {"io_nodes", "bandwidth_mib_s"} <= _columns(text)


@importer("ioncast-csv", _is_ours)
def read_csv(source: Source) -> list[Measurement]:
    """Read our own CSV, as `ioncast bench export` writes it.

    Needed are the columns io_nodes, bandwidth_mib_s and either `command` (an IOR command
    line) or those of the configuration (api, operation, transfer_size, block_size …).
    """
    return _read_lines(source, ",", _row_reader(source))


def is_export(text: str) -> bool:
    """Whether a text is what `ioncast bench export` writes, imports and all."""
    return _is_ours(text) and {"repetition", *_ORIGIN_COLUMNS} <= _columns(text)


def read_export(source: Source, system: str | None = None) -> dict[Origin, list[Repetition]]:
    """Read an export with the imports that its measurements are from.

    Parameters
    ----------
    source : Source
        A text that `is_export`.
    system : str, optional
        The name of the system instead of those in the file.

    Raises
    ------
    InputError
        When a line cannot be used, lines disagree about an import, or several systems would
        become one.
    """
    measurement_of = _row_reader(source)
    origins: dict[tuple[str, ...], Origin] = {}
    names: dict[tuple[str, str], Origin] = {}

    def read(row: dict[str, str]) -> tuple[Origin, Repetition]:
        cells = tuple(row[name] for name in _ORIGIN_COLUMNS)
        if cells not in origins:
            if system is not None and any(other[0] != cells[0] for other in origins):
                raise InputError(
                    "the export is of several systems, which cannot all become one",
                    remedy=Remedy(
                        "leave {} out, or export one system with `ioncast bench export --system`",
                        ("system",),
                    ),
                )
            origin = Origin(cells[0] if system is None else system, *cells[1:])
            if names.setdefault((origin.system, origin.sha256), origin) != origin:
                raise InputError(f"other lines say otherwise of the file {origin.sha256}")
            origins[cells] = origin
        repetition = _count(row, "repetition")
        if repetition > _LARGEST_REPETITION:
            raise InputError(f"repetition {repetition} cannot be")
        return origins[cells], (repetition, measurement_of(row))

    found: dict[Origin, list[Repetition]] = {}
    for origin, repetition in _read_lines(source, ",", read):
        found.setdefault(origin, []).append(repetition)
    return found


@importer("forge-csv", _is_forge)
def read_forge(source: Source) -> list[Measurement]:
    """Read results of the FORGE forwarding emulator.

    Its columns: forwarders (I/O nodes), clients (compute nodes), processes, layout (0 file
    per process, 1 shared), spatiality (0 contiguous, 1 1D-strided), odirect, request in
    KiB, total in MiB (asked for; a stone wall ends most runs earlier), time in seconds,
    transfered in MiB, bandwidth in MiB/s. Rows of another `population` than A are kept
    and not used.
    """
    config_of_row = _memoised(
        _FORGE_CONFIG_COLUMNS, lambda row: _located(_forge_config(row), source)
    )

    def read(row: dict[str, str]) -> Measurement:
        population = row.get("population") or "A"
        return Measurement(
            config=config_of_row(row),
            io_nodes=_count(row, "forwarders"),
            bandwidth_mib_s=_float(row, "bandwidth"),
            bytes=round(_float(row, "transfered") * MIB),
            time_s=_float(row, "time"),
            engine="forge",
            used=population == "A",
            note=None if population == "A" else f"population {population}",
        )

    return _read_lines(source, ";", read)


@importer("ior", _is_ior)
def read_ior(source: Source) -> list[Measurement]:
    """Read what IOR itself writes: its JSON, its text, its CSV, its per-rank CSV."""
    results = read_outputs(
        source.text, where=source.where, command=source.command, nodes=source.nodes
    )
    if source.io_nodes is None:
        raise InputError(
            "IOR does not know the number of I/O nodes",
            where=source.where,
            remedy=Remedy("give it with {}", ("io_nodes",)),
        )
    return [
        Measurement(
            config=_located(result.config.for_operation(result.operation), source),
            io_nodes=source.io_nodes,
            bandwidth_mib_s=result.bandwidth_mib_s,
            bytes=result.bytes,
            time_s=result.time_s,
            started=result.started,
            engine="ior",
            engine_version=result.ior_version,
            command=result.command,
            note="; ".join(result.warnings)[:1000] or None,
        )
        for result in results
    ]


def _row_reader(source: Source) -> Callable[[dict[str, str]], Measurement]:
    """How a row of our own CSV is read, by the columns that the file has."""
    columns = _columns(source.text)
    has_config = columns >= _NEEDED_COLUMNS
    if not has_config and "command" not in columns:
        raise InputError(
            "neither a column `command` nor api, operation, transfer_size and block_size",
            where=source.where,
            remedy="add the benchmark's IOR command line as column `command`",
        )
    config_of_row = (
        _memoised(_CONFIG_COLUMNS, lambda row: _located(_config_of_row(row), source))
        if has_config
        else _memoised(_COMMAND_COLUMNS, lambda row: _located(_config_of_command(row), source))
    )

    def read(row: dict[str, str]) -> Measurement:
        return Measurement(
            config=config_of_row(row),
            io_nodes=_count(row, "io_nodes"),
            bandwidth_mib_s=_float(row, "bandwidth_mib_s"),
            bytes=_count(row, "bytes") if row.get("bytes") else None,
            time_s=_float(row, "time_s") if row.get("time_s") else None,
            started=row.get("started") or None,
            engine=_text(row, "engine") or "ior",
            engine_version=_text(row, "engine_version"),
            command=_text(row, "command"),
            used=_flag(row, "used") if row.get("used") else True,
            note=_text(row, "note"),
            campaign=_text(row, "campaign"),
        )

    return read


def _memoised(
    columns: Iterable[str], read: Callable[[dict[str, str]], IorConfig]
) -> Callable[[dict[str, str]], IorConfig]:
    """Rows that are the same in `columns` share one configuration, read once."""
    known: dict[tuple[str | None, ...], IorConfig] = {}

    def config_of_row(row: dict[str, str]) -> IorConfig:
        key = tuple(map(row.get, columns))
        if key not in known:
            known[key] = read(row)
        return known[key]

    return config_of_row


def _text(row: dict[str, str], column: str) -> str | None:
    """A text that many rows share, held in memory once."""
    value = row.get(column)
    return sys.intern(value) if value else None


@importer("fio", is_fio)
def read_fio(source: Source) -> list[Measurement]:
    """Read fio's JSON, for which the user says the IOR command line that means its jobs."""
    if source.command is None or source.io_nodes is None:
        raise InputError(
            "fio knows neither the pattern nor the number of I/O nodes",
            where=source.where,
            remedy=Remedy(
                "give {} and, with {}, an IOR command line that does the same",
                ("io_nodes", "command"),
            ),
        )
    config = _located(IorConfig.from_command_line(source.command), source)
    return [
        replace(
            fio_measurement(source.text, config, io_nodes=source.io_nodes, where=source.where),
            command=source.command,
        )
    ]


def _forge_config(row: dict[str, str]) -> IorConfig:
    processes = _positive(row, "processes")
    request = _positive(row, "request") * KIB
    requests = max(1, round(_count(row, "total") * MIB / processes / request))
    strided = _flag(row, "spatiality")
    return IorConfig(
        api="POSIX",
        file_per_process=not _flag(row, "layout"),
        transfer_size=request,
        block_size=request if strided else request * requests,
        segments=requests if strided else 1,
        odirect=_flag(row, "odirect"),
        tasks=processes,
        nodes=_count(row, "clients"),
        write=_operation(row["operation"]) == "write",
        read=_operation(row["operation"]) == "read",
    )


def _config_of_row(row: dict[str, str]) -> IorConfig:
    operation = _operation(row["operation"])
    given = (name for name in CONFIGURATION_FIELDS if name in _NEEDED_COLUMNS or row.get(name))
    values: dict[str, Any] = {name: _value(row, configurations.c[name]) for name in given}
    return IorConfig(**values, write=operation == "write", read=operation == "read")


def _value(row: dict[str, str], column: Column[Any]) -> str | int:
    """A cell of a configuration's column, of the type that the database has for it."""
    if isinstance(column.type, String):
        return row[column.name]
    read = _flag if isinstance(column.type, Boolean) else _count
    return read(row, column.name)


def _config_of_command(row: dict[str, str]) -> IorConfig:
    config = IorConfig.from_command_line(row["command"])
    operation = row.get("operation") or config.operation
    tasks = _count(row, "tasks") if row.get("tasks") else config.tasks
    if tasks is None and row.get("bytes"):
        # A run that nothing cut short moved a whole number of processes' shares.
        processes, rest = divmod(_count(row, "bytes"), config.bytes_per_process)
        tasks = None if rest else processes or None
    return replace(
        config.for_operation(_operation(operation)),
        tasks=tasks,
        nodes=_count(row, "nodes") if row.get("nodes") else config.nodes,
    )


def _located(config: IorConfig, source: Source) -> IorConfig:
    """The pattern, on as many tasks and nodes as the user says."""
    return replace(
        config.pattern(),
        tasks=source.tasks or config.tasks,
        nodes=source.nodes or config.nodes,
    )


def _read_lines(source: Source, delimiter: str, read: Callable[[dict[str, str]], _T]) -> list[_T]:
    """Read each row of a CSV; what its values raise becomes an error that names the line."""
    found = []
    for number, row in source.progress(_lines(source, delimiter)):
        try:
            found.append(read(row))
        except KeyError as error:
            raise InputError(
                f"column {error} is missing", where=source.where, line=number
            ) from error
        except InputError as error:
            raise InputError(
                error.what, where=source.where, line=number, remedy=error.remedy
            ) from error
        except (ValueError, TypeError, ArithmeticError) as error:
            raise InputError(str(error), where=source.where, line=number) from error
    return found


def _lines(source: Source, delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row of a CSV with its line's number; all have as many cells as the header."""
    reader = csv.reader(
        _physical_lines(source.text), delimiter=delimiter, strict=True, skipinitialspace=True
    )
    try:
        header = [name.strip() for name in next(reader, [])]
        for name in filter(None, header):
            if header.count(name) > 1:
                raise InputError(
                    f"two columns are named {name!r}",
                    where=source.where,
                    line=1,
                    remedy="rename or remove one",
                )
        for cells in reader:
            if cells and len(cells) != len(header):
                raise InputError(
                    "the line has more or fewer cells than the header",
                    where=source.where,
                    line=reader.line_num,
                )
            if cells:
                yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise InputError(
            f"this is no CSV: {error}", where=source.where, line=reader.line_num
        ) from error


def _physical_lines(text: str) -> Iterator[str]:
    """What `io.StringIO` yields, which takes four bytes for each character."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _operation(value: str) -> str:
    if value not in ("read", "write"):
        raise ValueError(f"operation is {value!r}, not read or write")
    return value


def _float(row: dict[str, str], column: str) -> float:
    try:
        return float(row[column])
    except ValueError as error:
        raise _no("number", row, column) from error


def _count(row: dict[str, str], column: str) -> int:
    try:
        count = int(row[column])
    except ValueError as error:
        raise _no("whole number", row, column) from error
    if count < 0:
        raise InputError(f"{column} is {count}, below 0")
    return count


def _positive(row: dict[str, str], column: str) -> int:
    count = _count(row, column)
    if count == 0:
        raise InputError(f"{column} is 0")
    return count


def _flag(row: dict[str, str], column: str) -> bool:
    flags = {"0": False, "1": True, "false": False, "true": True}
    value = row[column].lower()
    if value not in flags:
        raise _no("flag (0 or 1)", row, column)
    return flags[value]


def _no(kind: str, row: dict[str, str], column: str) -> InputError:
    return InputError(f"{column} is {row[column][:40]!r}, no {kind}")
