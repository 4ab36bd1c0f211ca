"""Models that are fitted to a made-up system, whose truth is known, and to FORGE's measurements."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from benchdb.measurements.importers import ResultFile, read_measurements
from ior_configs import IorConfig
from predictor.model import fitting
from predictor.model.fitting import fit_model
from predictor.model.stored import from_document, to_document
from predictor.model.system_model import Model, SystemModel

pytestmark = pytest.mark.slow

MIB = 1 << 20
HALF_WIDTH = 1.2816
CONFIG = IorConfig(write=True, block_size=4 * MIB, transfer_size=MIB, tasks=12, nodes=5)


def coverage(system: Any, knowledge: SystemModel, curves: Iterable[Curve]) -> float:
    """Compute the share of twenty new runs of each cell between p10 and p90."""
    inside = []
    for curve in curves:
        found = knowledge.expect([knowledge.match(curve.config)], system.IO_NODES)
        half = HALF_WIDTH * np.sqrt(np.diag(found.covariance) + found.noise)
        for i, values in enumerate(system.runs(curve.config, 20, seed=1).values()):
            inside.append(np.abs(np.log(values) - found.mean[i]) <= half[i])
    return float(np.mean(inside))


def test_four_fifths_of_new_runs_are_between_p10_and_p90(synthetic: Any, fitted: Model) -> None:
    """This holds for measured configurations and for others, on average over several systems."""
    known, left_out = [], []
    for seed in range(4):
        system = replace(synthetic, seed=seed)
        model = fitted if seed == synthetic.seed else fit_model(system.curves)
        knowledge = SystemModel(system.curves, model)
        known.append(coverage(system, knowledge, system.curves))
        left_out.append(coverage(system, knowledge, system.left_out))
    assert 0.75 <= fmean(known) <= 0.85
    assert 0.75 <= fmean(left_out) <= 0.85


def errors(knowledge: SystemModel, curves: Iterable[Curve]) -> list[float]:
    """Compute relative errors against the mean of each cell."""
    found = []
    for curve in curves:
        match, cells = knowledge.match(curve.config), curve.bandwidths_mib_s
        if knowledge.model is None:
            assert match.curve is not None
            near = match.curve.bandwidths_mib_s
            expected = {n: fmean(near[n]) for n in cells if n in near}
        else:
            told = knowledge.expect([match], [*cells])
            expected = dict(zip(cells, np.exp(told.mean), strict=True))
        found += [abs(expected[n] / fmean(cells[n]) - 1) for n in expected]
    return found


def test_the_scores_are_the_errors_when_one_configuration_after_the_other_is_left_out(
    synthetic: Any, fitted: Model
) -> None:
    assert fitted.scores is not None
    assert fitted.scores.patterns == 40
    found = []
    for left in range(40):
        rest = tuple(c for i, c in enumerate(synthetic.curves) if i != left)
        found.append(errors(SystemModel(rest, fitted), [synthetic.curves[left]]))
    assert fitted.scores.cell_error == pytest.approx(fmean(chain.from_iterable(found)), rel=1e-6)
    moved = [c.config.tasks * c.config.block_size * c.config.segments for c in synthetic.curves]
    large = [fmean(f) for f, m in zip(found, moved, strict=True) if m >= 0.01 * fmean(moved)]
    assert fitted.scores.small_patterns == 40 - len(large)
    assert fitted.scores.median_error == pytest.approx(median(large), rel=1e-6)
    assert fitted.scores.regret < 0.05


def test_patterns_that_were_left_out_are_predicted_better_than_by_the_nearest(
    synthetic: Any, fitted: Model
) -> None:
    model = fmean(errors(SystemModel(synthetic.curves, fitted), synthetic.left_out))
    nearest = fmean(errors(SystemModel(synthetic.curves), synthetic.left_out))
    assert model < 0.75 * nearest


def test_a_size_that_says_nothing_where_it_was_not_measured_widens(synthetic: Any) -> None:
    """Bandwidth jumps up or down by a factor of e^4 from each request size to the next."""
    levels = {65536: -2.0, 4 * 65536: 2.0, 16 * 65536: -2.0, 64 * 65536: 2.0}

    def jumping(curve: Curve) -> Curve:
        factor = math.exp(levels[curve.config.transfer_size])
        return replace(
            curve,
            bandwidths_mib_s={
                n: tuple(factor * value for value in values)
                for n, values in curve.bandwidths_mib_s.items()
            },
        )

    curves = tuple(map(jumping, synthetic.curves))
    model = fit_model(curves)
    knowledge = SystemModel(curves, model)
    doubts = []
    for mib in (4, 16, 64):
        wanted = replace(CONFIG, tasks=16, nodes=8, transfer_size=mib * MIB, block_size=64 * MIB)
        found = knowledge.expect([knowledge.match(wanted)], [1])
        doubts.append(math.sqrt(found.covariance[0, 0]))
    assert doubts[0] < doubts[1] < doubts[2]
    assert doubts[2] > 1


def test_numbers_of_processes_whose_configurations_differ_more_have_wider_intervals(
    synthetic: Any,
) -> None:
    chance = random.Random(1)

    def differing(curve: Curve) -> Curve:
        off = math.exp(chance.gauss(0, 1) if curve.config.tasks == 256 else 0)
        cells = curve.bandwidths_mib_s.items()
        runs = {n: tuple(off * value for value in values) for n, values in cells}
        return replace(curve, bandwidths_mib_s=runs)

    model = fit_model([differing(curve) for curve in synthetic.curves])
    factors = model.factors_of_processes
    assert set(factors) == {16, 64, 256}
    assert factors[256] > 1.2 * max(factors[16], factors[64])
    curve = next(one for one in synthetic.left_out if one.config.tasks == 256)
    found = SystemModel(synthetic.curves, model).match(curve.config)
    assert model.factor(found, 4) == model.new_factors[4] * factors[256]


@pytest.mark.parametrize("powers", [1, 4])
def test_sizes_that_hardly_differ_say_nothing_of_what_is_far_off(powers: int) -> None:
    """Benchmarks of a log's own sizes are such: 1 MiB, 1 MiB and 8 bytes, 1 MiB and 16 bytes ..."""
    chance = random.Random(1)

    def runs() -> dict[int, tuple[float, ...]]:
        own = chance.gauss(5, 0.3)
        return {n: tuple(math.exp(own + chance.gauss(0, 0.1)) for _ in range(3)) for n in (0, 4)}

    transfers = [(MIB << i % powers) + 8 * i for i in range(24)]
    curves = tuple(
        Curve(i, replace(CONFIG, transfer_size=size, block_size=4 * size), "ior", runs())
        for i, size in enumerate(transfers)
    )
    knowledge = SystemModel(curves, fit_model(curves))
    for size in (MIB + 4096, 32 * MIB):
        wanted = replace(CONFIG, transfer_size=size, block_size=4 * size)
        found = knowledge.expect([knowledge.match(wanted)], [0, 4])
        assert (np.diag(found.covariance) < 3**2).all()


