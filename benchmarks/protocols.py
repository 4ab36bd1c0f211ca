"""Protocols of validation: hold a part of the measurements back and predict it from the rest.

A protocol yields cases: a way to predict, and a forecast compared with the runs that were held
back. The forecasts are those of `predictor.curve.prediction.predict`, as users get them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path
from random import Random

import numpy as np
from judging import Forecast, Judged, interpolated, judge, of_means, predicted
from peers import fitted, means_of

from benchdb.measurements.curves import Curve
from experiments.datasets import read
from experiments.evaluation import evaluate
from experiments.held_back import phase_of
from ioncast_base.wording import in_words
from ior_configs import IorConfig
from predictor.curve.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel
from predictor.validation.against_reruns import Reruns, mean_of_cells

MODEL = "ioncast"
NEAREST = "nearest benchmark (no model)"
MEAN = "arithmetic mean"
FLOOR = "the cells' own means (what noise leaves)"
INTERPOLATION = "interpolation between neighbours"
OTHER_MODEL = "ioncast, with MareNostrum 4's model"
PAST, SCALED, WITHOUT = "one run", "one run, whole ratio", "no run, same cells"
ALL_STUDIES = "ioncast, from all studies' benchmarks"
OTHER_STUDIES = "ioncast, from the other studies' benchmarks"

# Numbers of I/O nodes of earlier runs, and those that every job might get.
ANCHORS = (0, 1, 2, 8)
ALWAYS = (0, 2, 8)
MOST_PHASES = 6
# Applications with each number of phases, in each fold or half.
APPLICATIONS = 100
RUNS_OF_APPLICATION = 10
SEED = 9366
MIB = 1 << 20
GIB = 1 << 30

Case = tuple[str, Judged]


def few_repetitions(curves: Sequence[Curve], seed: int, side: int) -> Iterator[Case]:
    """Predict one half of the repetitions from the other."""
    known, held_back = _halves(curves, seed, side)
    knowledge = SystemModel(known, fit_model(known))
    for curve in known:
        config, runs = curve.config, held_back[curve.config]
        yield MODEL, judge(config, ask(curve, knowledge), runs)
        yield NEAREST, judge(config, ask(curve, SystemModel(known)), runs)
        yield MEAN, judge(config, of_means(mean_of_cells(curve.bandwidths_mib_s)), runs)


def known_applications(curves: Sequence[Curve], seed: int, side: int) -> Iterator[Case]:
    """Predict applications of one half of the repetitions from the other half."""
    known, held_back = _halves(curves, seed, side)
    knowledge = SystemModel(known, fit_model(known))
    yield from _applications(held_back, knowledge, SEED + 2 * seed + side)


def new_applications(curves: Sequence[Curve], left_out: Sequence[int], seed: int) -> Iterator[Case]:
    """Predict applications of the patterns that are left out."""
    members, knowledge = _without(curves, left_out)
    runs = {curve.config: curve.bandwidths_mib_s for curve in members}
    yield from _applications(runs, knowledge, SEED + seed)


def patterns_left_out(
    curves: Sequence[Curve], left_out: Sequence[int], *, past: bool = False, fixed: bool = False
) -> Iterator[Case]:
    """Predict some patterns with a model that is fitted to all others only.

    Parameters
    ----------
    curves : sequence of Curve
        All patterns.
    left_out : sequence of int
        The places of those to predict.
    past, fixed : bool
        Whether to predict also with each run as an earlier run of the application, and to judge
        also the same number of I/O nodes for all.
    """
    members, knowledge = _without(curves, left_out)
    for curve in members:
        yield MODEL, judge(curve.config, ask(curve, knowledge), curve.bandwidths_mib_s)
    yield from _by_others(members, knowledge.curves)
    for curve in members:
        yield from _without_predicting(curve) if fixed else ()
        yield from _by_past(curve, knowledge) if past else ()


def by_other_model(curves: Sequence[Curve], of_other_system: Sequence[Curve]) -> Iterator[Case]:
    """Predict each pattern from the others with the model of another system."""
    model = fit_model(of_other_system)
    for curve in curves:
        rest = tuple(other for other in curves if other is not curve)
        forecast = ask(curve, SystemModel(rest, model))
        yield OTHER_MODEL, judge(curve.config, forecast, curve.bandwidths_mib_s)


def elsewhere(curves: Sequence[Curve], of_other_system: Sequence[Curve]) -> Iterator[Case]:
    """Predict each pattern by another system's model, and by all sets of 1 to 3 cells."""
    model = fit_model(of_other_system)
    whole = SystemModel(tuple(of_other_system), model)
    for curve in curves:
        config, runs = curve.config, curve.bandwidths_mib_s
        yield "no cell", judge(config, ask(curve, whole), runs)
        yield from _by_past(curve, whole)
        # Leave out the other system's curve of the same pattern: it would count as measured cells.
        found = whole.match(config)
        unlike = [other for other in of_other_system if found.distance or other is not found.curve]
        for count in (1, 2, 3):
            for cells in combinations(runs, count):
                few = replace(curve, bandwidths_mib_s={n: runs[n] for n in cells})
                forecast = ask(curve, SystemModel((*unlike, few), model))
                way = f"{count} cell{'s' * (count > 1)}"
                yield way, judge(config, forecast, runs, only=runs.keys() - cells)


