"""Cost of a diagnosis in a store, and how many planted causes diagnoses name.

    python benchmarks/diagnosis.py [--jobs N]

The store is made up: applications with 100 jobs each, of which an eighth has a planted cause
(tests/support/centre.py). The plain alternative answers one question of a diagnosis, the ratio of
the median bandwidth of the variant to that of the run, with one statement in DuckDB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from measuring import ROOT, Claim, machine, run_once

sys.path.insert(0, str(ROOT))

from ioncast.diagnosis.diagnosing import History
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import query_of
from tests.support.centre import VERDICTS, Centre, large, put_bundle

OF_VARIANT = 100
OF_BUNDLE = 20_000
PLAIN = """
import duckdb, sys
print(duckdb.sql(f\"\"\"
with jobs as (select * from read_parquet('{sys.argv[1]}/bundle=*/jobs.parquet'))
select median(other.bandwidth_mib_s) / any_value(own.bandwidth_mib_s)
from jobs as own join jobs as other using (system, user_id, program, processes)
where own.job_id = {sys.argv[2]} and other.job_id <> own.job_id\"\"\").fetchall())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    jobs = parser.parse_args().jobs
    print(f"{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        store = Path(name)
        make_store(store, jobs)
        claims = [*costs(store, jobs), *named()]
    print("\n" + "\n".join(map(str, claims)))


def make_store(store: Path, jobs: int) -> None:
    """Write a store whose jobs have no traces."""
    made = 0
    while made < jobs:
        number = min(OF_BUNDLE, jobs - made)
        runs = large(seed=made, variants=number // OF_VARIANT, of_variant=OF_VARIANT).runs
        moved = [
            replace(
                run,
                number=made + run.number,
                variant=made // OF_VARIANT + run.variant,
                is_traced=False,
            )
            for run in runs
        ]
        put_bundle(store, f"{made:064x}", Centre(moved).tables())
        made += number


def costs(store: Path, jobs: int) -> Iterator[Claim]:
    command = [sys.executable, "-m", "ioncast", "diagnose"]
    slow_job = str(jobs // 2 + 3)
    ways = {
        "the plain ratio of one job, in DuckDB": [
            sys.executable,
            "-c",
            PLAIN,
            str(store),
            slow_job,
        ],
        "`diagnose JOB`": [*command, slow_job, "--store", str(store), "--format", "json"],
        "`diagnose`, all jobs": [*command, "--store", str(store), "--format", "csv"],
        "`diagnose --servers`": [*command, "--servers", "--store", str(store)],
    }
    runs = {}
    print(f"| {jobs:,} jobs | s | s of CPU | MiB |\n| --- | ---: | ---: | ---: |")
    for name, words in ways.items():
        runs[name] = run = run_once(words)
        print(
            f"| {name} | {run.whole_seconds:.1f} | {run.cpu_seconds:.1f}"
            f" | {run.peak_kib / 1024:,.0f} |",
            flush=True,
        )
    slow = runs["`diagnose`, all jobs"].output.count("\n") - 1
    yield Claim("slow runs of all jobs (planted: 12.5 %)", f"{slow:,} of {jobs:,}", None)


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
