"""Quality and cost of dividing I/O nodes by predicted curves, compared with measured curves.

    python benchmarks/allocation.py [--data FOLDER] [--json FILE]

Reads the measurements of the FORGE emulator on MareNostrum 4. There are more I/O nodes than jobs,
so that no job has to wait. All seeds are fixed; only times differ from run to run. The claims at
the end are for information: a missed one does not change the exit code.
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
from parts import FOLDS, SEED
from protocols import ask
from scipy.optimize import Bounds, LinearConstraint, milp
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve, curves
from benchdb.store.database import reading
from experiments.scheduling.simple_rules import best, equal, static
from ioncast_base.knapsack import JobCurve, allocate
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel

PACKAGES = ("ioncast", "scipy", "numpy")
SYSTEM = "MareNostrum 4"
JOBS = (8, 16, 32)
# I/O nodes of the pool for each job.
PER_JOB = (1.5, 2, 4)
# Draws for each number of jobs and of I/O nodes.
DRAWS = 200

OURS = "sum, predicted curves"
PROPORTIONAL = "proportional, predicted curves"
NEAREST = "sum, nearest benchmark's curves"
BEST = "best, predicted curves"
STATIC, EQUAL, DIRECT = "static, filled", "equal", "all direct"
WAYS = (OURS, PROPORTIONAL, NEAREST, BEST, STATIC, EQUAL, DIRECT)
FORWARDED = "Direct access excluded"
ALLOWED = "Direct access allowed"

REPEATS = 20
LARGE = (512, 1024, 12)
FORGE_LIKE = (512, 1024, 5)
SMALL = (64, 128, 12)

Numbers = Mapping[int, float]
IoNodes = list[int | None]


class Pattern(NamedTuple):
    """A job's nodes and curves: as measured, and as predicted from the other patterns."""

    nodes: int
    direct_mib_s: float
    true: Numbers
    predicted: Numbers
    nearest: Numbers


class Share(NamedTuple):
    """The shares of the true optima that a way reached, for some jobs and I/O nodes."""

    setting: str
    way: str
    jobs: int
    pool: int
    of_sum: float
    of_proportional: float
    waiting: float


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
        knowledge = SystemModel(others, fit_model(others))
        for curve in members:
            true = {n: fmean(values) for n, values in curve.bandwidths_mib_s.items()}
            yield Pattern(
                nodes=curve.config.nodes or 1,
                direct_mib_s=true[0],
                true=true,
                predicted=only(means_of(curve, knowledge), true),
                nearest=only(means_of(curve, SystemModel(others)), true),
            )
        say(f"fold {fold + 1} of {FOLDS} predicted")


def means_of(curve: Curve, knowledge: SystemModel) -> Numbers:
    forecast = ask(curve, knowledge)
    return forecast.means if forecast else {}


def only(curve: Numbers, of: Numbers) -> Numbers:
    return {n: bandwidth for n, bandwidth in curve.items() if n in of}


def drawn(patterns: Sequence[Pattern], setting: str) -> Iterator[Share]:
    """Draw jobs, divide I/O nodes, and compare the measured bandwidths with the optima."""
    able = patterns
    if setting == FORWARDED:
        able = [forwarded(pattern) for pattern in patterns]
    for jobs in JOBS:
        for pool in (round(jobs * each) for each in PER_JOB):
            chance = Random(f"{SEED} {jobs} {pool}")  # noqa: S311
            for _ in range(DRAWS):
                yield from compared(chance.sample(able, jobs), pool, setting)
    say(f"{setting.lower()}: divided")


def compared(some: Sequence[Pattern], pool: int, setting: str) -> Iterator[Share]:
    """Divide I/O nodes among some jobs in all ways."""
    true = [one.true for one in some]
    most = sum(reached(some, divided(true, some, pool)))
    fairest = of_own_best(some, reached(some, divided(true, some, pool, PROPORTIONAL)))
    for way in WAYS:
        io_nodes = given(way, some, pool)
        bandwidths = reached(some, io_nodes)
        yield Share(
            *(setting, way, len(some), pool),
            of_sum=sum(bandwidths) / most,
            of_proportional=of_own_best(some, bandwidths) / fairest,
            waiting=io_nodes.count(None) / len(some),
        )


def forwarded(pattern: Pattern) -> Pattern:
    """The pattern without direct access."""
    curves_of_it = (
        {n: bandwidth for n, bandwidth in curve.items() if n}
        for curve in (pattern.true, pattern.predicted, pattern.nearest)
    )
    return Pattern(pattern.nodes, pattern.direct_mib_s, *curves_of_it)


def given(way: str, some: Sequence[Pattern], pool: int) -> IoNodes:
    """Number of I/O nodes of each job by a way to divide; None for a job that waits."""
    if way == STATIC:
        return filled(some, pool)
    if way == DIRECT:
        return [0] * len(some)
    curves_of_jobs = [one.nearest if way == NEAREST else one.predicted for one in some]
    return divided(curves_of_jobs, some, pool, way)


