"""A benchmark with another fsync, order or condition is never exact, and stands in only if it must.

The rules are those of the issue: fsync is a property of the configuration; "each" stands in for
nothing else, nor the reverse; a value that is not known is never exact.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchdb.measurements.curves import Curve
from predictor.matching.configurations import Difference, Match
from predictor.matching.nearest import match
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import read_log

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


def test_other_blocks_are_never_exact(a_phase: MakePhase, a_curve: MakeCurve) -> None:
    """-b 3m -t 1m -s 7 beside the same bytes in blocks of one request, and in one block."""
    phase = a_phase((336, 336 * MIB), spatiality="sequential", block_requests=3.0)
    single = a_curve(block_size=MIB, segments=21)
    same = a_curve(block_size=3 * MIB, segments=7)
    found = matched(phase, single)
    assert (found.kind, found.differences) == ("interpolated", (Difference("block", "3", "1"),))
    for curves in ((single, same), (same, single)):
        assert (matched(phase, *curves).kind, matched(phase, *curves).curve) == ("exact", same)
    large = a_phase((512, 512 * MIB), block_requests=8.0)
    [difference] = matched(large, a_curve(block_size=32 * MIB)).differences
    assert difference == Difference("block", "8", "all")


def test_collective_buffering_is_never_exact(shared_data: Path, a_curve: MakeCurve) -> None:
    """The same command ran with the default hints, and with `romio_cb_write=enable`."""
    curve = a_curve(
        api="MPIIO", collective=True, transfer_size=256 << 10, block_size=256 << 10, segments=64
    )
    logs = shared_data / "runs" / "logs"
    [phase] = extract_phases(read_log(logs / "mpiio-coll-strided.darshan"))
    assert matched(phase, curve).kind == "exact"
    [phase] = extract_phases(read_log(logs / "mpiio-coll-strided-cb1.darshan"))
    found = matched(phase, curve)
    assert (found.kind, found.curve, found.distance) == ("interpolated", curve, 0)
    assert found.differences == (Difference("collective buffering", "1 aggregator", None),)
    # About 3.29 GB below 256 MiB, as the manifest of the runs says.
    [phase] = extract_phases(read_log(logs / "mpiio-coll-contig-cb4.darshan"))
    same_sizes = a_curve(api="MPIIO", collective=True, block_size=16 * MIB)
    [difference] = matched(phase, same_sizes).differences
    assert (difference.name, difference.wanted) == (
        *("collective buffering", "4 aggregators, 12.2 × the bytes in POSIX"),
    )
