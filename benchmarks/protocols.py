"""Protocols of validation: hold a part of the measurements back and predict it from the rest.

A protocol yields cases: its name, a way to predict, and a forecast compared with the runs that were
held back. The forecasts are those of `predictor.composition.prediction.predict`, as users get them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random
from statistics import fmean

import numpy as np
from judging import Forecast, Judged, Runs, judge, of_means, predicted, scaled
from peers import fitted, means_of

from benchdb.measurements.curves import Curve
from experiments.held_back import phase_of
from ior_configs import IorConfig
from predictor.composition.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import Knowledge

HALVES = "few repetitions: half of each cell's predict the other half"
LEFT_OUT = "patterns left out one at a time"
PROCESSES = "a process count left out"
PER_NODE = "a number of processes per node left out"
REQUESTS = "a request size left out"
SANTOS_DUMONT = "Santos Dumont alone, patterns left out one at a time"
ELSEWHERE = "Santos Dumont's patterns by MareNostrum 4's model and a few of their cells"
KNOWN_APPLICATIONS = "applications of patterns in the database, by phases (half the repetitions)"
NEW_APPLICATIONS = "applications of left-out patterns, by phases (folds of ten)"
PROTOCOLS = (
    *(HALVES, LEFT_OUT, PROCESSES, PER_NODE, REQUESTS),
    *(KNOWN_APPLICATIONS, NEW_APPLICATIONS, SANTOS_DUMONT, ELSEWHERE),
)

MODEL = "ioncast"
NEAREST = "nearest benchmark (no model)"
MEAN = "arithmetic mean"
FLOOR = "the cells' own means (what noise leaves)"
OTHER_MODEL = "ioncast, with MareNostrum 4's model"
PAST, SCALED, WITHOUT = "one run", "one run, whole ratio", "no run, same cells"

GROUPS: dict[str, Callable[[IorConfig], float]] = {
    PROCESSES: lambda config: config.tasks or 0,
    PER_NODE: lambda config: (config.tasks or 0) / (config.nodes or 1),
    REQUESTS: lambda config: config.transfer_size,
}
# Numbers of I/O nodes of earlier runs, and those that every job might get.
ANCHORS = (0, 1, 2, 8)
ALWAYS = (0, 2, 8)
FOLDS = 10
MOST_PHASES = 6
# Applications with each number of phases, in each fold or half.
APPLICATIONS = 100
RUNS_OF_APPLICATION = 10
SEED = 9366
MIB = 1 << 20
GIB = 1 << 30

Case = tuple[str, str, Judged]


def few_repetitions(curves: Sequence[Curve], seed: int, side: int) -> Iterator[Case]:
    """Predict one half of the repetitions from the other."""
    halves = [_half(curve, seed) for curve in curves]
    known = tuple(pair[side] for pair in halves)
    held_back = {pair[side].config: pair[1 - side].bandwidths_mib_s for pair in halves}
    knowledge = Knowledge(known, fit_model(known))
    for curve in known:
        runs = held_back[curve.config]
        means = {n: fmean(values) for n, values in curve.bandwidths_mib_s.items()}
        yield HALVES, MODEL, judge(ask(curve.config, knowledge), runs)
        yield HALVES, NEAREST, judge(ask(curve.config, Knowledge(known)), runs)
        yield HALVES, MEAN, judge(of_means(means), runs)
    for phases, judged in _applications(held_back, knowledge, SEED + 2 * seed + side):
        yield KNOWN_APPLICATIONS, phases, judged


def pattern_left_out(curves: Sequence[Curve], index: int) -> Iterator[Case]:
    """Predict a pattern with a model that is fitted to all other patterns only."""
    curve = curves[index]
    rest = tuple(other for other in curves if other is not curve)
    knowledge = Knowledge(rest, fit_model(rest))
    yield LEFT_OUT, MODEL, judge(ask(curve.config, knowledge), curve.bandwidths_mib_s)
    yield from _by_others(LEFT_OUT, [curve], rest)
    yield from _without_predicting(LEFT_OUT, curve)
    yield from _by_past(LEFT_OUT, curve, knowledge)


def applications_left_out(curves: Sequence[Curve], fold: int) -> Iterator[Case]:
    """Predict applications of the patterns of a fold from all other patterns."""
    order = Random(SEED).sample(range(len(curves)), len(curves))  # noqa: S311
    members = [curves[i] for i in order[fold::FOLDS]]
    others = tuple(curve for curve in curves if curve not in members)
    runs = {curve.config: curve.bandwidths_mib_s for curve in members}
    knowledge = Knowledge(others, fit_model(others))
    for phases, judged in _applications(runs, knowledge, SEED + fold):
        yield NEW_APPLICATIONS, phases, judged


def group_left_out(curves: Sequence[Curve], protocol: str, value: float) -> Iterator[Case]:
    """Predict all patterns with one value of the property that the protocol leaves out."""
    members = [curve for curve in curves if GROUPS[protocol](curve.config) == value]
    others = tuple(curve for curve in curves if curve not in members)
    knowledge = Knowledge(others, fit_model(others))
    for curve in members:
        yield protocol, MODEL, judge(ask(curve.config, knowledge), curve.bandwidths_mib_s)
    yield from _by_others(protocol, members, others)
    if protocol == REQUESTS:
        for curve in members:
            yield from _by_past(protocol, curve, knowledge)


def alone(curves: Sequence[Curve], of_other_system: Sequence[Curve]) -> Iterator[Case]:
    """Predict each pattern of a small system from its other patterns.

    The model is fitted to these patterns only, or it is the model of another system.
    """
    other_model = fit_model(of_other_system)
    for curve in curves:
        rest = tuple(other for other in curves if other is not curve)
        knowledge = Knowledge(rest, fit_model(rest))
        yield SANTOS_DUMONT, MODEL, judge(ask(curve.config, knowledge), curve.bandwidths_mib_s)
        knowledge = Knowledge(rest, other_model)
        judged = judge(ask(curve.config, knowledge), curve.bandwidths_mib_s)
        yield SANTOS_DUMONT, OTHER_MODEL, judged
        yield from _by_others(SANTOS_DUMONT, [curve], rest)


def elsewhere(curves: Sequence[Curve], of_other_system: Sequence[Curve]) -> Iterator[Case]:
    """Predict each pattern by another system's model, and by all sets of 1 to 3 cells."""
    model = fit_model(of_other_system)
    whole = Knowledge(tuple(of_other_system), model)
    for curve in curves:
        config, runs = curve.config, curve.bandwidths_mib_s
        yield ELSEWHERE, "no cell", judge(ask(config, whole), runs)
        yield from _by_past(ELSEWHERE, curve, whole)
        # Leave out the other system's curve of the same pattern: it would count as measured cells.
        found = whole.match(config)
        unlike = [other for other in of_other_system if found.distance or other is not found.curve]
        for count in (1, 2, 3):
            for cells in combinations(runs, count):
                few = replace(curve, bandwidths_mib_s={n: runs[n] for n in cells})
                forecast = ask(config, Knowledge((*unlike, few), model), io_nodes=tuple(runs))
                way = f"{count} cell{'s' * (count > 1)}"
                yield ELSEWHERE, way, judge(forecast, runs, without=cells)


