"""How far the measurements of a system cover the I/O of jobs, and the patterns that they lack."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from typing import Any

from ioncast.warehouse.rows import NAMES_OF_PHASES
from ior_configs import IorConfig
from predictor.matching.configurations import Match, configuration
from predictor.planning.needs import run_to_measure
from summario.phases.tables import from_record
from summario.phases.values import Extraction, Phase
from summario.runs.hosts import NodeCount

Row = Mapping[str, Any]
KINDS = ("exact", "interpolated", "model", "unknown")
"""The kinds of matches, the best first."""


@dataclass
class _Amount:
    """Bytes and seconds of I/O, and the jobs that they are of."""

    bytes: int = 0
    io_seconds: float = 0.0
    jobs: set[int] = field(default_factory=set)

    def add(self, moved: int, io_seconds: float, job: int) -> None:
        self.bytes += moved
        self.io_seconds += io_seconds
        self.jobs.add(job)


@dataclass(frozen=True)
class Coverage:
    """The I/O of jobs by the kind of its match, and the patterns without measurements.

    Attributes
    ----------
    predicted : tuple of Row
        For each of `KINDS` the bytes, the seconds (of the slowest process), and their shares.
    missing : tuple of Row
        For each configuration that was never measured its command, the kind of its match, and the
        same amounts, those with most bytes first.
    """

    predicted: tuple[Row, ...]
    missing: tuple[Row, ...]


def jobs_of(rows: Iterable[Row]) -> Iterator[Extraction]:
    """Read rows of the query `phases` into the phases of each log."""
    for _, of_log in groupby(rows, lambda row: row["log"]):
        rows_of_log = list(of_log)
        nodes = rows_of_log[0]["compute_nodes"]
        phases = tuple(map(_phase, rows_of_log))
        yield Extraction(phases, nodes=NodeCount(nodes) if nodes else None)


def _phase(row: Row) -> Phase:
    names = {name: column for column, name in NAMES_OF_PHASES.items()}
    record = {names.get(name, name): value for name, value in row.items()}
    # The log of a phase is a name here, and its SHA-256 in the table.
    return from_record({**record, "log": row["log_name"], "parts": json.loads(row["parts"])})


def configurations_of(jobs: Iterable[Extraction]) -> list[IorConfig]:
    """List the different configurations of jobs, as they are and as they would be measured."""
    found = [wanted for job in jobs for _, _, wanted in _parts(job)]
    return list(
        dict.fromkeys(each for wanted in found for each in (wanted, run_to_measure(wanted)))
    )


def coverage_of(jobs: Iterable[Extraction], match: Callable[[IorConfig], Match]) -> Coverage:
    """Match each configuration of jobs once, and add up bytes and seconds."""
    matched = cache(match)
    kinds = {kind: _Amount() for kind in KINDS}
    missing: dict[IorConfig, _Amount] = {}
    for number, job in enumerate(jobs):
        for phase, moved, wanted in _parts(job):
            amount = moved, phase.io_time_seconds * moved / phase.bytes, number
            kinds[matched(wanted).for_phase(phase).kind].add(*amount)
            to_measure = run_to_measure(wanted)
            if matched(to_measure).kind != "exact":
                missing.setdefault(to_measure, _Amount()).add(*amount)
        for phase in job.phases:
            if not phase.parts:
                kinds["unknown"].add(phase.bytes, phase.io_time_seconds, number)
    whole = _Amount(
        sum(each.bytes for each in kinds.values()), sum(each.io_seconds for each in kinds.values())
    )
    ordered = sorted(missing.items(), key=lambda item: -item[1].bytes)
    return Coverage(
        tuple({"match": kind, **_row(amount, whole)} for kind, amount in kinds.items()),
        tuple(
            {
                "configuration": config.command_line(launcher=True),
                "nodes": config.nodes,
                "match": matched(config).kind,
                **_row(amount, whole),
            }
            for config, amount in ordered
        ),
    )


def _parts(job: Extraction) -> Iterator[tuple[Phase, int, IorConfig]]:
    """List the parts of phases: the phase, the bytes of the part, and its configuration."""
    nodes = job.nodes.number if job.nodes else None
    for phase in job.phases:
        for part in phase.parts:
            yield phase, part.bytes, configuration(phase, part, nodes)


def _row(amount: _Amount, whole: _Amount) -> dict[str, Any]:
    return {
        "jobs": len(amount.jobs),
        "bytes": amount.bytes,
        "bytes_share": amount.bytes / whole.bytes if whole.bytes else None,
        "io_seconds": amount.io_seconds,
        "seconds_share": amount.io_seconds / whole.io_seconds if whole.io_seconds else None,
    }
