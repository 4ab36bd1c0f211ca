"""A made-up centre: tables of runs whose causes of slow I/O are planted.

Times come from a plain model of a parallel file system, and not from ioncast: a file on some OSTs
gets their bandwidth, and from a number of OSTs on nothing more; metadata take a part of the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ioncast.diagnosis.server_evidence import ServerEvidence
from ioncast.warehouse.schema import EXTRACTOR, SCHEMAS

Planted = Literal[
    "",
    "too few OSTs",
    "too many OSTs",
    "trailing writes",
    "stragglers",
    "busy servers",
    "idle servers",
    "coarse samples",
    "no samples",
]
VERDICTS: Mapping[str, str] = {
    "": "normal",
    "too few OSTs": "configuration",
    "too many OSTs": "configuration",
    "trailing writes": "application",
    "stragglers": "application",
    "busy servers": "system",
    "idle servers": "unknown",
    "coarse samples": "unknown",
    "no samples": "unknown",
}
MIB, GIB = 1 << 20, 1 << 30
DAY_US = 86_400_000_000
# 2026-01-01.
NEW_YEAR_US = 1_767_225_600_000_000
# One OST gives so much, and more OSTs than the best number give nothing.
OST_MIB_S, BEST_COUNT, MANY_COUNT, FEW_COUNT, OSTS = 250.0, 16, 96, 2, 96
NOISE = 0.12
RANKS = 16


@dataclass(frozen=True)
class CentreRun:
    """A run: its variant, its start in days, its layout, its times and the planted cause."""

    number: int
    variant: int
    day: float
    planted: Planted
    stripe_count: int
    data_seconds: float
    metadata_seconds: float
    late_seconds: float = 0.0
    is_traced: bool = False
    bytes: int = 64 * GIB
    processes: int = 128

    @property
    def log(self) -> str:
        return f"{self.number:064x}"

    @property
    def seconds(self) -> float:
        return self.data_seconds + self.metadata_seconds + self.late_seconds

    @property
    def start_us(self) -> int:
        return NEW_YEAR_US + round(self.day * DAY_US)


@dataclass(frozen=True)
class Centre:
    """Runs, and what servers' logs say about each log."""

    runs: Sequence[CentreRun]
    evidence: Mapping[str, tuple[ServerEvidence, ...]] = field(default_factory=dict)

    def tables(self) -> dict[str, pa.Table]:
        """The tables of a store with these runs."""
        rows: dict[str, list[dict[str, Any]]] = {
            "jobs": [_job(run) for run in self.runs],
            "files": [_file(run) for run in self.runs],
            "requests": [row for run in self.runs if run.is_traced for row in _requests(run)],
        }
        return {
            name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
            for name, schema in SCHEMAS.items()
        }

    def servers_of(self, log: str) -> tuple[ServerEvidence, ...]:
        return self.evidence.get(log, ())


def put_bundle(store: Path, name: str, tables: Mapping[str, pa.Table]) -> None:
    """Write tables as a bundle of a store, as the ioncast of now would."""
    folder = store / f"bundle={name}"
    folder.mkdir(parents=True)
    jobs = tables["jobs"]
    place = jobs.column_names.index("extractor")
    extractor = pa.array([EXTRACTOR] * len(jobs), pa.int64())
    for each, table in {**tables, "jobs": jobs.set_column(place, "extractor", extractor)}.items():
        pq.write_table(table, folder / f"{each}.parquet")


def harrington() -> Centre:
    """79 runs of one application, with the properties of Harrington's: see fleet.md, numbers.

    Eight runs have a metadata share above 0.23, and all of them are slow. One of these is 40 times
    slower, in metadata and in data. Some runs are slow by too few OSTs, some by too many.
    """
    random = np.random.default_rng(79)
    runs = []
    for number in range(79):
        planted: Planted = ""
        count, data, metadata = BEST_COUNT, 1.0, 1.0
        if number % 10 == 3:
            # Their metadata share is about 0.35.
            planted, data, metadata = "busy servers", 2.5 + number / 40, 14.0 + number / 6
        if number == 53:
            data, metadata = 30.0, 130.0
        if number in (5, 25, 45, 65):
            planted, count = "too few OSTs", FEW_COUNT
        if number in (9, 29, 49, 69):
            planted, count = "too many OSTs", MANY_COUNT
        runs.append(_run(random, number, 0, number / 2, planted, count, data, metadata))
    return _with_evidence(random, runs)


def large(seed: int = 1, variants: int = 15, of_variant: int = 80) -> Centre:
    """Many applications over some months, of whose runs an eighth has a planted cause."""
    random = np.random.default_rng(seed)
    causes: Sequence[Planted] = tuple(cause for cause in VERDICTS if cause)
    runs = []
    for number in range(variants * of_variant):
        variant, place = divmod(number, of_variant)
        planted: Planted = ""
        # Each variant has ten slow runs, at least four of each wrong stripe count if it has any.
        if place % 8 == 3:
            turn = place // 8
            planted = (
                ("too few OSTs", "too many OSTs")[turn % 2]
                if variant % 5 == 0
                else (causes[(turn + variant) % (len(causes) - 2) + 2])
            )
        count, data, metadata = BEST_COUNT, 1.0, 1.0
        slow = float(random.uniform(2.6, 6))
        if planted in ("busy servers", "idle servers", "coarse samples", "no samples"):
            data, metadata = (slow, 1.0) if random.random() < 0.6 else (slow, 4 * slow)
        if planted == "too few OSTs":
            count = FEW_COUNT
        if planted == "too many OSTs":
            count = MANY_COUNT
        late = (slow - 1) * _usual_seconds() if planted in ("trailing writes", "stragglers") else 0
        day = float(random.uniform(0, 120))
        run = _run(random, number, variant, day, planted, count, data, metadata, late)
        runs.append(run)
    return _with_evidence(random, runs)


