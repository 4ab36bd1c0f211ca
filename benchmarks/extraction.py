"""Cost of reading a Darshan log: summario compared with PyDarshan and darshan-parser.

    python benchmarks/extraction.py [--repeat N] [--json FILE]

Each measurement is a new process. The ways to read take turns on the same log, so that a slow
minute of the machine affects all of them. The claims at the end are for information: a missed one
does not change the exit code.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from summario.reading.pydarshan import MissingPyDarshanError, library_path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
READERS = Path(__file__).with_name("readers.py")
# Peak memory of the process that runs the Darshan library for summario. The peak of its
# caller does not contain it, so it is added.
CHILD_MB = 25
PACKAGES = ("ioncast", "darshan", "numpy", "pandas")

LABELS = {
    "summario": "summario: read_log + extract_phases",
    "command": "the command `ioncast phases --format csv`",
    "frames": 'PyDarshan, dtype="pandas"',
    "numpy": 'PyDarshan, dtype="numpy"',
    "to_df": "PyDarshan, read_all=True + to_df()",
    "parser": "darshan-parser --total",
}


@dataclass(frozen=True)
class Run:
    """Cost of one process.

    Attributes
    ----------
    whole_seconds : float
        Time from before the start of the process until its (first) log has been read.
    peak_kib : int
        Peak memory of the process, without its children.
    first_seconds, next_seconds, records
        From `readers.py`, None for other programs: the time of the first log and of later ones,
        without start and imports; the number of records.
    """

    whole_seconds: float
    peak_kib: int
    first_seconds: float | None = None
    next_seconds: float | None = None
    records: int | None = None


@dataclass(frozen=True)
class Sample:
    """All runs of one way to read on one log."""

    reader: str
    runs: tuple[Run, ...]

    @property
    def whole(self) -> list[float]:
        return sorted(run.whole_seconds for run in self.runs)

    @property
    def first(self) -> list[float]:
        return sorted(run.first_seconds for run in self.runs if run.first_seconds is not None)

    @property
    def next(self) -> list[float]:
        return sorted(run.next_seconds for run in self.runs if run.next_seconds is not None)

    @property
    def peak_mib(self) -> float:
        return max(run.peak_kib for run in self.runs) / 1024

    @property
    def records(self) -> int | None:
        return self.runs[0].records


class ReaderFailedError(Exception):
    """A command could not read the log; the message has its output."""


# Samples of one log by reader.
Samples = dict[str, Sample]


@dataclass(frozen=True)
class Claim:
    text: str
    measured: str
    holds: bool | None

    def __str__(self) -> str:
        verdict = {True: "PASS", False: "MISS", None: "----"}[self.holds]
        return f"{verdict}  {self.text}: {self.measured}"


def main() -> None:
    arguments = parse_arguments()
    try:
        library_path("this benchmark")
    except MissingPyDarshanError as error:
        sys.exit(str(error))
    parser = shutil.which("darshan-parser")
    print(f"{machine()}\n{packages()}\n{floor()}")
    if parser is None:
        print("darshan-parser is absent: not on PATH, its rows and claims are left out")
    readers = [reader for reader in LABELS if reader != "parser" or parser]
    sized = {
        "large": [reader for reader in readers if reader != "frames"],
        "medium": readers,
        "small": readers,
    }
    results = {}
    for size, used in sized.items():
        log: Path = getattr(arguments, size)
        results[size] = measure(used, log, arguments.repeat)
        print(
            f"\n{log.name} ({log.stat().st_size / 1024:,.0f} KiB), {arguments.repeat} runs each\n"
        )
        print("\n".join(table(results[size])))
        print("\n".join(disagreements(results[size])), end="")
        if "frames" not in used:
            print("\nLeft out: PyDarshan's pandas frames, more than a minute with 64,000 records.")
    found = list(claims(results["large"], results["medium"], results["small"]))
    print("\nClaims, by the minimum times")
    print(*found, sep="\n")
    if arguments.json:
        arguments.json.write_text(as_json(arguments, results, found), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare ways to read a Darshan log.")
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="runs of each (5)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every run there too")
    logs = {
        "large": (DATA / "runs/logs/large-64k-records.darshan", "64,000 records"),
        "medium": (DATA / "runs/logs/mdtest-2000.darshan", "2,000 records"),
        "small": (DATA / "runs/logs/single-a.darshan", "1 record"),
    }
    for size, (log, records) in logs.items():
        parser.add_argument(
            f"--{size}", type=Path, default=log, metavar="LOG", help=f"a log of about {records}"
        )
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error("--repeat must be at least 1")
    for size in logs:
        log = getattr(arguments, size)
        if not log.is_file():
            parser.error(f"the log {log} does not exist; name another one with --{size}")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    return arguments


def ioncast() -> Path:
    return Path(sys.executable).with_name("ioncast")


def command_of(reader: str, log: Path) -> list[str]:
    """The command line of a reader; `run_once` adds the time of its start for `readers.py`."""
    if reader == "command":
        return [str(ioncast()), "phases", str(log), "--format", "csv"]
    if reader == "parser":
        return ["darshan-parser", "--total", str(log)]
    return [sys.executable, str(READERS), reader, str(log)]


def measure(readers: list[str], log: Path, repeat: int) -> Samples:
    """Let the readers take turns, after a turn that fills the disk cache and drops failing ones."""
    usable = [reader for reader in readers if can_read(reader, log)]
    runs: dict[str, list[Run]] = {reader: [] for reader in usable}
    for _ in range(repeat):
        for reader in usable:
            runs[reader].append(run_reader(reader, log))
    return {reader: Sample(reader, tuple(found)) for reader, found in runs.items()}


def can_read(reader: str, log: Path) -> bool:
    try:
        run_reader(reader, log)
    except ReaderFailedError as error:
        if reader in ("summario", "command"):
            sys.exit(str(error))
        print(f"\nLeft out on {log.name}: {error}")
        return False
    return True


def run_reader(reader: str, log: Path) -> Run:
    return run_once(command_of(reader, log), reports=reader not in ("command", "parser"))


def run_once(command: list[str], *, reports: bool) -> Run:
    """Run a command to its end; `reports` is true if it prints the JSON of `readers.py`."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen(
            [*command, str(start)] if reports else command, stdout=output, stderr=errors
        )
        _, status, usage = os.wait4(process.pid, 0)
        whole_seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            lines = errors.read().decode("utf-8", "replace").split("\n")
            said = next((line for line in lines if line.strip()), "nothing")
            raise ReaderFailedError(
                f"{' '.join(command[:2])} ended with {process.returncode} and said: {said}"
            )
        if not reports:
            return Run(whole_seconds, usage.ru_maxrss)
        cost = json.loads(output.read().splitlines()[-1])
    return Run(**cost)


