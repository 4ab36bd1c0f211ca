"""Cost of the tables and checks of a log: ioncast beside Drishti and PyDarshan's summary.

    python benchmarks/insights.py [--drishti PROGRAM] [--repeat N] [--json FILE]

The programs take turns, so that a slow minute of the machine affects all of them. The clock runs
from the start of a program to its end. Every goal is a ratio of shortest times. A missed goal does
not change the exit code.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from measuring import DATA, ROOT, Claim, floor, ioncast, machine, run_once

sys.path.insert(0, str(ROOT))

from experiments.applications.darshan_writer import Dxt, Record, write_log

LIVE = DATA / "live"
LARGE = DATA / "runs/logs/large-64k-records.darshan"
PROCESSES = 64
PROCESSES_PER_NODE = 8
REQUESTS = 600_000 // PROCESSES
REQUEST_BYTES = 1 << 20
# PyDarshan's summary draws with these.
SUMMARY_NEEDS = ("darshan", "mako", "matplotlib", "seaborn")
LABELS = {
    "ioncast": "`ioncast characterize` and `ioncast check`",
    "drishti": "`drishti`",
    "summary": "`python -m darshan summary`",
}

Way = list[list[str]]
"""Commands that run one after the other; the log's path is left out at their end."""


@dataclass(frozen=True)
class Cost:
    """The time of a way, and the highest peak of its processes."""

    seconds: float
    peak_mib: float


