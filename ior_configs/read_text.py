"""Reader of the text that IOR prints by default (IOR 3.0 to 4.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ioncast_base.errors import InputError
from ioncast_base.sizes import parse_count
from ior_configs.config import IorConfig
from ior_configs.outputs import config_as_printed, reader
from ior_configs.printed_runs import is_row
from ior_configs.results import (
    IorResult,
    Row,
    UnfinishedRunError,
    mixed_runs,
    parse_started,
    results_of,
)

_VERSION = re.compile(r"IOR-(\S+): MPI Coordinated Test")
_ONCE = re.compile(r"Command line\b|Summary of all tests|TestID *: \d+|Test \d+ started")
_FIELD = re.compile(r"\s*([A-Za-z][\w -]*?)\s*(?:: |= |:$)\s*(.*?)\s*")
_TEST_START = re.compile(r"TestID\s*:|Test \d+ started:")
_WARNING = re.compile(r"(?:ior )?WARNING: *(.*\S)")
_BYTES_MOVED = re.compile(r"Using actual aggregate bytes moved *= *([0-9]{1,19})\b")
_SIZE = re.compile(r"([0-9]{1,19}) (bytes|MiB|GiB|TiB)")
_CLIENTS = re.compile(r"([0-9]{1,9}) \(([0-9]{1,9}) per node\)")
# IOR 3.0 and 3.1 print the version of the library behind the api: "HDF5-1.8.13 (Parallel)",
# "MPIIO (version=3, subversion=1)", "NCMPI (version = 1.6.1 of 29 Jul 2015)".
_API_VERSION = re.compile(r"(?:-[0-9]+(?:\.[0-9]+)+)?(?: \(.*\))?$")
_UNITS = {"bytes": 1, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_BANDWIDTH = ("bw(MiB/s)", "bwMiB")
_TIME = ("total(s)", "totalTime")


@reader("ior-text")
def read_text(lines: Sequence[str], given: IorConfig | None) -> list[IorResult]:
    """Read all tests of one run.

    The configuration is read from each test's Options. IOR rounds large sizes there (``9.46 TiB``),
    so a size is taken from the command line if IOR would print it the same way. All results of a
    test get the warnings above its table.
    """
    _check_one_run(lines)
    version = next(filter(None, map(_VERSION.match, lines)), None)
    head, *tests = _split_tests(lines)
    tests = tests or [[]]
    return [
        result
        for test in tests
        for result in _read_test(head, test, given, version[1] if version else None)
    ]


def _check_one_run(lines: Iterable[str]) -> None:
    """Reject lines that IOR prints once in a run, or once for each test, if there are two."""
    printed = set()
    for match in filter(None, map(_ONCE.match, lines)):
        if match[0] in printed:
            raise mixed_runs(f"there are two of {match[0]!r}")
        printed.add(match[0])


def _split_tests(lines: Iterable[str]) -> list[list[str]]:
    """Split the lines into the part before the tests and each test; drop the summary."""
    parts: list[list[str]] = [[]]
    for line in lines:
        if line.startswith("Summary of all tests"):
            break
        if _TEST_START.match(line):
            parts.append([])
        parts[-1].append(line)
    return parts


def _read_test(
    head: list[str], test: list[str], given: IorConfig | None, version: str | None
) -> list[IorResult]:
    above, table = _split_table([*head, *test])
    printed = _fields(above)
    command = printed.get("command line") or printed.get("command line used")
    if not command:
        raise InputError("there is no command line of IOR in the output")
    warnings = tuple(_warnings(above))
    config = _config(printed, config_as_printed(command, given))
    if config.fsync == "end" and any(map(_switched_off_fsync, warnings)):
        config = replace(config, fsync="none")
    started = printed.get("starttime") or printed.get("began") or ""
    return results_of(
        config, _rows(table, parse_started(started), warnings), version=version, command=command
    )


def _split_table(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    words = [line.split() for line in lines]
    starts = (i for i, row in enumerate(words) if row[:1] == ["access"] and row[-1] == "iter")
    start = next(starts, None)
    if start is None and any(line.startswith("mdtest-") for line in lines):
        raise InputError(
            "an output of mdtest, which counts files and measures no bandwidth",
            remedy="give an output of IOR",
        )
    if start is None:
        raise UnfinishedRunError(
            "the output ends before the first result", remedy="the run may have failed: repeat it"
        )
    if any(map(is_row, lines[:start])):
        raise mixed_runs("a result stands above its table")
    return lines[:start], lines[start:]


def _switched_off_fsync(warning: str) -> bool:
    """Whether IOR ignored ``-e``, in the words of IOR 3.1 and later or of IOR 3.0."""
    return warning.startswith(("fsync() not supported", "fsync() only available"))


def _fields(lines: Iterable[str]) -> dict[str, str]:
    """Collect ``name : value`` lines by the name in lower case; the last of equal names counts."""
    matches = (_FIELD.fullmatch(line) for line in lines if not _WARNING.match(line))
    return {match[1].lower(): match[2] for match in matches if match}


def _warnings(lines: Iterable[str]) -> Iterator[str]:
    matches = (_WARNING.match(line) for line in lines)
    return (match[1] for match in matches if match)


def _config(printed: Mapping[str, str], asked: IorConfig) -> IorConfig:
    """Replace values of the command line by values that IOR printed in its Options."""
    changes: dict[str, Any] = {}
    if printed.get("api"):
        changes["api"] = _API_VERSION.sub("", printed["api"], count=1)
    if printed.get("test filename"):
        changes["test_file"] = printed["test filename"]
    for name, field in {"segments": "segments", "repetitions": "repetitions"}.items():
        if name in printed:
            changes[field] = parse_count(printed[name])
    for name, field in {"xfersize": "transfer_size", "blocksize": "block_size"}.items():
        if name in printed:
            changes[field] = _size(printed[name], getattr(asked, field))
    # IOR 3.0 and 3.1 print both in one line with -v: "single-shared-file, collective".
    access, comma, kind = printed.get("access", "").partition(", ")
    if access:
        changes["file_per_process"] = access == "file-per-process"
    if comma or "type" in printed:
        changes["collective"] = (kind or printed["type"]) == "collective"
    if "ordering inter file" in printed:
        changes["reorder_tasks"] = printed["ordering inter file"].startswith("constant")
    if "ordering in a file" in printed:
        is_random = printed["ordering in a file"].startswith("random")
        changes["random_offsets"] = max(asked.random_offsets, 1) if is_random else 0
    return replace(asked, **changes, **_placement(printed))


def _placement(printed: Mapping[str, str]) -> dict[str, Any]:
    """Read tasks and nodes; IOR 3.0 to 3.2 print the tasks per node instead of the nodes."""
    clients = _CLIENTS.fullmatch(printed.get("clients", ""))
    if clients:
        tasks, per_node = int(clients[1]), int(clients[2])
    elif "tasks" in printed:
        tasks = parse_count(printed["tasks"])
        per_node = parse_count(printed.get("clients per node", "0"))
    else:
        return {}
    if "nodes" in printed:
        return {"tasks": tasks, "nodes": parse_count(printed["nodes"])}
    return {"tasks": tasks, "nodes": -(-tasks // per_node)} if per_node else {"tasks": tasks}


def _size(printed: str, asked: int) -> int:
    if printed == _as_printed(asked):
        return asked
    exact = _SIZE.fullmatch(printed)
    if exact is None:
        raise InputError(f"the size {printed!r} is rounded, and the command line has another size")
    return int(exact[1]) * _UNITS[exact[2]]


def _as_printed(size: int) -> str:
    """Write a size as IOR's Options do: in the largest unit, with two decimals if not exact."""
    unit = next((name for name in ("TiB", "GiB", "MiB") if size >= _UNITS[name]), "bytes")
    whole, rest = divmod(size, _UNITS[unit])
    return f"{size / _UNITS[unit]:.2f} {unit}" if rest else f"{whole} {unit}"


