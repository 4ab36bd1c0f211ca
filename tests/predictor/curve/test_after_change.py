"""Predictions after a change of the system, from few new benchmarks and those from before."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from experiments.held_back import phase_of
from predictor.curve.explanation import explain
from predictor.curve.prediction import Prediction, predict
from predictor.model.fitting import fit_model
from predictor.model.stored import from_document, to_document
from predictor.model.system_model import Model, SystemModel
from tests.predictor.conftest import Synthetic

# All bandwidths halved, but direct access lost a fifth.
FACTORS = {n: 0.5 if n else 0.8 for n in (0, 1, 2, 4, 8)}
PATTERNS, AGAIN = 20, 4


def times(curve: Curve, factors: dict[int, float]) -> Curve:
    cells = {n: tuple(factors[n] * v for v in runs) for n, runs in curve.bandwidths_mib_s.items()}
    return replace(curve, bandwidths_mib_s=cells)


def earlier(curves: Iterable[Curve]) -> tuple[Curve, ...]:
    return tuple(replace(curve, before_change=True) for curve in curves)


def errors(knowledge: SystemModel, truth: Iterable[Curve]) -> list[float]:
    """List the absolute errors of the logarithm of each cell's expected bandwidth."""
    return [
        abs(math.log(point.bandwidth_mib_s.mean) - np.log(curve.bandwidths_mib_s[n]).mean())
        for curve in truth
        for point in asked(knowledge, curve).curve
        for n in (point.io_nodes,)
    ]


def asked(knowledge: SystemModel, curve: Curve) -> Prediction:
    return predict([phase_of(curve.config)], knowledge, system="here", nodes=curve.config.nodes)


@pytest.fixture(scope="module")
def now(synthetic: Synthetic) -> tuple[Curve, ...]:
    """Other runs of the synthetic system, after it changed."""
    return tuple(
        times(replace(curve, bandwidths_mib_s=synthetic.runs(curve.config, 3, seed=1)), FACTORS)
        for curve in synthetic.curves[:PATTERNS]
    )


@pytest.fixture(scope="module")
def before(synthetic: Synthetic) -> tuple[Curve, ...]:
    return earlier(synthetic.curves[:PATTERNS])


@pytest.fixture(scope="module")
def knowledge(now: tuple[Curve, ...], before: tuple[Curve, ...]) -> SystemModel:
    """Know all patterns from before the change, and a fifth of them since."""
    new = now[:AGAIN]
    return SystemModel(new, fit_model((*new, *before)), earlier=before)


@pytest.mark.slow
def test_old_curves_and_a_learned_offset_predict_patterns_that_were_not_measured_since(
    knowledge: SystemModel, now: tuple[Curve, ...]
) -> None:
    alone = SystemModel(knowledge.curves, fit_model(knowledge.curves))
    rest = now[AGAIN:]
    assert np.mean(errors(knowledge, rest)) < 0.15
    assert np.mean(errors(knowledge, rest)) < 0.6 * np.mean(errors(alone, rest))
    inside = [
        point.bandwidth_mib_s.p10 <= run <= point.bandwidth_mib_s.p90
        for curve in rest
        for point in asked(knowledge, curve).curve
        for run in curve.bandwidths_mib_s[point.io_nodes]
    ]
    # No shape changed here, which the model cannot know: its intervals may only be too wide.
    assert np.mean(inside) >= 0.75


@pytest.mark.slow
def test_patterns_that_were_measured_since_are_predicted_from_these_runs(
    knowledge: SystemModel, now: tuple[Curve, ...]
) -> None:
    for curve in now[:AGAIN]:
        found = asked(knowledge, curve)
        assert found.phases[0].main.kind == "exact"
        assert found.phases[0].main.curve == curve
        assert {point.basis for point in found.curve} == {"measured"}
    assert np.mean(errors(knowledge, now[:AGAIN])) < 0.05


@pytest.mark.slow
def test_an_answer_says_that_it_rests_on_benchmarks_from_before_the_change(
    knowledge: SystemModel, now: tuple[Curve, ...]
) -> None:
    old, new = (asked(knowledge, curve) for curve in (now[-1], now[0]))
    [match] = [found for _, found in old.phases[0].parts]
    assert (match.kind, match.repetitions) == ("interpolated", {})
    assert {point.basis for point in old.curve} == {"model"}
    said = "the nearest benchmark is from before the change of the system"
    assert [said in warning for warning in old.warnings].count(True) == 1
    assert "60 newer measurements" in " ".join(old.warnings)
    assert "not measured since the change of the system" in " ".join(explain(old))
    assert not any(said in warning for warning in new.warnings)
    assert "change" not in " ".join(explain(new))
    # A run of a pattern that was not measured since scatters more than one that was.
    for point, other in zip(old.curve, new.curve, strict=True):
        wide, narrow = (one.bandwidth_mib_s.p90 / one.bandwidth_mib_s.p10 for one in (point, other))
        assert wide > narrow


@pytest.mark.slow
def test_a_stored_model_knows_the_change(knowledge: SystemModel) -> None:
    model = knowledge.model
    assert model is not None
    again = from_document(to_document(model))
    assert again is not None
    assert again.knows_change
    assert (again.measurements, again.earlier_measurements) == (60, 300)
    assert again.configurations == AGAIN
    assert to_document(again) == to_document(model)


@pytest.mark.slow
def test_old_curves_that_mislead_are_left_out_after_enough_new_runs(
    now: tuple[Curve, ...], before: tuple[Curve, ...]
) -> None:
    # Each pattern once had the curve of another one, with its numbers of I/O nodes reversed.
    wrong = tuple(
        replace(
            curve,
            bandwidths_mib_s=dict(
                zip((0, 1, 2, 4, 8), reversed(other.bandwidths_mib_s.values()), strict=True)
            ),
        )
        for curve, other in zip(before[:10], (*before[1:10], before[0]), strict=True)
    )
    model = fit_model((*now[:8], *wrong))
    assert not model.knows_change
    assert (model.configurations, model.earlier_measurements) == (8, 0)


def test_old_curves_need_a_model_that_learned_their_offset(
    synthetic: Synthetic, fitted: Model
) -> None:
    old = earlier(synthetic.curves[:1])
    for model in (None, fitted):
        with pytest.raises(ValueError, match="knows no curves from before a change"):
            SystemModel(synthetic.curves[1:], model, earlier=old)
