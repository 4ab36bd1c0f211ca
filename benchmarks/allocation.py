"""Quality and cost of dividing I/O nodes by predicted curves, compared with measured curves.

    python benchmarks/allocation.py [--data FOLDER] [--json FILE]

Reads the measurements of the FORGE emulator on MareNostrum 4. All seeds are fixed; only times
differ from run to run. The claims at the end are for information: a missed one does not change the
exit code.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

import numpy as np
from accuracy import FILES, say
from measuring import DATA, Claim, ioncast, machine, run_once
from protocols import FOLDS, SEED, ask
from scipy.optimize import Bounds, LinearConstraint, milp
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve, curves
from benchdb.store.database import reading
from ioncast_base.allocation.dividing import JobCurve, PolicyName, allocate
from predictor.model.fitting import fit_model
from predictor.model.system_model import Knowledge

PACKAGES = ("ioncast", "scipy", "numpy")
SYSTEM = "MareNostrum 4"
JOBS = (8, 16, 32)
POOLS = (8, 16, 32, 64)
# Draws for each number of jobs and of I/O nodes.
DRAWS = 200

OURS = "mckp, predicted curves"
NEAREST = "mckp, nearest benchmark's curves"
BEST = "best, predicted curves"
STATIC, EQUAL, ONE, DIRECT = "static", "equal", "one each", "all direct"
WAYS = (OURS, NEAREST, BEST, STATIC, EQUAL, ONE, DIRECT)
FORWARDED = "Direct access excluded"
ALLOWED = "Direct access allowed"

REPEATS = 20
LARGE = (512, 1024, 12)
FORGE_LIKE = (512, 1024, 5)
SMALL = (64, 128, 12)

Numbers = Mapping[int, float]


class Pattern(NamedTuple):
    """A job's nodes and curves: as measured, and as predicted from the other patterns."""

    nodes: int
    true: Numbers
    predicted: Numbers
    nearest: Numbers


class Share(NamedTuple):
    """The share of the true optimum that a way reached, for some jobs and I/O nodes."""

    setting: str
    way: str
    jobs: int
    pool: int
    share: float


@dataclass(frozen=True)
class Cost:
    """Least and median milliseconds of an allocation, and the median of scipy's solver HiGHS."""

    jobs: int
    pool: int
    choices: int
    least_ms: float
    median_ms: float
    milp_ms: float | None


