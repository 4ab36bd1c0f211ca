"""Reader of IOR's JSON (``-O summaryFormat=JSON``, IOR 3.3 to 4.1)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from ioncast_base.errors import InputError
from ior_configs.config import IorConfig
from ior_configs.outputs import config_as_printed, reader
from ior_configs.results import (
    IorResult,
    PrintedRow,
    UnfinishedRunError,
    parse_started,
    read_number,
    results_of,
)

_Kind = TypeVar("_Kind")
_MIB = 1 << 20
_WARNING = re.compile(r"(?:ior )?WARNING: *(.*\S)")
_NOT_A_NUMBER = re.compile(r":\s*-?nan\b")
_FIRST_CHARACTERS = frozenset('{}[],"')
_PARAMETERS: dict[str, tuple[str, type[Any]]] = {
    "api": ("api", str),
    "testFileName": ("test_file", str),
    "repetitions": ("repetitions", int),
    "multiFile": ("multi_file", bool),
    "interTestDelay": ("inter_test_delay", int),
    "readFile": ("read", bool),
    "writeFile": ("write", bool),
    "filePerProc": ("file_per_process", bool),
    "reorderTasks": ("reorder_tasks", bool),
    "keepFile": ("keep_file", bool),
    "collective": ("collective", bool),
    "useO_DIRECT": ("odirect", bool),
    "segmentCount": ("segments", int),
    "transferSize": ("transfer_size", int),
    "blockSize": ("block_size", int),
    "nodes": ("nodes", int),
}


@reader("ior-json")
def read_json(lines: Iterable[str], given: IorConfig | None) -> list[IorResult]:
    """Read all tests of a document; values missing in its Parameters are of the command line."""
    warnings: list[str] = []
    document = _load(_without_messages(lines, warnings))
    version = document.get("Version")
    command = _get(document, "Command line", str)
    asked = config_as_printed(command, given)
    summaries = _summaries(document)
    tests = _get(document, "tests", list)
    if not tests:
        raise UnfinishedRunError(
            "there is no test in the JSON", remedy="the run may have failed: repeat it"
        )
    return [
        result
        for test in tests
        for result in results_of(
            _config(test, asked),
            _rows(test, summaries, tuple(warnings)),
            version=version if isinstance(version, str) else None,
            command=command,
        )
    ]


def _without_messages(lines: Iterable[str], warnings: list[str]) -> Iterator[str]:
    """Skip messages that IOR prints on standard output in the middle of its JSON."""
    for line in lines:
        if line.lstrip()[:1] in _FIRST_CHARACTERS:
            yield line
        elif match := _WARNING.match(line):
            warnings.append(match[1])


def _load(lines: Iterable[str]) -> dict[str, Any]:
    text = "\n".join(lines)
    try:
        document = json.loads(_NOT_A_NUMBER.sub(": NaN", text), parse_float=str, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise UnfinishedRunError(
            f"the JSON is cut off or damaged ({error})", remedy="the run may have failed: repeat it"
        ) from error
    if not isinstance(document, dict):
        raise InputError("the JSON is not an output of IOR")
    return document


def _get(section: object, key: str, kind: type[_Kind]) -> _Kind:
    value = section.get(key) if isinstance(section, Mapping) else None
    if value is None or not isinstance(value, kind):
        raise InputError(f"the JSON has no usable {key!r}", remedy="give IOR's own, whole output")
    return value


def _digits(section: object, key: str) -> str:
    """Get a number as a text, which tells its precision."""
    return str(_get(section, key, object))


def _config(test: object, asked: IorConfig) -> IorConfig:
    parameters = _get(test, "Parameters", dict)
    changes = {
        field: kind(_get(parameters, key, int if kind is bool else kind))
        for key, (field, kind) in _PARAMETERS.items()
        if key in parameters
    }
    changes["random_offsets"] = min(_get(parameters, "randomOffset", int), 2)
    changes["fsync"] = _fsync(parameters, asked)
    changes["tasks"] = _get(_get(test, "Options", dict), "tasks", int)
    return replace(asked, **changes)


def _fsync(parameters: Mapping[str, Any], asked: IorConfig) -> str | None:
    """Tell when the test calls fsync: IOR may have switched off the one at the end."""
    if "fsync" not in parameters or parameters.get("fsyncperwrite", asked.fsync == "each"):
        return "each" if parameters.get("fsyncperwrite") else asked.fsync
    return "end" if _get(parameters, "fsync", int) else "none"


def _rows(
    test: object, summaries: Mapping[tuple[int, str], object], warnings: tuple[str, ...]
) -> Iterator[PrintedRow]:
    """Yield the rows of a test; IOR does not number repetitions here, but keeps their order."""
    seen: Counter[str] = Counter()
    test_id = _get(test, "TestID", int)
    transfer_size = _get(_get(test, "Parameters", dict), "transferSize", int)
    started = parse_started(_get(test, "StartTime", str))
    for entry in _flat(_get(test, "Results", list)):
        operation = _get(entry, "access", str)
        if operation not in {"write", "read"}:
            continue
        repetition = seen[operation]
        seen[operation] += 1
        summary = summaries.get((test_id, operation)) if repetition == 0 else None
        yield PrintedRow(
            operation=operation,
            repetition=repetition,
            bandwidth=_digits(entry, "bwMiB"),
            time=_digits(entry, "totalTime"),
            bytes=_bytes_stated(summary, transfer_size),
            started=started,
            warnings=warnings,
        )


def _flat(entries: list[Any]) -> Iterator[Any]:
    """Yield the entries of a list; IOR 3.3 has a list in it for each repetition."""
    for entry in entries:
        yield from entry if isinstance(entry, list) else [entry]


def _summaries(document: Mapping[str, Any]) -> dict[tuple[int, str], object]:
    """Index the summary by test and operation; its values are those of the first repetition."""
    entries = document.get("summary")
    return {
        (_get(entry, "TestID", int), _get(entry, "operation", str)): entry
        for entry in (entries if isinstance(entries, list) else [])
    }


def _bytes_stated(summary: object, transfer_size: int) -> int | None:
    """Compute the bytes from the summary, which prints whole transfers in MiB."""
    size = summary.get("xsizeMiB") if isinstance(summary, Mapping) else None
    number = read_number(size) if isinstance(size, str) else None
    if number is None or transfer_size < 2 * number.half_unit * _MIB:
        return None
    return round(number.value * _MIB / transfer_size) * transfer_size
