"""Versions of a run that are predicted together have draws that belong together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from experiments.held_back import phase_of
from predictor.curve.prediction import EarlierRun, predict, predict_together
from predictor.model.system_model import Model, SystemModel
from summario.phases.values import Phase
from tests.predictor.conftest import Synthetic

MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.fixture(scope="module")
def knowledge(synthetic: Synthetic, fitted: Model) -> SystemModel:
    return SystemModel(synthetic.curves, fitted)


def test_the_same_version_twice_has_the_same_draws(
    synthetic: Synthetic, knowledge: SystemModel
) -> None:
    phases = [phase_of(curve.config) for curve in synthetic.left_out[:3]]
    one, other = predict_together([phases, phases], knowledge, system="here", nodes=[None, None])
    assert one == other == predict(phases, knowledge, system="here")
    assert (one.choice.expected_mib_s == other.choice.expected_mib_s).all()


def test_expected_bandwidths_do_not_depend_on_the_other_version(
    synthetic: Synthetic, knowledge: SystemModel
) -> None:
    versions = [[phase_of(curve.config)] for curve in synthetic.left_out[:2]]
    together = predict_together(versions, knowledge, system="here", nodes=[None, None])
    for version, joint in zip(versions, together, strict=True):
        alone = predict(version, knowledge, system="here")
        assert [point.bandwidth_mib_s.mean for point in joint.curve] == pytest.approx(
            [point.bandwidth_mib_s.mean for point in alone.curve]
        )
        tenth = [point.bandwidth_mib_s.p10 for point in alone.curve]
        assert [point.bandwidth_mib_s.p10 for point in joint.curve] == pytest.approx(tenth, rel=0.1)


def test_a_run_of_the_first_version_corrects_all(
    synthetic: Synthetic, knowledge: SystemModel
) -> None:
    """A run that is half as fast as expected makes a similar version slower too."""
    config = synthetic.left_out[0].config
    today = [phase_of(config)]
    then = [phase_of(config, 2 * today[0].bytes)]
    before = predict_together([today, then], knowledge, system="here", nodes=[8, 8])
    expected = {point.io_nodes: point.bandwidth_mib_s.mean for point in before[0].curve}
    run = EarlierRun(4, expected[4] / 2)
    after = predict_together([today, then], knowledge, system="here", nodes=[8, 8], earlier=[run])
    changes = [
        np.log(
            [
                there.bandwidth_mib_s.mean / here.bandwidth_mib_s.mean
                for here, there in zip(old.curve, new.curve, strict=True)
            ]
        )
        for old, new in zip(before, after, strict=True)
    ]
    assert (changes[0] < 0).all()
    assert changes[1].mean() < 0
    assert [one.earlier_runs for one in after] == [(run,), (run,)]
    alone = predict(today, knowledge, system="here", nodes=8, earlier=[run])
    assert [point.bandwidth_mib_s.mean for point in after[0].curve] == pytest.approx(
        [point.bandwidth_mib_s.mean for point in alone.curve], rel=0.05
    )


def test_a_version_that_nothing_resembles_has_no_curve(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    known = SystemModel((a_curve({0: (32.0,), 4: (64.0,)}),))
    other = a_phase(file_access="unique")
    for versions, curves in (([a_phase(), other], [2, 0]), ([other, a_phase()], [0, 2])):
        found = predict_together(
            [[phase] for phase in versions], known, system="here", nodes=[8, 8], ran_with=4
        )
        assert [len(one.curve) for one in found] == curves


def test_without_a_model_each_version_has_its_own_numbers_of_io_nodes(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    known = SystemModel(
        (a_curve({0: (32.0,), 4: (64.0,)}), a_curve({0: (16.0,), 8: (8.0,)}, file_per_process=True))
    )
    versions = [[a_phase()], [a_phase(file_access="unique")]]
    found = predict_together(versions, known, system="here", nodes=[8, 8])
    assert [[point.io_nodes for point in one.curve] for one in found] == [[0, 4], [0, 8]]
