"""Cost of traced requests: summario's table compared with PyDarshan's frames.

    python benchmarks/operations.py [--repeat N]

It writes two logs of 64 processes through libdarshan-util. Each measurement is a new process. The
ways to read take turns on the same log, so that a slow minute of the machine affects all of them.
The clock starts after the imports and includes the reading of the log.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np

from experiments.applications.darshan_writer import Dxt, DxtModule, write_log
from summario.reading.pydarshan import MissingPyDarshanError, library_path

PROCESSES = 64
PROCESSES_PER_NODE = 8
REQUEST_BYTES = 1 << 20
MODULES: tuple[DxtModule, ...] = get_args(DxtModule)

# The number of records of each log, and the numbers of requests that they have in turn.
LOGS = {"long": (128, (7812, 7813)), "short": (100_000, (1, 2, 3))}

# A function that reads the log at a path and returns the number of its traced requests.
Reader = Callable[[str], int]


def table() -> Reader:
    read_log = importlib.import_module("summario.reading.log").read_log
    operations_of = importlib.import_module("summario.reading.operations").operations_of
    return lambda path: len(operations_of(read_log(path)))


def phases() -> Reader:
    read_log = importlib.import_module("summario.reading.log").read_log
    operations_of = importlib.import_module("summario.reading.operations").operations_of
    trace_phases = importlib.import_module("summario.requests.trace_phases").trace_phases

    def read(path: str) -> int:
        operations = operations_of(read_log(path))
        return sum(
            phase.requests for api in ("POSIX", "MPIIO") for phase in trace_phases(operations, api)
        )

    return read


def frames() -> Reader:
    report_of = importlib.import_module("darshan").DarshanReport

    def read(path: str) -> int:
        report = report_of(path, read_all=False)
        for module in MODULES:
            report.mod_read_all_dxt_records(module, dtype="pandas")
        return sum(
            len(record["write_segments"]) + len(record["read_segments"])
            for module in MODULES
            for record in report.records[module]
        )

    return read


READERS = {
    "table": ("summario: read_log + operations_of", table),
    "phases": ("the same + trace_phases of both apis", phases),
    "frames": ("PyDarshan: two pandas frames for each record", frames),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare ways to read traced requests.")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each (5)")
    repeat = parser.parse_args().repeat
    try:
        library_path("this benchmark")
    except MissingPyDarshanError as error:
        sys.exit(str(error))
    with tempfile.TemporaryDirectory() as folder:
        for name in LOGS:
            log = Path(folder) / f"{name}.darshan"
            run("write", name, str(log))
            mib = log.stat().st_size / (1 << 20)
            print(f"\n{name.capitalize()} records, {mib:.1f} MiB, {repeat} runs each\n")
            print("\n".join(report(str(log), repeat)))


def write(name: str, path: str) -> None:
    """Write a log with half of the records in each module."""
    records, requests = LOGS[name]
    rng = np.random.default_rng(17)
    dxt = [
        traced(module, index, requests[index % len(requests)], rng)
        for module in MODULES
        for index in range(records // 2)
    ]
    write_log(Path(path), nprocs=PROCESSES, dxt=dxt)


def traced(module: DxtModule, index: int, count: int, rng: np.random.Generator) -> Dxt:
    rank = index % PROCESSES
    start = np.arange(count) * 0.01 + rng.random(count) * 0.005
    end = start + rng.random(count) * 0.005
    offsets = range(0, count * REQUEST_BYTES, REQUEST_BYTES)
    return Dxt(
        module,
        f"/scratch/file{index // PROCESSES}",
        rank,
        f"node{rank // PROCESSES_PER_NODE:04}",
        [
            (offset, REQUEST_BYTES, *times)
            for offset, *times in zip(offsets, start.tolist(), end.tolist(), strict=True)
        ],
    )


def report(log: str, repeat: int) -> list[str]:
    """Let the ways take turns; the first turn fills the disk cache and does not count."""
    costs: dict[str, list[dict[str, Any]]] = {reader: [] for reader in READERS}
    for _ in range(repeat + 1):
        for reader, runs in costs.items():
            runs.append(json.loads(run("read", reader, log)))
    costs = {reader: runs[1:] for reader, runs in costs.items()}
    found = {runs[0]["requests"] for runs in costs.values()}
    if len(found) > 1:
        sys.exit(f"the ways found different numbers of requests: {found}")
    least = min(run["seconds"] for run in costs["table"])
    lines = [
        f"{found.pop():,} requests\n",
        "| way of reading | s, min (median) | ratio | peak MiB |",
        "| --- | ---: | ---: | ---: |",
    ]
    for reader, runs in costs.items():
        seconds = [run["seconds"] for run in runs]
        peak = max(run["peak_kib"] for run in runs) / 1024
        lines.append(
            f"| {READERS[reader][0]} | {min(seconds):.3f} ({median(seconds):.3f})"
            f" | {min(seconds) / least:.1f} | {peak:.0f} |"
        )
    return lines


def run(*arguments: str) -> bytes:
    """Run a part of this program in a process of its own, whose peak of memory is its own."""
    command = [sys.executable, "-W", "ignore", __file__, *arguments]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment).stdout


def read(reader: str, log: str) -> None:
    read_requests = READERS[reader][1]()
    start = time.perf_counter()
    requests = read_requests(log)
    seconds = time.perf_counter() - start
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "requests": requests, "peak_kib": peak_kib}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(*sys.argv[2:])
    elif sys.argv[1:2] == ["read"]:
        read(*sys.argv[2:])
    else:
        main()
