"""The belief about cells, from few runs, from many, and from before a change of the system."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.model.gaussian import Posterior
from predictor.planning.knowledge import (
    FEWEST_RUNS,
    believed,
    hours_of,
    is_time_to_learn,
    learn,
    places_of,
)
from predictor.planning.next_run import expected_regret

MIB = 1 << 20
NUMBERS = (1, 2, 4, 8)
SHARED = IorConfig(write=True, block_size=16 * MIB, transfer_size=MIB, tasks=16, nodes=8)
# Files of each process gain from every I/O node, a shared file is best with two.
SHAPES = {True: (100.0, 200.0, 400.0, 800.0), False: (300.0, 600.0, 300.0, 150.0)}
CONFIGS = [
    replace(SHARED, file_per_process=unique, transfer_size=size << 10, block_size=16 * MIB)
    for unique in (True, False)
    for size in (64, 256, 1024, 4096)
]


def bandwidth(config: IorConfig, place: int) -> float:
    larger = math.log2(config.transfer_size / (64 << 10))
    return SHAPES[config.file_per_process][place] * (1 + 0.2 * larger)


def curve(config: IorConfig, factor: float, *places: int, repetitions: int = 3) -> Curve:
    scatter = np.linspace(0.97, 1.03, repetitions)
    values = {
        NUMBERS[place]: tuple((factor * bandwidth(config, place) * scatter).tolist())
        for place in places or range(len(NUMBERS))
    }
    return Curve(CONFIGS.index(config) + 1, config, "ior", values)


def errors(belief: Posterior, factor: float) -> float:
    truth = [factor * bandwidth(config, place) for config in CONFIGS for place in range(4)]
    return float(np.abs(np.exp(belief.mean) / truth - 1).mean())


def test_without_a_run_nothing_is_known_and_everything_is_in_doubt() -> None:
    places = places_of(CONFIGS, NUMBERS, [])
    belief = believed(places, learn(places))
    assert len(set(belief.mean.tolist())) == 1
    assert np.sqrt(np.diag(belief.covariance)).min() > 0.3
    assert expected_regret(belief, np.ones(len(CONFIGS))) > 0.1


def test_measured_cells_are_known_and_their_neighbours_nearly() -> None:
    known = [curve(config, 1.0) for config in CONFIGS if config.transfer_size != 256 << 10]
    places = places_of(CONFIGS, NUMBERS, known)
    belief = believed(places, learn(places))
    assert errors(belief, 1.0) < 0.05
    best = belief.mean.reshape(-1, len(NUMBERS)).argmax(axis=1)
    assert best.tolist() == [3, 3, 3, 3, 1, 1, 1, 1]


def test_curves_from_before_a_change_tell_the_shapes_and_new_runs_the_level() -> None:
    earlier = [replace(curve(config, 1.0), before_change=True) for config in CONFIGS]
    # All bandwidths halved. One configuration of eight is measured anew, with two numbers.
    now = [curve(CONFIGS[1], 0.5, 0, 3, repetitions=6)]
    with_earlier = places_of(CONFIGS, NUMBERS, [*now, *earlier])
    alone = places_of(CONFIGS, NUMBERS, now)
    belief = believed(with_earlier, learn(with_earlier))
    assert errors(belief, 0.5) < 0.2 < errors(believed(alone, learn(alone)), 0.5)
    best = belief.mean.reshape(-1, len(NUMBERS)).argmax(axis=1)
    assert best.tolist() == [3, 3, 3, 3, 1, 1, 1, 1]


def test_after_a_change_and_before_the_first_run_the_level_is_in_doubt() -> None:
    earlier = [replace(curve(config, 1.0), before_change=True) for config in CONFIGS]
    places = places_of(CONFIGS, NUMBERS, earlier)
    belief = believed(places, learn(places))
    deviations = np.sqrt(np.diag(belief.covariance))
    # The level of a changed system is expected to differ by a logarithm of about 0.5.
    assert 0.2 < deviations.min() < 1.5
    assert errors(belief, 1.0) < 0.2


def test_hours_are_bytes_over_the_best_bandwidth() -> None:
    belief = Posterior(np.log([100.0, 200.0, 50.0, 25.0]), np.eye(4), np.ones(4))
    both = CONFIGS[:2]
    moved = {CONFIGS[0]: 3600 * 200 * MIB, CONFIGS[1]: 3600 * 50 * 3 * MIB}
    assert hours_of(both, moved, belief) == pytest.approx([1, 3])
    assert hours_of(both, {}, belief).tolist() == [1, 1]
    # A configuration without bytes counts as the median of the others.
    assert hours_of(both, {CONFIGS[0]: 3600 * 200 * MIB}, belief) == pytest.approx([1, 4])


def test_learning_becomes_rarer_the_more_is_known() -> None:
    times = [runs for runs in range(1, 100) if is_time_to_learn(runs)]
    assert times[0] == FEWEST_RUNS
    gaps = np.diff(times)
    assert (np.diff(gaps) >= 0).all()
    assert gaps[-1] >= 0.15 * times[-2]
