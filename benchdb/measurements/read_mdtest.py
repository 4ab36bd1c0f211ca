"""Reader of the text that mdtest prints (1.9, 3.x and 4.x): the rates of its operations on files.

mdtest prints no single iterations, only the highest, the lowest and the mean rate of all. Up to
three iterations follow from these numbers. Before version 3.4 (with a colon behind each name)
highest and lowest are of single processes, so only the mean counts.
"""

from __future__ import annotations

import getopt
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from benchdb.measurements.file_rates import FileOperation, FileRate
from ioncast_base.errors import InputError, Remedy
from ioncast_base.sizes import parse_size
from ior_configs.printed_runs import format_of_start, without_rank

_LAUNCHED = re.compile(
    r"mdtest-(\S+) was launched with ([0-9]{1,9}) total task\(s\) on ([0-9]{1,9}) node\(s\)"
)
_STARTED = re.compile(r"-- started at (\d\d/\d\d/\d{4} \d\d:\d\d:\d\d) --")
_COMMAND = re.compile(r"Command line used: *(.*\S)")
_TEST = re.compile(r"([0-9]{1,9}) tasks, ([0-9]{1,18}) files")
_STONEWALL = re.compile(r"Continue stonewall hit min: [0-9]+ max: ([0-9]{1,18}) ")
_SUMMARY = re.compile(r"SUMMARY( rate| time)?(?: \([^)]*\))?: \(of ([0-9]{1,9}) iterations\)")
_FINISHED = "-- finished at"
_OPERATIONS: dict[str, FileOperation] = {
    "creation": "create",
    "stat": "stat",
    "read": "read",
    "removal": "remove",
}
# Max, min, mean and standard deviation of the iterations stand at the end of a row.
_VALUES = 4
# The options of all versions; those before a colon have a value.
_OPTIONS = "a:b:BcCd:De:Ef:FgG:hi:I:kl:Ln:N:p:PqrRs:SStTuUvV:w:W:x:XyYz:Z"
_UNLIKE = {
    "-c": "one process creates all files (-c)",
    "-k": "files are created with mknod (-k)",
    "-S": "all processes use one file (-S)",
    "-y": "each file is synchronised (-y)",
    "-Y": "sync is called after each phase (-Y)",
}
_CACHED = (
    "the processes used files that they had created themselves, without -N, so the caches of their"
    " nodes may have answered"
)
_SUMMED_UP = "mdtest prints only max, min and mean of {} iterations"


def is_mdtest(lines: Iterable[str]) -> bool:
    """Whether the first run in a text is one of mdtest."""
    for line in map(without_rank, lines):
        if _LAUNCHED.match(line):
            return True
        if format_of_start(line, "") is not None:
            return False
    return False


def read_rates(
    lines: Iterable[str],
    *,
    io_nodes: int | None,
    tasks: int | None = None,
    nodes: int | None = None,
    where: str,
) -> list[FileRate]:
    """Read the rates of all runs in an output of mdtest.

    `tasks` and `nodes` override those of the output; mdtest counts host names. A run that did not
    finish, a run without rates of files, and mixed lines of several runs are InputErrors.
    """
    if io_nodes is None:
        raise InputError(
            "mdtest does not know the number of I/O nodes",
            where=where,
            remedy=Remedy("give {}", ("io_nodes",)),
        )
    found: list[FileRate] = []
    for run in _runs(lines, where):
        rates = list(_rates(run, io_nodes, tasks, nodes, where))
        if not rates:
            raise InputError(
                "mdtest measured no file: all its rates are 0, or of directories",
                where=where,
                line=run.line,
                remedy="run mdtest without -D and without -Z",
            )
        found += rates
    return found


@dataclass
class _Test:
    """A table of rates: tasks and files as mdtest counts them, and the rows."""

    tasks: int
    files: int
    iterations: int = 1
    most_files_of_process: int | None = None
    rows: list[tuple[FileOperation, bool, tuple[float, ...]]] = field(default_factory=list)


@dataclass
class _PrintedRun:
    """The output of one run of mdtest."""

    line: int
    version: str
    nodes: int
    started: str | None
    command: str | None = None
    tests: list[_Test] = field(default_factory=list)


def _runs(lines: Iterable[str], where: str) -> Iterator[_PrintedRun]:
    """Yield the runs in a text; an InputError if one did not finish."""
    run: _PrintedRun | None = None
    started = None
    is_rate = False
    for number, line in enumerate(map(without_rank, lines), 1):
        if time := _STARTED.match(line):
            started = _iso(time[1])
        if format_of_start(line, "") is not None:
            raise InputError(
                "a run of IOR begins here, in an output of mdtest",
                where=where,
                line=number,
                remedy="give the outputs of IOR and of mdtest in files of their own",
            )
        if launched := _LAUNCHED.match(line):
            if run is not None:
                raise _unfinished(run, where)
            run = _PrintedRun(number, launched[1], int(launched[3]), started)
            started, is_rate = None, False
        if run is None:
            continue
        if command := _COMMAND.match(line):
            run.command = command[1]
        elif test := _TEST.match(line):
            run.tests.append(_Test(int(test[1]), int(test[2])))
        elif run.tests:
            is_rate = _add(run.tests[-1], line, is_rate=is_rate)
        if line.startswith(_FINISHED):
            yield run
            run = None
    if run is not None:
        raise _unfinished(run, where)


