"""Asynchronous I/O: the time that fits into the pauses of the program."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from predictor.what_if.hiding import Hiding, hiding_of
from summario.phases.values import Phase

MakePhase = Callable[..., Phase]


@pytest.fixture
def of_mpiio(a_phase: MakePhase) -> MakePhase:
    def make(start: float, end: float, **told: str) -> Phase:
        values = {"api": "MPIIO", "spatiality": "unknown"} | told
        return a_phase(start_seconds=start, end_seconds=end, **values)

    return make


def saved(hiding: Hiding, *seconds: float) -> float:
    return float(hiding.saved(np.array(seconds)))


def test_each_phase_hides_in_the_pause_after_it_and_the_last_one_nowhere(
    of_mpiio: MakePhase,
) -> None:
    """Ten seconds of I/O, then pauses of 4 and 30 s: min(10, 4) + min(10, 30) + 0."""
    phases = [of_mpiio(0, 10), of_mpiio(14, 24), of_mpiio(54, 64)]
    assert saved(hiding_of(phases, {"write"}), 10, 10, 10) == 14


def test_faster_io_hides_more_of_itself(of_mpiio: MakePhase) -> None:
    hiding = hiding_of([of_mpiio(0, 10), of_mpiio(14, 24)], {"write"})
    assert saved(hiding, 3, 3) == 3


def test_draws_are_saved_one_by_one(of_mpiio: MakePhase) -> None:
    hiding = hiding_of([of_mpiio(0, 10), of_mpiio(14, 24)], {"write"})
    assert hiding.saved(np.array([[2.0, 8.0], [2.0, 8.0]])).tolist() == [2, 4]


def test_only_mpiio_of_the_operation_is_hidden(of_mpiio: MakePhase) -> None:
    phases = [
        of_mpiio(0, 10, operation="read"),
        of_mpiio(20, 30, api="POSIX", spatiality="contiguous"),
        of_mpiio(40, 50),
        of_mpiio(60, 70),
    ]
    assert saved(hiding_of(phases, {"write"}), 10, 10, 10, 10) == 10
    assert saved(hiding_of(phases, {"read"}), 10, 10, 10, 10) == 10
    assert saved(hiding_of(phases, {"read", "write"}), 10, 10, 10, 10) == 20


def test_phases_at_the_same_time_share_the_pause_after_the_last_of_them(
    of_mpiio: MakePhase,
) -> None:
    phases = [of_mpiio(0, 10), of_mpiio(5, 12), of_mpiio(20, 30)]
    assert saved(hiding_of(phases, {"write"}), 6, 6, 6) == 8
    assert saved(hiding_of(phases, {"write"}), 2, 3, 6) == 5


def test_phases_without_a_pause_hide_nothing(of_mpiio: MakePhase) -> None:
    hiding = hiding_of([of_mpiio(0, 10), of_mpiio(10, 20)], {"write"})
    assert saved(hiding, 10, 10) == 0


def test_nothing_is_hidden_without_phases() -> None:
    assert saved(hiding_of([], {"write"})) == 0
