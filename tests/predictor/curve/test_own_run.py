"""The bandwidth of a run beside what is expected of it; shares are counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from predictor.curve.asking import PredictionRequest, beside_own_run
from predictor.curve.composing import Composition
from predictor.curve.own_run import own_run
from predictor.curve.prediction import DecisionRules, EarlierRun, Prediction, predict
from predictor.curve.prediction_formats import to_json, to_text
from predictor.model.system_model import SystemModel
from summario.phases.values import Phase

MIB = 1 << 20
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


def expected(**runs: list[float]) -> Composition:
    """Make ten draws of runs with each number of I/O nodes, such as n4=[...]."""
    numbers = tuple(int(name[1:]) for name in runs)
    draws = np.array([*runs.values()]).T
    return Composition(numbers, 64.0, draws.mean(axis=0), draws, draws)


# The phase of `a_phase` moves 64 MiB in 1 s.
SLOW = [*np.linspace(20, 30, 10)]
SIX_OF_TEN_ARE_SLOWER = [*np.linspace(40, 60, 6), *np.linspace(70, 80, 4)]


def test_the_run_in_the_log_is_faster_than_a_share_of_those_expected(a_phase: MakePhase) -> None:
    draws = expected(n0=SLOW, n4=SIX_OF_TEN_ARE_SLOWER)
    for ran_with, shares, said in (
        (4, {4: 0.6}, "faster than 60% of the runs expected with 4 I/O nodes"),
        (None, {0: 1.0, 4: 0.6}, "60% (4 I/O nodes) to over 99% (direct access) of the expected"),
        # 2 I/O nodes are not predicted.
        (2, {0: 1.0, 4: 0.6}, "60% (4 I/O nodes) to over 99% (direct access) of the expected"),
    ):
        found = own_run([a_phase()], draws, ran_with)
        assert found is not None
        assert found.bandwidth_mib_s == 64.0
        assert {share.io_nodes: share.slower for share in found.expected} == shares
        assert said in found.in_words
        assert found.in_words.startswith("the run in the log got 64 MiB/s, ")
        assert not found.is_contradiction


def test_a_run_may_contradict_the_prediction_without_being_impossible(a_phase: MakePhase) -> None:
    for draws, ran_with, contradicts, impossible in (
        (expected(n0=SLOW, n4=SIX_OF_TEN_ARE_SLOWER), 0, True, False),
        (expected(n0=SLOW, n4=SLOW), None, True, False),
        (expected(n0=[640.0] * 10), None, True, False),
        # With 4 I/O nodes it is possible, so it is not with every number.
        (expected(n0=[6.0] * 10, n4=SIX_OF_TEN_ARE_SLOWER), 0, True, False),
        (expected(n0=[6.5] * 10), None, True, False),
        (expected(n0=[6.3] * 10, n4=[6.0] * 10), None, True, True),
    ):
        found = own_run([a_phase()], draws, ran_with)
        assert found is not None
        assert (found.is_contradiction, found.is_impossible) == (contradicts, impossible)


def test_without_times_or_a_prediction_nothing_is_compared(a_phase: MakePhase) -> None:
    untimed = a_phase(end_seconds=0.0, io_time_seconds=0.0)
    assert own_run([untimed], expected(n0=SLOW), None) is None
    assert own_run([a_phase()], None, None) is None
    assert own_run([], expected(n0=SLOW), None) is None


def compared(
    phase: Phase, curve: Curve, earlier: list[EarlierRun] | None = None, **asked: int | None
) -> Prediction:
    policy = DecisionRules(default=2)
    found = predict(
        [phase], SystemModel((curve,)), system="here", nodes=8, earlier=earlier or (), policy=policy
    )
    return beside_own_run(found, PredictionRequest("here", nodes=8, policy=policy, **asked))


def test_an_impossible_run_leaves_the_decision_to_the_site(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    """The log is of another machine: 64 MiB/s, of which the system gives a tenth at most."""
    found = compared(a_phase(), a_curve({0: (3.0,), 4: (6.0,)}))
    assert (found.decision.io_nodes, found.decision.source) == (2, "default")
    assert found.decision.why.startswith(
        "the site's default, because a run got 64 MiB/s, which is impossible here: with every"
        " number of I/O nodes it is more than 10 times the 6 MiB/s"
    )
    # Also with another policy.
    assert found.choice.decide(DecisionRules()).source == "none"
    assert to_json(found)["own_run"]["is_impossible"]


def test_a_plausible_run_decides(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    found = compared(a_phase(), a_curve({0: (3.0,), 4: (7.0,)}))
    assert (found.decision.io_nodes, found.decision.source) == (4, "model")


def test_another_run_of_the_application_shows_that_it_is_possible(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    runs = [EarlierRun(4, 6.0), EarlierRun(0, 640.0)]
    found = compared(a_phase(), a_curve({0: (3.0,), 4: (6.0,)}), runs)
    assert found.earlier_runs == (EarlierRun(4, 6.0),)
    assert found.decision.source == "model"


def test_the_comparison_stands_in_the_first_line_and_in_json(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    found = compared(a_phase(), a_curve({4: (50.0, 60.0, 70.0, 80.0)}), ran_with=4)
    first, *_ = to_text(found).splitlines()
    got = "the run in the log got 64 MiB/s"
    assert first == f"{got}, faster than 50% of the runs expected with 4 I/O nodes"
    record = to_json(found)["own_run"]
    assert record["expected"] == [{"io_nodes": 4, "slower": pytest.approx(0.5, abs=0.01)}]
    assert (record["in_words"], record["is_contradiction"]) == (first, False)


def test_a_part_without_a_benchmark_is_left_out_of_both_sides(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    """The reads take as long as the writes, but nothing was measured of them."""
    phases = [a_phase(), replace(a_phase(), operation="read", start_seconds=2.0, end_seconds=9.0)]
    found = predict(phases, SystemModel((a_curve({4: (60.0,)}),)), system="here", nodes=8)
    own = beside_own_run(found, PredictionRequest("here", nodes=8)).own_run
    assert own is not None
    assert own.bandwidth_mib_s == 64.0
