"""The bandwidths that the testbed's logs claim, and what they do to predictions."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from experiments.datasets import DataSet
from experiments.own_past import OwnPast, knowledge_of, own_pasts
from predictor.curve.prediction import predict
from predictor.model.system_model import SystemModel


@pytest.fixture(scope="module")
def knowledge(testbed: DataSet) -> SystemModel:
    return knowledge_of(testbed)


def off(ones: list[OwnPast]) -> float:
    return fmean(abs(one.claimed_mib_s / one.measured_mib_s - 1) for one in ones)


@pytest.mark.slow
def test_the_own_run_of_a_log_never_makes_its_prediction_worse(
    testbed: DataSet, knowledge: SystemModel
) -> None:
    """The benchmarks called fsync, which the applications do not: a run must not decide alone."""
    found = list(own_pasts(testbed, knowledge))
    assert len(found) == 9
    assert max(one.worse for one in found) < 0.02


def test_elapsed_times_claim_less_wrong_bandwidths_than_io_times(
    testbed: DataSet, knowledge: SystemModel
) -> None:
    """The bandwidths of `applications.csv` are those of other runs, which vary by up to 14 %."""
    blind = {
        log: tuple(replace(phase, elapsed_seconds=None) for phase in phases)
        for log, phases in testbed.phases.items()
    }
    found = list(own_pasts(testbed, knowledge))
    by_io_time = list(own_pasts(replace(testbed, phases=blind), knowledge))
    assert off(found) < 0.75 * off(by_io_time)
    assert fmean(one.worse for one in found) < fmean(one.worse for one in by_io_time)


@pytest.mark.parametrize("application", ["hacc-io", "multiphase", "periodic"])
def test_logs_of_the_same_i_o_have_equal_predictions(
    testbed: DataSet, knowledge: SystemModel, application: str
) -> None:
    """The testbed has three logs of each application, whose phases differ only in their times."""
    logs = [phases for log, phases in testbed.phases.items() if log.application == application]
    found = [predict(phases, knowledge, system="testbed", nodes=8) for phases in logs]
    assert len(found) == 3
    assert len({phases[0].start_seconds for phases in logs}) == 3
    assert len({one.curve for one in found}) == 1
    assert len({one.decision for one in found}) == 1