def table(samples: Samples) -> Iterator[str]:
    """The samples as a Markdown table, with ratios of the minima to summario's."""
    base = samples["summario"]
    yield (
        "| way of reading | first log s, min (median) | next logs s, min (median) | ratio "
        "| whole process s, min (median) | ratio | peak MiB |"
    )
    yield "| --- " + "| ---: " * 6 + "|"
    for sample in samples.values():
        cells = [
            LABELS[sample.reader],
            spread(sample.first),
            spread(sample.next),
            ratio(sample.next, base.next),
            spread(sample.whole),
            ratio(sample.whole, base.whole),
            f"{sample.peak_mib:.0f}",
        ]
        yield f"| {' | '.join(cells)} |"


def spread(seconds: list[float]) -> str:
    return f"{seconds[0]:.3f} ({median(seconds):.3f})" if seconds else "–"


def median(ordered: list[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def ratio(seconds: list[float], base: list[float]) -> str:
    return f"{seconds[0] / base[0]:.2f}" if seconds else "–"


def disagreements(samples: Samples) -> Iterator[str]:
    """Name the readers that found another number of records, so their times do not compare."""
    expected = samples["summario"].records
    for sample in samples.values():
        if sample.records not in (None, expected):
            yield f"Not comparable: {LABELS[sample.reader]} read {sample.records} records.\n"


def claims(large: Samples, medium: Samples, small: Samples) -> Iterator[Claim]:
    """The claims; speed is the time of logs after a process's first one."""
    yield faster(medium, "frames", 50, "the log of 2,000 records")
    yield faster(large, "to_df", 5, "the log of 64,000 records")
    yield near_parser(large)
    peak = large["summario"].peak_mib * 1.048576 + CHILD_MB
    yield Claim(
        "summario peaks below 400 MB on the log of 64,000 records",
        f"{peak:.0f} MB, with {CHILD_MB} MB for the process that reads",
        peak < 400,
    )
    slowest = small["command"].whole[-1]
    yield Claim(
        "`ioncast phases` takes less than 1 s on a small log, in a new process",
        f"{slowest:.3f} s, the slowest run",
        slowest < 1,
    )


def faster(samples: Samples, other: str, factor: float, log: str) -> Claim:
    text = f"at least {factor:g} × faster than {LABELS[other]} on {log}"
    if other not in samples:
        return Claim(text, "it did not read the log", None)
    base, slow = samples["summario"], samples[other]
    times, first, whole = (
        getattr(slow, which)[0] / getattr(base, which)[0] for which in ("next", "first", "whole")
    )
    measured = f"{times:.1f} × (a first log {first:.1f} ×, whole process {whole:.1f} ×)"
    return Claim(text, measured, times >= factor)


def near_parser(samples: Samples) -> Claim:
    text = "at most 2 × darshan-parser --total on the log of 64,000 records"
    if "parser" not in samples:
        return Claim(text, "darshan-parser is absent or did not read the log", None)
    limit = samples["parser"].whole[0]
    times, first, whole = (
        getattr(samples["summario"], which)[0] / limit for which in ("next", "first", "whole")
    )
    measured = f"{times:.2f} × (a first log {first:.2f} ×, whole process {whole:.2f} ×)"
    return Claim(text, measured, times <= 2)


def machine() -> str:
    today = datetime.datetime.now(tz=datetime.timezone.utc).date()
    return f"{today}, {os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def packages() -> str:
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return f"Python {platform.python_version()}, {', '.join(versions)}"


def floor() -> str:
    """The lowest peak that can be measured: each process starts as a copy of this one."""
    run = run_once(["true"], reports=False)
    return f"peaks below {run.peak_kib / 1024:.0f} MiB cannot be told apart"


def as_json(arguments: argparse.Namespace, results: dict[str, Samples], found: list[Claim]) -> str:
    content = {
        "machine": machine(),
        "packages": packages(),
        "repeat": arguments.repeat,
        "logs": {
            size: {
                "name": getattr(arguments, size).name,
                "runs": {
                    reader: [asdict(run) for run in sample.runs]
                    for reader, sample in samples.items()
                },
            }
            for size, samples in results.items()
        },
        "claims": [asdict(claim) for claim in found],
    }
    return json.dumps(content, indent=1)


if __name__ == "__main__":
    main()
