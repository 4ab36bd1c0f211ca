"""Ingest of many logs beside a loop of PyDarshan and Spark, and the survey of a large store.

    python benchmarks/ingest.py [--logs N] [--jobs N] [--without-spark]

The logs are the genuine ones of ../shared/data that PyDarshan reads too, again and again with other
job ids and times, and one with a million requests. CPU seconds are those of all processes, with
their start. Each way runs once over all logs: a run takes minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import DATA, ROOT, Claim, Run, machine, run_once

from ioncast.warehouse.bundles import IngestOptions
from ioncast.warehouse.copies import unique_tables_of
from ioncast.warehouse.ingest import ingest, open_store
from ioncast.warehouse.inputs import LogFile, find_logs
from ioncast.warehouse.schema import SCHEMAS
from ioncast.warehouse.spark import ingest_with_spark, spark_session
from ioncast_base.errors import IoncastError
from summario.reading.header import parse_header
from summario.reading.log import read_log
from summario.reading.sources import Source

REQUESTS = 1_000_000
MEMORY_MIB = 2_048
BUNDLES, TWICE_SHARE = 500, 0.01
# The goals of the project.
FASTER, WORKERS_FASTER, SPARK_SLOWER, SURVEY_SECONDS = 4, 1.7, 1.5, 5
SECONDS_OF_A_LOG = 20
READERS, TIMELINE = (str(ROOT / "benchmarks" / name) for name in ("readers.py", "timeline.py"))


def main() -> None:
    arguments = parse_arguments()
    if arguments.way:
        WAYS[arguments.way](*arguments.words)
        return
    names = ("darshan", "duckdb", "numpy", "pandas", "pyarrow", "pyspark")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"{machine()}\nPython {platform.python_version()}, {versions}")
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        number = make_logs(folder / "logs", arguments.logs)
        print(f"{number:,} logs of {size_mib(folder / 'logs'):,.0f} MiB\n")
        claims = [*extraction(folder, number), *workers(folder)]
        if not arguments.without_spark:
            claims += spark(folder)
        claims += survey(folder, arguments.jobs)
    print("\n".join(map(str, claims)))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--logs", type=int, default=20_000)
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--without-spark", action="store_true")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    return parser.parse_args()


def way(name: str, *words: str | Path, cores: str | None = None) -> Run:
    """Run a way of this file in a process of its own."""
    pinned = [] if cores is None else ["taskset", "--cpu-list", cores]
    command = [*pinned, sys.executable, __file__, "--way", name, *map(str, words)]
    return run_once(command)


# -- Logs --


def make_logs(folder: Path, number: int) -> int:
    """Write logs with job ids and months of their own; return how many."""
    genuine = readable(sorted(DATA.rglob("*.darshan")))
    for place in range(number - 1):
        source = genuine[place % len(genuine)]
        # A log every 20 minutes: 20,000 of them are nine months.
        content = with_job(source.read_bytes(), 100_000 + place, 1_735_689_600 + 1_200 * place)
        (folder / f"{place // 2_000:03}").mkdir(exist_ok=True)
        (folder / f"{place // 2_000:03}" / f"{place}.darshan").write_bytes(content)
    # With libdarshan-util.
    run_once([sys.executable, TIMELINE, "write", str(REQUESTS), str(folder / "large.darshan")])
    return number


def readable(logs: Sequence[Path]) -> list[Path]:
    """Leave out logs that PyDarshan, which may abort its process, or ioncast does not read."""
    return [log for log in logs if _is_read(log)]


def _is_read(log: Path) -> bool:
    command = [sys.executable, READERS, "to_df", "1", str(log)]
    try:
        read_log(log)
        done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS_OF_A_LOG)
    except (IoncastError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def with_job(log: bytes, job_id: int, start_seconds: int) -> bytes:
    """Give a log another job id and start, of a length of time as before."""
    header = parse_header(log, "the log")
    order = header.byte_order
    # Format 3.41 has nanoseconds after both times.
    has_nanoseconds = header.version >= "3.41"
    region = log[header.size : header.names.offset]
    job = bytearray(zlib.decompress(region.lstrip(b"\0")))
    numbers = list(struct.unpack_from(f"{order}{7 if has_nanoseconds else 5}q", job))
    start, end = (1, 3) if has_nanoseconds else (1, 2)
    numbers[end] += start_seconds - numbers[start]
    numbers[start], numbers[-1] = start_seconds, job_id
    struct.pack_into(f"{order}{len(numbers)}q", job, 0, *numbers)
    other = zlib.compress(bytes(job))
    slots, at = (64, 32) if header.size > 1_000 else (16, header.size - 16 * 17 - 4 * 16)
    places = struct.Struct(f"{order}{2 * (1 + slots)}Q")
    moved = len(other) - len(region)
    map_of_file = list(places.unpack_from(log, at))
    map_of_file[::2] = [offset + moved if offset else 0 for offset in map_of_file[::2]]
    head = log[:at] + places.pack(*map_of_file) + log[at + places.size : header.size]
    return head + other + log[header.names.offset :]


def size_mib(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / (1 << 20)


# -- Claims --


def extraction(folder: Path, number: int) -> Iterator[Claim]:
    logs = list(map(str, sorted((folder / "logs").rglob("*.darshan"))))
    names = folder / "names.txt"
    names.write_text("\n".join(logs))
    peer = run_once([sys.executable, READERS, "to_df", "1", *logs])
    own = way("tables", names, "0")
    with_findings = way("tables", names, "1")
    yield Claim(
        "jobs, files, phases, request_sizes: at least 4 times as fast as a loop of PyDarshan",
        f"{peer.cpu_seconds / own.cpu_seconds:.2f} times ({peer.cpu_seconds:.1f} s and"
        f" {own.cpu_seconds:.1f} s of CPU; {own.cpu_seconds / number * 1e3:.2f} ms a log)",
        peer.cpu_seconds >= FASTER * own.cpu_seconds,
    )
    yield Claim(
        "with findings",
        f"{peer.cpu_seconds / with_findings.cpu_seconds:.2f} times"
        f" ({with_findings.cpu_seconds / number * 1e3:.2f} ms a log)",
        None,
    )
    hours = 1e7 * with_findings.cpu_seconds / number / 3600
    yield Claim("ten million such logs, computed", f"{hours:.0f} hours of one core", None)


def workers(folder: Path) -> Iterator[Claim]:
    one = ingested(folder, "one", "0")
    two = ingested(folder, "two", "0,1")
    ratio = one.whole_seconds / two.whole_seconds
    yield Claim(
        "`ioncast ingest` with two processes instead of one: 1.7 times as fast",
        f"{ratio:.2f} times ({one.whole_seconds:.1f} s and {two.whole_seconds:.1f} s)",
        ratio >= WORKERS_FASTER,
    )
    yield Claim(
        f"the largest process stays below `--memory {MEMORY_MIB}`",
        f"{two.peak_kib / 1024:,.0f} MiB",
        two.peak_kib < MEMORY_MIB << 10,
    )
    stored = size_mib(folder / "two")
    yield Claim("the store", f"{stored:,.0f} MiB of {size_mib(folder / 'logs'):,.0f}", None)


def ingested(folder: Path, store: str, cores: str) -> Run:
    command = ["taskset", "--cpu-list", cores, sys.executable, "-m", "ioncast", "ingest"]
    words = ["--system", "x", "--store", str(folder / store), "--memory", str(MEMORY_MIB)]
    return run_once([*command, str(folder / "logs"), *words])


def spark(folder: Path) -> Iterator[Claim]:
    pool = json.loads(way("pool", folder / "logs", folder / "pool").output)
    by_spark = json.loads(way("spark", folder / "logs", folder / "spark").output)
    ratio = by_spark["seconds"] / pool["seconds"]
    yield Claim(
        "Spark, local[2], from submitted bundles to the last rename: at most 1.5 times the pool",
        f"{ratio:.2f} times ({by_spark['seconds']:.1f} s and {pool['seconds']:.1f} s)",
        ratio <= SPARK_SLOWER,
    )


def survey(folder: Path, jobs: int) -> Iterator[Claim]:
    store = folder / "large"
    make_store(store, jobs)
    run = run_once(
        [
            *("taskset", "--cpu-list", "0,1", sys.executable, "-m", "ioncast", "survey"),
            *("--store", str(store), "--format", "json"),
        ]
    )
    yield Claim(
        f"the survey of {jobs:,} jobs in {BUNDLES} bundles, 1 % twice: 5 s",
        f"{run.whole_seconds:.2f} s, {run.peak_kib / 1024:,.0f} MiB",
        run.whole_seconds <= SURVEY_SECONDS,
    )


def make_store(store: Path, jobs: int) -> None:
    """Write a store of made-up jobs with as many rows as a usual log of ../shared/data has."""
    random = np.random.default_rng(0)
    each = jobs // BUNDLES
    for bundle in range(BUNDLES):
        numbers = np.arange(bundle * each, (bundle + 1) * each)
        # The first logs of a bundle are the last ones of the bundle before.
        twice = round(each * TWICE_SHARE) if bundle else 0
        numbers[:twice] -= twice
        folder = store / f"bundle={digest(bundle)}"
        folder.mkdir(parents=True)
        for name, schema in SCHEMAS.items():
            rows = {"jobs": 1, "files": 3, "phases": 2, "findings": 1, "request_sizes": 3}
            count = rows.get(name, 0)
            table = made_up(schema, np.repeat(numbers, count), count, random)
            path = folder / f"{name}.parquet"
            pq.write_table(pa.table(table, schema=schema), path, compression="zstd")


def digest(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def made_up(
    schema: Any, numbers: np.ndarray[Any, Any], count: int, random: np.random.Generator
) -> dict[str, Any]:
    """Make columns of values of the right types for jobs with these numbers."""
    rows = len(numbers)
    words = {
        "month": np.array([f"2026-{month:02}" for month in range(1, 13)]),
        "api": np.array(["POSIX", "MPIIO", "STDIO"]),
        "operation": np.array(["read", "write"]),
        "program": np.array([f"program{number}" for number in range(200)]),
        "file_system": np.array(["lustre", "nfs"]),
        "code": np.array([f"P{number:02}" for number in range(1, 20)]),
        "level": np.array(["HIGH", "WARN"]),
        "bin": np.array(["0_100", "100_1K", "1K_10K", "10K_100K", "100K_1M", "1M_4M"]),
    }
    columns: dict[str, Any] = {}
    for field in schema:
        if field.name == "log":
            columns["log"] = list(map(digest, numbers.tolist()))
        elif field.name == "file":
            columns["file"] = [f"{number:016x}" for number in range(rows)]
        elif field.name == "extractor":
            columns["extractor"] = np.ones(rows, np.int64)
        elif field.name == "user_id":
            columns["user_id"] = random.integers(1_000, 1_500, rows)
        elif field.name in words:
            columns[field.name] = words[field.name][numbers % len(words[field.name])].tolist()
        elif field.name == "path":
            columns["path"] = [f"/scratch/darshan/2026/{number}.darshan" for number in numbers]
        elif field.type == pa.string():
            columns[field.name] = ["/scratch/name"] * rows
        elif field.type == pa.bool_():
            columns[field.name] = random.integers(0, 2, rows).astype(bool)
        elif field.type == pa.float64():
            columns[field.name] = random.exponential(100.0, rows)
        else:
            columns[field.name] = random.integers(0, 1 << 30, rows)
    return columns


# -- Ways, each in a process of its own --


def tables(names: str, findings: str) -> None:
    logs = Path(names).read_text().split("\n")
    for first in range(0, len(logs), 500):
        some = logs[first : first + 500]
        found = unique_tables_of(map(Source, some), findings=findings == "1", requests=False)
        if len(found["jobs"]) != len(some):
            sys.exit(f"{len(found['failed'])} logs have no rows")


def pool(logs: str, store: str) -> None:
    files, options = _given(logs, store)
    begin = time.monotonic()
    list(ingest(files, options, 2))
    print(json.dumps({"seconds": time.monotonic() - begin}))


def by_spark(logs: str, store: str) -> None:
    files, options = _given(logs, store)
    os.environ["PYSPARK_SUBMIT_ARGS"] = "--conf spark.ui.enabled=false pyspark-shell"
    with spark_session("local[2]") as session:
        begin = time.monotonic()
        ingest_with_spark(session, files, options)
        seconds = time.monotonic() - begin
    print(json.dumps({"seconds": seconds}))


def _given(logs: str, store: str) -> tuple[list[LogFile], IngestOptions]:
    shutil.rmtree(store, ignore_errors=True)
    files = [each for each in find_logs([logs]) if isinstance(each, LogFile)]
    return files, IngestOptions(open_store(store), "x", requests=False)


WAYS = {"tables": tables, "pool": pool, "spark": by_spark}

if __name__ == "__main__":
    main()
