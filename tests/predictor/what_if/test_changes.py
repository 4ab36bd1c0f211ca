"""The table of "What if" in the definitions of insights, row by row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from predictor.matching.configurations import configuration
from predictor.what_if.changes import (
    collective,
    contiguous,
    larger,
    one_file,
    own_files,
    without_repeats,
)
from summario.phases.values import Part, Phase

KIB, MIB = 1 << 10, 1 << 20
MakePhase = Callable[..., Phase]


def line(phase: Phase) -> str:
    [part] = phase.parts
    return configuration(phase, part).command_line(launcher=True)


def test_larger_requests_move_the_same_bytes(a_phase: MakePhase) -> None:
    small = a_phase((512, 32 * MIB))
    changed = larger(small, MIB)
    assert changed.bytes == small.bytes == sum(part.bytes for part in changed.parts)
    assert (changed.parts, changed.requests) == ((Part(32, 32 * MIB),), 32)
    assert line(changed) == "mpiexec -n 16 ior -a POSIX -w -b 2m -t 1m"


def test_requests_of_one_mebibyte_are_large_enough(a_phase: MakePhase) -> None:
    phase = a_phase((64, 64 * MIB))
    assert larger(phase, 4 * MIB) is phase


def test_small_parts_of_a_phase_become_one(a_phase: MakePhase) -> None:
    phase = a_phase((32, 32 * MIB), (256, 16 * MIB), (2048, 16 * MIB))
    assert larger(phase, MIB).parts == (Part(64, 64 * MIB),)
    assert larger(phase, 2 * MIB).parts == (Part(32, 32 * MIB), Part(16, 32 * MIB))


def test_a_request_is_not_larger_than_the_bytes_of_a_process(a_phase: MakePhase) -> None:
    changed = larger(a_phase((512, 4 * MIB)), MIB)
    assert changed.parts == (Part(16, 4 * MIB),)
    assert line(changed) == "mpiexec -n 16 ior -a POSIX -w -b 256k -t 256k"


def test_a_request_is_not_larger_than_its_file(a_phase: MakePhase) -> None:
    """16 processes write 100 files of 64 KiB each in requests of 4 KiB."""
    phase = a_phase((25600, 100 * MIB), file_access="unique", n_files=1600)
    assert larger(phase, MIB).parts == (Part(1600, 100 * MIB),)


def test_a_phase_with_one_request_in_each_file_stays_as_it_is(a_phase: MakePhase) -> None:
    phase = a_phase((1600, 1600 * 4 * KIB), file_access="unique", n_files=1600)
    assert larger(phase, MIB) is phase


def test_a_phase_without_bytes_stays_as_it_is(a_phase: MakePhase) -> None:
    phase = a_phase((100, 0))
    assert larger(phase, MIB) is phase


@pytest.mark.parametrize(
    ("order", "layout"), [("contiguous", "-b 2m -t 128k"), ("sequential", "-b 128k -t 128k -s 16")]
)
def test_collective_calls_go_through_mpiio_in_the_same_order(
    a_phase: MakePhase, order: str, layout: str
) -> None:
    phase = a_phase((256, 32 * MIB), spatiality=order, order=order)
    changed = collective(phase)
    assert str(changed.kind) == "write MPIIO collective shared"
    assert (changed.bytes, changed.parts) == (phase.bytes, phase.parts)
    assert line(changed) == f"mpiexec -n 16 ior -a MPIIO -w -c {layout}"


@pytest.mark.parametrize(
    "told",
    [
        {"file_access": "unique"},
        {"api": "MPIIO", "spatiality": "collective"},
        {"mode_processes": 1, "processes": 1},
    ],
)
def test_only_shared_files_of_several_processes_become_collective(
    a_phase: MakePhase, told: dict
) -> None:
    phase = a_phase(**told)
    assert collective(phase) is phase


def test_a_file_per_process_becomes_one_file_and_back(a_phase: MakePhase) -> None:
    shared, unique = a_phase(), a_phase(file_access="unique")
    assert one_file(unique) == shared
    assert own_files(shared) == unique
    assert one_file(shared) is shared
    assert own_files(unique) is unique


def test_several_files_stay_several(a_phase: MakePhase) -> None:
    """16 processes with 3 files each share 3 files, and back."""
    unique, shared = a_phase(file_access="unique", n_files=48), a_phase(n_files=3)
    assert one_file(unique) == shared
    assert own_files(shared) == unique


def test_a_process_does_not_skip_in_its_own_file(a_phase: MakePhase) -> None:
    strided = a_phase(spatiality="sequential", order="sequential")
    assert own_files(strided).kind == ("write", "POSIX", "contiguous", "unique")
    together = a_phase(api="MPIIO", spatiality="collective", order="sequential")
    alone = own_files(together)
    assert (alone.spatiality, alone.order) == ("unknown", "contiguous")


def test_one_process_has_nobody_to_share_with(a_phase: MakePhase) -> None:
    alone = a_phase(file_access="unique", n_files=1, processes=1, nprocs=1)
    assert one_file(alone) is alone


def test_random_requests_become_contiguous(a_phase: MakePhase) -> None:
    phase = a_phase(spatiality="random")
    assert contiguous(phase) == a_phase()
    ordered = a_phase(spatiality="sequential")
    assert contiguous(ordered) is ordered
    of_mpiio = contiguous(a_phase(api="MPIIO", spatiality="unknown", order="random"))
    assert (of_mpiio.spatiality, of_mpiio.order) == ("unknown", "contiguous")


def test_bytes_that_move_again_are_left_out(a_phase: MakePhase) -> None:
    phase = a_phase((64, 64 * MIB), (128, 8 * MIB))
    changed = without_repeats(phase, 0.25)
    assert changed.parts == (Part(16, 16 * MIB), Part(32, 2 * MIB))
    assert (changed.bytes, changed.requests) == (18 * MIB, 48)
    assert without_repeats(phase, 1.0) is phase


def test_some_request_of_each_size_is_left(a_phase: MakePhase) -> None:
    changed = without_repeats(a_phase((2, 2 * MIB)), 1e-9)
    assert changed.parts == (Part(1, MIB),)
