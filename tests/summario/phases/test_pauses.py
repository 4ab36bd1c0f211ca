"""Pauses that only the HEATMAP and DXT show."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from summario.phases.extract import extract_phases
from summario.phases.pauses import pauses_of
from summario.phases.settings import ExtractionSettings
from summario.reading.log import read_log

FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize("name", ["reopen-same-5x", "reopen-same-5x-dxt"])
def test_a_file_reopened_five_times_is_five_phases(shared_data: Path, name: str) -> None:
    truth = json.loads((shared_data / f"runs/truth/{name}.json").read_text())
    begin = truth["phases"][0]["t_io_first"]
    phases = extract_phases(read_log(FIXTURES / f"{name}.darshan"))
    assert [phase.bytes for phase in phases] == [p["bytes"] for p in truth["phases"]]
    assert [phase.requests for phase in phases] == [p["requests"] for p in truth["phases"]]
    for phase, real in zip(phases, truth["phases"], strict=True):
        # A HEATMAP bin of this run is 0.1 s wide.
        offset = phase.start_seconds - phases[0].start_seconds
        assert offset == pytest.approx(real["t_io_first"] - begin, abs=0.15)


def test_the_io_times_of_pieces_add_up_to_that_of_the_file() -> None:
    log = read_log(FIXTURES / "reopen-same-5x.darshan")
    pieces = extract_phases(log)
    [whole] = extract_phases(log, ExtractionSettings(time_distance=60))
    assert sum(piece.io_time_seconds for piece in pieces) == pytest.approx(whole.io_time_seconds)
    assert sum(piece.bytes for piece in pieces) == whole.bytes


def test_pauses_are_runs_of_empty_bins_longer_than_the_distance() -> None:
    moved = np.array([0, 0, 0, 7, 0, 0, 9, 0, 0, 0, 1, 0])
    assert pauses_of(moved, 0.5, 1.0) == [(0, 3), (7, 10)]
    assert pauses_of(moved, 0.5, 0.9) == [(0, 3), (4, 6), (7, 10)]
    assert pauses_of(moved, 0.5, 5.0) == []


@given(st.lists(st.integers(0, 2), min_size=1), st.floats(0.1, 4), st.floats(0, 5))
def test_a_pause_is_empty_and_long_enough_and_cannot_be_longer(
    moved: list[int], width: float, distance: float
) -> None:
    for first, end in pauses_of(np.array(moved), width, distance):
        assert not any(moved[first:end])
        assert (end - first) * width > distance
        assert first == 0 or moved[first - 1]
        assert end == len(moved) or moved[end]