def test_learning_is_the_same_each_time_and_in_any_order(synthetic: Any) -> None:
    curves = synthetic.curves[:8]
    first, again = fit_model(curves), fit_model(curves)
    assert to_document(first) == to_document(again)
    shuffled = fit_model(random.Random(1).sample(curves, len(curves)))
    assert shuffled.features == first.features
    assert shuffled.measurements == first.measurements


def test_only_features_that_differ_are_learned(a_curve: Any) -> None:
    curves = [a_curve({0: (50.0,), 4: (60.0,)}, tasks=tasks) for tasks in (8, 16, 32)]
    assert fit_model(curves).features == (
        "processes",
        "processes per node",
        "I/O nodes",
        "processes per I/O node",
        "direct access",
    )


BIMODAL = (10.0, 11.0, 1000.0, 1100.0, 10.5)


def test_the_order_of_mpi_io_is_learned_only_where_it_differs(a_curve: Any) -> None:
    strided = {"api": "MPIIO", "block_size": 1 << 20, "segments": 4}
    curves = [a_curve(), a_curve(**strided)]
    assert fit_model(curves).features == ("MPI-IO",)
    curves.append(a_curve(api="MPIIO"))
    assert fit_model(curves).features == ("MPI-IO", "1D-strided MPI-IO")


@pytest.mark.parametrize(
    "cells",
    [
        [{0: (100.0,)}],
        [{0: (100.0, 100.0)}],
        [{0: (100.0, 100.0, 100.0), 4: (200.0,) * 3}],
        [{0: BIMODAL, 4: (100.0, 101.0)}],
        [{0: BIMODAL}],
        [dict.fromkeys((0, 1, 2, 4, 8), (100.0, 100.0))] * 6,
    ],
    ids=["one run", "one cell", "equal runs", "two modes", "only two modes", "all the same"],
)
def test_little_is_learned_from_little_and_never_with_certainty(
    cells: Sequence[dict[int, tuple[float, ...]]],
) -> None:
    curves = tuple(
        Curve(id_, replace(CONFIG, transfer_size=MIB >> id_), "ior", dict(values))
        for id_, values in enumerate(cells)
    )
    model = fit_model(curves)
    assert from_document(to_document(model)) is not None
    knowledge = SystemModel(curves, model)
    wanted = (curves[0].config, replace(CONFIG, transfer_size=8 * MIB, block_size=64 * MIB))
    for config in wanted:
        found = knowledge.expect([knowledge.match(config)], [0, 4])
        assert np.isfinite(found.mean).all()
        assert (np.diag(found.covariance) > 1e-6).all()
        assert (found.noise > 1e-8).all()