def ask(
    config: IorConfig,
    knowledge: Knowledge,
    *,
    io_nodes: Sequence[int] | None = None,
    past: tuple[int, float] | None = None,
) -> Forecast:
    """The forecast for an application with the I/O of a configuration.

    `past` is an earlier run: its number of I/O nodes and its bandwidth in MiB/s.
    """
    ran_with, observed = past or (None, 1.0)
    moved = (config.tasks or 1) * config.bytes_per_process
    return predicted(
        predict(
            [phase_of(config, time_s=moved / MIB / observed)],
            knowledge,
            system="FORGE",
            nodes=config.nodes,
            io_nodes=io_nodes,
            ran_with=ran_with,
        )
    )


def _half(curve: Curve, seed: int) -> tuple[Curve, Curve]:
    """Split the repetitions of each cell into random halves."""
    random = np.random.default_rng((seed, curve.id))
    first, second = {}, {}
    for n, values in curve.bandwidths_mib_s.items():
        shuffled = random.permutation(values).tolist()
        first[n], second[n] = tuple(shuffled[::2]), tuple(shuffled[1::2])
    return replace(curve, bandwidths_mib_s=first), replace(curve, bandwidths_mib_s=second)


def _by_others(protocol: str, members: Sequence[Curve], rest: tuple[Curve, ...]) -> Iterator[Case]:
    """Predict with the nearest benchmark, and with other models."""
    estimators = fitted(rest)
    for curve in members:
        runs = curve.bandwidths_mib_s
        yield protocol, NEAREST, judge(ask(curve.config, Knowledge(rest)), runs)
        for name, estimator in estimators.items():
            forecast = of_means(means_of(estimator, curve.config, tuple(runs)))
            yield protocol, name, judge(forecast, runs)