def main() -> None:
    arguments = parse_arguments()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        ways = available_ways(arguments.drishti, Path(folder))
        os.chdir(folder)
        print(floor())
        # Drishti asks `sacct`, if there is one, which may wait for a server.
        os.environ["PATH"] = folder
        found = [
            *small_logs(ways, arguments.repeat),
            *large_log(ways, arguments.repeat),
            *traced_log(ways, Path(folder), arguments.repeat),
        ]
    print("\nGoals", *found, sep="\n")
    if arguments.json:
        content = {"machine": machine(), "goals": list(map(asdict, found))}
        arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--drishti",
        default=shutil.which("drishti"),
        metavar="PROGRAM",
        help="the program drishti, by default the one on PATH",
    )
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns of each (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the goals there too")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    if not LARGE.is_file():
        parser.error(f"the logs of {DATA} are missing")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    if arguments.json:
        arguments.json = arguments.json.absolute()
    return arguments


def available_ways(drishti: str | None, folder: Path) -> dict[str, Way]:
    """The ways whose programs are installed; a sentence for each of the others."""
    ways = {"ioncast": [[str(ioncast()), "characterize"], [str(ioncast()), "check"]]}
    if drishti:
        ways["drishti"] = [[str(Path(drishti).absolute())]]
    else:
        print("drishti is not on PATH, and --drishti does not name it: its goals are skipped")
    missing = [name for name in SUMMARY_NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{', '.join(missing)} missing: the goals with PyDarshan's summary are skipped")
    else:
        report = ["--output", str(folder / "report.html")]
        ways["summary"] = [[sys.executable, "-W", "ignore", "-m", "darshan", "summary", *report]]
    return ways


def small_logs(ways: Mapping[str, Way], repeat: int) -> Iterator[Claim]:
    logs = sorted(LIVE.glob("*.darshan"))
    costs = {name: [] for name in ways}
    for log in logs:
        for name, cost in in_turns(ways, log, repeat).items():
            costs[name].append(cost)
    print(f"\n{len(logs)} logs of real runs, medians of the shortest of {repeat} times\n")
    ratios = {
        name: statistics.median(
            theirs.seconds / ours.seconds
            for theirs, ours in zip(found, costs["ioncast"], strict=True)
        )
        for name, found in costs.items()
    }
    middle = {
        name: Cost(
            statistics.median(cost.seconds for cost in found), max(c.peak_mib for c in found)
        )
        for name, found in costs.items()
    }
    print_table(middle, ratios)
    yield from at_least("small logs", 4, "drishti", ratios)
    yield from at_least("small logs", 15, "summary", ratios)


def large_log(ways: Mapping[str, Way], repeat: int) -> Iterator[Claim]:
    """Read the log of 64,000 records. PyDarshan's summary is not asked for it."""
    asked = {name: way for name, way in ways.items() if name != "summary"}
    ratios = compared("64,000 records", asked, LARGE, repeat)
    yield from at_least("64,000 records", 40, "drishti", ratios)


def traced_log(ways: Mapping[str, Way], folder: Path, repeat: int) -> Iterator[Claim]:
    """Read a log with traced requests; Drishti and, by default, the summary leave them out."""
    log = write_traced_log(folder / "traced.darshan")
    asked = {name: way for name, way in ways.items() if name != "drishti"}
    if "summary" in asked:
        asked["summary"] = [[*asked["summary"][0], "--enable_dxt_heatmap"]]
    title = f"{PROCESSES * REQUESTS:,} traced requests, {log.stat().st_size / 2**20:.1f} MiB"
    ratios = compared(title, asked, log, repeat)
    yield from at_least(title, 15, "summary", ratios)


def compared(title: str, ways: Mapping[str, Way], log: Path, repeat: int) -> dict[str, float]:
    costs = in_turns(ways, log, repeat)
    ratios = {name: cost.seconds / costs["ioncast"].seconds for name, cost in costs.items()}
    print(f"\n{title}, the shortest of {repeat} times\n")
    print_table(costs, ratios)
    return ratios


def in_turns(ways: Mapping[str, Way], log: Path, repeat: int) -> dict[str, Cost]:
    """The shortest time and the highest peak of each way."""
    turns = [{name: cost_of(way, log) for name, way in ways.items()} for _ in range(repeat)]
    return {
        name: Cost(
            min(turn[name].seconds for turn in turns), max(turn[name].peak_mib for turn in turns)
        )
        for name in ways
    }


def cost_of(way: Way, log: Path) -> Cost:
    runs = [run_once([*command, str(log)]) for command in way]
    return Cost(sum(run.whole_seconds for run in runs), max(run.peak_kib for run in runs) / 1024)


def print_table(costs: Mapping[str, Cost], ratios: Mapping[str, float]) -> None:
    print("| way | s | ratio | peak MiB |\n| --- | ---: | ---: | ---: |")
    for name, cost in costs.items():
        print(f"| {LABELS[name]} | {cost.seconds:.3f} | {ratios[name]:.1f} | {cost.peak_mib:.0f} |")


def at_least(what: str, least: float, other: str, ratios: Mapping[str, float]) -> Iterator[Claim]:
    if other in ratios:
        ratio = ratios[other]
        text = f"{what}: at least {least:g} × as fast as {LABELS[other]}"
        yield Claim(text, f"{ratio:.1f} ×", ratio >= least)


def write_traced_log(path: Path) -> Path:
    """Write a log of processes that each write a file, and whose requests are all traced."""
    rng = np.random.default_rng(19)
    files = [traced_file(rank, rng) for rank in range(PROCESSES)]
    return write_log(
        path,
        nprocs=PROCESSES,
        records=[record for record, _ in files],
        dxt=[trace for _, trace in files],
    )


def traced_file(rank: int, rng: np.random.Generator) -> tuple[Record, Dxt]:
    path = f"/scratch/file{rank}"
    start = np.arange(REQUESTS) * 0.01 + rng.random(REQUESTS) * 0.005
    end = start + rng.random(REQUESTS) * 0.005
    offsets = range(0, REQUESTS * REQUEST_BYTES, REQUEST_BYTES)
    record = Record(
        "POSIX",
        path,
        rank,
        {
            "POSIX_OPENS": 1,
            "POSIX_WRITES": REQUESTS,
            "POSIX_BYTES_WRITTEN": REQUESTS * REQUEST_BYTES,
            "POSIX_MAX_BYTE_WRITTEN": REQUESTS * REQUEST_BYTES - 1,
            "POSIX_CONSEC_WRITES": REQUESTS - 1,
            "POSIX_SEQ_WRITES": REQUESTS - 1,
            "POSIX_SIZE_WRITE_100K_1M": REQUESTS,
            "POSIX_ACCESS1_ACCESS": REQUEST_BYTES,
            "POSIX_ACCESS1_COUNT": REQUESTS,
            "POSIX_FILE_ALIGNMENT": 4096,
            "POSIX_MEM_ALIGNMENT": 8,
        },
        {
            "POSIX_F_OPEN_START_TIMESTAMP": 0.0,
            "POSIX_F_OPEN_END_TIMESTAMP": 0.0,
            "POSIX_F_WRITE_START_TIMESTAMP": float(start[0]),
            "POSIX_F_WRITE_END_TIMESTAMP": float(end.max()),
            "POSIX_F_CLOSE_START_TIMESTAMP": float(end.max()),
            "POSIX_F_CLOSE_END_TIMESTAMP": float(end.max()),
            "POSIX_F_WRITE_TIME": float((end - start).sum()),
        },
    )
    writes = [
        (offset, REQUEST_BYTES, *times)
        for offset, *times in zip(offsets, start.tolist(), end.tolist(), strict=True)
    ]
    return record, Dxt("DXT_POSIX", path, rank, f"node{rank // PROCESSES_PER_NODE:04}", writes)


if __name__ == "__main__":
    main()