def _add(test: _Test, line: str, *, is_rate: bool) -> bool:
    """Read a line of a test; return whether rows of rates follow."""
    if wall := _STONEWALL.match(line):
        test.most_files_of_process = int(wall[1])
    elif summary := _SUMMARY.match(line):
        test.iterations = int(summary[2])
        return summary[1] != " time"
    elif is_rate and line.lstrip().startswith("File "):
        _, name, *words = line.split()
        values = tuple(map(_number, words[-_VALUES:]))
        if name in _OPERATIONS and len(values) == _VALUES:
            test.rows.append((_OPERATIONS[name], words[0] == ":", values))
    return is_rate


def _rates(
    run: _PrintedRun, io_nodes: int, tasks: int | None, nodes: int | None, where: str
) -> Iterator[FileRate]:
    if run.command is None:
        raise InputError("there is no command line of mdtest", where=where, line=run.line)
    options = _options(run, where)
    sizes = {name: _size(options, name, run, where) for name in ("-w", "-e")}
    unlike = [why for name, why in _UNLIKE.items() if name in options]
    if (api := options.get("-a", "POSIX")).upper() != "POSIX":
        unlike.append(f"the files are those of {api[:20]} (-a), not of POSIX")
    creates = "-C" in options or not {"-T", "-E", "-r"} & set(options)
    reads_own = creates and options.get("-N", "0") == "0"
    for test in run.tests:
        for operation, is_of_processes, values in test.rows:
            note = [*unlike]
            if reads_own and operation in {"stat", "read"}:
                note.append(_CACHED)
            rates = _iterations(values, test.iterations, is_of_processes=is_of_processes)
            if len(rates) != test.iterations:
                note.append(_SUMMED_UP.format(test.iterations))
            for rate in rates:
                yield FileRate(
                    operation=operation,
                    io_nodes=io_nodes,
                    files_per_s=rate,
                    tasks=tasks or test.tasks,
                    nodes=nodes or run.nodes,
                    files_per_process=_files_per_process(test, options),
                    unique_directory="-u" in options,
                    bytes_per_file=sizes["-e" if operation == "read" else "-w"],
                    started=run.started,
                    engine_version=run.version[:40],
                    command=run.command[:4000],
                    used=not unlike,
                    note="; ".join(note)[:1000] or None,
                )


def _files_per_process(test: _Test, options: dict[str, str]) -> int | None:
    """The files of a process; a run that a stone wall ends may have fewer than asked for."""
    if test.most_files_of_process is not None:
        return test.most_files_of_process or None
    is_cut = options.get("-W", "0") != "0" or "-x" in options
    return None if is_cut else max(test.files // max(test.tasks, 1), 1)


def _iterations(
    values: tuple[float, ...], iterations: int, *, is_of_processes: bool
) -> list[float]:
    """The rates of single iterations, as far as they follow from max, min and mean."""
    highest, lowest, mean, _ = values
    if not 0 < mean < float("inf"):
        return []
    if iterations == 1 or is_of_processes:
        return [mean]
    if iterations == 2:
        found = [highest, lowest]
    else:
        found = [highest, lowest, (iterations * mean - highest - lowest) / (iterations - 2)]
    return found if min(found) > 0 else [mean]


def _options(run: _PrintedRun, where: str) -> dict[str, str]:
    """The short options of a command line; long ones belong to an api."""
    try:
        words = shlex.split(run.command or "")[1:]
        short = [word for word in words if not word.startswith("--")]
        known, _ = getopt.gnu_getopt(short, _OPTIONS)
    except (ValueError, getopt.GetoptError) as error:
        raise InputError(
            f"the command line of mdtest cannot be read: {error}", where=where, line=run.line
        ) from error
    # mdtest 3.4 and later accept -n=5.
    return {name: value.removeprefix("=").strip() for name, value in known}


def _size(options: dict[str, str], name: str, run: _PrintedRun, where: str) -> int:
    try:
        return parse_size(options.get(name, "0"))
    except InputError as error:
        raise InputError(f"{name}: {error.what}", where=where, line=run.line) from error


def _number(text: str) -> float:
    """A printed number; nan for other text, such as that of a rank's message."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _iso(text: str) -> str | None:
    try:
        return datetime.strptime(text, "%m/%d/%Y %H:%M:%S").isoformat()
    except ValueError:
        return None


def _unfinished(run: _PrintedRun, where: str) -> InputError:
    return InputError(
        "this run of mdtest did not finish",
        where=where,
        line=run.line,
        remedy="the run may have failed: repeat it",
    )