def divided(
    curves_of_jobs: Sequence[Numbers], some: Sequence[Pattern], pool: int, way: str = OURS
) -> IoNodes:
    jobs = [
        JobCurve(str(place), one.nodes, curve)
        for place, (one, curve) in enumerate(zip(some, curves_of_jobs, strict=True))
    ]
    rules = {BEST: best, STATIC: static, EQUAL: equal}
    if way in rules:
        return rules[way](jobs, pool)
    found = allocate(jobs, pool, objective="proportional" if way == PROPORTIONAL else "sum")
    return [share.io_nodes for share in found.shares]


def filled(some: Sequence[Pattern], pool: int) -> IoNodes:
    """In proportion to compute nodes; the rest goes to the jobs that lack most of their part."""
    io_nodes = [n or 0 for n in divided([one.true for one in some], some, pool, STATIC)]
    machine_nodes = sum(one.nodes for one in some)
    while True:
        left = pool - sum(io_nodes)
        next_numbers = {
            place: more[0]
            for place, (one, has) in enumerate(zip(some, io_nodes, strict=True))
            if (more := sorted(n for n in one.true if has < n <= has + left))
        }
        if not next_numbers:
            return list(io_nodes)
        place = max(
            next_numbers, key=lambda at: some[at].nodes * pool / machine_nodes - io_nodes[at]
        )
        io_nodes[place] = next_numbers[place]


def reached(some: Sequence[Pattern], io_nodes: IoNodes) -> list[float]:
    """The measured bandwidths of all jobs, in MiB/s."""
    return [
        0.0 if n is None else one.true[n] if n else one.direct_mib_s
        for one, n in zip(some, io_nodes, strict=True)
    ]


def of_own_best(some: Sequence[Pattern], bandwidths: Sequence[float]) -> float:
    """The mean share of its own highest bandwidth that a job has."""
    return fmean(
        bandwidth / max(one.true.values()) for one, bandwidth in zip(some, bandwidths, strict=True)
    )


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
    """Shares of the true optima as a Markdown table."""
    yield f"\n{setting}\n"
    yield (
        "| way | of the highest sum: mean | 5th percentile | lowest"
        " | of the highest proportional sum: mean | 5th percentile | lowest | jobs that wait |"
    )
    yield "| --- " + "| ---: " * 7 + "|"
    for way in WAYS:
        found = [one for one in shares if (one.setting, one.way) == (setting, way)]
        cells = [
            f"{fmean(each):.3f} | {np.percentile(each, 5):.3f} | {min(each):.3f}"
            for each in ([one.of_sum for one in found], [one.of_proportional for one in found])
        ]
        waiting = fmean(one.waiting for one in found)
        yield f"| {way} | {' | '.join(cells)} | {waiting:.0%} |"


def table_of_sizes(setting: str, shares: Sequence[Share]) -> Iterator[str]:
    """Mean shares by jobs and I/O nodes, for the most important ways."""
    ways = (OURS, NEAREST, STATIC)
    yield f"\n{setting}, mean share of the highest sum by jobs and I/O nodes\n"
    yield f"| jobs | I/O nodes | {' | '.join(ways)} |"
    yield "| ---: | ---: " + "| ---: " * len(ways) + "|"
    for jobs in JOBS:
        for pool in (round(jobs * each) for each in PER_JOB):
            these = [one for one in shares if (one.jobs, one.pool) == (jobs, pool)]
            found = [means(these, setting, way).of_sum for way in ways]
            yield f"| {jobs} | {pool} | " + " | ".join(f"{one:.3f}" for one in found) + " |"


class Means(NamedTuple):
    """Means over draws."""

    of_sum: float
    of_proportional: float
    waiting: float


def means(shares: Sequence[Share], setting: str, way: str) -> Means:
    found = [one for one in shares if (one.setting, one.way) == (setting, way)]
    return Means(
        *(fmean(getattr(one, field) for one in found) for field in Means._fields),
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
        by_sum = means(shares, setting, OURS).of_sum
        yield Claim(
            f"{setting.lower()}: at least 0.985 of the highest sum",
            f"{by_sum:.4f}",
            by_sum >= 0.985,
        )
        in_proportion = means(shares, setting, PROPORTIONAL).of_proportional
        yield Claim(
            f"{setting.lower()}: at least 0.975 of the highest proportional sum",
            f"{in_proportion:.4f}",
            in_proportion >= 0.975,
        )
    ours, static = (means(shares, FORWARDED, way) for way in (OURS, STATIC))
    yield Claim(
        f"{FORWARDED.lower()}: at least 1.8 × static, filled",
        f"{ours.of_sum / static.of_sum:.2f} × ({static.of_sum:.3f} → {ours.of_sum:.3f})",
        ours.of_sum >= 1.8 * static.of_sum,
    )
    yield Claim(f"{FORWARDED.lower()}: no job waits", f"{ours.waiting:.0%}", not ours.waiting)
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
