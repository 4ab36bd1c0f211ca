"""Reader of the text that IOR prints by default (IOR 3.0 to 4.1)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ioncast_base.errors import InputError
from ioncast_base.sizes import parse_count
from ior_configs.config import IorConfig
from ior_configs.outputs import config_as_printed, reader
from ior_configs.printed_runs import is_row
from ior_configs.results import (
    IorResult,
    PrintedRow,
    UnfinishedRunError,
    mixed_runs,
    parse_started,
    results_of,
)

_VERSION = re.compile(r"IOR-(\S+): MPI Coordinated Test")
_ONCE = re.compile(r"Command line\b|Summary of all tests|TestID *: \d+|Test \d+ started")
_FIELD = re.compile(r"\s*([A-Za-z][\w -]*?)\s*(?:: |= |:$)\s*(.*?)\s*")
_FIELDS = frozenset(
    {
        *("command line", "command line used", "starttime", "began", "api", "test filename"),
        *("segments", "repetitions", "xfersize", "blocksize", "access", "type", "clients"),
        *("ordering inter file", "ordering in a file", "tasks", "clients per node", "nodes"),
    }
)
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
def read_text(lines: Iterable[str], given: IorConfig | None) -> list[IorResult]:
    """Read all tests of one run; all results of a test get the warnings above its table.

    IOR rounds large sizes in a test's Options (``9.46 TiB``), so a size is taken from the command
    line if IOR would print it the same way.
    """
    version = None
    head, tests = _Test(), list[_Test]()
    printed = set[str]()
    in_summary = False
    for line in lines:
        if once := _ONCE.match(line):
            # IOR prints these lines once in a run, or once for each test.
            if once[0] in printed:
                raise mixed_runs(f"there are two of {once[0]!r}")
            printed.add(once[0])
        in_summary = in_summary or line.startswith("Summary of all tests")
        if in_summary:
            continue
        version = version or _VERSION.match(line)
        if _TEST_START.match(line):
            tests.append(head.without_table())
        (tests[-1] if tests else head).add(line)
    if tests and head.rows:
        raise mixed_runs("a result stands above its test")
    return [
        result
        for test in tests or [head]
        for result in _read_test(test, given, version[1] if version else None)
    ]


class _Test:
    """The lines of a test, or above all tests: the fields and warnings, then the rows of its table.

    `fields` has ``name : value`` lines above the table, names in lower case; the last of equals.
    """

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.warnings: list[str] = []
        self.columns: list[str] = []
        self.rows: list[PrintedRow] = []
        self._row_above = self._is_mdtest = False
        self._problem: InputError | None = None
        self._started: str | None = None
        self._warnings_above_row: list[str] = []
        self._commenced: str | None = None

    def without_table(self) -> _Test:
        """A test that begins with the fields and warnings of this one."""
        test = _Test()
        test.fields, test.warnings = dict(self.fields), list(self.warnings)
        test._row_above, test._is_mdtest = self._row_above, self._is_mdtest
        return test

    def add(self, line: str) -> None:
        """Read a line."""
        if self.columns:
            self._add_to_table(line)
        else:
            self._add_above_table(line)

    def check(self) -> None:
        """Reject a test without a table, or with rows that cannot be used."""
        if not self.columns and self._is_mdtest:
            raise InputError(
                "an output of mdtest, which counts files and measures no bandwidth",
                remedy="give an output of IOR",
            )
        if not self.columns:
            raise UnfinishedRunError(
                "the output ends before the first result",
                remedy="the run may have failed: repeat it",
            )
        if self._row_above:
            raise mixed_runs("a result stands above its table")

    def check_rows(self) -> None:
        """Raise the problem of the first row that cannot be read."""
        if self._problem:
            raise self._problem

    def _add_above_table(self, line: str) -> None:
        words = line.split() if "access" in line else []
        if words[:1] == ["access"] and words[-1] == "iter":
            self.columns = words
            self._started = parse_started(
                self.fields.get("starttime") or self.fields.get("began") or ""
            )
            return
        self._row_above = self._row_above or is_row(line)
        self._is_mdtest = self._is_mdtest or line.startswith("mdtest-")
        if warning := _WARNING.match(line):
            self.warnings.append(warning[1])
        elif (field := _FIELD.fullmatch(line)) and field[1].lower() in _FIELDS:
            self.fields[field[1].lower()] = field[2]

    def _add_to_table(self, line: str) -> None:
        """Read a row, or what stands above it: warnings and the time when it commenced."""
        words = line.split() if line.lstrip().startswith(("write", "read")) else []
        if words[:1] in (["write"], ["read"]):
            self._add_row(words)
        elif warning := _WARNING.match(line):
            self._warnings_above_row.append(warning[1])
        elif line.startswith("Commencing"):
            self._commenced = parse_started(line) or self._commenced

    def _add_row(self, words: Sequence[str]) -> None:
        if len(words) != len(self.columns):
            self._problem = self._problem or UnfinishedRunError(
                f"the {words[0]} line of the results is cut off",
                remedy="the run may have failed: repeat it",
            )
            return
        cells = dict(zip(self.columns, words, strict=True))
        moved = [int(m[1]) for text in self._warnings_above_row if (m := _BYTES_MOVED.match(text))]
        try:
            row = PrintedRow(
                operation=sys.intern(cells["access"]),
                repetition=parse_count(cells["iter"]),
                bandwidth=_cell(cells, _BANDWIDTH),
                time=_cell(cells, _TIME),
                bytes=moved[-1] if moved else None,
                started=self._commenced or self._started,
                warnings=(*self.warnings, *self._warnings_above_row),
            )
        except InputError as error:
            self._problem = self._problem or error
            return
        self.rows.append(row)
        self._warnings_above_row, self._commenced = [], None


def _read_test(test: _Test, given: IorConfig | None, version: str | None) -> list[IorResult]:
    test.check()
    command = test.fields.get("command line") or test.fields.get("command line used")
    if not command:
        raise InputError("there is no command line of IOR in the output")
    config = _config(test.fields, config_as_printed(command, given))
    if config.fsync == "end" and any(map(_switched_off_fsync, test.warnings)):
        config = replace(config, fsync="none")
    test.check_rows()
    return results_of(config, test.rows, version=version, command=command)


def _switched_off_fsync(warning: str) -> bool:
    """Whether IOR ignored ``-e``, in the words of IOR 3.1 and later or of IOR 3.0."""
    return warning.startswith(("fsync() not supported", "fsync() only available"))


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


def _cell(cells: Mapping[str, str], names: tuple[str, ...]) -> str:
    cell = next((cells[name] for name in names if name in cells), None)
    if cell is None:
        raise InputError(f"the table of results has no column {names[0]}")
    return cell