def _without_predicting(protocol: str, curve: Curve) -> Iterator[Case]:
    """Judge the cells' own means, and the same number of I/O nodes for every job."""
    runs = curve.bandwidths_mib_s
    own = of_means({n: fmean(values) for n, values in runs.items()})
    yield protocol, FLOOR, judge(own, runs)
    for n in ALWAYS:
        fixed = own._replace(best=n, decision=n)
        yield protocol, f"always {n} I/O nodes", judge(fixed, runs, without=runs)


def _by_past(protocol: str, curve: Curve, knowledge: Knowledge) -> Iterator[Case]:
    """Predict with each run as the application's earlier run; its own cell is left out."""
    runs = curve.bandwidths_mib_s
    plain = ask(curve.config, knowledge)
    for n in ANCHORS:
        for run in runs[n]:
            corrected = ask(curve.config, knowledge, past=(n, run))
            ways = {
                WITHOUT: plain,
                PAST: corrected,
                SCALED: scaled(plain, run / plain.means[n]),
            }
            for way, forecast in ways.items():
                yield protocol, at(way, n), judge(forecast, runs, without=(n,))


def at(way: str, io_nodes: int) -> str:
    return f"{way}, at {io_nodes}"


def _applications(
    held_back: Mapping[IorConfig, Runs], knowledge: Knowledge, seed: int
) -> Iterator[tuple[str, Judged]]:
    """Judge applications of random phases; their runs are composed of held-back repetitions."""
    chance = Random(seed)  # noqa: S311
    sizes = sorted({config.nodes or 0 for config in held_back})
    for count in range(1, MOST_PHASES + 1):
        for _ in range(APPLICATIONS):
            # All phases of a job have the same number of nodes.
            nodes = chance.choice(sizes)
            able = [config for config in held_back if config.nodes == nodes]
            work = [
                (config, _some_bytes(config, chance)) for config in chance.choices(able, k=count)
            ]
            phases = [
                phase_of(config, moved, start_s=2.0 * i) for i, (config, moved) in enumerate(work)
            ]
            forecast = predicted(predict(phases, knowledge, system="FORGE", nodes=nodes))
            runs = {
                n: [_run(work, held_back, n, chance) for _ in range(RUNS_OF_APPLICATION)]
                for n in forecast.means
            }
            yield f"{count} phase{'s' * (count > 1)}", judge(forecast, runs)


def _some_bytes(config: IorConfig, chance: Random) -> int:
    """A random number of bytes from 16 GiB to 1 TiB, in whole requests of all processes."""
    at_once = (config.tasks or 1) * config.transfer_size
    wanted = GIB * math.exp(chance.uniform(math.log(16), math.log(1024)))
    return max(round(wanted / at_once), 2) * at_once


def _run(
    work: Sequence[tuple[IorConfig, int]],
    held_back: Mapping[IorConfig, Runs],
    io_nodes: int,
    chance: Random,
) -> float:
    """MiB/s of one run: all bytes over the sum of the phases' times."""
    seconds = sum(moved / chance.choice(held_back[config][io_nodes]) for config, moved in work)
    return sum(moved for _, moved in work) / seconds
