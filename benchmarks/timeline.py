"""Time lines of traced runs: the first view and a zoom, beside PyDarshan's heat maps of the trace.

    python benchmarks/timeline.py [--requests N,N] [--repeat N] [--dxt-explorer PROGRAM]

It writes logs of 1,024 processes through libdarshan-util. Each measurement is a whole command. The
ways take turns on the same log, so that a slow minute of the machine affects all of them. A way
that takes long runs once, and one without a result is not tried with a larger log.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic

from measuring import ROOT, Claim, machine

# The words of a command, from the log and a folder for its output.
Command = Callable[[Path, Path], list[str]]

PROCESSES, PROCESSES_PER_NODE = 1_024, 64
REQUEST_BYTES = 1 << 20
SHARED_FILE = "/scratch/checkpoint"
# Each phase takes 10 of 50 seconds. The first reads, the others write.
RUN_SECONDS, PHASE_SECONDS, BETWEEN_SECONDS = 600, 10, 50
PHASES = RUN_SECONDS // BETWEEN_SECONDS
ZOOM = ("--from", "102", "--to", "108")
LIMIT_SECONDS, LIMIT_BYTES, LONG_SECONDS = 180, 12 << 30, 20
LIMITED = ("prlimit", f"--as={LIMIT_BYTES}")
START, FIRST_VIEW, ZOOMED, HEAT_MAPS, EXPLORER = (
    "`ioncast timeline --help`",
    "`ioncast timeline LOG --html FILE`",
    "the same with `--from` and `--to`, a hundredth of the time",
    "PyDarshan: `plot_dxt_heatmap` of both modules",
    "`dxt-explorer LOG`",
)
# The goals: seconds for a million requests, and bytes of memory for each request.
GOAL_REQUESTS, FIRST_VIEW_SECONDS, ZOOM_SECONDS, BYTES_A_REQUEST = 1_000_000, 2, 0.3, 100


@dataclass(frozen=True)
class Cost:
    """Time and peak memory of a command with its children, and the bytes of its output."""

    seconds: float
    peak_bytes: int
    output_bytes: int


@dataclass(frozen=True)
class Failure:
    """A sentence that says why a way has no result."""

    reason: str


def main() -> None:
    arguments = parse_arguments()
    names = ("darshan", "numpy", "pandas")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
    print(f"{machine()}\nPython {platform.python_version()}, {versions}")
    ways = commands(arguments.dxt_explorer)
    claims: list[Claim] = []
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as folder:
        none = Path(folder) / "none"
        starts = [
            measured(lambda *_: [*own_command(), "--help"], none) for _ in range(arguments.repeat)
        ]
        for requests in arguments.requests:
            log = Path(folder) / f"{requests}.darshan"
            # The peak of a command is at least that of the process that starts it.
            subprocess.run(
                own_part("write", str(requests), str(log)), check=True, env=environment()
            )
            costs = turns(log, ways, arguments.repeat)
            print("\n".join(report(log, requests, {START: starts, **costs})))
            if requests == GOAL_REQUESTS:
                claims += goals({START: starts, **costs})
            ways = {name: way for name, way in ways.items() if shortest(costs[name]) is not None}
            log.unlink()
    print("\nGoals", *claims, sep="\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--requests",
        type=lambda text: [int(number) for number in text.split(",")],
        default=[100_000, 1_000_000, 10_000_000],
        metavar="N,N",
        help="traced requests of each log (100000,1000000,10000000)",
    )
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="turns of each (3)")
    parser.add_argument("--dxt-explorer", metavar="PROGRAM", help="dxt-explorer 0.4 or newer")
    arguments = parser.parse_args()
    if arguments.repeat < 1 or min(arguments.requests) < 2 * PROCESSES:
        parser.error(f"--repeat is at least 1, and --requests at least {2 * PROCESSES:,}")
    return arguments


def commands(dxt_explorer: str | None) -> dict[str, Command]:
    ways: dict[str, Command] = {
        FIRST_VIEW: lambda log, folder: [*own_command(), str(log), *html(folder)],
        ZOOMED: lambda log, folder: [*own_command(), str(log), *html(folder), *ZOOM],
        HEAT_MAPS: lambda log, folder: own_part("heat-maps", str(log), str(folder)),
    }
    found = shutil.which(dxt_explorer or "dxt-explorer")
    if found is None:
        print("dxt-explorer is not installed, and is left out.")
        return ways
    return {**ways, EXPLORER: lambda log, folder: [found, "-p", str(folder), str(log)]}


def own_command() -> list[str]:
    return [sys.executable, "-m", "ioncast", "timeline"]


def html(folder: Path) -> list[str]:
    return ["--html", str(folder / "timeline.html")]


def own_part(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "ignore", __file__, *arguments]


def environment(program: str = sys.executable) -> dict[str, str]:
    """Find this project, and beside dxt-explorer the Python that it starts."""
    beside = str(Path(program).parent)
    path = os.pathsep.join((beside, os.environ.get("PATH", "")))
    return os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}


def turns(log: Path, ways: Mapping[str, Command], repeat: int) -> dict[str, list[Cost | Failure]]:
    costs: dict[str, list[Cost | Failure]] = {name: [] for name in ways}
    for _ in range(repeat):
        for name, command in ways.items():
            if not costs[name] or takes_little(costs[name][-1]):
                costs[name].append(measured(command, log))
    return costs


def takes_little(cost: Cost | Failure) -> bool:
    return isinstance(cost, Cost) and cost.seconds < LONG_SECONDS


def shortest(costs: Sequence[Cost | Failure]) -> Cost | None:
    """Select the shortest run; None if one of them has no result."""
    done = [cost for cost in costs if isinstance(cost, Cost)]
    return min(done, key=lambda cost: cost.seconds) if len(done) == len(costs) else None


def report(
    log: Path, requests: int, costs: Mapping[str, Sequence[Cost | Failure]]
) -> Iterator[str]:
    mib, load = log.stat().st_size / 2**20, os.getloadavg()[0]
    yield f"\n{requests:,} requests, {mib:.1f} MiB, load average {load:.1f}\n"
    yield "| way | turns | s, shortest (median) | ratio | peak MiB | bytes a request | output KiB |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    start, view = shortest(costs[START]), shortest(costs[FIRST_VIEW])
    for name, runs in costs.items():
        best = shortest(runs)
        if best is None:
            reasons = [run.reason for run in runs if isinstance(run, Failure)]
            yield f"| {name} | {len(runs)} | {reasons[0]} | | | | |"
            continue
        middle = median(run.seconds for run in runs if isinstance(run, Cost))
        yield (
            f"| {name} | {len(runs)} | {best.seconds:.2f} ({middle:.2f})"
            f" | {best.seconds / view.seconds if view else float('nan'):.2f}"
            f" | {best.peak_bytes / 2**20:,.0f}"
            f" | {bytes_a_request(best, start, requests) if start else float('nan'):,.0f}"
            f" | {best.output_bytes / 2**10:,.0f} |"
        )


def bytes_a_request(cost: Cost, start: Cost, requests: int) -> float:
    """Compute the memory that a command needs beyond its start, for each request."""
    return (cost.peak_bytes - start.peak_bytes) / requests


def goals(costs: Mapping[str, Sequence[Cost | Failure]]) -> Iterator[Claim]:
    start, view, zoom = (shortest(costs.get(name, ())) for name in (START, FIRST_VIEW, ZOOMED))
    if start is None or view is None or zoom is None:
        yield Claim(f"{GOAL_REQUESTS:,} requests", "no result", holds=False)
        return
    for name, cost, goal in (
        ("the first view", view, FIRST_VIEW_SECONDS),
        ("a zoom", zoom, ZOOM_SECONDS),
    ):
        text = f"{GOAL_REQUESTS:,} requests: {name} within {goal} s"
        yield Claim(text, f"{cost.seconds:.2f} s", cost.seconds <= goal)
    needed = bytes_a_request(view, start, GOAL_REQUESTS)
    text = f"{GOAL_REQUESTS:,} requests: at most {BYTES_A_REQUEST} bytes of memory a request"
    yield Claim(text, f"{needed:.0f}", needed <= BYTES_A_REQUEST)


def measured(command: Command, log: Path) -> Cost | Failure:
    """Run a command in a new folder, with the limits of time and memory."""
    with tempfile.TemporaryDirectory(dir=log.parent) as name, tempfile.TemporaryFile() as said:
        folder = Path(name) / "output"
        folder.mkdir()
        # dxt-explorer writes beside the log, and would find its files in the next turn.
        link = Path(name) / log.name
        link.symlink_to(log)
        words = command(link, folder)
        start = monotonic()
        process = subprocess.Popen(
            [*LIMITED, *words],
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=environment(words[0]),
            start_new_session=True,
        )
        clock = threading.Timer(LIMIT_SECONDS, os.killpg, (process.pid, signal.SIGKILL))
        clock.start()
        _, status, usage = os.wait4(process.pid, 0)
        clock.cancel()
        seconds = monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if seconds >= LIMIT_SECONDS:
            return Failure(f"nothing within {LIMIT_SECONDS} s")
        if process.returncode:
            said.seek(0)
            [*_, last] = said.read().decode("utf-8", "replace").strip().split("\n")
            limit = f"with {LIMIT_BYTES >> 30} GiB"
            return Failure(f"ended {limit} after {seconds:.0f} s with {process.returncode}: {last}")
        written = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return Cost(seconds, 1024 * usage.ru_maxrss, written)


def write(requests: str, path: str) -> None:
    """Write a log with half of the requests in each module, and their counters."""
    writer = importlib.import_module("experiments.applications.darshan_writer")
    numpy = importlib.import_module("numpy")
    rng = numpy.random.default_rng(17)
    count = int(requests) // (2 * PROCESSES)
    phase = numpy.arange(count) * PHASES // count
    # The requests of a phase follow each other without an overlap.
    in_phase = numpy.arange(count) - numpy.searchsorted(phase, phase)
    step_s = PHASE_SECONDS / numpy.bincount(phase).max()
    reads = int(numpy.count_nonzero(phase == 0))

    def traced(module: str, rank: int) -> object:
        start = phase * BETWEEN_SECONDS + (in_phase + 0.4 * rng.random(count)) * step_s
        end = start + (0.1 + 0.5 * rng.random(count)) * step_s
        offset = (numpy.arange(count) * PROCESSES + rank) * REQUEST_BYTES
        segments = [
            (place, REQUEST_BYTES, *times)
            for place, *times in zip(offset.tolist(), start.tolist(), end.tolist(), strict=True)
        ]
        host = f"node{rank // PROCESSES_PER_NODE:04}"
        return writer.Dxt(module, SHARED_FILE, rank, host, segments[reads:], segments[:reads])

    started = 1_700_000_000
    writer.write_log(
        Path(path),
        nprocs=PROCESSES,
        end=(started + RUN_SECONDS, 0),
        start=(started, 0),
        records=[
            writer.Record("MPI-IO", SHARED_FILE, -1, *counters("MPIIO_INDEP", count, reads)),
            writer.Record("POSIX", SHARED_FILE, -1, *counters("POSIX", count, reads)),
        ],
        dxt=[
            traced(module, rank)
            for module in ("DXT_POSIX", "DXT_MPIIO")
            for rank in range(PROCESSES)
        ],
    )


def counters(prefix: str, count: int, reads: int) -> tuple[dict[str, int], dict[str, float]]:
    """Count the requests of all processes in one layer."""
    layer = prefix.partition("_")[0]
    read, written = PROCESSES * reads, PROCESSES * (count - reads)
    last = (PHASES - 1) * BETWEEN_SECONDS
    return {
        f"{prefix}_READS": read,
        f"{prefix}_WRITES": written,
        f"{layer}_BYTES_READ": read * REQUEST_BYTES,
        f"{layer}_BYTES_WRITTEN": written * REQUEST_BYTES,
        f"{layer}_SIZE_READ_{'1M_4M' if layer == 'POSIX' else 'AGG_1M_4M'}": read,
        f"{layer}_SIZE_WRITE_{'1M_4M' if layer == 'POSIX' else 'AGG_1M_4M'}": written,
    }, {
        f"{layer}_F_OPEN_START_TIMESTAMP": 0.0,
        f"{layer}_F_READ_START_TIMESTAMP": 0.0,
        f"{layer}_F_READ_END_TIMESTAMP": float(PHASE_SECONDS),
        f"{layer}_F_WRITE_START_TIMESTAMP": float(BETWEEN_SECONDS),
        f"{layer}_F_WRITE_END_TIMESTAMP": float(last + PHASE_SECONDS),
        f"{layer}_F_CLOSE_END_TIMESTAMP": float(last + PHASE_SECONDS),
        f"{layer}_F_READ_TIME": 0.35 * PROCESSES * PHASE_SECONDS,
        f"{layer}_F_WRITE_TIME": 0.35 * PROCESSES * PHASE_SECONDS * (PHASES - 1),
    }


def heat_maps(log: str, folder: str) -> None:
    """Draw what PyDarshan's summary draws of a trace."""
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    plots = importlib.import_module("darshan.experimental.plots.plot_dxt_heatmap")
    report_of = importlib.import_module("darshan").DarshanReport
    for module in ("DXT_MPIIO", "DXT_POSIX"):
        drawn = plots.plot_heatmap(report=report_of(log), mod=module)
        drawn.savefig(Path(folder) / f"{module}.png")


if __name__ == "__main__":
    if sys.argv[1:2] == ["write"]:
        write(*sys.argv[2:])
    elif sys.argv[1:2] == ["heat-maps"]:
        heat_maps(*sys.argv[2:])
    else:
        main()
