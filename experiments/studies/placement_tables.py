"""Tables of the study of placement: slow I/O nodes that are named, and the gain of placement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated

from pydantic import Field

from experiments.published import PrintedTable
from experiments.studies.geometric_means import mean_change
from experiments.studies.interference_tables import read_rows
from ioncast.diagnosis.slow_io_nodes import NamedOutcome, slow_io_nodes

NAME, JOBS, QUEUE = "placement", "jobs.csv", "queue.csv"
PLACED, RANDOM = "placed", "random"
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


@dataclass(frozen=True)
class SeriesJob:
    """A row of `jobs.csv`: a job of a series with a slow I/O node, or without one.

    `slow` is the slow I/O node, `io_nodes` are the names of the job's I/O nodes with blanks
    between, `load1` is the machine's load before it.
    """

    series: int
    number: int
    slow: str | None
    application: str
    io_nodes: str
    bytes: int
    seconds: Positive
    started: str
    load1: float


@dataclass(frozen=True)
class QueueJob:
    """A row of `queue.csv`: a job of a queue whose jobs share I/O nodes.

    `order` is the place of its arm in the round, `expected_mib_s` the job's bandwidth alone.
    """

    round: int
    order: int
    arm: str
    application: str
    io_nodes: str
    expected_mib_s: Positive
    bytes: int
    seconds: Positive
    started: str
    load1: float


def placement_tables(folder: Path) -> tuple[PrintedTable, ...]:
    """Make the tables of a data set of the study.

    `slow` has the answer on each series: the I/O nodes that are named, and after how many jobs the
    slow one is named. `gain` compares the throughput (all bytes over the time of the longest job)
    of both arms of each round: the geometric mean of the ratios minus 1, with Student's interval of
    95 %.

    Raises
    ------
    InputError
        If a file of the data set is damaged.
    """
    jobs = sorted(read_rows(folder / JOBS, SeriesJob), key=lambda job: (job.series, job.number))
    series = [list(own) for _, own in groupby(jobs, key=lambda job: job.series)]
    slow = PrintedTable("slow", tuple(map(_answer, series)), ("series",))
    queue = read_rows(folder / QUEUE, QueueJob)
    return slow, PrintedTable("gain", (_gain(queue),), ("rounds",))


def _answer(series: Sequence[SeriesJob]) -> dict[str, str]:
    slow = series[0].slow
    outcomes = list(map(_outcome, series))
    found = slow_io_nodes(outcomes)
    row = {"series": str(series[0].series), "jobs": str(len(series)), "slow": slow or ""}
    row["named"] = " ".join(each.name for each in found)
    told = next((each for each in found if each.name == slow), None)
    row["on_it"] = str(told.jobs) if told else ""
    row["ratio"] = f"{told.ratio:.2f}" if told else ""
    row["p"] = f"{told.p:.1e}" if told else ""
    row["named_after"] = str(_first(slow, outcomes) or "") if slow else ""
    return row


def _first(slow: str, outcomes: Sequence[NamedOutcome]) -> int | None:
    """The number of jobs after which the slow I/O node is named for the first time."""
    for count in range(1, len(outcomes) + 1):
        if any(each.name == slow for each in slow_io_nodes(outcomes[:count])):
            return count
    return None


def _outcome(job: SeriesJob) -> NamedOutcome:
    names = tuple(job.io_nodes.split())
    return NamedOutcome(
        id=job.number,
        system=NAME,
        job_id=str(job.number),
        variant=job.application,
        processes=1,
        nodes=None,
        io_nodes=len(names),
        moved_bytes=job.bytes,
        bandwidth_mib_s=job.bytes / (1 << 20) / job.seconds,
        names=names,
    )


def _gain(queue: Sequence[QueueJob]) -> dict[str, str]:
    rounds: dict[int, dict[str, list[QueueJob]]] = defaultdict(lambda: defaultdict(list))
    for job in queue:
        rounds[job.round][job.arm].append(job)
    ratios = list(_ratios(rounds.values()))
    change = mean_change(ratios)
    row = {"rounds": str(len(ratios))}
    for name, value in zip(("gain", "low", "high"), change, strict=True):
        row[name] = "" if value is None else f"{value:.4f}"
    row["placed_faster"] = str(sum(ratio > 1 for ratio in ratios))
    return row


def _ratios(rounds: Iterable[dict[str, list[QueueJob]]]) -> Iterator[float]:
    for arms in rounds:
        if arms[PLACED] and arms[RANDOM]:
            yield _throughput(arms[PLACED]) / _throughput(arms[RANDOM])


def _throughput(jobs: Sequence[QueueJob]) -> float:
    return sum(job.bytes for job in jobs) / max(job.seconds for job in jobs)
