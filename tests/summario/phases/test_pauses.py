"""Pauses that only the HEATMAP and DXT show."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from summario.phases.extract import extract_phases
from summario.phases.settings import ExtractionSettings
from summario.phases.windows import bins_of, windows_between
from summario.reading.heatmap import Heatmap
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


def heatmap(*moved: int, width: float = 0.5) -> Heatmap:
    return Heatmap(width, np.zeros(1, np.int64), np.array([moved]))


def pauses(heatmaps: list[Heatmap], delays: list[float], distance: float) -> list[list[float]]:
    """The pauses between the windows, and the windows' bytes."""
    windows = windows_between(bins_of(heatmaps, delays), distance)
    if windows is None:
        return []
    assert windows.moved.sum() == sum(each.bytes.sum() for each in heatmaps)
    return np.stack([windows.ends[:-1], windows.starts[1:]], axis=1).tolist()


def test_pauses_are_runs_of_empty_bins_longer_than_the_distance() -> None:
    moved = heatmap(0, 0, 0, 7, 0, 0, 9, 0, 0, 0, 1, 0)
    assert pauses([moved], [0.0], 1.0) == [[0, 1.5], [3.5, 5]]
    assert pauses([moved], [0.0], 0.9) == [[0, 1.5], [2, 3], [3.5, 5]]
    assert pauses([moved], [0.0], 5.0) == []


def test_a_pause_of_several_logs_is_empty_in_all_of_them() -> None:
    early, late = heatmap(1, 0, 0, 0, 0, 1), heatmap(1, 0, 0, 0, 1, width=1)
    assert pauses([early, late], [0.0, 1.0], 0.9) == [[3, 5]]
    assert pauses([early, late], [0.0, 1.25], 0.4) == [[0.5, 1.25], [3, 5.25]]


@pytest.mark.parametrize("width", [0.1, 0.2, 0.25, 0.05])
@pytest.mark.parametrize("delay", [0.0, 17.31, 1e5 + 1 / 3])
def test_empty_bins_of_exactly_the_distance_are_not_a_pause(width: float, delay: float) -> None:
    empty = round(1 / width)
    for before in range(1, 100):
        moved = heatmap(*[1] * before, *[0] * empty, 1, width=width)
        assert pauses([moved], [delay], 1.0) == []
        moved = heatmap(*[1] * before, *[0] * (empty + 1), 1, width=width)
        assert len(pauses([moved], [delay], 1.0)) == 1


@given(st.lists(st.integers(0, 2), min_size=1), st.floats(0.1, 4), st.floats(0, 5))
def test_a_pause_is_empty_and_long_enough_and_cannot_be_longer(
    moved: list[int], width: float, distance: float
) -> None:
    for first, end in pauses([heatmap(*moved, width=width)], [0.0], distance):
        assert end - first > distance
        assert first == 0 or moved[round(first / width) - 1]
        assert end == len(moved) * width or moved[round(end / width)]
        assert not any(moved[round(first / width) : round(end / width)])