def numbers_left_out(
    curves: Sequence[Curve], left_out: Sequence[int], of: str = ""
) -> Iterator[Case]:
    """Predict one number of I/O nodes of each pattern, which is left out; choose among all.

    Parameters
    ----------
    curves : sequence of Curve
        All patterns.
    left_out : sequence of int
        The number that each pattern lacks.
    of : str
        Ends the names of the ways.
    """
    rest = tuple(
        replace(curve, bandwidths_mib_s=_others(curve.bandwidths_mib_s, n))
        for curve, n in zip(curves, left_out, strict=True)
    )
    knowledge = SystemModel(rest, fit_model(rest))
    for curve, known, n in zip(curves, rest, left_out, strict=True):
        config, runs = curve.config, curve.bandwidths_mib_s
        means = interpolated(mean_of_cells(known.bandwidths_mib_s), n)
        way = MODEL if means else without(n)
        yield way + of, judge(config, ask(curve, knowledge), runs, only=(n,))
        if means:
            yield INTERPOLATION + of, judge(config, of_means(means), runs, only=(n,))


def without(io_nodes: int) -> str:
    """Name the way without a number that has no neighbour on both sides."""
    return f"{MODEL}, without {in_words(io_nodes)}"


def of_study(folder: Path, others: Sequence[Path]) -> Iterator[Case]:
    """Predict the applications of a study from its benchmarks, and from those of other studies."""
    data = read(folder)
    strange = tuple(chain.from_iterable(read(other).benchmarks for other in others))
    own = evaluate(data)
    by_way = {
        MODEL: own,
        ALL_STUDIES: evaluate(replace(data, benchmarks=(*data.benchmarks, *strange))),
        OTHER_STUDIES: evaluate(replace(data, benchmarks=strange)),
    }
    for name, validated in own.validated.items():
        forecasts = {way: predicted(found.predictions[name]) for way, found in by_way.items()}
        forecasts[NEAREST] = of_means(own.composed[name].mean_mib_s)
        for way, forecast in forecasts.items():
            yield way, judge(f"{folder.name}: {name}", forecast, validated.reruns)


def ask(
    curve: Curve, knowledge: SystemModel, *, past: tuple[int, float] | None = None
) -> Forecast | None:
    """The forecast for an application with the I/O of a curve's configuration.

    `past` is an earlier run: its number of I/O nodes and its bandwidth in MiB/s.
    """
    ran_with, observed = past or (None, 1.0)
    config = curve.config
    moved = (config.tasks or 1) * config.bytes_per_process
    return predicted(
        predict(
            [phase_of(config, time_s=moved / MIB / observed)],
            knowledge,
            system="FORGE",
            nodes=config.nodes,
            io_nodes=tuple(curve.bandwidths_mib_s),
            ran_with=ran_with,
        )
    )


def at(way: str, io_nodes: int) -> str:
    return f"{way}, at {io_nodes}"


def _without(curves: Sequence[Curve], left_out: Collection[int]) -> tuple[list[Curve], SystemModel]:
    """Split patterns into those left out, and the knowledge of the others."""
    others = tuple(curve for i, curve in enumerate(curves) if i not in left_out)
    return [curves[i] for i in left_out], SystemModel(others, fit_model(others))


