"""Predictions after a change of a system, from few new benchmarks and those from before.

    python benchmarks/after_change.py [--seeds N] [--patterns N]

Takes measured curves of the FORGE emulator (MareNostrum 4) and of experiments/data/testbed. Half of
the runs of each cell are from before a change, the other half, changed, from after it. After the
change some patterns are measured again; the predictions of all patterns are compared with the runs
after the change. The changes are planted:

- level: all bandwidths halve, but direct access loses a fifth; each cell changes by a standard
  deviation of 0.15 in addition;
- shape: in addition, each pattern has the curve that another pattern had, so old curves mislead.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from accuracy import read
from judging import Judged, judge, predicted, score
from measuring import DATA, Claim, machine
from threadpoolctl import threadpool_limits

from benchdb.measurements.curves import Curve
from experiments import datasets
from experiments.evaluation import named_curves
from experiments.held_back import phase_of
from experiments.shipped import DATA as SHIPPED
from predictor.curve.prediction import predict
from predictor.model.fitting import fit_model
from predictor.model.system_model import SystemModel

LEVEL, SHAPE = "level", "shape"
WITH_EARLIER, FROM_NOTHING, AS_THEY_ARE = "with earlier", "from nothing", "old as they are"
WAYS = (WITH_EARLIER, FROM_NOTHING, AS_THEY_ARE)
SINCE, BEFORE = "measured since", "only before"
# Patterns that were measured again.
AGAIN = {"MareNostrum 4": (1, 3, 6, 12), "testbed": (1, 3, 6)}
SEEDS, PATTERNS, WORKERS = 2, 30, 2
DEVIATION = 0.15

Scores = dict[tuple[str, str], list[Judged]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=SEEDS, metavar="N")
    parser.add_argument("--patterns", type=int, default=PATTERNS, metavar="N")
    parser.add_argument("--data", type=Path, default=DATA / "forge", metavar="FOLDER")
    arguments = parser.parse_args()
    print(f"{machine()}, load average {os.getloadavg()[0]:.1f}; {arguments.seeds} seeds")
    systems = {
        "MareNostrum 4": read(arguments.data)["MareNostrum 4"],
        "testbed": tuple(named_curves(datasets.read(SHIPPED / "testbed")).values()),
    }
    claims: list[Claim] = []
    with ProcessPoolExecutor(WORKERS, initializer=threadpool_limits, initargs=(1,)) as pool:
        for system, curves in systems.items():
            for change in (LEVEL, SHAPE):
                print(f"\n{system}, change of {change}: error of cells / regret / in p10 to p90")
                for again in AGAIN[system]:
                    task = partial(scores_of, curves, change, again, arguments.patterns)
                    found: Scores = {}
                    for one in pool.map(task, range(arguments.seeds)):
                        for key, judged in one.items():
                            found.setdefault(key, []).extend(judged)
                    print(*lines(found, again), sep="\n", flush=True)
                    claims += claims_of(
                        found, f"{system}, {change}, {again} patterns again", change
                    )
            print(cost(system, curves, arguments.patterns), flush=True)
    print("", *claims, sep="\n")


def scores_of(curves: Sequence[Curve], change: str, again: int, patterns: int, seed: int) -> Scores:
    """Judge all ways with one random choice of patterns that were measured again."""
    before, after = changed(curves, change, patterns, seed)
    chance = np.random.default_rng([seed, again])
    new = set(chance.permutation(len(after))[:again].tolist())
    measured = tuple(halved(curve, 0) for place, curve in enumerate(after) if place in new)
    truth = [halved(curve, 1) for curve in after]
    found: Scores = {}
    for way, knowledge in knowledges(before, measured).items():
        for place, curve in enumerate(truth):
            runs, config = curve.bandwidths_mib_s, curve.config
            prediction = predict(
                [phase_of(config)],
                knowledge,
                system="here",
                nodes=config.nodes,
                io_nodes=sorted(runs),
            )
            judged = judge(config, predicted(prediction), runs)
            found.setdefault((SINCE if place in new else BEFORE, way), []).append(judged)
    return found


def knowledges(before: tuple[Curve, ...], measured: tuple[Curve, ...]) -> Mapping[str, SystemModel]:
    as_new = tuple(replace(curve, before_change=False) for curve in before)
    return {
        WITH_EARLIER: with_earlier(measured, before),
        FROM_NOTHING: SystemModel(measured, fit_model(measured)),
        AS_THEY_ARE: SystemModel(as_new, fit_model(as_new)),
    }


def with_earlier(measured: tuple[Curve, ...], before: tuple[Curve, ...]) -> SystemModel:
    model = fit_model((*measured, *before))
    return SystemModel(measured, model, earlier=before if model.knows_change else ())


def changed(
    curves: Sequence[Curve], change: str, patterns: int, seed: int
) -> tuple[tuple[Curve, ...], tuple[Curve, ...]]:
    """Make the curves before and after a change, from different runs."""
    chance = np.random.default_rng(seed)
    numbers = sorted({n for curve in curves for n in curve.bandwidths_mib_s})
    whole = [
        curve
        for curve in curves
        if sorted(curve.bandwidths_mib_s) == numbers
        and min(map(len, curve.bandwidths_mib_s.values())) >= 4
    ]
    chosen = [whole[place] for place in chance.permutation(len(whole))[:patterns]]
    sources = chosen if change == LEVEL else [chosen[-1], *chosen[:-1]]
    before = tuple(replace(halved(curve, 0), before_change=True) for curve in chosen)
    after = tuple(
        replace(
            curve,
            bandwidths_mib_s={
                n: tuple(value * factor for value in halved(source, 1).bandwidths_mib_s[n])
                for n in numbers
                for factor in ((0.5 if n else 0.8) * math.exp(chance.normal(0, DEVIATION)),)
            },
        )
        for curve, source in zip(chosen, sources, strict=True)
    )
    return before, after


def halved(curve: Curve, first: int) -> Curve:
    """Take every second run of each cell."""
    runs = {n: values[first::2] for n, values in curve.bandwidths_mib_s.items()}
    return replace(curve, bandwidths_mib_s=runs)


def lines(found: Scores, again: int) -> Iterator[str]:
    for (group, way), judged in sorted(found.items()):
        own = score(judged)
        parts = [
            "-" if one is None else f"{one.value:.3f} ({one.low:.3f} to {one.high:.3f})"
            for one in (own.cell_error, own.regret, own.coverage)
            if one is None or one.low is not None
        ]
        answered = f"{own.forecasts} of {own.asked}"
        yield f"{again:3} {group:15} {way:16} {' / '.join(parts)}, answers {answered}"


def claims_of(found: Scores, where: str, change: str) -> Iterator[Claim]:
    ours, nothing = (score(found[BEFORE, way]) for way in (WITH_EARLIER, FROM_NOTHING))
    if ours.cell_error is None or nothing.cell_error is None:
        return
    ratio = ours.cell_error.value / nothing.cell_error.value
    most = 0.7 if change == LEVEL else 1.05
    yield Claim(
        f"error of cells at most {most} of that from nothing: {where}",
        f"{ratio:.2f}",
        ratio <= most,
    )
    if ours.coverage is not None:
        share = ours.coverage.value
        yield Claim(
            f"70 to 90 % of runs in p10 to p90: {where}", f"{share:.3f}", 0.7 <= share <= 0.9
        )


def cost(system: str, curves: Sequence[Curve], patterns: int) -> str:
    """Compare the time of a fit with that of one to as many curves without a change."""
    before, after = changed(curves, LEVEL, patterns, 0)
    as_new = [replace(curve, before_change=False) for curve in before]
    times = []
    for of_fit in ((*after[:3], *before), as_new):
        start = time.process_time()
        fit_model(of_fit)
        times.append(time.process_time() - start)
    return (
        f"{system}: a fit to 3 new and {len(before)} earlier curves takes {times[0]:.1f} s, one to"
        f" {len(as_new)} curves {times[1]:.1f} s"
    )


if __name__ == "__main__":
    main()
