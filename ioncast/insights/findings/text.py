"""The findings of a run as a table for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ioncast.insights.checks.registry import NOTHING_ELSE_MATTERS
from ioncast.insights.checks.values import LEVELS, Check, Thresholds
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_digits, listed

LIBRARY_NAMES = {
    "mpiio": "MPI-IO",
    "hdf5": "HDF5",
    "pnetcdf": "PnetCDF",
    "netcdf": "netCDF-4",
    "adios": "ADIOS2",
    "posix": "POSIX",
    "lustre": "Lustre",
}
# These levels get all details, the others a line each.
_DETAILED = ("HIGH", "WARN")
_WIDTH = 100
_INDENT = " " * 11
_FILES_SHOWN, _RANKS_SHOWN = 3, 8

Record = Mapping[str, Any]
Marked = Callable[[str], str]


def to_text(record: Record, marked: Marked = str) -> str:
    """Write the findings of a run.

    Parameters
    ----------
    record : mapping
        The run, as `ioncast.insights.checks.record.to_record` makes it.
    marked : callable
        Marks a level, for example with a colour.
    """
    findings = record["findings"]
    first = [_line(each, marked) for each in findings if each["code"] == NOTHING_ELSE_MATTERS]
    detailed = [_details(each, marked) for each in findings if each["level"] in _DETAILED]
    short = [_line(each, marked) for each in findings if not is_important(each)]
    parts = [
        _head(record),
        *first,
        *detailed,
        "\n".join(short),
        *_advice(findings),
        "\n".join(
            f"Not checked: {codes}, because {reason}"
            for reason, codes in by_reason(record["unknown"]).items()
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def summary(runs: int, with_level: Mapping[str, int]) -> str:
    """Write one line about several runs: how many have findings of the harmful levels."""
    found = [f"{with_level[level]:,} with {level}" for level in _DETAILED if with_level.get(level)]
    return f"{counted(runs, 'run')}: {', '.join(found) or 'none with HIGH or WARN'}"


def to_listing(checks: Sequence[Check], thresholds: Thresholds) -> str:
    """List checks with their conditions and sources."""
    return "\n\n".join(
        "\n".join(
            [
                f"{check.code:5} {check.title} ({', '.join(check.levels)})",
                *(
                    _wrapped(text, " " * 6)
                    for text in (
                        f"if {check.condition_with(thresholds)}",
                        f"source: {check.source}",
                    )
                ),
            ]
        )
        for check in checks
    )


def levels_of(record: Record) -> dict[str, int]:
    """Count the findings of a run by level, the worst first."""
    found = [finding["level"] for finding in record["findings"]]
    return {level: found.count(level) for level in LEVELS if level in found}


def is_important(finding: Record) -> bool:
    """Tell whether people must see a finding, or may skip it: good practice and facts."""
    return finding["level"] in _DETAILED or finding["code"] == NOTHING_ELSE_MATTERS


def _named_ranks(ranks: Sequence[int]) -> str:
    """Name the first of some processes."""
    first = ", ".join(map(str, ranks[:_RANKS_SHOWN]))
    more = len(ranks) - _RANKS_SHOWN
    return f"{first} and {counted(more, 'other')}" if more > 0 else first


def _thresholds_in_words(thresholds: Mapping[str, float]) -> str:
    """Write thresholds with the names of their settings."""
    return ", ".join(f"{name} {in_digits(value)}" for name, value in thresholds.items())


def details_of(finding: Record) -> Iterator[str]:
    """Yield sentences about the source, the thresholds and the ranks of a finding."""
    yield f"Source: {finding['source']}."
    if finding["thresholds"]:
        yield f"Thresholds: {_thresholds_in_words(finding['thresholds'])}."
    if finding["ranks"]:
        yield f"Ranks: {_named_ranks(finding['ranks'])}."


def all_files(finding: Record) -> int:
    """Count the files of a finding, of which only the worst are listed."""
    named = len(finding["files"])
    return max(int(finding["numbers"].get("files", named)), named)


def by_reason(unknown: Mapping[str, str]) -> dict[str, str]:
    """List the codes of the checks that each reason prevents."""
    codes: dict[str, list[str]] = {}
    for code, reason in unknown.items():
        codes.setdefault(reason, []).append(code)
    return {reason: ", ".join(prevented) for reason, prevented in codes.items()}


def _head(record: Record) -> str:
    of_levels = [f"{number} {level}" for level, number in levels_of(record).items()]
    found = ", ".join(of_levels) or "nothing found"
    processes = counted(record["processes"], "process")
    return f"{visible(record['log'])}: {processes}, job {record['job']}: {found}"


def _details(finding: Record, marked: Marked) -> str:
    lines = [_start(finding, marked) + finding["title"], _wrapped(finding["sentence"])]
    if finding["thresholds"]:
        lines.append(_wrapped(f"thresholds: {_thresholds_in_words(finding['thresholds'])}"))
    shown = finding["files"][:_FILES_SHOWN]
    lines.extend(f"{_INDENT}{file['words']}: {visible(file['path'])}" for file in shown)
    if shown and (more := all_files(finding) - len(shown)) > 0:
        lines.append(f"{_INDENT}and {counted(more, 'other file')}")
    if finding["ranks"]:
        lines.append(_wrapped(f"ranks: {_named_ranks(finding['ranks'])}"))
    return "\n".join(lines)


def _line(finding: Record, marked: Marked) -> str:
    return _start(finding, marked) + _wrapped(finding["sentence"]).lstrip()


def _start(finding: Record, marked: Marked) -> str:
    level = marked(f"{finding['level']:4}")
    return f"{level}  {finding['code']:4} "


def _wrapped(text: str, indent: str = _INDENT) -> str:
    return textwrap.fill(
        text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_long_words=False
    )


def _advice(findings: Sequence[Record]) -> Iterator[str]:
    """Write each advice once, with the codes of the findings that it answers."""
    codes: dict[str, list[str]] = {}
    advice: dict[str, Record] = {}
    for finding in findings:
        for each in finding["advice"]:
            codes.setdefault(each["key"], []).append(finding["code"])
            advice[each["key"]] = each
    for key, each in advice.items():
        first = textwrap.fill(
            f"{each['sentence']} ({', '.join(codes[key])}).",
            _WIDTH,
            initial_indent="Advice: ",
            subsequent_indent="        ",
            break_long_words=False,
        )
        yield "\n".join([first, *_snippet(each["snippets"])])


def _snippet(snippets: Mapping[str, str]) -> Iterator[str]:
    """Write the first snippet, which is for the highest library that the run uses."""
    if not snippets:
        return
    first, *others = (LIBRARY_NAMES.get(library, library) for library in snippets)
    yield f"    With {first}{f' (--html also shows {listed(others)})' if others else ''}:"
    yield from textwrap.indent(next(iter(snippets.values())).rstrip("\n"), "    | ").splitlines()
