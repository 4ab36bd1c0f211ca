"""A store with a slow run whose servers another job kept busy, and with nine normal runs before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ioncast.warehouse.schema import SCHEMAS
from tests.support.centre import put_bundle

MIB, US, DAY_S = 1 << 20, 1_000_000, 86_400
# The slow run starts at a part of a second, so its log knows the start exactly.
START_S = 1_767_225_600.5
JOBS = tuple(range(101, 111))
SLOW_JOB, OTHER_JOB = JOBS[-1], 999_777
OTHER_PROGRAM = "neighbour"
SYSTEM, SERVERS, STEP_S = "here", (3, 4), 5
RUN_MIB = 600
# The slow run writes for six times as long as the others.
USUAL_S, SLOWDOWN = 10, 6


def log_of(job: int) -> str:
    """The SHA-256 of the log of a job."""
    return sha256(f"log of {job}".encode()).hexdigest()


def put_busy_store(folder: Path, *, with_samples: bool = True) -> None:
    """Write the store; without samples nothing tells why the run was slow."""
    runs = [(job, START_S - 10 * DAY_S * (SLOW_JOB - job), USUAL_S) for job in JOBS[:-1]]
    runs.append((SLOW_JOB, START_S, SLOWDOWN * USUAL_S))
    rows: dict[str, list[dict[str, Any]]] = {"jobs": [], "files": [], "file_osts": []}
    for job, start_s, seconds in runs:
        _add(rows, job, start_s, seconds, "app", RUN_MIB, SERVERS)
    # Another job moves 200 MiB/s at one of the OSTs meanwhile.
    _add(rows, OTHER_JOB, START_S, SLOWDOWN * USUAL_S, OTHER_PROGRAM, 200 * 60, SERVERS[1:])
    if with_samples:
        rows["server_samples"] = list(_samples())
    tables = {
        name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
        for name, schema in SCHEMAS.items()
    }
    put_bundle(folder, "a" * 64, tables)


def _add(
    rows: Mapping[str, list[dict[str, Any]]],
    job: int,
    start_s: float,
    seconds: float,
    program: str,
    mib: int,
    servers: tuple[int, ...],
) -> None:
    """Add a run that writes a file evenly over its servers, from its first second on."""
    log, first, last = log_of(job), 1.0, 1.0 + seconds
    file = {"log": log, "file": f"{job:016x}"}
    rows["jobs"].append(
        {
            "log": log,
            "path": f"/secret/{program}/{job}.darshan",
            "system": SYSTEM,
            "job_id": job,
            "user_id": 7,
            "program": program,
            "processes": 16,
            "start_us": round(start_s * US),
            "month": "2026-01",
            "run_seconds": last + 5,
            "read_bytes": 0,
            "written_bytes": mib * MIB,
            "bandwidth_mib_s": mib / seconds,
            "has_requests": False,
        }
    )
    rows["files"].append(
        {
            **file,
            "api": "POSIX",
            "is_highest": True,
            "processes": 16,
            "read_bytes": 0,
            "written_bytes": mib * MIB,
            "read_seconds": 0.0,
            "write_seconds": 16.0 * seconds,
            "metadata_seconds": 0.0,
            "slowest_seconds": float(seconds),
            "mean_seconds": float(seconds),
            "first_write_seconds": first,
            "last_write_seconds": last,
            "stripe_count": 2,
            "stripe_size": 4 * MIB,
        }
    )
    rows["file_osts"] += [{**file, "server": each, "share": 1 / len(servers)} for each in servers]


def _samples() -> Iterator[dict[str, Any]]:
    """Some traffic of others for three hours, the run's own bytes, and the other job's.

    And the load of two metadata servers for some minutes: 20 % and 10 %, 10 % and 90 % in the run.
    """
    for start in range(int(START_S) - 300, int(START_S) + 300, STEP_S):
        for server, percents in (("mds0", (20.0, 10.0)), ("mds1", (10.0, 90.0))):
            yield {
                "system": SYSTEM,
                "kind": "MDS",
                "server": server,
                "time_start_us": start * US,
                "time_end_us": (start + STEP_S) * US,
                "cpu_percent": percents[0 <= start - START_S < SLOWDOWN * USUAL_S],
            }
    random = np.random.default_rng(1)
    begin = int(START_S)
    first, last = START_S + 1, START_S + 1 + SLOWDOWN * USUAL_S
    for server in SERVERS:
        for start in range(begin - 3 * 3600, begin + 600, STEP_S):
            in_run_s = max(min(start + STEP_S, last) - max(start, first), 0.0)
            own_mib_s = RUN_MIB / len(SERVERS) / (last - first)
            other_mib_s = 200.0 if server == SERVERS[1] else 0.0
            mib = random.gamma(2.0, 5.0) * STEP_S + in_run_s * (own_mib_s + other_mib_s)
            yield {
                "system": SYSTEM,
                "kind": "OST",
                "server": str(server),
                "time_start_us": start * US,
                "time_end_us": (start + STEP_S) * US,
                "read_bytes": 0,
                "written_bytes": int(mib * MIB),
            }
