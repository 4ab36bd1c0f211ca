"""The knowledge of predictions: matches, and what the model predicts for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from predictor.matching.nearest import SIZES
from predictor.model.features import pattern
from predictor.model.gaussian import condition
from predictor.model.system_model import Model, SystemModel, gaps, measurements, widened

KIB, MIB = 1 << 10, 1 << 20
MakeCurve = Callable[..., Curve]
# The configuration of `a_curve` in conftest.py.
SAME = IorConfig(write=True, block_size=4 * MIB, transfer_size=MIB, tasks=16, nodes=8)


@pytest.fixture(scope="module")
def knowledge(synthetic: Any, fitted: Model) -> SystemModel:
    return SystemModel(synthetic.curves, fitted)


def test_curves_of_several_engines_are_rejected(a_curve: MakeCurve) -> None:
    with pytest.raises(InputError, match="several engines: fio, ior"):
        SystemModel((a_curve(), a_curve(engine="fio")))


def test_a_pattern_is_between_measured_ones_or_beyond_them(
    a_curve: MakeCurve, fitted: Model
) -> None:
    curves = (a_curve(), a_curve(tasks=64, nodes=32, transfer_size=4 * MIB, block_size=64 * MIB))
    between = replace(SAME, tasks=32, nodes=16)
    for wanted, kind, without in (
        (SAME, "exact", "exact"),
        (between, "interpolated", "interpolated"),
        (replace(SAME, tasks=128, nodes=64), "model", "interpolated"),
        (replace(SAME, transfer_size=MIB // 4), "model", "interpolated"),
        (replace(SAME, nodes=16), "model", "interpolated"),
        (replace(SAME, nodes=None, tasks=32), "interpolated", "interpolated"),
        (SAME.for_operation("write"), "exact", "exact"),
        (replace(SAME, write=False, read=True), "unknown", "unknown"),
        (replace(SAME, file_per_process=True), "unknown", "unknown"),
    ):
        assert SystemModel(curves, fitted).match(wanted).kind == kind, wanted
        assert SystemModel(curves).match(wanted).kind == without, wanted


def test_only_the_very_configuration_has_repetitions(a_curve: MakeCurve) -> None:
    knowledge = SystemModel((a_curve({0: (5.0, 6.0), 4: (7.0,)}),))
    assert knowledge.match(SAME).repetitions == {0: (5.0, 6.0), 4: (7.0,)}
    assert knowledge.match(replace(SAME, tasks=32)).repetitions == {}
    assert knowledge.match(replace(SAME, write=False, read=True)).repetitions == {}


def test_the_numbers_of_io_nodes_are_those_of_the_same_kinds(a_curve: MakeCurve) -> None:
    knowledge = SystemModel(
        (
            a_curve({0: (1.0,), 2: (1.0,)}),
            a_curve({8: (1.0,)}, tasks=64),
            a_curve({4: (1.0,)}, read=True),
        )
    )
    written, read = knowledge.match(SAME), knowledge.match(IorConfig(read=True, tasks=16))
    assert knowledge.io_nodes([written]) == [0, 2, 8]
    assert knowledge.io_nodes([read]) == [4]
    assert knowledge.io_nodes([written, read]) == [0, 2, 4, 8]
    assert knowledge.io_nodes([]) == []


def test_cells_of_two_modes_say_nothing_of_others(a_curve: MakeCurve) -> None:
    table_9 = (488.3, 526.2, 331.5, 41971.4, 409.7)
    rows, io_nodes, logarithms = measurements([a_curve({0: table_9, 4: (500.0, 600.0)})])
    assert io_nodes.tolist() == [4, 4]
    assert logarithms == pytest.approx([math.log(500), math.log(600)])
    assert len(rows) == 2


def test_a_gap_is_to_the_nearest_size_that_was_measured() -> None:
    measured = np.array([[4.0, 1.0, 20.0, np.nan], [6.0, 1.0, 16.0, 24.0]])

    def found(*row: float) -> tuple[list[float], list[bool]]:
        apart, is_between = gaps(np.array(row), measured)
        return apart.tolist(), is_between.tolist()

    assert found(4, 1, 16, 24)[0] == [0, 0, 0, 0]
    assert found(9, 1, 16, 24) == ([3, 0, 0, 0], [False] * 4)
    assert found(5, 3, 18, 24) == ([1, 2, 2, 0], [True, False, True, False])
    # An unknown size has no gap.
    assert found(4, math.nan, 20, 24)[0] == [0, 0, 0, 0]


def test_sizes_that_were_not_measured_are_in_doubt(knowledge: SystemModel) -> None:
    inside = replace(knowledge.curves[0].config, file_per_process=False, block_size=128 * MIB)
    widening = dict.fromkeys(SIZES, (0.05, 0.1))
    told = SystemModel(knowledge.curves, replace(knowledge.model, widening=widening))
    doubts = []
    for transfer in (4 * MIB, 8 * MIB, 32 * MIB, 128 * MIB):
        wanted = replace(inside, transfer_size=transfer)
        found = told.expect([told.match(wanted)], [1, 4])
        doubts.append(np.sqrt(np.diag(found.covariance)).mean())
    assert doubts == sorted(doubts)
    # One power of two beyond the largest measured size, 4 MiB, and five.
    assert doubts[1] >= math.sqrt(0.1)
    assert doubts[-1] >= math.sqrt(0.1)


def test_the_doubt_about_a_size_does_not_begin_at_once() -> None:
    gap = np.array([0.0, 0.15, 0.3, 5.0])
    beyond = np.zeros(4, dtype=bool)
    assert widened((0.05, 0.1), gap, beyond) == pytest.approx([0, 0.025, 0.1, 0.1])
    assert widened((0.05, 0.1), gap, ~beyond) == pytest.approx([0, 0.0125, 0.05, 0.05])


@pytest.mark.slow
def test_a_jump_counts_for_request_sizes_that_were_not_measured(
    jumping: SystemModel, synthetic: Any
) -> None:
    assert jumping.model is not None
    assert jumping.model.with_jump is not None
    smooth = SystemModel(jumping.curves, replace(jumping.model, with_jump=None))
    better = []
    for curve in jumping.curves:
        measured = curve.config
        if measured.transfer_size == MIB:
            assert np.array_equal(
                *(one.expect([one.match(measured)], [0, 4]).mean for one in (jumping, smooth))
            )
            count = measured.block_size // measured.transfer_size
            large = replace(measured, transfer_size=640 * KIB, block_size=count * 640 * KIB)
            truth = math.log(4) + np.array([*synthetic.truth(large).values()])
            with_jump, without = (
                np.abs(one.expect([one.match(large)], synthetic.IO_NODES).mean - truth).mean()
                for one in (jumping, smooth)
            )
            better.append(without - with_jump)
    assert np.mean(better) > 0.2


def test_known_and_new_request_sizes_are_predicted_together(jumping: SystemModel) -> None:
    configs = [curve.config for curve in jumping.curves[:2]]
    configs += [replace(one, transfer_size=640 * KIB, block_size=640 * KIB) for one in configs]
    matches = [jumping.match(config) for config in configs]
    together = jumping.expect(matches, [0, 1, 3, 4])
    for place, match in enumerate(matches):
        alone = jumping.expect([match], [0, 1, 3, 4])
        own = slice(4 * place, 4 * place + 4)
        assert together.mean[own] == pytest.approx(alone.mean)
        assert together.covariance[own, own] == pytest.approx(alone.covariance)
    np.linalg.cholesky(together.covariance + 1e-9 * np.eye(16))


def test_measured_cells_are_expected_near_to_what_was_measured_and_surer(
    knowledge: SystemModel, synthetic: Any
) -> None:
    errors, doubts, new_doubts = [], [], []
    for curve in knowledge.curves:
        known = knowledge.expect([knowledge.match(curve.config)], synthetic.IO_NODES)
        errors.append(known.mean - np.array([*synthetic.truth(curve.config).values()]))
        doubts.append(np.sqrt(np.diag(known.covariance)).mean())
    for curve in synthetic.left_out:
        new = knowledge.expect([knowledge.match(curve.config)], synthetic.IO_NODES)
        new_doubts.append(np.sqrt(np.diag(new.covariance)).mean())
    # The model is more certain than the mean of three runs alone.
    assert np.sqrt(np.mean(np.square(errors))) < synthetic.NOISE / math.sqrt(3)
    assert np.mean(doubts) < np.mean(new_doubts)


def test_measured_cells_and_others_are_trusted_by_factors_of_their_own(
    knowledge: SystemModel, synthetic: Any
) -> None:
    first, *rest = synthetic.curves
    partly = replace(first, bandwidths_mib_s={0: first.bandwidths_mib_s[0]})

    def spreads(curve: Curve, **factors: Any) -> np.ndarray:
        told = SystemModel((partly, *rest), replace(knowledge.model, **factors))
        found = told.expect([told.match(curve.config)], [0, 4, 5])
        return np.sqrt(np.diag(found.covariance) + found.noise)

    for curve, wider in ((partly, [1, 3, 4]), (synthetic.left_out[0], [2, 3, 4])):
        once = spreads(curve, known_factor=1.0, new_factors={}, unmeasured_factor=1.0)
        apart = spreads(
            curve, known_factor=1.0, new_factors={0: 2.0, 4: 3.0}, unmeasured_factor=4.0
        )
        assert apart / once == pytest.approx(wider)


def test_new_measurements_count_at_once(knowledge: SystemModel, synthetic: Any) -> None:
    curve = synthetic.left_out[0]
    before = SystemModel(knowledge.curves, knowledge.model)
    after = SystemModel((*knowledge.curves, replace(curve, id=999)), knowledge.model)
    doubtful = before.expect([before.match(curve.config)], [0, 4])
    surer = after.expect([after.match(curve.config)], [0, 4])
    assert (np.diag(surer.covariance) < np.diag(doubtful.covariance) / 2).all()


def test_configurations_are_expected_together_as_each_by_itself(
    knowledge: SystemModel, synthetic: Any
) -> None:
    wanted = [curve.config for curve in (*synthetic.left_out, *synthetic.curves)]
    matches = [knowledge.match(config) for config in wanted]
    together = knowledge.expect(matches, [0, 2, 8])
    for i, match in enumerate(matches):
        own = slice(3 * i, 3 * i + 3)
        alone = knowledge.expect([match], [0, 2, 8])
        np.testing.assert_allclose(together.mean[own], alone.mean, rtol=1e-9)
        np.testing.assert_allclose(
            together.covariance[own, own], alone.covariance, rtol=1e-6, atol=1e-9
        )
        np.testing.assert_allclose(together.noise[own], alone.noise)


def test_direct_access_is_trusted_only_if_it_was_measured(a_curve: MakeCurve) -> None:
    for cells, trusted in (
        ({2: (1.0,), 8: (1.0,)}, [2, 3, 4, 8]),
        ({0: (1.0,), 2: (1.0,), 4: (1.0,)}, [0, 2, 3, 4]),
        ({0: (1.0,)}, [0]),
    ):
        knowledge = SystemModel((a_curve(cells),))
        assert [n for n in (0, 1, 2, 3, 4, 8, 9) if knowledge.decides_on(n)] == trusted


def test_unmeasured_io_nodes_lie_halfway_between_the_model_and_the_interpolation(
    knowledge: SystemModel, synthetic: Any
) -> None:
    curves = tuple(
        replace(curve, bandwidths_mib_s={n: curve.bandwidths_mib_s[n] for n in (0, 2, 8)})
        for curve in synthetic.curves
    )
    few = SystemModel(curves, knowledge.model)
    wanted = [few.match(curve.config) for curve in (curves[0], synthetic.left_out[0])]
    asked = [0, 2, 4, 8, 16]
    found = few.expect(wanted, asked)
    rows = np.repeat([pattern(match.wanted) for match in wanted], len(asked), axis=0)
    alone = condition(knowledge.model.parameters, *_inputs(few)).posterior(
        knowledge.model.places(rows, asked * 2)
    )
    means, of_model = found.mean.reshape(2, 5), alone.mean.reshape(2, 5)
    # 4 is halfway between 2 and 8 in logarithms.
    line = (of_model[:, 1] + of_model[:, 3]) / 2
    np.testing.assert_allclose(means[:, 2], (of_model[:, 2] + line) / 2)
    np.testing.assert_allclose(np.delete(means, 2, axis=1), np.delete(of_model, 2, axis=1))


def _inputs(knowledge: SystemModel) -> tuple[np.ndarray, np.ndarray]:
    assert knowledge.model is not None
    rows, io_nodes, logarithms = measurements(knowledge.curves)
    return knowledge.model.places(rows, io_nodes), logarithms


def test_errors_of_nearly_equal_configurations_go_together(knowledge: SystemModel) -> None:
    config = knowledge.curves[0].config
    far = [replace(config, transfer_size=size, block_size=size) for size in (64 * MIB, 65 * MIB)]
    found = knowledge.expect([knowledge.match(one) for one in far], [4]).covariance
    assert found[0, 1] / math.sqrt(found[0, 0] * found[1, 1]) > 0.95


def test_values_that_a_log_cannot_tell_are_those_of_the_benchmark(
    knowledge: SystemModel, synthetic: Any
) -> None:
    """A log does not show O_DIRECT and fsync."""
    curves = tuple(
        replace(curve, config=replace(curve.config, odirect=True, fsync="end"))
        for curve in synthetic.curves
    )
    direct = SystemModel(curves, knowledge.model)
    for config in (synthetic.curves[0].config, synthetic.left_out[0].config):
        found = direct.expect([direct.match(config)], [0, 4])
        same = knowledge.expect([knowledge.match(config)], [0, 4])
        np.testing.assert_allclose(found.mean, same.mean)
