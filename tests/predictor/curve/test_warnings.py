"""Warnings about benchmarks that differ, in sentences that a user understands."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from benchdb.measurements.curves import Curve
from predictor.curve.prediction import predict
from predictor.model.system_model import SystemModel
from summario.phases.values import Phase

MIB = 1 << 20
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


def warnings(phases: list[Phase], *curves: Curve) -> list[str]:
    found = predict(phases, SystemModel(curves), system="here", nodes=8).warnings
    return [line for line in found if "resembles" not in line]


def test_the_run_that_would_measure_an_fsync_after_each_write_is_named(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    assert warnings([a_phase(fsync="each")], a_curve(fsync="end")) == [
        "phase 0: fsync follows each write, and no benchmark of this kind does that (-Y); this run"
        " would measure it: mpiexec -n 16 ior -a POSIX -w -Y -b 4m -t 1m"
    ]
    assert warnings([a_phase()], a_curve(fsync="each")) == [
        "phase 0: all benchmarks of this kind call fsync after each write (-Y), and the phase does"
        " not; this run would measure it: mpiexec -n 16 ior -a POSIX -w -b 4m -t 1m"
    ]


def test_phases_with_the_same_difference_share_a_sentence(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    phases = [a_phase(start_seconds=2.0 * i, end_seconds=2.0 * i + 1) for i in range(4)]
    assert warnings(phases, a_curve(fsync="end")) == [
        "phases 0 to 3: no fsync is called, the benchmark calls it at the end (-e); nothing nearer"
        " of this kind was measured, so the interval is wider"
    ]


@pytest.mark.parametrize(
    ("of_phase", "of_benchmark", "said"),
    [
        (
            {"fsync": None},
            {"fsync": "end"},
            "it is not known whether fsync is called, the benchmark calls it at the end (-e); so"
            " the interval is wider",
        ),
        (
            {"api": "MPIIO", "spatiality": "unknown", "order": None},
            {"api": "MPIIO"},
            "the order of requests is unknown, the benchmark has contiguous ones; so the"
            " interval is wider",
        ),
        (
            {"api": "MPIIO", "spatiality": "unknown", "order": "random"},
            {"api": "MPIIO"},
            "the order of requests is random, the benchmark has contiguous ones; nothing"
            " nearer of this kind was measured, so the interval is wider",
        ),
        (
            {},
            {"conditions": ("-M 75%",)},
            "the benchmark ran with -M 75%; nothing nearer of this kind was measured, so the"
            " interval is wider",
        ),
        (
            {"spatiality": "sequential", "block_requests": 2.0},
            {"block_size": MIB, "segments": 4},
            "a process has blocks of 2 requests without gaps, one of the benchmark has blocks of"
            " 1 request; nothing nearer of this kind was measured, so the interval is wider",
        ),
        (
            {"api": "MPIIO", "spatiality": "collective", "aggregators": 2, "amplification": 6.0},
            {"api": "MPIIO", "collective": True},
            "the collective calls were buffered (2 aggregators, 6 × the bytes in POSIX); the"
            " database does not tell whether those of the benchmark were; so the interval is wider",
        ),
    ],
    ids=["unknown fsync", "unknown order", "other order", "conditions", "blocks", "buffering"],
)
def test_each_difference_is_said(
    a_phase: MakePhase,
    a_curve: MakeCurve,
    of_phase: dict[str, object],
    of_benchmark: dict[str, object],
    said: str,
) -> None:
    assert warnings([a_phase(**of_phase)], a_curve(**of_benchmark)) == [f"phase 0: {said}"]


def test_a_difference_of_a_hundredth_of_the_bytes_is_not_said(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    small = a_phase((1, MIB // 2), fsync="end", start_seconds=5.0, end_seconds=6.0)
    assert not any("fsync" in line for line in warnings([a_phase(), small], a_curve()))
