"""Benchmark results in files to measurements; the format is recognised by its contents.

An importer is a function from a file's text to measurements, registered with a test that
recognises its format.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchdb.measurements import Measurement, config_of
from ioncast_errors import InputError
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
    """

    where: str
    text: str
    io_nodes: int | None = None
    tasks: int | None = None
    nodes: int | None = None
    command: str | None = None


Importer = Callable[[Source], list[Measurement]]
_importers: dict[str, tuple[Callable[[str], bool], Importer]] = {}


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
            rows = function(source)
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
    return text.partition("\n")[0].strip()


def _columns(text: str) -> set[str]:
    return {name.strip().strip('"') for name in _first_line(text).split(",")}


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
    columns = _columns(source.text)
    has_config = {"api", "operation", "transfer_size", "block_size"} <= columns
    if not has_config and "command" not in columns:
        raise InputError(
            "neither a column `command` nor api, operation, transfer_size and block_size",
            where=source.where,
            remedy="add the benchmark's IOR command line as column `command`",
        )
    rows = []
    for number, row in _lines(source, ","):
        with _line(source, number):
            config = _config_of_row(row) if has_config else _config_of_command(row)
            rows.append(
                Measurement(
                    config=_located(config, source),
                    io_nodes=_count(row["io_nodes"]),
                    bandwidth_mib_s=float(row["bandwidth_mib_s"]),
                    bytes=int(row["bytes"]) if row.get("bytes") else None,
                    time_s=float(row["time_s"]) if row.get("time_s") else None,
                    started=row.get("started") or None,
                    engine=row.get("engine") or "ior",
                    engine_version=row.get("engine_version") or None,
                    command=row.get("command") or None,
                    used=_flag(row.get("used") or "1"),
                    note=row.get("note") or None,
                )
            )
    return rows


@importer("forge-csv", _is_forge)
def read_forge(source: Source) -> list[Measurement]:
    """Read results of the FORGE forwarding emulator.

    Its columns: forwarders (I/O nodes), clients (compute nodes), processes, layout (0 file
    per process, 1 shared), spatiality (0 contiguous, 1 1D-strided), odirect, request in
    KiB, total in MiB (asked for; a stone wall ends most runs earlier), time in seconds,
    transfered in MiB, bandwidth in MiB/s. Rows of another `population` than A are kept
    and not used.
    """
    rows = []
    for number, row in _lines(source, ";"):
        with _line(source, number):
            population = row.get("population") or "A"
            rows.append(
                Measurement(
                    config=_located(_forge_config(row), source),
                    io_nodes=_count(row["forwarders"]),
                    bandwidth_mib_s=float(row["bandwidth"]),
                    bytes=round(float(row["transfered"]) * MIB),
                    time_s=float(row["time"]),
                    engine="forge",
                    used=population == "A",
                    note=None if population == "A" else f"population {population}",
                )
            )
    return rows


@importer("ior", _is_ior)
def read_ior(source: Source) -> list[Measurement]:
    """Read what IOR itself writes: its JSON, its text, its CSV, its per-rank CSV."""
    results = read_outputs(
        source.text, where=source.where, command=source.command, nodes=source.nodes
    )
    if source.io_nodes is None:
        raise InputError(
            "IOR does not know how many I/O nodes it ran with",
            where=source.where,
            remedy="say it with --io-nodes",
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


def _forge_config(row: dict[str, str]) -> IorConfig:
    processes = _positive(row["processes"])
    request = _positive(row["request"]) * KIB
    requests = max(1, round(_count(row["total"]) * MIB / processes / request))
    strided = _flag(row["spatiality"])
    return IorConfig(
        api="POSIX",
        file_per_process=not _flag(row["layout"]),
        transfer_size=request,
        block_size=request if strided else request * requests,
        segments=requests if strided else 1,
        odirect=_flag(row["odirect"]),
        tasks=processes,
        nodes=_count(row["clients"]),
        write=_operation(row["operation"]) == "write",
        read=_operation(row["operation"]) == "read",
    )


def _config_of_row(row: dict[str, str]) -> IorConfig:
    def flag(name: str) -> bool:
        return _flag(row.get(name) or "0")

    def count(name: str) -> int | None:
        return _count(row[name]) if row.get(name) else None

    return config_of(
        {
            "api": row["api"],
            "operation": _operation(row["operation"]),
            "transfer_size": _count(row["transfer_size"]),
            "block_size": _count(row["block_size"]),
            "segments": count("segments") or 1,
            "tasks": count("tasks"),
            "nodes": count("nodes"),
            "random_offsets": count("random_offsets") or 0,
            **{
                name: flag(name)
                for name in (
                    "file_per_process",
                    "collective",
                    "odirect",
                    "fsync",
                    "reorder_tasks",
                    "intra_test_barriers",
                )
            },
        }
    )


def _config_of_command(row: dict[str, str]) -> IorConfig:
    config = IorConfig.from_command_line(row["command"])
    operation = row.get("operation") or config.operation
    tasks = _count(row["tasks"]) if row.get("tasks") else config.tasks
    if tasks is None and row.get("bytes"):
        # A run that nothing cut short moved a whole number of processes' shares.
        processes, rest = divmod(int(row["bytes"]), config.bytes_per_process)
        tasks = None if rest else processes or None
    return replace(
        config.for_operation(_operation(operation)),
        tasks=tasks,
        nodes=_count(row["nodes"]) if row.get("nodes") else config.nodes,
    )


def _located(config: IorConfig, source: Source) -> IorConfig:
    """The pattern, on as many tasks and nodes as the user says."""
    return replace(
        config.pattern(),
        tasks=source.tasks or config.tasks,
        nodes=source.nodes or config.nodes,
    )


def _lines(source: Source, delimiter: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield each row of a CSV with its line's number; all have as many cells as the header."""
    reader = csv.DictReader(
        io.StringIO(source.text), delimiter=delimiter, strict=True, skipinitialspace=True
    )
    try:
        for row in reader:
            if None in row or None in row.values():
                raise InputError(
                    "the line has more or fewer cells than the header",
                    where=f"{source.where}:{reader.line_num}",
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise InputError(
            f"this is no CSV: {error}", where=f"{source.where}:{reader.line_num}"
        ) from error


@contextmanager
def _line(source: Source, number: int) -> Iterator[None]:
    """Turn what a line's values raise into an error that names the line."""
    where = f"{source.where}:{number}"
    try:
        yield
    except KeyError as error:
        raise InputError(f"column {error} is missing", where=where) from error
    except InputError as error:
        raise InputError(error.what, where=where, remedy=error.remedy) from error
    except (ValueError, TypeError, ArithmeticError) as error:
        raise InputError(str(error), where=where) from error


def _operation(value: str) -> str:
    if value not in ("read", "write"):
        raise ValueError(f"operation is {value!r}, not read or write")
    return value


def _count(value: str) -> int:
    count = int(value)
    if count < 0:
        raise ValueError(f"{count} is negative")
    return count


def _flag(value: str) -> bool:
    flags = {"0": False, "1": True, "False": False, "True": True, "false": False, "true": True}
    if value not in flags:
        raise ValueError(f"{value!r} is not 0 or 1")
    return flags[value]


def _positive(value: str) -> int:
    count = _count(value)
    if count == 0:
        raise ValueError("a count is 0")
    return count
