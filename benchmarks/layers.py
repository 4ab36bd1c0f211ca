"""Traced POSIX requests with their MPI-IO calls and servers, beside pandas and a plain loop.

    python benchmarks/layers.py [--requests N,N] [--repeat N]

Traces are made up in memory. Each measurement is a new process, so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from time import monotonic, process_time

import numpy as np
import pandas as pd
from measuring import ROOT, Claim, machine

from ioncast.warehouse.arrays import INDEX, table_of
from ioncast.warehouse.request_rows import request_rows, server_rows
from ioncast_base.kinds import APIS, OPERATIONS
from summario.lustre_components import END_OF_FILE, LustreComponents
from summario.reading.operations import Operations
from summario.requests.calls import join_calls

PROCESSES, FRAGMENTS, FILE = 1_024, 4, 7
STRIPES, STRIPE_BYTES = 8, 1 << 20
GOAL_REQUESTS, JOIN_SECONDS, MOST_GROWTH = 1_000_000, 1, 12
START, JOIN, ROWS, PANDAS, LOOP = "the trace", "join", "rows", "pandas", "loop"
NAMES = {
    START: "the trace alone",
    JOIN: "`join_calls`",
    ROWS: "`join_calls`, and the rows of `requests` and `request_servers`",
    PANDAS: "`pandas.merge_asof` by process, without fragments and instances",
    LOOP: "a loop with `bisect` for each process, likewise",
}
# A loop over more takes minutes.
LARGEST = {LOOP: 1_000_000}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--requests",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[100_000, 1_000_000, 10_000_000],
        metavar="N,N",
        help="requests of each trace (100000,1000000,10000000)",
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="turns of each (3)")
    arguments = parser.parse_args()
    print(f"{machine()}\nnumpy {np.__version__}, pandas {pd.__version__}")
    best = {}
    for requests in arguments.requests:
        ways = [way for way in NAMES if requests <= LARGEST.get(way, requests)]
        turns = [{way: measured(way, requests) for way in ways} for _ in range(arguments.repeat)]
        best[requests] = {
            way: {key: min(turn[way][key] for turn in turns) for key in ("seconds", "cpu", "peak")}
            for way in ways
        }
        if len({turn[way]["joined"] for turn in turns for way in ways if way != START}) > 1:
            sys.exit("the ways join different numbers of requests")
        print("\n".join(report(requests, best[requests])))
    print("\nGoals", *goals(best), sep="\n")


def measured(way: str, requests: int) -> dict[str, float]:
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, __file__, "part", way, str(requests)],
        check=True,
        capture_output=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def report(requests: int, best: dict[str, dict[str, float]]) -> Iterator[str]:
    yield f"\n{requests:,} requests, load average {os.getloadavg()[0]:.1f}\n"
    yield "| way | s | s of CPU | ratio of CPU | bytes a request |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for way, cost in best.items():
        if way != START:
            yield (
                f"| {NAMES[way]} | {cost['seconds']:.2f} | {cost['cpu']:.2f}"
                f" | {cost['cpu'] / best[JOIN]['cpu']:.2f}"
                f" | {(cost['peak'] - best[START]['peak']) / requests:,.0f} |"
            )


def goals(best: dict[int, dict[str, dict[str, float]]]) -> Iterator[Claim]:
    if GOAL_REQUESTS not in best:
        return
    cost = best[GOAL_REQUESTS]
    text = f"{GOAL_REQUESTS:,} requests are joined within {JOIN_SECONDS} s"
    yield Claim(text, f"{cost[JOIN]['seconds']:.2f} s", cost[JOIN]["seconds"] <= JOIN_SECONDS)
    ratio = cost[PANDAS]["cpu"] / cost[JOIN]["cpu"]
    yield Claim("no slower than pandas", f"{ratio:.2f} x as fast", ratio >= 1)
    if 10 * GOAL_REQUESTS in best:
        growth = best[10 * GOAL_REQUESTS][JOIN]["cpu"] / cost[JOIN]["cpu"]
        text = f"ten times the requests take at most {MOST_GROWTH} times the CPU time"
        yield Claim(text, f"{growth:.1f} x", growth <= MOST_GROWTH)


def part(way: str, requests: str) -> None:
    """Run a way in this process."""
    trace = made_up(int(requests))
    start, cpu = monotonic(), process_time()
    joined = WAYS[way](trace)
    cost = {"seconds": monotonic() - start, "cpu": process_time() - cpu, "joined": joined}
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({**cost, "peak": peak}))


def made_up(requests: int) -> Operations:
    """Make the trace of one file: four requests a call, and some that end after it."""
    rng = np.random.default_rng(17)
    calls = requests // (FRAGMENTS + 1) // PROCESSES
    rank = np.repeat(np.arange(PROCESSES), calls)
    start = np.tile(np.arange(calls) * 1.0, PROCESSES) + 0.2 * rng.random(len(rank))
    place = np.arange(len(rank)) * FRAGMENTS
    below = (start[:, np.newaxis] + 0.01 + 0.18 * np.arange(FRAGMENTS)).ravel()
    count = len(rank) * FRAGMENTS
    return Operations(
        api=np.repeat([APIS.index("POSIX"), APIS.index("MPIIO")], (count, len(rank))).astype("i1"),
        operation=np.full(count + len(rank), OPERATIONS.index("write"), np.int8),
        file_id=np.full(count + len(rank), FILE, np.uint64),
        rank=np.concatenate([np.repeat(rank, FRAGMENTS), rank]),
        offset=np.concatenate([np.arange(count), place]) * STRIPE_BYTES,
        length=np.repeat([STRIPE_BYTES, FRAGMENTS * STRIPE_BYTES], (count, len(rank))),
        start_seconds=np.concatenate([below, start]),
        # Four requests of a thousand end after their call.
        end_seconds=np.concatenate([below + 0.1 + (rng.random(count) < 0.004), start + 0.7]),
        host=np.zeros(count + len(rank), np.int32),
        hosts=("n0",),
    )


def joining(trace: Operations) -> int:
    calls = join_calls(trace, [])
    return int(np.count_nonzero(calls.fragment >= 0))


def making_rows(trace: Operations) -> int:
    calls = join_calls(trace, [])
    none = np.zeros(1, np.int64)
    of_requests = {INDEX: np.zeros(len(trace)), **request_rows(trace, calls)}
    tables = [table_of("requests", of_requests, none)]
    tables += [
        table_of(name, {INDEX: np.zeros(len(columns["bytes"])), **columns}, none)
        for name, columns in server_rows(layout(), trace, of_requests=True)
    ]
    if sum(map(len, tables)) < len(trace):
        sys.exit("rows are missing")
    return int(np.count_nonzero(calls.fragment >= 0))


def layout() -> LustreComponents:
    one, none = np.ones(1, np.int64), np.zeros(1, np.int64)
    return LustreComponents(
        file_id=np.array([FILE], np.uint64),
        stripe_size_bytes=STRIPE_BYTES * one,
        stripe_count=STRIPES * one,
        extent_end=END_OF_FILE * one,
        ost_ids=np.arange(STRIPES),
        pools=("",),
        warnings=(),
        **dict.fromkeys(("rank", "component", "extent_start", "pattern", "flags"), none),
        **dict.fromkeys(("mirror_id", "pool", "first_ost", "osts", "mdts"), none),
        stripe_offset=none,
    )


def by_pandas(trace: Operations) -> int:
    frame = pd.DataFrame(
        {"rank": trace.rank, "start": trace.start_seconds, "end": trace.end_seconds}
    )
    of_posix = trace.api == APIS.index("POSIX")
    calls = frame[~of_posix].sort_values("start")
    requests = frame[of_posix].sort_values("start")
    found = pd.merge_asof(requests, calls, on="start", by="rank", suffixes=("", "_of_call"))
    return int((found["end"] <= found["end_of_call"]).sum())


def by_loop(trace: Operations) -> int:
    calls: dict[int, list[tuple[float, float]]] = {}
    posix = APIS.index("POSIX")
    rows = list(
        zip(
            trace.api.tolist(),
            trace.rank.tolist(),
            trace.start_seconds.tolist(),
            trace.end_seconds.tolist(),
            strict=True,
        )
    )
    for api, rank, start, end in rows:
        if api != posix:
            calls.setdefault(rank, []).append((start, end))
    for of_rank in calls.values():
        of_rank.sort()
    joined = 0
    for api, rank, start, end in rows:
        if api == posix:
            place = bisect_right(calls[rank], (start, np.inf)) - 1
            joined += place >= 0 and end <= calls[rank][place][1]
    return joined


WAYS: dict[str, Callable[[Operations], int]] = {
    START: len,
    JOIN: joining,
    ROWS: making_rows,
    PANDAS: by_pandas,
    LOOP: by_loop,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["part"]:
        part(*sys.argv[2:])
    else:
        main()