def main() -> None:
    arguments = parse_arguments()
    versions = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    print(f"{machine()}\nPython {platform.python_version()}, {', '.join(versions)}")
    known = read(arguments.data)
    print(f"{SYSTEM}: {len(known)} patterns, {FOLDS} folds, {DRAWS} draws of each size")
    with threadpool_limits(1):
        patterns = list(predicted_patterns(known))
        shares = [*drawn(patterns, FORWARDED), *drawn(patterns, ALLOWED)]
        costs = [cost(*LARGE), cost(*FORGE_LIKE), cost(*SMALL, beside=True)]
    for setting in (FORWARDED, ALLOWED):
        print("\n".join(table(setting, shares)))
        print("\n".join(table_of_sizes(setting, shares)))
    print("\n".join(table_of_costs(costs)))
    found = list(claims(shares, costs))
    print("\n| claim | measured | |\n| --- | --- | --- |")
    for claim in found:
        print(f"| {claim.text} | {claim.measured} | {'PASS' if claim.holds else 'MISS'} |")
    if arguments.json:
        arguments.json.write_text(as_json(shares, costs, found), encoding="utf-8")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure what dividing I/O nodes is worth.")
    parser.add_argument(
        "--data", type=Path, default=DATA / "forge", metavar="FOLDER", help="with FORGE's CSV files"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every share there too")
    arguments = parser.parse_args()
    for name in FILES[SYSTEM]:
        if not (arguments.data / name).is_file():
            parser.error(f"{arguments.data / name} does not exist; name its folder with --data")
    if not ioncast().is_file():
        parser.error(
            f"{ioncast()} does not exist; run this with the Python in which ioncast is installed"
        )
    return arguments


def read(folder: Path) -> list[Curve]:
    """Import the files as a user would, and read the curves."""
    with tempfile.TemporaryDirectory(prefix="ioncast-benchmark-") as name:
        database = Path(name) / "forge.sqlite"
        files = [str(folder / name) for name in FILES[SYSTEM]]
        place = ("--system", SYSTEM, "--db", str(database))
        run_once([str(ioncast()), "bench", "import", *files, *place])
        with reading(database) as connection:
            return list(curves(connection, SYSTEM))


def predicted_patterns(known: Sequence[Curve]) -> Iterator[Pattern]:
    """Predict the patterns of each fold with a model that is fitted to the other folds only."""
    order = Random(SEED).sample(range(len(known)), len(known))  # noqa: S311
    for fold in range(FOLDS):
        members = [known[i] for i in order[fold::FOLDS]]
        others = tuple(curve for curve in known if curve not in members)
        knowledge = Knowledge(others, fit_model(others))
        for curve in members:
            true = {n: fmean(values) for n, values in curve.bandwidths_mib_s.items()}
            yield Pattern(
                nodes=curve.config.nodes or 1,
                true=true,
                predicted=only(ask(curve.config, knowledge, io_nodes=tuple(true)).means, true),
                nearest=only(ask(curve.config, Knowledge(others)).means, true),
            )
        say(f"fold {fold + 1} of {FOLDS} predicted")


def only(curve: Numbers, of: Numbers) -> Numbers:
    return {n: bandwidth for n, bandwidth in curve.items() if n in of}


def drawn(patterns: Sequence[Pattern], setting: str) -> Iterator[Share]:
    """Draw jobs, divide I/O nodes, and compare the measured bandwidth with the optimum."""
    able = patterns
    if setting == FORWARDED:
        able = [forwarded(pattern) for pattern in patterns]
    for jobs in JOBS:
        for pool in POOLS:
            chance = Random(f"{SEED} {jobs} {pool}")  # noqa: S311
            for _ in range(DRAWS):
                some = chance.sample(able, jobs)
                most = reached(some, divided([one.true for one in some], some, pool))
                for way in WAYS:
                    if way != DIRECT or setting == ALLOWED:
                        share = reached(some, given(way, some, pool)) / most
                        yield Share(setting, way, jobs, pool, share)
    say(f"{setting.lower()}: divided")


def forwarded(pattern: Pattern) -> Pattern:
    """The pattern without direct access."""
    curves_of_it = (
        {n: bandwidth for n, bandwidth in curve.items() if n}
        for curve in (pattern.true, pattern.predicted, pattern.nearest)
    )
    return Pattern(pattern.nodes, *curves_of_it)


def given(way: str, some: Sequence[Pattern], pool: int) -> list[int | None]:
    """Number of I/O nodes of each job by a way to divide; None for a job that waits."""
    predicted = [one.predicted for one in some]
    without: list[int | None] = [0 if 0 in one.true else None for one in some]
    ways: dict[str, Callable[[], list[int | None]]] = {
        OURS: lambda: divided(predicted, some, pool),
        NEAREST: lambda: divided([one.nearest for one in some], some, pool),
        BEST: lambda: divided(predicted, some, pool, "best"),
        STATIC: lambda: divided(predicted, some, pool, "static"),
        EQUAL: lambda: divided(predicted, some, pool, "equal"),
        ONE: lambda: [1] * min(pool, len(some)) + without[pool:],
        DIRECT: lambda: without,
    }
    return ways[way]()


def divided(
    curves_of_jobs: Sequence[Numbers],
    some: Sequence[Pattern],
    pool: int,
    policy: PolicyName = "mckp",
) -> list[int | None]:
    jobs = [
        JobCurve(str(place), one.nodes, curve)
        for place, (one, curve) in enumerate(zip(some, curves_of_jobs, strict=True))
    ]
    return [share.io_nodes for share in allocate(jobs, pool, policy=policy).shares]


def reached(some: Sequence[Pattern], io_nodes: Sequence[int | None]) -> float:
    """The sum of the measured bandwidths, in MiB/s."""
    return sum(0.0 if n is None else one.true[n] for one, n in zip(some, io_nodes, strict=True))


def cost(jobs: int, pool: int, choices: int, *, beside: bool = False) -> Cost:
    """Time an allocation of random rising curves, which let no choice be left out early."""
    say(f"time of {jobs} jobs")
    chance = np.random.default_rng(SEED)
    made = []
    for place in range(jobs):
        numbers = [0, *sorted(chance.choice(np.arange(1, 33), choices - 1, replace=False))]
        bandwidths = np.sort(chance.lognormal(6, 1, choices))
        curve = dict(zip(map(int, numbers), bandwidths.tolist(), strict=True))
        made.append(JobCurve(str(place), 1, curve))
    seconds = times(lambda: allocate(made, pool), REPEATS)
    others = times(lambda: by_integer_programming(made, pool), REPEATS // 4) if beside else None
    return Cost(
        *(jobs, pool, choices),
        least_ms=1000 * min(seconds),
        median_ms=1000 * statistics.median(seconds),
        milp_ms=1000 * statistics.median(others) if others else None,
    )


def times(work: Callable[[], object], repeats: int) -> list[float]:
    """Seconds of each, after one that does not count."""
    seconds = []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds[1:]


def by_integer_programming(jobs: Sequence[JobCurve], pool: int) -> float:
    """The same problem for HiGHS: a variable for each choice of each job."""
    owners = np.array([place for place, job in enumerate(jobs) for _ in job.curve])
    costs = np.array([n for job in jobs for n in job.curve], dtype=float)
    worth = np.array([bandwidth for job in jobs for bandwidth in job.curve.values()])
    one_each = (owners == np.arange(len(jobs))[:, None]).astype(float)
    found = milp(
        -worth,
        integrality=np.ones(len(worth)),
        bounds=Bounds(0, 1),
        constraints=[
            LinearConstraint(one_each, 1, 1),
            LinearConstraint(costs[None, :], -np.inf, pool),
        ],
    )
    return -float(found.fun)


def table(setting: str, shares: Sequence[Share]) -> Iterator[str]:
    """Shares of the true optimum as a Markdown table."""
    yield f"\n{setting}\n"
    yield "| way | mean share of the true optimum | standard deviation | 5th percentile | lowest |"
    yield "| --- " + "| ---: " * 4 + "|"
    for way in WAYS:
        found = [one.share for one in shares if (one.setting, one.way) == (setting, way)]
        if found:
            yield (
                f"| {way} | {fmean(found):.3f} | {statistics.stdev(found):.3f}"
                f" | {np.percentile(found, 5):.3f} | {min(found):.3f} |"
            )


def table_of_sizes(setting: str, shares: Sequence[Share]) -> Iterator[str]:
    """Mean shares by jobs and I/O nodes, for the most important ways."""
    yield f"\n{setting}, mean share by jobs and I/O nodes\n"
    yield f"| jobs | I/O nodes | {OURS} | {NEAREST} | {STATIC} |"
    yield "| ---: | ---: | ---: | ---: | ---: |"
    for jobs in JOBS:
        for pool in POOLS:
            found = [mean_of(shares, setting, way, jobs, pool) for way in (OURS, NEAREST, STATIC)]
            yield f"| {jobs} | {pool} | " + " | ".join(f"{one:.3f}" for one in found) + " |"


def mean_of(
    shares: Sequence[Share], setting: str, way: str, jobs: int | None = None, pool: int = 0
) -> float:
    return fmean(
        one.share
        for one in shares
        if (one.setting, one.way) == (setting, way)
        and (jobs is None or (one.jobs, one.pool) == (jobs, pool))
    )


def table_of_costs(costs: Sequence[Cost]) -> Iterator[str]:
    yield "\nTimes of `allocate`, one thread\n"
    yield "| jobs | I/O nodes | numbers in a curve | ms, min (median) | scipy's milp, ms | ratio |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: |"
    for one in costs:
        other = "– | –"
        if one.milp_ms is not None:
            other = f"{one.milp_ms:.1f} | {one.milp_ms / one.median_ms:.0f}"
        yield (
            f"| {one.jobs} | {one.pool:,} | {one.choices} | {one.least_ms:.1f}"
            f" ({one.median_ms:.1f}) | {other} |"
        )


def claims(shares: Sequence[Share], costs: Sequence[Cost]) -> Iterator[Claim]:
    for setting in (FORWARDED, ALLOWED):
        ours = mean_of(shares, setting, OURS)
        yield Claim(
            f"{setting.lower()}: by predicted curves at least 0.985 of the true optimum",
            f"{ours:.4f}",
            ours >= 0.985,
        )
    ours, static = (mean_of(shares, FORWARDED, way) for way in (OURS, STATIC))
    yield Claim(
        f"{FORWARDED.lower()}: at least 2 × static",
        f"{ours / static:.2f} × ({static:.3f} → {ours:.3f})",
        ours >= 2 * static,
    )
    jobs, pool, _ = LARGE
    yield Claim(
        f"{jobs} jobs and {pool:,} I/O nodes in less than 50 ms, the median",
        f"{costs[0].median_ms:.1f} ms",
        costs[0].median_ms < 50,
    )


def as_json(shares: Sequence[Share], costs: Sequence[Cost], found: Sequence[Claim]) -> str:
    content = {
        "machine": machine(),
        "shares": [one._asdict() for one in shares],
        "costs": [asdict(one) for one in costs],
        "claims": [asdict(claim) for claim in found],
    }
    return json.dumps(content, indent=1)


if __name__ == "__main__":
    main()
