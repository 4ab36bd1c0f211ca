"""Read reruns of applications, with which predictions are compared, from CSV."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from ioncast_base.errors import InputError
from ioncast_base.limits import BANDWIDTHS, FASTEST_MIB_S, LARGEST_COUNT, SLOWEST_MIB_S
from ioncast_base.times import instant
from ioncast_base.wording import in_words
from predictor.curve.composing import observed_mib_s
from summario.phases.extract import extract_phases
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.reading.log import read_log

_COLUMNS = "application, io_nodes, repetition, and bandwidth_mib_s or log"


@dataclass(frozen=True)
class Rerun:
    """One run of an application with a number of I/O nodes.

    `repetition` is its number among those with as many I/O nodes. `phases_mib_s` are in the order
    of the phases; empty if they are not known.
    """

    application: str
    io_nodes: int
    repetition: int
    bandwidth_mib_s: float
    started: datetime | None = None
    phases_mib_s: tuple[float, ...] = ()


class _Row(NamedTuple):
    line: int
    application: str
    cells: dict[str, str]


def read_reruns(
    path: str | Path,
    extraction: ExtractionSettings = DEFAULTS,
    choose: Callable[[list[str]], Collection[str]] = list,
) -> list[Rerun]:
    """Read reruns from a CSV file.

    The columns are `application` (or `name`), `io_nodes`, `repetition` (by default counted in
    the order of the lines), `bandwidth_mib_s` or `log` (the run's Darshan log, relative to the
    CSV), `started` (ISO 8601; by default the start in the log), and `phases_mib_s` (numbers with
    `;` between them; by default not known). Other columns are ignored.
    `extraction` decides what a phase of these logs is. `choose` gets the names of all applications
    and returns those whose reruns are read, before any log is.

    Raises
    ------
    InputError
        When the file or a line cannot be used; the error names it.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(error.strerror or str(error), where=str(path)) from error
    return reruns_of_text(_text(content, str(path)), path, extraction, choose)


def reruns_of_text(
    text: str,
    where: str | Path,
    extraction: ExtractionSettings = DEFAULTS,
    choose: Callable[[list[str]], Collection[str]] = list,
) -> list[Rerun]:
    """Read reruns from the text of a CSV, see `read_reruns`; `where` is its path for errors."""
    rows = list(_rows(text, str(where)))
    if not rows:
        raise InputError(
            "there are no reruns", where=str(where), remedy=f"the columns are {_COLUMNS}"
        )
    chosen = choose(list(dict.fromkeys(row.application for row in rows)))
    of_chosen = (row for row in rows if row.application in chosen)
    return list(_reruns(of_chosen, Path(where), extraction))


def by_application(reruns: Iterable[Rerun]) -> dict[str, list[Rerun]]:
    """Collect the reruns of each application, in their order."""
    found: dict[str, list[Rerun]] = {}
    for rerun in reruns:
        found.setdefault(rerun.application, []).append(rerun)
    return found


def cells(reruns: Iterable[Rerun]) -> dict[int, tuple[float, ...]]:
    """Collect the bandwidths of one application's reruns in MiB/s, by number of I/O nodes."""
    found: dict[int, list[float]] = {}
    for rerun in reruns:
        found.setdefault(rerun.io_nodes, []).append(rerun.bandwidth_mib_s)
    return {n: tuple(found[n]) for n in sorted(found)}


def start_times_s(reruns: Sequence[Rerun]) -> dict[int, tuple[float, ...]] | None:
    """Collect the starts of the runs in `cells`, in seconds since 1970; None if one is unknown."""
    found: dict[int, list[float]] = {}
    for rerun in reruns:
        if rerun.started is None:
            return None
        found.setdefault(rerun.io_nodes, []).append(rerun.started.timestamp())
    return {n: tuple(found[n]) for n in sorted(found)}


def _text(content: bytes, where: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            "the file is not a CSV in UTF-8", where=where, line=line, remedy="save it as UTF-8"
        ) from error