def _others(cells: Reruns, io_nodes: int) -> dict[int, tuple[float, ...]]:
    return {n: tuple(runs) for n, runs in cells.items() if n != io_nodes}


def _halves(
    curves: Sequence[Curve], seed: int, side: int
) -> tuple[tuple[Curve, ...], Mapping[IorConfig, Reruns]]:
    """Split the repetitions: the curves of one half, and the runs of the other half."""
    halves = [_half(curve, seed) for curve in curves]
    held_back: dict[IorConfig, Reruns] = {
        pair[side].config: pair[1 - side].bandwidths_mib_s for pair in halves
    }
    return tuple(pair[side] for pair in halves), held_back


def _half(curve: Curve, seed: int) -> tuple[Curve, Curve]:
    """Split the repetitions of each cell into random halves."""
    random = np.random.default_rng((seed, curve.id))
    first, second = {}, {}
    for n, values in curve.bandwidths_mib_s.items():
        shuffled = random.permutation(values).tolist()
        first[n], second[n] = tuple(shuffled[::2]), tuple(shuffled[1::2])
    return replace(curve, bandwidths_mib_s=first), replace(curve, bandwidths_mib_s=second)


def _by_others(members: Sequence[Curve], rest: tuple[Curve, ...]) -> Iterator[Case]:
    """Predict with the nearest benchmark, and with other models."""
    estimators = fitted(rest)
    for curve in members:
        config, runs = curve.config, curve.bandwidths_mib_s
        yield NEAREST, judge(config, ask(curve, SystemModel(rest)), runs)
        for name, estimator in estimators.items():
            yield name, judge(config, of_means(means_of(estimator, curve, tuple(runs))), runs)


def _without_predicting(curve: Curve) -> Iterator[Case]:
    """Judge the cells' own means, and the same number of I/O nodes for every job."""
    config, runs = curve.config, curve.bandwidths_mib_s
    means = mean_of_cells(runs)
    yield FLOOR, judge(config, of_means(means), runs)
    for n in ALWAYS:
        yield f"always {n} I/O nodes", judge(config, Forecast(means, {}, n, n), runs, only=())


def _by_past(curve: Curve, knowledge: SystemModel) -> Iterator[Case]:
    """Predict with each run as the application's earlier run; its own cell is left out."""
    config, runs = curve.config, curve.bandwidths_mib_s
    plain = ask(curve, knowledge)
    if plain is None:
        return
    for n in ANCHORS:
        for run in runs[n]:
            factor = run / plain.means[n]
            ways = {
                WITHOUT: plain,
                PAST: ask(curve, knowledge, past=(n, run)),
                SCALED: of_means({m: factor * mean for m, mean in plain.means.items()}),
            }
            for way, forecast in ways.items():
                yield at(way, n), judge(config, forecast, runs, only=runs.keys() - {n})


def _applications(
    held_back: Mapping[IorConfig, Reruns], knowledge: SystemModel, seed: int
) -> Iterator[Case]:
    """Judge applications of random phases; their runs are composed of held-back repetitions."""
    chance = Random(seed)  # noqa: S311
    sizes = sorted({config.nodes or 0 for config in held_back})
    for count in range(1, MOST_PHASES + 1):
        for number in range(APPLICATIONS):
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
                for n in held_back[able[0]]
            }
            name = f"{seed}: {count} phases, {number}"
            yield f"{count} phase{'s' * (count > 1)}", judge(name, forecast, runs)


def _some_bytes(config: IorConfig, chance: Random) -> int:
    """A random number of bytes from 16 GiB to 1 TiB, in whole requests of all processes."""
    at_once = (config.tasks or 1) * config.transfer_size
    wanted = GIB * math.exp(chance.uniform(math.log(16), math.log(1024)))
    return max(round(wanted / at_once), 2) * at_once


def _run(
    work: Sequence[tuple[IorConfig, int]],
    held_back: Mapping[IorConfig, Reruns],
    io_nodes: int,
    chance: Random,
) -> float:
    """MiB/s of one run: all bytes over the sum of the phases' times."""
    seconds = sum(moved / chance.choice(held_back[config][io_nodes]) for config, moved in work)
    return sum(moved for _, moved in work) / seconds
