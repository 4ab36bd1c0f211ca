"""Cost of a diagnosis in a store, and how many planted causes diagnoses name.

    python benchmarks/diagnosis.py [--jobs N] [--osts N] [--days N]

The store is made up: applications with 100 jobs each, of which an eighth has a planted cause
(tests/support/centre.py). The plain alternative answers one question of a diagnosis, the ratio of
the median bandwidth of the variant to that of the run, with one statement in DuckDB.

A second store has fewer jobs and the samples of OSTs each 5 s, which `ioncast servers import` reads
from a file of TOKIO for each day. Its plain alternative is the mean of the job's OSTs in its time.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measuring import ROOT, Claim, Run, floor, machine, run_once

sys.path.insert(0, str(ROOT))

from ioncast.diagnosis.diagnosing import History
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.schema import EXTRACTOR, SCHEMAS
from tests.support.centre import MIB, NEW_YEAR_US, VERDICTS, Centre, CentreRun, large

OF_VARIANT = 100
OF_BUNDLE = 20_000
# The runs of the centre start in so many days.
DAYS_OF_CENTRE = 120
JOBS_WITH_SAMPLES = 400
STEP_S, STEPS = 5, 17_280
# Others move so much on each OST of a run with busy servers.
OTHERS_MIB_S = 400.0
PLAIN = """
import duckdb, sys
print(duckdb.sql(f\"\"\"
with jobs as (select * from read_parquet('{sys.argv[1]}/bundle=*/jobs.parquet'))
select median(other.bandwidth_mib_s) / any_value(own.bandwidth_mib_s)
from jobs as own join jobs as other using (system, user_id, program, processes)
where own.job_id = {sys.argv[2]} and other.job_id <> own.job_id\"\"\").fetchall())
"""
PLAIN_SAMPLES = """
import duckdb, sys
bundles = f'{sys.argv[1]}/bundle=*'
[[log, start, seconds]] = duckdb.sql(f\"\"\"select log, start_us, run_seconds
from read_parquet('{bundles}/jobs.parquet') where job_id = {sys.argv[2]}\"\"\").fetchall()
osts = duckdb.sql(f\"\"\"select server::varchar from read_parquet('{bundles}/file_osts.parquet')
where log = '{log}'\"\"\").fetchall()
print(duckdb.sql(f\"\"\"select avg(read_bytes + written_bytes)
from read_parquet('{bundles}/server_samples.parquet')
where server in ({', '.join(repr(server) for [server] in osts)})
    and time_end_us > {start} and time_start_us < {start + seconds * 1e6:.0f}\"\"\").fetchall())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=100_000, help="0 leaves these costs out")
    parser.add_argument("--osts", type=int, default=250)
    parser.add_argument("--days", type=int, default=30, help="days of samples; 0 leaves them out")
    options = parser.parse_args()
    print(f"{machine()}\n")
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        if options.jobs:
            store = Path(name, "jobs")
            make_store(store, made_runs(options.jobs))
            claims += [*costs(store, options.jobs), *named()]
        if options.days:
            claims += costs_with_samples(Path(name, "samples"), options.osts, options.days)
    print("\n" + "\n".join(map(str, claims)))


def made_runs(jobs: int) -> list[CentreRun]:
    """Make up jobs without traces."""
    runs = large(variants=jobs // OF_VARIANT, of_variant=OF_VARIANT).runs
    return [replace(run, is_traced=False) for run in runs]


def make_store(store: Path, runs: Sequence[CentreRun], osts: int = 0) -> None:
    """Write a store of runs; with `osts`, their files have OSTs and the times of their writes."""
    for first in range(0, len(runs), OF_BUNDLE):
        of_bundle = runs[first : first + OF_BUNDLE]
        folder = store / f"bundle={first:064x}"
        folder.mkdir(parents=True)
        tables = Centre(of_bundle).tables()
        jobs_table = tables["jobs"]
        place = jobs_table.column_names.index("extractor")
        extractor = pa.array([EXTRACTOR] * len(jobs_table), pa.int64())
        tables["jobs"] = jobs_table.set_column(place, "extractor", extractor)
        if osts:
            tables |= on_servers(tables["files"], of_bundle, osts)
        for name, table in tables.items():
            pq.write_table(table, folder / f"{name}.parquet")


def on_servers(files: pa.Table, runs: Sequence[CentreRun], osts: int) -> dict[str, pa.Table]:
    """Place the file of each run on neighbouring OSTs; it is written from second 1 on."""
    ends = [1 + run.seconds for run in runs]
    for name, values in (
        ("first_write_seconds", [1.0] * len(runs)),
        ("last_write_seconds", ends),
    ):
        files = files.set_column(files.column_names.index(name), name, pa.array(values))
    places = [
        {"log": run.log, "file": file, "server": ost % osts, "share": 1 / run.stripe_count}
        for run, file in zip(runs, files["file"].to_pylist(), strict=True)
        for ost in range(run.number, run.number + run.stripe_count)
    ]
    phases = [
        {"log": run.log, "start_seconds": 1.0, "end_seconds": end}
        for run, end in zip(runs, ends, strict=True)
    ]
    return {
        "files": files,
        "file_osts": pa.Table.from_pylist(places, schema=SCHEMAS["file_osts"]),
        "phases": pa.Table.from_pylist(phases, schema=SCHEMAS["phases"]),
    }


def import_days(store: Path, runs: Sequence[CentreRun], osts: int, days: Iterable[int]) -> float:
    """Import days of samples: the bytes of all runs, and of others; return the seconds of CPU."""
    random = np.random.default_rng(5)
    seconds = 0.0
    for day in days:
        first_s = NEW_YEAR_US // 1_000_000 + day * STEPS * STEP_S
        written = random.gamma(2.0, 20 * MIB, (STEPS, osts))
        for run in runs:
            start = (run.start_us / 1e6 + 1 - first_s) / STEP_S
            steps = np.arange(max(int(start), 0), min(int(start + run.seconds / STEP_S) + 1, STEPS))
            if len(steps):
                servers = np.arange(run.number, run.number + run.stripe_count) % osts
                moved = run.bytes / run.stripe_count / run.seconds * STEP_S
                if run.planted == "busy servers":
                    moved += OTHERS_MIB_S * MIB * STEP_S
                written[np.ix_(steps, servers)] += moved
        path = store / "day.hdf5"
        with h5py.File(path, "w") as file:
            group = file.create_group("datatargets")
            group["timestamps"] = first_s + np.arange(STEPS) * STEP_S
            for name, cells in (("readbytes", written[::-1] / 3), ("writebytes", written)):
                group[name] = cells
                group[name].attrs["columns"] = [f"scratch-OST{n:04x}" for n in range(osts)]
        # The peak of later processes is at least that of this one, so another one imports.
        words = ["servers", "import", str(path), "--system", "here", "--store", str(store)]
        seconds += run_once([sys.executable, "-m", "ioncast", *words]).cpu_seconds
        path.unlink()
    return seconds


def costs(store: Path, jobs: int) -> Iterator[Claim]:
    slow_job = str(jobs // 2 + 3)
    ways = {
        "the plain ratio of one job, in DuckDB": [
            sys.executable,
            "-c",
            PLAIN,
            str(store),
            slow_job,
        ],
        "`diagnose JOB`": diagnose(store, slow_job),
        "`diagnose`, all jobs": diagnose(store, of_format="csv"),
        "`diagnose --servers`": diagnose(store, "--servers", of_format="table"),
    }
    runs = {}
    print(f"| {jobs:,} jobs | s | s of CPU | MiB |\n| --- | ---: | ---: | ---: |")
    for name, words in ways.items():
        runs[name] = run_once(words)
        print_cost(name, runs[name])
    slow = runs["`diagnose`, all jobs"].output.count("\n") - 1
    yield Claim("slow runs of all jobs (planted: 12.5 %)", f"{slow:,} of {jobs:,}", None)


def costs_with_samples(store: Path, osts: int, days: int) -> Iterator[Claim]:
    """Diagnose a run of the first half of the days with these samples, and with all of them."""
    runs = [
        replace(run, day=run.day * days / DAYS_OF_CENTRE) for run in made_runs(JOBS_WITH_SAMPLES)
    ]
    make_store(store, runs, osts)
    slow = [run for run in runs if run.planted == "busy servers" and run.day < days / 2]
    job = max(slow, key=lambda run: run.day).number
    ways = {
        "the plain mean of its OSTs, in DuckDB": [
            *(sys.executable, "-c", PLAIN_SAMPLES, str(store), str(job))
        ],
        "`diagnose JOB`": diagnose(store, str(job)),
    }
    print(f"\n{floor()}\n\n| {len(runs):,} jobs, {osts} OSTs | samples | s | s of CPU | MiB |")
    print("| --- | ---: | ---: | ---: | ---: |", flush=True)
    seconds, measured = 0.0, []
    half = days // 2
    for part in (range(half), range(half, days)):
        seconds += import_days(store, runs, osts, part)
        samples = (part.stop) * STEPS * osts
        measured.append({name: run_once(words) for name, words in ways.items()})
        for name, run in measured[-1].items():
            print_cost(name, run, f"{samples:,}")
    every = run_once(diagnose(store, of_format="csv"))
    print_cost("`diagnose`, all jobs", every, f"{samples:,}")
    for name in ways:
        costs_of_parts = [(run[name].cpu_seconds, run[name].peak_kib / 1024) for run in measured]
        # A cost grows in proportion to the days beyond those that both stores have.
        cpu_s, mib = (
            more + max(more - fewer, 0.0) * (365 - days) / (days - half)
            for fewer, more in zip(*costs_of_parts, strict=True)
        )
        year = f"{365 * STEPS * osts:,}"
        print(f"| {name}, computed for a year | {year} | | {cpu_s:.1f} | {mib:,.0f} |")
    stored = sum(path.stat().st_size for path in store.glob("*/server_samples.parquet"))
    print(
        f"\n{samples:,} samples take {stored / MIB:,.0f} MiB, and {seconds:.0f} s of CPU to import."
    )
    [diagnosis] = json.loads(measured[-1]["`diagnose JOB`"].output)
    verdict = diagnosis["verdict"]
    yield Claim("the planted busy servers are named", verdict, verdict == "system")
    rows = every.output.splitlines()
    verdicts = Counter(row["verdict"] for row in csv.DictReader(rows))
    busy = sum(run.planted == "busy servers" for run in runs)
    yield Claim(f"verdicts, {busy} runs with busy servers", str(dict(verdicts)), None)


def diagnose(store: Path, *words: str, of_format: str = "json") -> list[str]:
    command = [sys.executable, "-m", "ioncast", "diagnose", *words]
    return [*command, "--store", str(store), "--format", of_format]


def print_cost(name: str, run: Run, samples: str = "") -> None:
    cells = [name, *filter(None, [samples])]
    cells += [f"{run.whole_seconds:.1f}", f"{run.cpu_seconds:.1f}", f"{run.peak_kib / 1024:,.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def named() -> Iterator[Claim]:
    """Count the planted causes that are named."""
    centre, query = large(), query_of("variant-runs")
    counts: Counter[tuple[str, str]] = Counter()
    with asking(centre.tables()) as ask:
        history = History(ask(query, query.values({})))
        for run in centre.runs:
            found = history.diagnose(
                run.log, ask_run=ask, ask_others=ask, evidence=centre.servers_of
            )
            counts[run.planted, found.judgement.verdict] += 1
    total = Counter({planted: 0 for planted, _ in counts})
    for (planted, _), number in counts.items():
        total[planted] += number
    print("\n| planted | runs | right verdict |\n| --- | ---: | ---: |")
    for planted, number in total.items():
        right = counts[planted, VERDICTS[planted]]
        print(f"| {planted or 'nothing'} | {number} | {right} |")
    causes = [each for each in total if VERDICTS[each] not in ("normal", "unknown")]
    right, of = (
        sum(c) for c in ([counts[e, VERDICTS[e]] for e in causes], [total[e] for e in causes])
    )
    yield Claim("planted causes named, at least 90 %", f"{right} of {of}", right >= 0.9 * of)
    blamed = counts["idle servers", "system"]
    yield Claim(
        "slow runs with idle servers called system, at most 5 %",
        f"{blamed} of {total['idle servers']}",
        blamed <= 0.05 * total["idle servers"],
    )


if __name__ == "__main__":
    main()
