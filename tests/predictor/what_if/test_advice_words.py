"""Advice in the words of the table and the page; expected numbers are computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from benchdb.measurements.curves import Curve
from predictor.curve.asking import PredictionRequest
from predictor.model.system_model import SystemModel
from predictor.what_if.advice_formats import to_text
from predictor.what_if.advice_words import (
    conclusion,
    rows,
    sentence,
    to_measure,
    today_in_words,
)
from predictor.what_if.advising import Advised, try_all
from predictor.what_if.attempts import Hints, attempts_of
from predictor.what_if.gains import Span
from summario.phases.values import Phase

KIB, MIB = 1 << 10, 1 << 20
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


def advise(phases: list[Phase], curves: list[Curve], *codes: str) -> Advised:
    knowledge = SystemModel(tuple(curves))
    hints = Hints(frozenset(codes))
    attempts = attempts_of(phases, hints, knowledge.request_sizes)
    return try_all(phases, knowledge, attempts, hints, PredictionRequest("here", nodes=8))


@pytest.fixture
def small(a_curve: MakeCurve) -> Curve:
    return a_curve({0: (16.0,), 4: (32.0,)}, transfer_size=64 * KIB)


def test_a_gain_is_said_with_both_decisions(
    a_phase: MakePhase, a_curve: MakeCurve, small: Curve
) -> None:
    advised = advise([a_phase((1024, 64 * MIB))], [small, a_curve({0: (64.0,)})], "P06")
    said = "saves 1 s of 2 s in a run (1 to 1 s): 64 instead of 32 MiB/s"
    nodes = "with direct access instead of 4 I/O nodes"
    assert conclusion(advised) == f"most would help: larger requests, which {said}, {nodes}"


def test_a_loss_is_said_as_such(a_phase: MakePhase, a_curve: MakeCurve, small: Curve) -> None:
    slow = a_curve({4: (16.0,)}, api="MPIIO", collective=True, transfer_size=64 * KIB)
    advised = advise([a_phase((1024, 64 * MIB))], [small, slow], "P16")
    assert sentence(advised.today, advised.advice[0]) == (
        "takes 2 s more than 2 s in a run (2 to 2 s): 16 instead of 32 MiB/s, with 4 I/O nodes"
    )
    assert conclusion(advised) == "no advice is sure to help"


def test_a_prediction_is_that_of_today_only_if_the_run_agrees(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phase = a_phase((1024, 64 * MIB))
    larger = a_curve({4: (640.0,)})
    for runs, name, column in (
        ((50.0, 60.0, 70.0, 80.0), "today", "MiB/s now"),
        ((20.0, 30.0), "predicted", "predicted"),
    ):
        advised = advise([phase], [a_curve({4: runs}, transfer_size=64 * KIB), larger], "P06")
        told = today_in_words(advised.today)
        assert told.startswith(f"{name}: ")
        assert "; the run in the log got 64 MiB/s, faster than " in told
        assert column in next(rows(advised))


def test_hidden_io_does_not_count_in_the_predicted_time(a_phase: MakePhase, small: Curve) -> None:
    """Nothing predicts the collective phase, whose 8 s in the log fit into the pause after it."""
    unlike = a_phase((10, 10 * MIB), api="MPIIO", spatiality="collective", io_time_seconds=8.0)
    phases = [
        replace(unlike, start_seconds=0.0, end_seconds=8.0),
        a_phase((1024, 64 * MIB), start_seconds=100.0, end_seconds=101.0),
    ]
    advised = advise(phases, [small], "M07")
    [hidden] = [one for one in advised.advice if one.keys == ("asynchronous",)]
    assert advised.today.choice.curve
    assert sentence(advised.today, hidden) == "saves 8 s in a run (8 to 8 s)"


def test_each_benchmark_to_measure_is_named_once(a_phase: MakePhase, small: Curve) -> None:
    advised = advise([a_phase((1024, 64 * MIB))], [small], "P16")
    assert to_measure(advised) == {
        "mpiexec -n 16 ior -a MPIIO -w -c -b 4m -t 64k": ("collective MPI-IO calls",),
        "mpiexec -n 16 ior -a POSIX -w -F -b 4m -t 64k": ("a file for each process",),
    }
    assert conclusion(advised) == "no gain is known; measure the benchmarks below"


def test_people_see_the_benchmarks_of_most_bytes_only(a_phase: MakePhase, small: Curve) -> None:
    phases = [
        a_phase((1024 * count, 64 * count * MIB), start_seconds=2.0 * count)
        for count in range(1, 10)
    ]
    text = to_text(advise(phases, [small]))
    assert text.count("mpiexec") == 6
    assert "-b 36m -t 64k" in text
    assert text.endswith("and 3 others, which --format json lists")


def test_advice_that_changes_no_time_saves_nothing(
    a_phase: MakePhase, a_curve: MakeCurve, small: Curve
) -> None:
    advised = advise([a_phase((1024, 64 * MIB))], [small, a_curve({0: (64.0,)})], "P06")
    [one] = [each for each in advised.advice if each.keys == ("larger",)]
    said = sentence(advised.today, replace(one, saved_seconds=Span(0.0, 0.0, 0.0)))
    assert said.startswith("saves 0 s of 2 s in a run (0 to 0 s)")
    said = sentence(advised.today, replace(one, saved_seconds=Span(-3.0, -1.0, 0.0)))
    assert said.startswith("takes 1 s more than 2 s in a run (0 to 3 s)")