def _rows(table: Sequence[str], started: str | None, test_warnings: tuple[str, ...]) -> list[Row]:
    """Read the table; warnings and start times stand above their row."""
    columns = table[0].split()
    rows: list[Row] = []
    above: list[str] = []
    for line in table[1:]:
        words = line.split()
        if words[:1] not in (["write"], ["read"]):
            above.append(line)
            continue
        if len(words) != len(columns):
            raise UnfinishedRunError(
                f"the {words[0]} line of the results is cut off",
                remedy="the run may have failed: repeat it",
            )
        rows.append(_row(dict(zip(columns, words, strict=True)), above, started, test_warnings))
        above = []
    return rows


def _row(
    cells: Mapping[str, str], above: list[str], started: str | None, test_warnings: tuple[str, ...]
) -> Row:
    warnings = tuple(_warnings(above))
    moved = [int(match[1]) for text in warnings if (match := _BYTES_MOVED.match(text))]
    commenced = [parse_started(line) for line in above if line.startswith("Commencing")]
    return Row(
        operation=cells["access"],
        repetition=parse_count(cells["iter"]),
        bandwidth=_cell(cells, _BANDWIDTH),
        time=_cell(cells, _TIME),
        bytes=moved[-1] if moved else None,
        started=next(filter(None, reversed(commenced)), started),
        warnings=test_warnings + warnings,
    )


def _cell(cells: Mapping[str, str], names: tuple[str, ...]) -> str:
    cell = next((cells[name] for name in names if name in cells), None)
    if cell is None:
        raise InputError(f"the table of results has no column {names[0]}")
    return cell
