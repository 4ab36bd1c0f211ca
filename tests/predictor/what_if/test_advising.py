"""The seconds that following advice saves; expected values are computed by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from experiments.held_back import phase_of
from predictor.curve.asking import PredictionRequest
from predictor.curve.prediction import DecisionRules, predict, predict_together
from predictor.model.system_model import Model, SystemModel
from predictor.what_if.advising import AdviceGain, Advised, in_order, try_all
from predictor.what_if.attempts import Attempt, Hints, attempts_of
from predictor.what_if.gains import Span
from summario.phases.values import Part, Phase
from tests.predictor.conftest import Synthetic

KIB, MIB = 1 << 10, 1 << 20
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


def advise(knowledge: SystemModel, phases: list[Phase], *codes: str, **asked: object) -> Advised:
    hints = Hints(frozenset(codes))
    attempts = attempts_of(phases, hints, knowledge.request_sizes)
    question = PredictionRequest("here", nodes=8, **asked)  # type: ignore[arg-type]
    return try_all(phases, knowledge, attempts, hints, question)


def of(advised: Advised, *keys: str) -> AdviceGain:
    [found] = [advice for advice in advised.advice if advice.keys == keys]
    return found


@pytest.fixture
def small(a_curve: MakeCurve) -> Curve:
    """Requests of 64 KiB: 20 MiB/s directly, 25 with 4 I/O nodes."""
    return a_curve({0: (20.0,), 4: (25.0,)}, transfer_size=64 * KIB)


@pytest.fixture
def phase(a_phase: MakePhase) -> Phase:
    """16 processes write 64 MiB in requests of 64 KiB."""
    return a_phase((1024, 64 * MIB))


def test_a_gain_is_the_time_with_both_decisions(
    small: Curve, a_curve: MakeCurve, phase: Phase
) -> None:
    large = a_curve({0: (40.0,), 4: (32.0,)})
    advised = advise(SystemModel((small, large)), [phase], "P06")
    found = of(advised, "larger")
    assert (found.verdict, found.matched, found.codes) == ("faster", "exact", ("P06",))
    assert found.then is not None
    assert (advised.today.decision.io_nodes, found.then.decision.io_nodes) == (4, 0)
    assert found.saved_seconds is not None
    assert found.saved_seconds.expected == pytest.approx(64 / 25 - 64 / 40)
    by_number = {n: span.expected for n, span in found.saved_by_io_nodes.items()}
    assert by_number == pytest.approx({0: 64 / 20 - 64 / 40, 4: 64 / 25 - 64 / 32})
    assert found.unmeasured == ()


def test_advice_that_makes_a_run_slower_says_so(
    small: Curve, a_curve: MakeCurve, phase: Phase
) -> None:
    together = a_curve(
        {0: (10.0,), 4: (5.0,)}, transfer_size=64 * KIB, api="MPIIO", collective=True
    )
    advised = advise(SystemModel((small, together)), [phase], "P16")
    found = of(advised, "collective")
    assert (found.verdict, found.matched) == ("slower", "exact")
    assert found.saved_seconds is not None
    assert found.saved_seconds.expected == pytest.approx(64 / 25 - 64 / 10)


def test_the_site_s_policy_decides(small: Curve, a_curve: MakeCurve, phase: Phase) -> None:
    large = a_curve({0: (30.0,), 4: (60.0,)})
    advised = advise(SystemModel((small, large)), [phase], "P06", policy=DecisionRules(available=2))
    found = of(advised, "larger")
    assert found.saved_seconds is not None
    assert found.saved_seconds.expected == pytest.approx(64 / 20 - 64 / 30)


def test_without_a_benchmark_a_gain_is_not_known(small: Curve, phase: Phase) -> None:
    advised = advise(SystemModel((small,)), [phase], "P16")
    found = of(advised, "collective")
    assert (found.verdict, found.saved_seconds, found.then) == ("not known", None, None)
    assert [line.command_line(launcher=True) for line in found.unmeasured] == [
        "mpiexec -n 16 ior -a MPIIO -w -c -b 4m -t 64k"
    ]


def test_today_s_io_must_be_known_too(a_curve: MakeCurve, phase: Phase) -> None:
    together = a_curve(api="MPIIO", collective=True, transfer_size=64 * KIB)
    found = of(advise(SystemModel((together,)), [phase], "P16"), "collective")
    assert found.verdict == "not known"
    assert [line.command_line(launcher=True) for line in found.unmeasured] == [
        "mpiexec -n 16 ior -a POSIX -w -b 4m -t 64k"
    ]


def test_nothing_measured_makes_all_advice_not_known(phase: Phase) -> None:
    advised = advise(SystemModel(()), [phase], "P06", "P16")
    assert {advice.verdict for advice in advised.advice} == {"not known"}
    assert all(advice.unmeasured for advice in advised.advice)


def test_phases_that_are_not_known_stay_as_they_are(
    small: Curve, a_curve: MakeCurve, phase: Phase
) -> None:
    """The gain is that of the others, and the missing benchmarks are named."""
    read = replace(phase, operation="read", start_seconds=2.0, end_seconds=3.0)
    together = a_curve(
        {0: (40.0,), 4: (50.0,)}, transfer_size=64 * KIB, api="MPIIO", collective=True
    )
    reads = a_curve({0: (32.0,), 4: (32.0,)}, read=True, transfer_size=64 * KIB)
    advised = advise(SystemModel((small, together, reads)), [phase, read], "P15", "P16")
    found = of(advised, "collective")
    assert found.saved_seconds is not None
    assert found.saved_seconds.expected == pytest.approx(64 / 25 - 64 / 50)
    assert [line.command_line(launcher=True) for line in found.unmeasured] == [
        "mpiexec -n 16 ior -a MPIIO -r -c -b 4m -t 64k"
    ]


def test_the_largest_gain_comes_first_and_unknown_ones_last(
    small: Curve, a_curve: MakeCurve, phase: Phase
) -> None:
    large = a_curve({0: (30.0,), 4: (30.0,)})
    own = a_curve({0: (60.0,), 4: (60.0,)}, transfer_size=64 * KIB, file_per_process=True)
    advised = advise(SystemModel((small, large, own)), [phase], "P06", "P16")
    assert [advice.keys for advice in advised.advice] == [
        ("own_files",),
        ("larger",),
        ("collective",),
        ("collective", "larger"),
    ]


def test_asynchronous_io_rests_on_the_pauses_of_the_log(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    """64 MiB take 2 s with 32 MiB/s; the first phase has a pause of 1 s, the last has none."""
    curve = a_curve({0: (16.0,), 4: (32.0,)}, api="MPIIO")
    phases = [
        a_phase(api="MPIIO", spatiality="unknown", start_seconds=t, end_seconds=t + 1)
        for t in (0.0, 2.0)
    ]
    found = of(advise(SystemModel((curve,)), phases, "M07"), "asynchronous")
    assert (found.verdict, found.matched, found.codes) == ("faster", "log", ("M07",))
    assert found.saved_seconds is not None
    assert found.saved_seconds.expected == pytest.approx(1)
    assert found.then is None


def test_asynchronous_io_needs_no_benchmark(a_phase: MakePhase) -> None:
    phases = [
        a_phase(
            api="MPIIO",
            spatiality="unknown",
            start_seconds=t,
            end_seconds=t + 1,
            elapsed_seconds=0.75,
        )
        for t in (0.0, 2.0)
    ]
    found = of(advise(SystemModel(()), phases, "M07"), "asynchronous")
    assert found.saved_seconds is not None
    assert found.saved_seconds.expected == 0.75


def test_a_run_without_phases_has_no_advice() -> None:
    assert advise(SystemModel(()), [], "P06", "M07").advice == ()


def test_io_that_does_not_change_does_not_count_as_a_basis(
    small: Curve, a_curve: MakeCurve, phase: Phase
) -> None:
    """A phase that nothing resembles stays unknown on both sides."""
    large = a_curve({0: (40.0,), 4: (32.0,)})
    other = replace(phase, operation="read", start_seconds=2.0, end_seconds=3.0)
    found = of(advise(SystemModel((small, large)), [phase, other], "P06"), "larger")
    assert (found.verdict, found.matched) == ("faster", "exact")


def test_bytes_that_change_no_configuration_rest_on_what_moves_them(
    small: Curve, phase: Phase
) -> None:
    """Eight bytes of 64 MiB change no size that IOR accepts."""
    other = replace(phase, operation="read", start_seconds=2.0, end_seconds=3.0)
    fewer = replace(phase, bytes=phase.bytes - 8, parts=(Part(phase.requests, phase.bytes - 8),))
    attempt = Attempt(("once",), ("P10",), (fewer, other))
    asked = PredictionRequest("here", nodes=8)
    [found] = try_all(
        [phase, other], SystemModel((small,)), [attempt], Hints(frozenset()), asked
    ).advice
    assert found.matched == "exact"


def test_today_is_what_predict_says(synthetic: Synthetic, fitted: Model) -> None:
    phases = [phase_of(synthetic.curves[0].config)]
    knowledge = SystemModel(synthetic.curves, fitted)
    nodes = synthetic.curves[0].config.nodes
    advised = try_all(
        phases, knowledge, [], Hints(frozenset()), PredictionRequest("here", nodes=nodes)
    )
    today = replace(advised.today, own_run=None)
    assert today == predict(phases, knowledge, system="here", nodes=nodes)


def test_an_impossible_run_gets_no_gain(a_curve: MakeCurve, phase: Phase) -> None:
    """The log is of another machine: 64 MiB/s, of which the system gives a tenth at most."""
    curves = (a_curve({4: (2.0,)}, transfer_size=64 * KIB), a_curve({4: (4.0,)}))
    advised = advise(SystemModel(curves), [phase], "P06")
    assert advised.today.decision.source == "none"
    assert {one.verdict for one in advised.advice} == {"not known"}


def test_doubts_that_both_versions_share_cancel_out(synthetic: Synthetic, fitted: Model) -> None:
    """The interval of a difference is narrower than two intervals of bandwidths say."""
    first, *others = [curve for curve in synthetic.left_out if curve.config.tasks == 16]
    twice = replace(first.config, block_size=2 * first.config.block_size)
    today, then = predict_together(
        [[phase_of(first.config)], [phase_of(twice, phase_of(first.config).bytes)]],
        SystemModel(synthetic.curves, fitted),
        system="here",
        nodes=[first.config.nodes] * 2,
    )
    ones, others = (np.log(one.choice.expected_mib_s) for one in (today, then))
    assert (ones - others).std() < 0.7 * np.hypot(ones.std(axis=0), others.std(axis=0)).mean()


def test_a_gain_that_rests_on_the_model_alone_must_be_sure(
    synthetic: Synthetic, fitted: Model
) -> None:
    """Requests of 8 bytes are far beyond all measured ones."""
    tiny = replace(synthetic.curves[0].config, transfer_size=8, block_size=MIB)
    phase = phase_of(tiny)
    knowledge = SystemModel(synthetic.curves, fitted)
    changed = phase_of(replace(tiny, transfer_size=16), phase.bytes)
    asked = PredictionRequest("here", nodes=tiny.nodes)
    attempt = Attempt(("larger",), ("P06",), (changed,))
    [advice] = try_all([phase], knowledge, [attempt], Hints(frozenset()), asked).advice
    assert (advice.verdict, advice.matched, advice.saved_seconds) == ("not known", "model", None)
    assert len(advice.unmeasured) == 2


def test_a_sure_gain_is_listed_before_a_larger_one_that_is_unsure() -> None:
    unsure = AdviceGain(("own_files",), (), "unsure", "model", Span(-2, 10, 25))
    sure = AdviceGain(("larger",), ("P06",), "faster", "exact", Span(4, 5, 6))
    slower = AdviceGain(("one_file",), (), "slower", "exact", Span(-3, -2, -1))
    unknown = AdviceGain(("contiguous",), ("P11",), "not known")
    ordered = sorted([unknown, slower, unsure, sure], key=in_order)
    assert ordered == [sure, unsure, slower, unknown]
