"""Cost of reading Darshan logs: ioncast compared with PyDarshan and darshan-parser.

    python benchmarks/extraction.py [--repeat N] [--json FILE]

The ways to read take turns, so that a slow minute of the machine affects all of them. Every goal is
a ratio of shortest times. A missed goal does not change the exit code.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import os
import platform
import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from measuring import DATA, ROOT, Claim, ioncast, machine, run_once

from summario.reading.pydarshan import MissingPyDarshanError, library_path

LIVE = DATA / "live"
LARGE = DATA / "runs/logs/large-64k-records.darshan"
READERS = Path(__file__).with_name("readers.py")
PACKAGES = ("ioncast", "darshan", "numpy", "pandas")
MANY = 1000
# One log of live/ is larger: it has the records of 900 files.
SMALL_BYTES = 10_000
MOST_MB = 200
# Times that a process reads each log, in one turn.
READINGS = 5
LABELS = {
    "numpy": "PyDarshan, numpy records",
    "summario": "summario",
    "phases": "summario with phases",
    "to_df": "PyDarshan, read_all and to_df()",
}


@dataclass(frozen=True)
class Way:
    """Cost of reading some logs in one way: what `readers.py` prints."""

    shortest: list[float]
    cpu_seconds: float
    records: list[int]


def main() -> None:
    arguments = parse_arguments()
    try:
        library_path("this benchmark")
    except MissingPyDarshanError as error:
        sys.exit(str(error))
    print(f"{machine()}\n{packages()}")
    parser = shutil.which("darshan-parser")
    if parser is None:
        print("darshan-parser is not on PATH: its goals are skipped")
    found = [
        *small_logs(arguments.repeat),
        *large_log(arguments.repeat, parser),
        *many_logs(arguments.repeat, parser),
    ]
    print("\nGoals", *found, sep="\n")
    if arguments.json:
        content = {"machine": machine(), "packages": packages(), "goals": list(map(asdict, found))}
        arguments.json.write_text(json.dumps(content, indent=1), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare ways to read Darshan logs.")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="turns of each way (5)")
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
    return arguments


def small_logs(repeat: int) -> Iterator[Claim]:
    """Read the logs of real runs, each by a process that has read others before."""
    logs = sorted([*LIVE.glob("*.darshan"), *ROOT.glob("experiments/data/*/logs/*.darshan")])
    ways = {name: read_by(name, READINGS, logs) for name in LABELS}
    for _, name in itertools.product(range(repeat - 1), LABELS):
        ways[name] = better(ways[name], read_by(name, READINGS, logs))
    disagreeing = [name for name in LABELS if ways[name].records != ways["summario"].records]
    print(f"\n{len(logs)} logs of real runs, medians of the shortest times\n")
    print("| way of reading | ms | ratio |\n| --- | ---: | ---: |")
    ratios = {}
    for name, label in LABELS.items():
        own, base = ways[name].shortest, ways["numpy"].shortest
        ratios[name] = statistics.median(a / b for a, b in zip(own, base, strict=True))
        print(f"| {label} | {1e3 * statistics.median(own):.3f} | {ratios[name]:.2f} |")
    for name in disagreeing:
        print(f"\nNot comparable: {LABELS[name]} found other numbers of records.")
    yield at_most("reading", 1, "PyDarshan's numpy records", ratios["summario"])
    yield at_most("reading with phases", 2.5, "PyDarshan's numpy records", ratios["phases"])


def large_log(repeat: int, parser: str | None) -> Iterator[Claim]:
    """Read the log with 64,000 records, by a process that has read it before and by the command."""
    command = [str(ioncast()), "phases", str(LARGE), "--format", "csv"]
    theirs = [parser, "--total", str(LARGE)] if parser else ["true"]
    runs = [
        (read_by("phases", READINGS, [LARGE]).shortest[0], run_once(command), run_once(theirs))
        for _ in range(repeat)
    ]
    warm = min(seconds for seconds, _, _ in runs)
    whole = min(run.whole_seconds for _, run, _ in runs)
    peak_mb = max(run.peak_kib for _, run, _ in runs) * 1024 / 1e6
    print(f"\n64,000 records, the shortest of {repeat} times\n")
    print("| way of reading | ms |\n| --- | ---: |")
    print(f"| summario with phases, in a process that has read it before | {1e3 * warm:.0f} |")
    print(f"| the command `ioncast phases` | {1e3 * whole:.0f} |")
    if parser:
        base = min(run.whole_seconds for _, _, run in runs)
        print(f"| darshan-parser --total | {1e3 * base:.0f} |")
        yield at_most("64,000 records, warm", 0.8, "darshan-parser --total", warm / base)
        yield at_most("64,000 records, whole process", 2, "darshan-parser --total", whole / base)
    yield Claim(f"64,000 records: less than {MOST_MB} MB", f"{peak_mb:.0f} MB", peak_mb < MOST_MB)


def many_logs(repeat: int, parser: str | None) -> Iterator[Claim]:
    """Read 1,000 small logs by one command, which uses all cores."""
    small = [log for log in sorted(LIVE.glob("*.darshan")) if log.stat().st_size < SMALL_BYTES]
    cores = len(os.sched_getaffinity(0))
    ours, frames, parsed = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / f"{number:04d}.darshan" for number in range(MANY)]
        for log, original in zip(logs, itertools.cycle(small), strict=False):
            shutil.copy(original, log)
        for _ in range(repeat):
            ours.append(run_once([str(ioncast()), "phases", folder, "--format", "csv"]))
            frames.append(read_by("to_df", 1, logs))
            if parser:
                runs = (run_once([parser, "--total", str(log)]) for log in logs)
                parsed.append(sum(run.cpu_seconds for run in runs))
    seconds, cpu_seconds = (
        min(run.whole_seconds for run in ours) * cores,
        min(run.cpu_seconds for run in ours),
    )
    frame_seconds = min(sum(way.shortest) for way in frames)
    frame_cpu_seconds = min(way.cpu_seconds for way in frames)
    print(f"\n{MANY} small logs, the shortest of {repeat} times, {cores} cores\n")
    print("| way of reading | s × cores | s of CPU |\n| --- | ---: | ---: |")
    print(f"| the command `ioncast phases`, with its start | {seconds:.2f} | {cpu_seconds:.2f} |")
    print(f"| {LABELS['to_df']}, one core | {frame_seconds:.2f} | {frame_cpu_seconds:.2f} |")
    if parser:
        print(f"| {MANY} × darshan-parser --total | – | {min(parsed):.2f} |")
    times = frame_cpu_seconds / cpu_seconds
    yield Claim(
        f"{MANY} logs, CPU: at least 2 × as fast as PyDarshan's read_all and to_df()",
        f"{times:.2f} × ({frame_seconds / seconds:.2f} × by time and cores)",
        times >= 2,
    )
    if parser:
        yield at_most(f"{MANY} logs, CPU", 1, "darshan-parser --total", cpu_seconds / min(parsed))


def read_by(way: str, repeat: int, logs: Sequence[Path]) -> Way:
    run = run_once([sys.executable, str(READERS), way, str(repeat), *map(str, logs)])
    return Way(**json.loads(run.output.splitlines()[-1]))


def better(one: Way, other: Way) -> Way:
    shortest = [min(pair) for pair in zip(one.shortest, other.shortest, strict=True)]
    return Way(shortest, min(one.cpu_seconds, other.cpu_seconds), one.records)


def at_most(what: str, limit: float, other: str, ratio: float) -> Claim:
    return Claim(f"{what}: at most {limit:g} × {other}", f"{ratio:.2f} ×", ratio <= limit)


def packages() -> str:
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, {', '.join(versions)}"


if __name__ == "__main__":
    main()
