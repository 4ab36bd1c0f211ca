"""Tables of the study of interference: the slowdown of each application, and the answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from experiments.datasets import csv_rows
from experiments.published import PrintedTable
from experiments.studies.geometric_means import mean_change
from ioncast_base.errors import InputError
from ioncast_base.toml_files import read_text

NAME, RUNS, VERDICTS = "interference", "runs.csv", "verdicts.csv"
ALONE, TOGETHER, APART = "alone", "together", "apart"
_T = TypeVar("_T")
Key = tuple[str, str]
"""Application and arm."""


@dataclass(frozen=True)
class InterferenceRun:
    """A row of `runs.csv`: a run of an application.

    `order` is its place in the random order of a repetition, `load1` the machine's load before it.
    """

    repetition: int
    order: int
    arm: str
    application: str
    io_nodes: int
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    started: str
    load1: float


@dataclass(frozen=True)
class Verdict:
    """A row of `verdicts.csv`: the answer of `ioncast interference` on an application of a pair.

    `shared` is the I/O node that both really use, `named` the bottleneck, `common_share` the share
    of the application's bytes there that it moves in common time, `blamed_seconds` the time lost by
    the other application, and `moved` the application that should get another I/O node. Columns
    are None where no disturbance is found.
    """

    repetition: int
    arm: str
    application: str
    shared: int | None
    named: int | None
    slowdown: Annotated[float, Field(ge=-1, allow_inf_nan=False)]
    common_share: float | None
    blamed_seconds: float | None
    moved: str | None


def interference_tables(folder: Path) -> tuple[PrintedTable, ...]:
    """Make the tables of a data set of the study.

    `slowdowns` compares each run with the run alone of the same repetition: the geometric mean of
    the ratios of their times minus 1, with Student's interval of 95 %. `answers` counts the answers
    of `ioncast interference`; nothing is the right answer for applications that run apart.

    Raises
    ------
    InputError
        If a file of the data set is damaged.
    """
    seconds: dict[Key, dict[int, float]] = defaultdict(dict)
    for run in read_rows(folder / RUNS, InterferenceRun):
        seconds[run.application, run.arm][run.repetition] = run.seconds
    answers: dict[Key, list[Verdict]] = defaultdict(list)
    for verdict in read_rows(folder / VERDICTS, Verdict):
        answers[verdict.application, verdict.arm].append(verdict)
    tables = {
        "slowdowns": [_slowdown(key, seconds) for key in seconds],
        "answers": [_answer(each) for each in answers.values()],
    }
    keys = "application", "arm"
    return tuple(
        PrintedTable(name, tuple(sorted(rows, key=lambda row: [row[key] for key in keys])), keys)
        for name, rows in tables.items()
    )


def _slowdown(key: Key, seconds: Mapping[Key, Mapping[int, float]]) -> dict[str, str]:
    application, arm = key
    times = seconds[key]
    alone, together = (seconds.get((application, other), {}) for other in (ALONE, TOGETHER))
    row = {"application": application, "arm": arm, "runs": str(len(times))}
    row |= {
        "mean_s": f"{fmean(times.values()):.3f}",
        "cv": "",
        "slowdown": "",
        "low": "",
        "high": "",
    }
    if len(times) > 1:
        row["cv"] = f"{stdev(times.values()) / fmean(times.values()):.4f}"
    ratios = [times[n] / alone[n] for n in times if n in alone and arm != ALONE]
    if ratios:
        names = "slowdown", "low", "high"
        row |= {
            name: "" if value is None else f"{value:.4f}"
            for name, value in zip(names, mean_change(ratios), strict=True)
        }
    row["slower_than_alone"] = str(sum(ratio > 1 for ratio in ratios)) if ratios else ""
    faster = sum(times[n] < together[n] for n in times if n in together)
    row["faster_than_together"] = str(faster) if arm == APART else ""
    return row


def _answer(verdicts: Sequence[Verdict]) -> dict[str, str]:
    first = verdicts[0]
    row = {"application": first.application, "arm": first.arm, "pairs": str(len(verdicts))}
    row["named_right"] = str(sum(each.named == each.shared for each in verdicts))
    row["to_move"] = str(sum(each.moved == each.application for each in verdicts))
    row["mean_slowdown"] = f"{fmean(each.slowdown for each in verdicts):.4f}"
    lost = [each.blamed_seconds for each in verdicts if each.blamed_seconds is not None]
    common = [each.common_share for each in verdicts if each.common_share is not None]
    row["mean_blamed_s"] = f"{fmean(lost):.3f}" if lost else ""
    row["least_common_share"] = f"{min(common):.4f}" if common else ""
    return row


def read_rows(path: Path, kind: type[_T]) -> list[_T]:
    """Read the rows of a CSV file; an empty cell is None.

    Raises
    ------
    InputError
        If it has no rows, or a wrong one.
    """
    rows = [
        {name: cell or None for name, cell in row.items() if name is not None}
        for row in csv_rows(read_text(path), path)
    ]
    if not rows:
        raise InputError("it has no rows", where=str(path))
    try:
        return TypeAdapter(list[kind]).validate_python(rows)  # type: ignore[valid-type]
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        line, *column = problem["loc"]
        where = f"{path}:{int(line) + 2}"
        raise InputError(f"{', '.join(map(str, column))}: {problem['msg']}", where=where) from error
