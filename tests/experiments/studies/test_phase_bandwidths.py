from __future__ import annotations

import math

import pytest

from experiments.studies.phase_bandwidths import PhaseBandwidth, phase_bandwidths
from experiments.studies.report import phase_bandwidth_rows
from predictor.validation.reruns import Rerun


def run(io_nodes: int, repetition: int, *phases_mib_s: float) -> Rerun:
    return Rerun("app", io_nodes, repetition, 1.0, None, phases_mib_s)


def test_later_phases_are_compared_with_the_first_of_the_same_run() -> None:
    first, second = phase_bandwidths([run(0, 1, 10.0, 40.0), run(0, 2, 30.0, 30.0)])
    assert first == PhaseBandwidth(0, 1, 2, 20.0, pytest.approx(0.5), pytest.approx(1.0))
    # One run is four times as fast later, the other is as fast as before.
    assert (second.mean_mib_s, second.to_first) == (35.0, pytest.approx(math.sqrt(4)))


def test_runs_that_tell_no_phases_or_have_one_give_nothing() -> None:
    assert list(phase_bandwidths([run(0, 1), run(2, 1, 10.0)])) == []


def test_the_report_has_a_row_for_each_phase_and_a_column_for_each_number_of_i_o_nodes() -> None:
    reruns = [run(2, 1, 10.0, 12.0), run(0, 1, 40.0, 30.0)]
    assert phase_bandwidth_rows(reruns) == [
        {"phase": "1", "0": "40 (100%)", "2": "10 (100%)"},
        {"phase": "2", "0": "30 (75%)", "2": "12 (120%)"},
    ]
