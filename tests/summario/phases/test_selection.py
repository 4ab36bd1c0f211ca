"""Phases that move few of the bytes can be left out."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from summario.phases.extract import extract
from summario.phases.selection import without_small
from summario.phases.settings import DEFAULTS, ExtractionSettings
from summario.phases.values import Part, Phase
from summario.reading.log import read_log

LOGS = Path(__file__).resolve().parents[3] / "experiments" / "data" / "applications" / "logs"


def phase(moved: int) -> Phase:
    return Phase(
        job=1,
        start_seconds=0.0,
        end_seconds=1.0,
        operation="write",
        rank=None,
        processes=4,
        nprocs=4,
        bytes=moved,
        io_time_seconds=1.0,
        api="POSIX",
        requests=1,
        spatiality="contiguous",
        file_access="shared",
        n_files=1,
        mode_processes=4,
        parts=(Part(1, moved),) if moved else (),
    )


@pytest.mark.parametrize(
    ("small", "told"),
    [((512, 488), "2 phases with 1,000 bytes of 9.77 KiB"), ((488,), "1 phase with 488 bytes of")],
)
def test_small_phases_are_left_out_with_their_number_and_bytes(
    small: tuple[int, ...], told: str
) -> None:
    found = without_small([phase(9000), *map(phase, small)], 0.06)
    assert [one.bytes for one in found.phases] == [9000]
    [warning] = found.warnings
    assert f"phases with less than 0.06 of the bytes each are left out: {told}" in warning


def test_a_phase_with_exactly_the_share_is_kept() -> None:
    assert without_small([phase(90), phase(10)], 0.1).warnings == ()


@given(st.lists(st.integers(0, 1 << 60), max_size=8))
def test_by_default_every_phase_is_kept(moved: list[int]) -> None:
    phases = [phase(count) for count in moved]
    found = without_small(phases, DEFAULTS.min_share)
    assert (found.phases, found.warnings) == (tuple(phases), ())


def test_a_log_loses_its_small_phases_only_if_they_are_asked_away() -> None:
    log = read_log(LOGS / "irregular-ionodes0.darshan")
    phases = extract(log).phases
    smallest = min(phases, key=lambda one: one.bytes)
    share = smallest.bytes / sum(one.bytes for one in phases)
    found = extract(log, ExtractionSettings(min_share=share * 1.01))
    assert set(phases) - set(found.phases) == {smallest}
    assert len(found.warnings) == 1


def test_only_settings_that_are_not_the_default_count_as_changed() -> None:
    assert DEFAULTS.changed == {}
    assert ExtractionSettings(threshold=0.2, layer="posix").changed == {"layer": "posix"}
