"""The registry of readers for the formats that IOR prints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ioncast_base.errors import InputError, Remedy
from ior_configs.conditions import hints_of
from ior_configs.config import IorConfig
from ior_configs.page_cache import may_be_cached
from ior_configs.printed_runs import PrintedRun, printed_runs
from ior_configs.results import IorResult, UnfinishedRunError

Reader = Callable[[Iterable[str], IorConfig | None], list[IorResult]]

_READERS: dict[str, Reader] = {}
# Formats that do not contain the options of the run.
_WITHOUT_OPTIONS = frozenset({"ior-csv", "ior-rank-csv"})


def reader(name: str) -> Callable[[Reader], Reader]:
    """Register the reader of the format that `sniff` calls `name`.

    A reader's arguments are the lines of one run and the configuration of the command line that
    the user gave with them, or None. It returns at least one result or raises `InputError`, which
    is an `UnfinishedRunError` if the run printed no result.
    """

    def register(read: Reader) -> Reader:
        _READERS[name] = read
        return read

    return register


def sniff(text: str | Iterable[str]) -> str | None:
    """Recognise the format of an output's first run, even if it is cut off; None for other text."""
    return next((run.file_format for run in printed_runs(_lines(text))), None)


def read_outputs(
    text: str | Iterable[str],
    *,
    where: str,
    command: str | None = None,
    tasks: int | None = None,
    nodes: int | None = None,
) -> list[IorResult]:
    """Read all results of an output of IOR, whatever its format, which may be of several runs.

    A repetition without a positive finite bandwidth is left out, and the other results of its test
    get a warning. So is a run that did not finish its first result, and all other results get a
    warning. It is an error if no repetition of a test is left, if the line of a rank has no usable
    numbers, because the bytes of all ranks are added up, or if runs cannot be told apart. Runs with
    the same options are an error if their numbers of tasks are unknown, because they may differ.

    The lines of `text` are not held. `command` gives values that are not in the output: the whole
    configuration (CSV) or the number of tasks. IOR counts host names, which may be fewer than the
    compute nodes, so give `nodes` if the number is known.
    """
    try:
        given = None if command is None else IorConfig.from_command_line(command)
        if given and tasks:
            given = replace(given, tasks=tasks)
        known = {name: n for name, n in {"tasks": tasks, "nodes": nodes}.items() if n is not None}
        results = _results_of_runs(_lines(text), given, known)
        if command is None:
            return results
        return [r if r.command else replace(r, command=command) for r in results]
    except InputError as error:
        raise InputError(error.what, where=where, line=error.line, remedy=error.remedy) from error


def _results_of_runs(
    lines: Iterable[str], given: IorConfig | None, known: Mapping[str, Any]
) -> list[IorResult]:
    """Read each run; `known` are the fields of its configuration that override the output's."""
    results: list[IorResult] = []
    without_tasks: set[IorConfig] = set()
    shared: dict[IorConfig, IorConfig] = {}
    written: set[str | None] = set()
    unfinished: list[tuple[int, UnfinishedRunError]] = []
    formats: Counter[str] = Counter()
    for run in printed_runs(lines):
        formats[run.file_format] += 1
        if run.file_format in _WITHOUT_OPTIONS and formats[run.file_format] > 1:
            raise InputError(
                "another header begins here, and IOR's CSV does not have the options of a run",
                line=run.first_line,
                remedy="give the CSV of each run in a file of its own",
            )
        try:
            found = _results_of(run, given, is_first=formats.total() == 1)
        except UnfinishedRunError as error:
            unfinished.append((run.first_line, error))
            continue
        configs = {id(result.config): result.config for result in found}
        for key, config in configs.items():
            completed = replace(config, **known)
            # Runs in a loop have equal configurations, of which one is enough in memory.
            configs[key] = shared.setdefault(completed, completed)
            written |= {completed.test_file} if completed.write else set()
        patterns = {config.pattern() for config in configs.values() if config.tasks is None}
        if patterns & without_tasks:
            raise InputError(
                "the numbers of tasks of several runs with these options are unknown",
                line=run.first_line,
                remedy=Remedy("give the number with {}", ("tasks",)),
            )
        without_tasks |= patterns
        cached = {key for key, config in configs.items() if may_be_cached(config, written)}
        results += (
            replace(
                result,
                config=configs[id(result.config)],
                maybe_cached=result.operation == "read" and id(result.config) in cached,
            )
            for result in found
        )
    if not results and unfinished:
        raise unfinished[0][1]
    if not results:
        raise InputError(
            "this is not an output of IOR",
            remedy="give IOR's own output: text, or -O summaryFormat=JSON or CSV",
        )
    if not unfinished:
        return results
    left_out = tuple(f"left out the run of line {line}: {e.what}" for line, e in unfinished)
    return [replace(result, warnings=left_out + result.warnings) for result in results]


def _results_of(run: PrintedRun, given: IorConfig | None, *, is_first: bool) -> list[IorResult]:
    """Read a run; an error names its first line, unless it is the first run of the text."""
    try:
        return _READERS[run.file_format](run.lines, given)
    except InputError as error:
        error.line = None if is_first else run.first_line
        raise


def config_as_printed(command: str, given: IorConfig | None) -> IorConfig:
    """Read the command line in an output, which IOR prints without quoting and environment."""
    config = _config_of(command)
    if given is None:
        return config
    return replace(
        config,
        conditions=(*config.conditions, *hints_of(given.conditions)),
        tasks=given.tasks if config.tasks is None else config.tasks,
        nodes=given.nodes if config.nodes is None else config.nodes,
    )


@lru_cache(maxsize=16)
def _config_of(command: str) -> IorConfig:
    """Read a command line that IOR printed; runs in a loop have the same one."""
    return IorConfig.from_args(command.split()[1:])


def _lines(text: str | Iterable[str]) -> Iterable[str]:
    return text.splitlines() if isinstance(text, str) else text