def test_sizes_that_are_not_known_do_not_stop_it(a_curve: Any) -> None:
    runs = {0: (50.0, 51.0), 4: (60.0, 61.0)}
    curves = (
        a_curve(runs, tasks=None, nodes=None),
        a_curve(runs, nodes=None),
        replace(a_curve(runs, tasks=64), stonewalled=True),
        a_curve(runs, tasks=32),
    )
    knowledge = SystemModel(curves, fit_model(curves))
    for curve in curves:
        found = knowledge.expect([knowledge.match(curve.config)], [0, 4])
        assert np.exp(found.mean) == pytest.approx([50.5, 60.5], rel=0.05)


# Real measurements


@pytest.fixture(scope="session")
def forge_curves(shared_data: Path) -> list[Curve]:
    """Read MareNostrum 4's curves with 0 to 8 I/O nodes."""
    cells: dict[IorConfig, dict[int, list[float]]] = {}
    for name in ("marenostrum-4-gpfs.csv", "marenostrum-4.csv"):
        text = (shared_data / "forge" / name).read_text()
        _, rows = read_measurements(ResultFile(name, text))
        for row in rows:
            if row.used:
                of_config = cells.setdefault(row.config, {})
                of_config.setdefault(row.io_nodes, []).append(row.bandwidth_mib_s)
    return [
        Curve(id_, config, "forge", {n: tuple(v) for n, v in found.items()}, stonewalled=True)
        for id_, (config, found) in enumerate(cells.items())
    ]


def test_left_out_patterns_of_a_supercomputer_are_predicted_better_than_by_the_nearest(
    forge_curves: list[Curve],
) -> None:
    random.Random(9366).shuffle(forge_curves)
    known, left_out = tuple(forge_curves[:40]), forge_curves[40:]
    assert len(left_out) == 109
    model = SystemModel(known, fit_model(known))
    assert fmean(errors(model, left_out)) < 0.8 * fmean(errors(SystemModel(known), left_out))


def test_the_experience_of_another_system_counts_where_it_lowers_errors(
    synthetic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors are those of configurations that are left out one after the other."""
    few = synthetic.curves[:10]
    chosen = fit_model(few)
    monkeypatch.setattr(fitting, "_LESS_WRONG", 0.0)
    alone = fit_model(few)
    monkeypatch.setattr(fitting, "_LESS_WRONG", math.inf)
    taught = fit_model(few)
    assert alone.parameters.trend.tolist() != taught.parameters.trend.tolist()
    assert alone.scores
    assert taught.scores
    best = min((alone, taught), key=lambda model: model.scores.cell_error)
    assert chosen.scores is not None
    assert chosen.scores.cell_error <= 1.1 * best.scores.cell_error


def test_many_configurations_need_no_other_system(
    synthetic: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(fitting, "learned", never)
    monkeypatch.setattr(fitting, "_FEW_PATTERNS", 30)
    fit_model(synthetic.curves)


def test_runs_with_numbers_of_io_nodes_that_were_never_measured_are_between_p10_and_p90(
    synthetic: Any,
) -> None:
    """The errors of numbers that are left out tell how wide these intervals must be."""
    inside = []
    for number in (2, 4):
        without = [
            replace(
                curve,
                bandwidths_mib_s={n: v for n, v in curve.bandwidths_mib_s.items() if n != number},
            )
            for curve in synthetic.curves
        ]
        knowledge = SystemModel(tuple(without), fit_model(without))
        for curve in synthetic.curves:
            found = knowledge.expect([knowledge.match(curve.config)], [number])
            half = HALF_WIDTH * np.sqrt(np.diag(found.covariance) + found.noise)
            runs = synthetic.runs(curve.config, 20, seed=1)[number]
            inside.append(np.abs(np.log(runs) - found.mean) <= half)
    assert 0.75 <= np.mean(inside) <= 0.95
