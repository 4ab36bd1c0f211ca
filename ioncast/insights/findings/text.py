"""The findings of a run as a table for people."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ioncast.insights.checks.values import Check, Thresholds
from ioncast_base.visible_text import visible
from ioncast_base.wording import counted, in_digits, listed, size

LIBRARY_NAMES = {
    "mpiio": "MPI-IO",
    "hdf5": "HDF5",
    "pnetcdf": "PnetCDF",
    "netcdf": "netCDF-4",
    "adios": "ADIOS2",
    "posix": "POSIX",
    "lustre": "Lustre",
}
# Causes of this importance get all details, the others a line.
_DETAILED = ("major", "minor", "unknown")
_WIDTH = 100
_INDENT = " " * 11
_SMALLEST_SHARE = 0.01
_FILES_SHOWN, _RANKS_SHOWN = 3, 8
# The example of the worst causes fits on a screen; --details shows all.
_SNIPPETS_SHOWN = 1

Record = Mapping[str, Any]
Marked = Callable[[str, str], str]


def to_text(record: Record, marked: Marked = lambda text, _: text, *, details: bool = False) -> str:
    """Write verdict and causes by the time to save; with `details` all findings and examples."""
    shown = ("major", "minor", "unknown", "negligible") if details else _DETAILED
    by_code = {finding["code"]: finding for finding in record["findings"]}
    causes = [each for each in record["causes"] if each["importance"] in shown]
    left = len(causes) if details else _SNIPPETS_SHOWN
    given: set[str] = set()
    parts = [_head(record), _wrapped(verdict_in_words(record["verdict"]), "")]
    for number, cause in enumerate(causes):
        own = [by_code[code] for code in cause["codes"]]
        parts.append(
            "\n".join(
                [
                    *_cause(cause, marked),
                    *(line for each in own for line in _finding(each, details=details)),
                    *_advice(own, given, with_snippets=number < left),
                ]
            )
        )
    parts += [
        "" if details else _negligible(record),
        "\n".join(_line(each) for each in record["findings"] if each["importance"] == "none"),
        "\n".join(
            _wrapped(f"not checked: {codes}, because {reason}", "", "  ")
            for reason, codes in by_reason(record["unknown"]).items()
        ),
    ]
    return "\n\n".join(part for part in parts if part)


def verdict_in_words(verdict: Record) -> str:
    """Say in two or three sentences how much of a run is I/O, and how much could be saved."""
    seconds, run = verdict["io_seconds"], verdict["run_seconds"]
    parts = [
        f"{name} {in_digits(verdict[f'{name}_seconds'])} s"
        for name in ("read", "write", "metadata")
        if verdict[f"{name}_seconds"] > 0
    ]
    of_run = (
        f" of {in_digits(run)} s run time ({percent(verdict['io_share_of_run'])})" if run else ""
    )
    who = "a process on average" if verdict["is_mean"] else "the slowest process"
    lines = [
        f"I/O and metadata take {in_digits(seconds)} s{of_run} in {who}"
        f"{': ' if parts else ''}{', '.join(parts)}."
    ]
    if verdict["bytes"] and seconds:
        rate = verdict["bytes"] / (1 << 20) / seconds
        lines.append(
            f"All processes move {size(verdict['bytes'])}, {in_digits(rate)} MiB/s in this time."
        )
    saved = verdict["seconds_at_stake"]
    part = f" ({share_in_words(verdict['share_of_run'])})" if run else ""
    lines.append(
        f"Of it at most {in_digits(saved)} s{part} are at stake, as far as the log tells."
        if saved
        else "The log tells of no time that is at stake."
    )
    return " ".join(lines)


def share_in_words(part: float) -> str:
    """Write a share of the run time."""
    return f"{percent(part)} of the run time"


def percent(part: float | None) -> str:
    """Write a share in percent; "not known" without one."""
    if part is None:
        return "not known"
    return f"{part:.0%}" if part >= _SMALLEST_SHARE or not part else "less than 1%"


def stake_in_words(cause: Record) -> str:
    """Say how much time a cause, or a finding, can cost: "at most 12 s, 10% of the run time"."""
    seconds, part = cause["seconds_at_stake"], cause["share_of_run"]
    if seconds is None:
        return "time not known"
    most = "an estimate of " if cause["is_estimate"] else "at most "
    return f"{most}{in_digits(seconds)} s" + (f", {share_in_words(part)}" if part else "")


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
    yield f"Published level: {finding['level']}. Source: {finding['source']}."
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
    processes = counted(record["processes"], "process")
    return f"{visible(record['log'])}: {processes}, job {record['job']}"


def _cause(cause: Record, marked: Marked) -> Iterator[str]:
    importance = cause["importance"]
    name = cause["cause"]
    mark = marked(f"{importance.upper():8}", importance)
    yield f"{mark} {name[:1].upper()}{name[1:]}: {stake_in_words(cause)}"


def _finding(finding: Record, *, details: bool) -> Iterator[str]:
    yield _line(finding)
    if details and finding["thresholds"]:
        yield _wrapped(f"thresholds: {_thresholds_in_words(finding['thresholds'])}")
    shown = finding["files"][:_FILES_SHOWN]
    yield from (f"{_INDENT}{file['words']}: {visible(file['path'])}" for file in shown)
    if shown and (more := all_files(finding) - len(shown)) > 0:
        yield f"{_INDENT}and {counted(more, 'other file')}"
    if finding["ranks"]:
        yield _wrapped(f"ranks: {_named_ranks(finding['ranks'])}")


def _line(finding: Record) -> str:
    return f"{finding['level']:4}  {finding['code']:4} " + _wrapped(finding["sentence"]).lstrip()


def _negligible(record: Record) -> str:
    """Fold the causes that cost next to nothing into a line."""
    names = [
        f"{cause['cause']} ({', '.join(cause['codes'])})"
        for cause in record["causes"]
        if cause["importance"] == "negligible"
    ]
    if not names:
        return ""
    return _wrapped(f"negligible, with next to no time at stake: {', '.join(names)}", "", "  ")


def _wrapped(text: str, indent: str = _INDENT, further: str | None = None) -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_long_words=False,
    )


def _advice(findings: Sequence[Record], given: set[str], *, with_snippets: bool) -> Iterator[str]:
    """Write the advice of a cause, each once in a run."""
    for each in (one for finding in findings for one in finding["advice"]):
        if each["key"] in given:
            continue
        given.add(each["key"])
        yield _wrapped(f"{each['sentence']}.", "  advice:  ", _INDENT)
        if with_snippets:
            yield from _snippet(each["snippets"])


def _snippet(snippets: Mapping[str, str]) -> Iterator[str]:
    """Write the first snippet, which is for the highest library that the run uses."""
    if not snippets:
        return
    first, *others = (LIBRARY_NAMES.get(library, library) for library in snippets)
    yield f"{_INDENT}With {first}{f' (--html also shows {listed(others)})' if others else ''}:"
    yield from textwrap.indent(
        next(iter(snippets.values())).rstrip("\n"), f"{_INDENT}| "
    ).splitlines()
