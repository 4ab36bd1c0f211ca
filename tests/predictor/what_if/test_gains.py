"""The seconds that a changed run saves are a part of today's time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchdb.measurements.curves import Curve
from predictor.curve.prediction import Prediction, predict, predict_together
from predictor.model.system_model import SystemModel
from predictor.what_if.gains import hidden_seconds, saved_by_io_nodes, saved_seconds
from summario.phases.values import Phase

MIB = 1 << 20
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.fixture
def knowledge(a_curve: MakeCurve) -> SystemModel:
    """Requests of 1 MiB: 16 MiB/s; requests of 4 MiB: 64 MiB/s."""
    return SystemModel((a_curve({0: (16.0,)}), a_curve({0: (64.0,)}, transfer_size=4 * MIB)))


def unsure(prediction: Prediction) -> Prediction:
    """Make half of the draws a hundred times slower, as those of a weak model are."""
    draws = prediction.choice.expected_mib_s.copy()
    draws[::2] /= 100
    return replace(prediction, choice=replace(prediction.choice, expected_mib_s=draws))


def test_a_run_saves_at_most_the_time_that_it_takes(
    knowledge: SystemModel, a_phase: MakePhase
) -> None:
    phases = [[a_phase((64, 64 * MIB))], [a_phase((16, 64 * MIB))]]
    today, then = predict_together(phases, knowledge, system="here", nodes=[8, 8])
    span = saved_seconds(unsure(today), then)
    assert span is not None
    assert (span.expected, span.p90) == (pytest.approx(64 / 16 - 64 / 64), 64 / 16)
    assert saved_by_io_nodes(unsure(today), then) == {0: span}
    longer = saved_seconds(then, unsure(today))
    assert longer is not None
    assert longer.p10 < -64 / 16


def test_asynchronous_io_hides_at_most_the_time_that_it_takes(
    a_curve: MakeCurve, a_phase: MakePhase
) -> None:
    knowledge = SystemModel((a_curve({0: (16.0,)}, api="MPIIO"),))
    phases = [
        a_phase(api="MPIIO", spatiality="unknown", end_seconds=1.0),
        a_phase(api="MPIIO", spatiality="unknown", start_seconds=1000.0, end_seconds=1001.0),
    ]
    today = predict(phases, knowledge, system="here", nodes=8)
    span = hidden_seconds(phases, unsure(today), frozenset({"write"}))
    assert span.expected == pytest.approx(64 / 16)
    assert span.p90 == pytest.approx(2 * 64 / 16)