def _reruns(rows: Iterable[_Row], path: Path, extraction: ExtractionSettings) -> Iterator[Rerun]:
    lines: dict[tuple[str, int, int], int] = {}
    counts: dict[tuple[str, int], int] = {}
    for line, application, row in rows:
        try:
            io_nodes = _count(row, "io_nodes")
            repetition = counts.get((application, io_nodes), 0)
            if row.get("repetition"):
                repetition = _count(row, "repetition")
            counts[application, io_nodes] = counts.get((application, io_nodes), 0) + 1
            bandwidth, started = _outcome(row, path, extraction)
            phases = _phases(row.get("phases_mib_s") or "")
        except (InputError, ValueError) as error:
            raise InputError(str(error), where=str(path), line=line) from error
        key = (application, io_nodes, repetition)
        if key in lines:
            raise InputError(
                f"repetition {repetition} of {application!r} with {in_words(io_nodes)} is"
                f" already in line {lines[key]}",
                where=str(path),
                line=line,
                remedy="number the repetitions",
            )
        lines[key] = line
        yield Rerun(application, io_nodes, repetition, bandwidth, started, phases)


def _rows(text: str, where: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True, skipinitialspace=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, where)
        for row in reader:
            if row and len(row) != len(header):
                raise InputError(
                    "the line has more or fewer cells than the header",
                    where=where,
                    line=reader.line_num,
                )
            if row:
                values = dict(zip(header, (cell.strip() for cell in row), strict=True))
                yield _Row(reader.line_num, _application(values, where, reader.line_num), values)
    except csv.Error as error:
        raise InputError(
            f"this is not valid CSV: {error}", where=where, line=max(reader.line_num, 1)
        ) from error


def _check_header(header: Sequence[str], where: str) -> None:
    remedy = f"the columns are {_COLUMNS}"
    for name in filter(None, header):
        if header.count(name) > 1:
            raise InputError(f"two columns are named {name!r}", where=where, line=1, remedy=remedy)
    for choices in (("application", "name"), ("io_nodes",), ("bandwidth_mib_s", "log")):
        if not set(choices) & set(header):
            missing = " or ".join(map(repr, choices))
            raise InputError(f"column {missing} is missing", where=where, line=1, remedy=remedy)


def _application(row: dict[str, str], where: str, line: int) -> str:
    name = row.get("application") or row.get("name") or ""
    if not name or not name.isprintable():
        raise InputError(f"{name!r} is not the name of an application", where=where, line=line)
    return name


def _count(row: dict[str, str], column: str) -> int:
    text = row[column]
    if not (text.isascii() and text.isdecimal()) or len(text) > 10 or int(text) > LARGEST_COUNT:
        raise ValueError(f"{column} is {text!r}, not a whole number from 0 to {LARGEST_COUNT}")
    return int(text)


def _outcome(
    row: dict[str, str], path: Path, extraction: ExtractionSettings
) -> tuple[float, datetime | None]:
    """Read the bandwidth and the start of a run, from the row or from its log."""
    if not (row.get("bandwidth_mib_s") or row.get("log")):
        raise ValueError("the run has neither bandwidth_mib_s nor log")
    if row.get("bandwidth_mib_s"):
        return _bandwidth(row["bandwidth_mib_s"], "bandwidth_mib_s"), _started(row)
    place = path.parent / row["log"]
    log = read_log(place)
    try:
        bandwidth = observed_mib_s(extract_phases(log, extraction))
    except ValueError as error:
        raise InputError(str(error), where=str(place)) from error
    return bandwidth, _started(row) or _moment(log.job.start_seconds)


def _moment(seconds: float) -> datetime | None:
    """Turn a log's time into a datetime; None if it is out of range."""
    try:
        return datetime.fromtimestamp(seconds, timezone.utc)
    except (ValueError, OverflowError, OSError):
        return None


def _phases(text: str) -> tuple[float, ...]:
    return tuple(_bandwidth(part, "phases_mib_s") for part in text.split(";")) if text else ()


def _bandwidth(text: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not SLOWEST_MIB_S <= value <= FASTEST_MIB_S:
        raise ValueError(f"{column} is {text!r}, not {BANDWIDTHS}")
    return value


def _started(row: dict[str, str]) -> datetime | None:
    text = row.get("started")
    if not text:
        return None
    time = instant(text)
    if time is None:
        raise ValueError(f"started is {text!r}, not a time such as 2026-11-21T04:15:02Z")
    return time
