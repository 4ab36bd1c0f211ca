"""The worth of I/O nodes for a large queue, beside replays of the same queue without intervals.

    python benchmarks/worth.py [--jobs N]

The logs are the shipped ones of eight applications, again and again with other job numbers, times,
users and bytes. The queue keeps four fifths of a machine of 128 compute nodes busy.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from measuring import ROOT, Claim, Run, machine, run_once

from experiments.scheduling.queues import poisson_queue
from ioncast.warehouse.bundles import new_bundle
from ioncast.warehouse.copies import unique_tables_of
from summario.reading.sources import find_sources

DATA = ROOT / "experiments" / "data"
NODES, POOLS, USERS = 128, (8, 16), 50
SECONDS_OF_A_POOL = 60
START = datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000, metavar="N", help="jobs (100000)")
    jobs = parser.parse_args().jobs
    print(f"{machine()}, load average {os.getloadavg()[0]:.1f}\n{jobs:,} jobs")
    with tempfile.TemporaryDirectory() as folder:
        print(*claims(Path(folder), jobs), sep="\n")


def claims(folder: Path, jobs: int) -> Iterator[Claim]:
    make_inputs(folder, jobs)
    database = str(folder / "bench.sqlite")
    for study in ("testbed", "periodic", "applications"):
        rows = str(DATA / study / "benchmarks.csv")
        ioncast("bench", "import", rows, "--system", "here", "--db", database)
    words = (
        *("worth", "--store", str(folder / "store"), "--jobs", str(folder / "queue.txt")),
        *("--db", database, "--system", "here", "--nodes", str(NODES), "--format", "json"),
    )
    # The model is fitted once, and stored.
    ioncast(*words, "--pool", str(POOLS[0]))
    one = ioncast(*words, "--pool", str(POOLS[0]))
    two = ioncast(*words, "--pool", ",".join(map(str, POOLS)))
    peer = ioncast(
        *("experiment", "scheduling", str(folder / "queue.txt"), "--nodes", str(NODES)),
        *("--pool", str(POOLS[0]), "--policy", "direct", "--policy", "static", "--policy", "mckp"),
    )
    whole = f"{one.whole_seconds:.1f} s, {one.peak_kib / 1024:,.0f} MiB"
    yield Claim("reading, predicting and one pool", whole, None)
    seconds = two.whole_seconds - one.whole_seconds
    text = f"another pool within {SECONDS_OF_A_POOL} s"
    yield Claim(text, f"{seconds:.1f} s", seconds <= SECONDS_OF_A_POOL)
    ratio = one.whole_seconds / peer.whole_seconds
    text = "`experiment scheduling`, three policies on the same queue, without intervals"
    yield Claim(text, f"{peer.whole_seconds:.1f} s, {ratio:.1f} times faster", None)


def ioncast(*words: str) -> Run:
    return run_once([sys.executable, "-m", "ioncast", *words])


def make_inputs(folder: Path, jobs: int) -> None:
    """Write a store with a log of each job, and the output of sacct."""
    logs = [str(path) for path in sorted(DATA.glob("*/logs/*ionodes0.darshan"))]
    tables = unique_tables_of(find_sources(logs), system="here", findings=False)
    rows = tables["jobs"].to_pylist()
    random = np.random.default_rng(0)
    queue = poisson_queue(jobs, load=0.8, machine_nodes=NODES, seed=0)
    columns: dict[str, list[object]] = {name: [] for name in tables["jobs"].column_names}
    phases = []
    lines = ["JobID|User|JobName|Submit|Start|End|NNodes|AllocCPUS|Timelimit"]
    store = folder / "store"
    store.mkdir()
    of_log = {
        row["log"]: tables["phases"].filter(pc.equal(tables["phases"]["log"], row["log"]))
        for row in rows
    }
    for number, job in enumerate(queue):
        row = rows[number % len(rows)]
        log, factor = hashlib.sha256(b"%d" % number).hexdigest(), random.uniform(0.9, 1.1)
        start = START + job.submit_s
        changed = {
            "log": log,
            "job_id": number,
            "user_id": int(random.integers(USERS)),
            "start_us": int(start * 1e6),
            "run_seconds": job.run_s,
            "bandwidth_mib_s": row["bandwidth_mib_s"] * factor,
        }
        for name, value in (row | changed).items():
            columns[name].append(value)
        own = of_log[row["log"]]
        phases.append(own.set_column(0, "log", pa.array([log] * len(own), pa.string())))
        moments = "|".join(
            f"{datetime.fromtimestamp(each, timezone.utc):%Y-%m-%dT%H:%M:%S}"
            for each in (start, start, start + max(job.run_s, 1))
        )
        lines.append(f"{number}|user|run|{moments}|{job.nodes}|{32 * job.nodes}|1-00:00:00")
    with new_bundle(store) as bundle:
        bundle.write(
            {
                "jobs": pa.table(columns, schema=tables["jobs"].schema),
                "phases": pa.concat_tables(phases),
            }
        )
        bundle.finished("here", requests=False)
    (folder / "queue.txt").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