def _usual_seconds(count: int = BEST_COUNT, moved: int = 64 * GIB) -> float:
    return moved / MIB / (min(count, BEST_COUNT) * OST_MIB_S)


def _run(
    random: np.random.Generator,
    number: int,
    variant: int,
    day: float,
    planted: Planted,
    count: int,
    data: float,
    metadata: float,
    late: float = 0.0,
) -> CentreRun:
    usual, moved = _usual_seconds(), 64 * GIB
    # To open and to lock objects on many OSTs takes long.
    crowded = 4.0 if count > BEST_COUNT else 0.0
    noise, other = np.exp(random.normal(0, NOISE, 2))
    return CentreRun(
        *(number, variant, day, planted, count),
        data_seconds=float(noise) * (data + crowded) * _usual_seconds(count, moved),
        metadata_seconds=float(other) * metadata * 0.1 * usual,
        late_seconds=late,
        # Without a trace, trailing writes and stragglers are not visible.
        is_traced=planted in ("trailing writes", "stragglers") or number % 3 == 0,
        bytes=moved,
    )


def _with_evidence(random: np.random.Generator, runs: Sequence[CentreRun]) -> Centre:
    evidence = {}
    for run in runs:
        if run.planted != "no samples":
            evidence[run.log] = tuple(_periods(random, run))
    return Centre(runs, evidence)


def _periods(random: np.random.Generator, run: CentreRun) -> Iterator[ServerEvidence]:
    """Three files: in busy runs the slowest one had busy servers, others by chance (1 of 20)."""
    shares = random.dirichlet((5, 5, 5))
    if run.planted == "busy servers":
        shares = np.array((0.8, 0.1, 0.1))
    for place, share in enumerate(shares.tolist()):
        is_busy = random.random() < 0.05 or (run.planted == "busy servers" and place == 0)
        answer: Literal["busy", "not busy", "unknown"] = "busy" if is_busy else "not busy"
        reason = None
        if run.planted == "coarse samples":
            answer, reason = "unknown", "too coarse"
        yield ServerEvidence(
            *(f"/scratch/{run.variant}/{place}", "write", run.start_us, run.start_us + 1),
            *(share * run.seconds, answer, reason, None, None, None, None, ()),
        )


def _job(run: CentreRun) -> dict[str, Any]:
    return {
        "log": run.log,
        "path": f"/logs/{run.number}.darshan",
        "system": "here",
        "job_id": run.number,
        "user_id": 1000 + run.variant,
        "program": f"solver-{run.variant}",
        "processes": run.processes,
        "start_us": run.start_us,
        "month": "2026-01",
        "run_seconds": run.seconds + 60,
        "read_bytes": 0,
        "written_bytes": run.bytes,
        "bandwidth_mib_s": run.bytes / MIB / run.seconds,
        "has_requests": run.is_traced,
    }


def _file(run: CentreRun) -> dict[str, Any]:
    return {
        "log": run.log,
        "file": f"{run.variant:016x}",
        "path": f"/scratch/{run.variant}/plot",
        "api": "POSIX",
        "is_highest": True,
        "shared": True,
        "processes": run.processes,
        "read_bytes": 0,
        "written_bytes": run.bytes,
        "read_seconds": 0.0,
        "write_seconds": run.data_seconds * run.processes,
        "metadata_seconds": run.metadata_seconds * run.processes,
        "slowest_seconds": run.seconds,
        "stripe_count": run.stripe_count,
        "stripe_size": 256 * MIB if run.stripe_count == MANY_COUNT else MIB,
    }


def _requests(run: CentreRun) -> Iterator[dict[str, Any]]:
    """Sixteen ranks write in three bursts; the last rank is late, or rank 0 trails."""
    bursts, size = 3, run.bytes // (3 * RANKS)
    late = run.late_seconds / bursts if run.planted == "stragglers" else 0.0
    step, number, at = run.data_seconds / bursts, 0, run.metadata_seconds
    for _ in range(bursts):
        for rank in range(RANKS):
            end = at + step + (late if rank == RANKS - 1 else 0.001 * rank)
            yield _request(run, number, rank, size, at, end)
            number += 1
        at += step + late + 2.0
    if run.planted == "trailing writes":
        for place in range(8):
            start = at - 2.0 + place * run.late_seconds / 8
            yield _request(run, number + place, 0, 512, start, start + run.late_seconds / 8)


def _request(
    run: CentreRun, number: int, rank: int, size: int, start: float, end: float
) -> dict[str, Any]:
    return {
        "log": run.log,
        "id": number,
        "api": "POSIX",
        "operation": "write",
        "file": f"{run.variant:016x}",
        "rank": rank,
        "length_bytes": size,
        "start_seconds": start,
        "end_seconds": end,
    }
