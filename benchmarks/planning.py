"""Benchmark runs that an adaptive campaign needs to choose I/O nodes well, beside other orders.

    python benchmarks/planning.py [--seeds N] [--runs N ...]

Campaigns are simulated on the measurements of the FORGE emulator (MareNostrum 4, Santos Dumont),
from an empty database. "Simulated" runs are drawn from a model of all measurements, whose means are
the truth; "drawn" runs are measured ones with replacement, and the truth is the mean of each cell.
All patterns count the same, and each run costs the same.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import read
from measuring import DATA, Claim, machine
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve
from predictor.model.features import BEFORE_CHANGE
from predictor.model.gaussian import Hyperparameters, Posterior
from predictor.model.priors import learned, weak
from predictor.planning.knowledge import (
    CellPlaces,
    PriorOfFeatures,
    believed,
    is_time_to_learn,
    learn,
    places_of,
)
from predictor.planning.next_run import after_run, expected_regret, gains_of_decisions, next_cell

Array = NDArray[np.float64]
Order = Callable[["Campaign"], int]

CHECKS = (100, 200, 450, 900)
SEEDS = 20
# After a change of the system, learning from thousands of earlier runs takes minutes.
CHECKS_OF_CHANGE, SEEDS_OF_CHANGE = (10, 25, 50, 100), 5
WORKERS = 2
# How often the planned campaign of before was ranked, and its repetitions.
STAGE, REPETITIONS = 100, 5
GOALS = {"known": 0.035, "learned": 0.04}
CELL_ERROR = 0.20
# learned.json is from MareNostrum 4, so there the prior knows nothing of it.
PRIORS = {"MareNostrum 4": weak, "Santos Dumont": learned}


@dataclass(frozen=True, eq=False)
class Truth:
    """The cells of a system: places, runs to draw from, and the means to compare with."""

    places: CellPlaces
    numbers: int
    means: Array
    runs: tuple[Array, ...]
    known: Hyperparameters
    prior: PriorOfFeatures

    @property
    def patterns(self) -> int:
        return len(self.means) // self.numbers


@dataclass
class Campaign:
    """A campaign in progress."""

    truth: Truth
    belief: Posterior
    random: np.random.Generator
    cells: list[int]
    planned: list[int]

    @property
    def hours(self) -> Array:
        return np.ones(self.truth.patterns)


def random_cells(campaign: Campaign) -> int:
    return int(campaign.random.integers(len(campaign.truth.means)))


def random_curves(campaign: Campaign) -> int:
    """All repetitions of one pattern after the other, as a campaign of complete curves."""
    if not campaign.planned:
        order = campaign.random.permutation(campaign.truth.patterns)
        campaign.planned = [cell for pattern in order for cell in whole_curve(campaign, pattern)]
    return campaign.planned.pop(0)


def ranked_once(campaign: Campaign) -> int:
    """Complete curves by error times bytes over seconds, ranked again after each stage."""
    if not campaign.planned:
        belief, count = campaign.belief, campaign.truth.numbers
        errors = np.sqrt(np.diag(belief.covariance)).reshape(-1, count).mean(axis=1)
        # The same bytes for all: bytes over seconds is the bandwidth.
        bandwidth = np.exp(belief.mean).reshape(-1, count).mean(axis=1)
        best = np.argsort(-errors * bandwidth)[: STAGE // (count * REPETITIONS)]
        campaign.planned = [cell for pattern in best for cell in whole_curve(campaign, pattern)]
    return campaign.planned.pop(0)


def whole_curve(campaign: Campaign, pattern: int) -> list[int]:
    count = campaign.truth.numbers
    return [*range(pattern * count, (pattern + 1) * count)] * REPETITIONS


def choices_alone(campaign: Campaign) -> int:
    """The knowledge gradient alone."""
    return int(np.argmax(gains_of_decisions(campaign.belief, campaign.hours)))


def in_turn(campaign: Campaign) -> int:
    """The order of `ioncast campaign run --adaptive`."""
    everywhere = np.ones(len(campaign.belief.mean))
    turn = len(campaign.cells)
    cell = next_cell(campaign.belief, campaign.hours, everywhere, turn, everywhere > 0)
    return 0 if cell is None else cell


# These look at no belief, so only the scores need one.
BLIND = (random_cells, random_curves)
ORDERS: dict[str, Order] = {
    "random cells": random_cells,
    "random curves": random_curves,
    "ranked curves": ranked_once,
    "choices alone": choices_alone,
    "adaptive": in_turn,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    parser.add_argument("--runs", type=int, nargs="+", default=CHECKS, metavar="N")
    parser.add_argument("--orders", nargs="+", choices=ORDERS, default=[*ORDERS], metavar="ORDER")
    parser.add_argument("--data", type=Path, default=DATA / "forge", metavar="FOLDER")
    arguments = parser.parse_args()
    print(f"{machine()}, load average {os.getloadavg()[0]:.1f}; {arguments.seeds} seeds")
    found: list[Claim] = []
    with ProcessPoolExecutor(WORKERS, initializer=threadpool_limits, initargs=(1,)) as pool:
        for system, curves in read(arguments.data).items():
            for world, truth in truths(system, curves).items():
                for parameters in GOALS:
                    print(f"\n{system}, {world} runs, {parameters} hyperparameters")
                    rows = {}
                    for name in arguments.orders:
                        task = partial(judged, truth, name, parameters, tuple(arguments.runs))
                        rows[name] = np.array(list(pool.map(task, range(arguments.seeds))))
                        print(line(name, rows[name], arguments.runs), flush=True)
                    if system == "MareNostrum 4":
                        found += claims(rows, arguments.runs, world, parameters)
            if system == "MareNostrum 4":
                print(f"\n{system}, after a change of the system, learned hyperparameters")
                for name, with_earlier in (("from nothing", False), ("with earlier", True)):
                    task = partial(changed, truths(system, curves)["simulated"], with_earlier)
                    seeds = range(min(arguments.seeds, SEEDS_OF_CHANGE))
                    scores = np.array(list(pool.map(task, seeds)))
                    print(line(name, scores, CHECKS_OF_CHANGE), flush=True)
    print("", *found, sep="\n")


def truths(system: str, curves: Sequence[Curve]) -> dict[str, Truth]:
    """Make both worlds of a system from the patterns that were measured with each number."""
    numbers = sorted({n for curve in curves for n in curve.bandwidths_mib_s})
    whole = [curve for curve in curves if len(curve.bandwidths_mib_s) == len(numbers)]
    # A single run of each cell: its place, in the order of patterns, then of numbers.
    single = [
        replace(curve, bandwidths_mib_s={n: curve.bandwidths_mib_s[n][:1] for n in numbers})
        for curve in whole
    ]
    measured, cells = (places_of([], [], of) for of in (whole, single))
    runs = tuple(np.log(curve.bandwidths_mib_s[n]) for curve in whole for n in numbers)
    everything = CellPlaces(cells.names, cells.runs, measured.runs, measured.logarithms)
    known = learn(everything, weak)
    model = believed(everything, known)
    drawn = np.array([float(np.log(np.exp(values).mean())) for values in runs])
    random = np.random.default_rng(0)
    simulated = tuple(
        mean + np.sqrt(noise) * random.standard_normal(1_000)
        for mean, noise in zip(model.mean, model.noise, strict=True)
    )
    prior = PRIORS[system]
    count = len(numbers)
    return {
        "simulated": Truth(everything, count, model.mean, simulated, known, prior),
        "drawn": Truth(everything, count, drawn, runs, known, prior),
    }


def judged(truth: Truth, order: str, parameters: str, checks: tuple[int, ...], seed: int) -> Array:
    """Simulate a campaign: regret, error of cells and expected regret, shape (checks, 3)."""
    random = np.random.default_rng(seed)
    is_known = parameters == "known"
    campaign = Campaign(truth, state(truth, [], [], is_known), random, [], [])
    logarithms: list[float] = []
    scores = []
    choose = ORDERS[order]
    learns = not is_known and choose not in BLIND
    for number in range(1, max(checks) + 1):
        cell = choose(campaign)
        logarithms.append(random.choice(truth.runs[cell]))
        campaign.cells.append(cell)
        if number in checks or (learns and is_time_to_learn(number)):
            campaign.belief = state(truth, campaign.cells, logarithms, is_known)
        elif choose not in BLIND:
            campaign.belief = after_run(campaign.belief, cell, logarithms[-1])
        if number in checks:
            expected = expected_regret(campaign.belief, campaign.hours)
            scores.append((*score(truth, campaign.belief.mean), expected))
    return np.array(scores)


def changed(truth: Truth, with_earlier: bool, seed: int) -> Array:
    """Simulate an adaptive campaign after a change; scores as of `judged`.

    All bandwidths halve, but direct access loses only a fifth; each cell changes by a standard
    deviation of 0.15 in addition. Everything was measured before the change.
    """
    random = np.random.default_rng(seed)
    of_number = np.full(truth.numbers, np.log(0.5))
    of_number[0] = np.log(0.8)
    change = np.tile(of_number, truth.patterns) + random.normal(0, 0.15, len(truth.means))
    now = replace(truth, means=truth.means + change)
    campaign = Campaign(now, state_after_change(now, [], [], with_earlier), random, [], [])
    logarithms: list[float] = []
    scores = []
    for number in range(1, max(CHECKS_OF_CHANGE) + 1):
        cell = in_turn(campaign)
        logarithms.append(random.choice(truth.runs[cell]) + change[cell])
        campaign.cells.append(cell)
        if is_time_to_learn(number):
            belief = state_after_change(now, campaign.cells, logarithms, with_earlier)
        else:
            belief = after_run(campaign.belief, cell, logarithms[-1])
        campaign.belief = belief
        if number in CHECKS_OF_CHANGE:
            expected = expected_regret(belief, campaign.hours)
            scores.append((*score(now, belief.mean), expected))
    return np.array(scores)


def state_after_change(
    truth: Truth, cells: Sequence[int], logarithms: Sequence[float], with_earlier: bool
) -> Posterior:
    before = truth.places
    places = replace(
        before,
        runs=before.cells[np.asarray(cells, dtype=int)],
        logarithms=np.asarray(logarithms, dtype=float),
    )
    if with_earlier:
        parts = (before.cells, places.runs, before.runs)
        flags = (0.0, 0.0, 1.0)
        of_cells, now, earlier = (
            np.column_stack([part, np.full(len(part), flag)])
            for part, flag in zip(parts, flags, strict=True)
        )
        places = CellPlaces(
            names=(*before.names, BEFORE_CHANGE),
            cells=of_cells,
            runs=np.concatenate([now, earlier]),
            logarithms=np.concatenate([places.logarithms, before.logarithms]),
        )
    return believed(places, learn(places, truth.prior))


def state(
    truth: Truth, cells: Sequence[int], logarithms: Sequence[float], is_known: bool
) -> Posterior:
    runs = truth.places.cells[np.asarray(cells, dtype=int)]
    places = replace(truth.places, runs=runs, logarithms=np.asarray(logarithms, dtype=float))
    return believed(places, truth.known if is_known else learn(places, truth.prior))


def score(truth: Truth, means: Array) -> tuple[float, float]:
    curves = truth.means.reshape(truth.patterns, -1)
    chosen = means.reshape(curves.shape).argmax(axis=1)
    lost = 1 - np.exp(curves[np.arange(len(curves)), chosen] - curves.max(axis=1))
    return float(lost.mean()), float(np.abs(np.exp(means - truth.means) - 1).mean())


def line(name: str, scores: Array, checks: Sequence[int]) -> str:
    """A row of the table: regret with half its 95 % interval over seeds / error / expectation."""
    half = 1.96 * scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else None
    parts = []
    for place, runs in enumerate(checks):
        regret, error, expected = scores.mean(axis=0)[place]
        doubt = "" if half is None else f" ± {half[place][0]:.3f}"
        parts.append(f"{runs}: {regret:.3f}{doubt} / {error:.3f} / {expected:.3f}")
    return f"{name:14} " + "   ".join(parts)


def claims(
    rows: dict[str, Array], checks: Sequence[int], world: str, parameters: str
) -> Iterator[Claim]:
    if "adaptive" not in rows or 200 not in checks:
        return
    regret, error, _ = rows["adaptive"].mean(axis=0)[list(checks).index(200)]
    goal = GOALS[parameters]
    where = f"200 {world} runs, {parameters} hyperparameters"
    yield Claim(f"regret at most {goal} after {where}", f"{regret:.3f}", regret <= goal)
    text = f"error of cells at most {CELL_ERROR} after {where}"
    yield Claim(text, f"{error:.3f}", error <= CELL_ERROR)


if __name__ == "__main__":
    main()
