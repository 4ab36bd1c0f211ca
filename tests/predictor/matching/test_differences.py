"""A benchmark with another fsync, order or condition is never exact, and stands in only if it must.

The rules are those of the issue: fsync is a property of the configuration; "each" stands in for
nothing else, nor the reverse; a value that is not known is never exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from benchdb.measurements.curves import Curve
from predictor.matching.configurations import Difference, Match
from predictor.matching.nearest import match
from summario.phases.values import Phase

MIB = 1 << 20
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]
MPI = {"api": "MPIIO", "spatiality": "unknown"}
STRIDED = {"block_size": MIB, "segments": 4}
SHUFFLED = {"random_offsets": 1}


def matched(phase: Phase, *curves: Curve) -> Match:
    return match(phase, phase.parts[0], curves, 8)


@pytest.mark.parametrize("fsync", ["none", "end", "each"])
def test_only_the_same_fsync_is_exact(a_phase: MakePhase, a_curve: MakeCurve, fsync: str) -> None:
    curves = [a_curve(fsync=value) for value in ("none", "end", "each")]
    found = matched(a_phase(fsync=fsync), *curves)
    assert (found.kind, found.curve and found.curve.config.fsync) == ("exact", fsync)
    assert found.differences == ()


@pytest.mark.parametrize(("ours", "theirs"), [("none", "end"), ("end", "none")])
def test_another_fsync_stands_in_if_nothing_else_was_measured(
    a_phase: MakePhase, a_curve: MakeCurve, ours: str, theirs: str
) -> None:
    curve = a_curve(fsync=theirs)
    found = matched(a_phase(fsync=ours), curve)
    assert (found.kind, found.curve, found.distance) == ("interpolated", curve, 0)
    assert found.differences == (Difference("fsync", ours, theirs),)
    assert found.repetitions == {}


def test_the_same_fsync_is_taken_before_a_nearer_benchmark(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    near = a_curve(fsync="end")
    far = a_curve(fsync="none", transfer_size=4 * MIB)
    found = matched(a_phase(fsync="none"), near, far)
    assert (found.kind, found.curve, found.differences) == ("interpolated", far, ())


@pytest.mark.parametrize(
    ("ours", "theirs"), [("each", "none"), ("each", "end"), ("none", "each"), ("end", "each")]
)
def test_an_fsync_after_each_write_stands_for_nothing_else(
    a_phase: MakePhase, a_curve: MakeCurve, ours: str, theirs: str
) -> None:
    found = matched(a_phase(fsync=ours), a_curve(fsync=theirs))
    assert (found.kind, found.curve) == ("unknown", None)
    assert found.differences == (Difference("fsync", ours, theirs),)


def test_without_any_benchmark_of_the_kind_there_is_no_difference(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    found = matched(a_phase(fsync="each"), a_curve(fsync="none", file_per_process=True))
    assert (found.kind, found.differences) == ("unknown", ())


@pytest.mark.parametrize(
    ("ours", "theirs"), [(None, "none"), (None, "end"), ("none", None), ("end", None), (None, None)]
)
def test_an_fsync_that_is_not_known_is_never_exact(
    a_phase: MakePhase, a_curve: MakeCurve, ours: str | None, theirs: str | None
) -> None:
    curve = a_curve(fsync=theirs)
    found = matched(a_phase(fsync=ours), curve)
    assert (found.kind, found.curve) == ("interpolated", curve)
    assert found.differences == (Difference("fsync", ours, theirs),)


def test_fsync_never_differs_for_reads(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    for ours in (None, "none"):
        for theirs in (None, "none", "end", "each"):
            curve = a_curve(read=True, fsync=theirs)
            found = matched(a_phase(operation="read", fsync=ours), curve)
            assert (found.kind, found.differences) == ("exact", ())


@pytest.mark.parametrize("spatiality", ["unknown", "collective"])
def test_only_the_same_order_of_mpi_io_is_exact(
    a_phase: MakePhase, a_curve: MakeCurve, spatiality: str
) -> None:
    of_kind: dict[str, Any] = {"api": "MPIIO", "collective": spatiality == "collective"}
    curves = {
        "contiguous": a_curve(**of_kind),
        "sequential": a_curve(**of_kind, **STRIDED),
        "random": a_curve(**of_kind, **SHUFFLED),
    }
    for order, curve in curves.items():
        phase = a_phase(api="MPIIO", spatiality=spatiality, order=order)
        others = [other for other in curves.values() if other is not curve]
        assert (matched(phase, *others, curve).kind, matched(phase, *others, curve).curve) == (
            "exact",
            curve,
        )
        stands_in = matched(phase, others[0])
        [difference] = stands_in.differences
        assert (stands_in.kind, difference.name, difference.wanted) == (
            *("interpolated", "order"),
            order,
        )


def test_an_order_that_is_not_known_is_never_exact(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    curve = a_curve(api="MPIIO")
    found = matched(a_phase(**MPI, order=None), curve)
    assert (found.kind, found.curve) == ("interpolated", curve)
    assert found.differences == (Difference("order", None, "contiguous"),)
    assert found.key != matched(a_phase(**MPI, order="contiguous"), curve).key


@pytest.mark.parametrize(
    "told", [{"spatiality": "sequential"}, {"api": "MPIIO", "spatiality": "unknown"}]
)
def test_a_process_that_skips_in_its_own_file_is_never_exact(
    a_phase: MakePhase, a_curve: MakeCurve, told: dict[str, str]
) -> None:
    phase = a_phase(**told, order="sequential", file_access="unique", n_files=16)
    curve = a_curve(api=phase.api, file_per_process=True)
    found = matched(phase, curve)
    assert (found.kind, found.curve) == ("interpolated", curve)
    assert found.differences == (Difference("order", "sequential", "contiguous"),)


def test_a_benchmark_with_conditions_is_never_exact_and_the_last_choice(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    filled = a_curve(conditions=("-M 75%",))
    found = matched(a_phase(), filled)
    assert (found.kind, found.curve, found.distance) == ("interpolated", filled, 0)
    assert found.differences == (Difference("conditions", "", "-M 75%"),)
    plain = a_curve(transfer_size=4 * MIB)
    assert matched(a_phase(), filled, plain).curve is plain


def test_fsync_counts_before_conditions_and_conditions_before_the_processes(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    other_fsync = a_curve(fsync="end")
    other_conditions = a_curve(conditions=("-M 75%",))
    unknown_tasks = a_curve(tasks=None, nodes=None)
    phase = a_phase()
    assert matched(phase, other_fsync, other_conditions).curve is other_conditions
    assert matched(phase, other_conditions, unknown_tasks).curve is unknown_tasks
