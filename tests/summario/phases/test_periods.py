"""Phases that repeat: the commands of genuine runs tell how often, and with which pauses."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from ior_configs import IorConfig
from summario.phases.extract import extract_phases
from summario.phases.periods import find_periods, in_words
from summario.phases.values import Phase
from summario.reading.log import read_log

FIXTURES = Path(__file__).parents[1] / "fixtures"
DATA = Path(__file__).parents[3] / "experiments/data"


def phases_of(log: Path) -> list[Phase]:
    return extract_phases(read_log(log))


def with_starts(phase: Phase, *starts: float, seconds: float = 1.0) -> list[Phase]:
    return [replace(phase, start_seconds=start, end_seconds=start + seconds) for start in starts]


@pytest.fixture
def phase() -> Phase:
    """A phase of a genuine run of one phase."""
    [phase] = phases_of(FIXTURES / "single-a.darshan")
    return phase


@pytest.mark.parametrize(
    ("log", "command", "phases"),
    [
        pytest.param(
            "ior/fsync-posix-pauses-e", "ior -a POSIX -w -e -b 1m -t 128k -i 3 -d 2", [(0, 1, 2)]
        ),
        pytest.param("ior_times/each-reps", None, [(0, 1, 2)]),
        pytest.param("ior_times/wr-e-reps", None, [(0, 2, 4), (1, 3, 5)], id="writes and reads"),
    ],
)
def test_repetitions_of_ior_repeat(
    log: str, command: str | None, phases: list[tuple[int, ...]]
) -> None:
    if command is None:
        output = (FIXTURES / f"{log}.txt").read_text().splitlines()
        [command] = [line.split(":", 1)[1] for line in output if line.startswith("Command line")]
    config = IorConfig.from_command_line(command)
    periods = find_periods(phases_of(FIXTURES / f"{log}.darshan"))
    assert [period.phases for period in periods] == phases
    assert {len(period.phases) for period in periods} == {config.repetitions}
    if len(periods) == 1:
        # Darshan's heat map tells the ends of phases in one file within 0.1 s.
        assert periods[0].pause_seconds == pytest.approx(config.inter_test_delay, abs=0.11)


@pytest.mark.parametrize(
    ("log", "times", "pause_seconds"),
    [
        pytest.param("programs/bursts", 3, 2.0, id="bursts 2 s apart"),
        pytest.param("programs/bursts-dxt", 3, 2.0, id="the same with a trace"),
        pytest.param("programs/mpi-bursts", 3, 2.0, id="bursts of four processes"),
        pytest.param("reopen-same-5x", 5, 4.0, id="one file, opened five times"),
        pytest.param("reopen-same-5x-dxt", 5, 4.0, id="the same with a trace"),
    ],
)
def test_bursts_of_a_program_repeat(log: str, times: int, pause_seconds: float) -> None:
    [period] = find_periods(phases_of(FIXTURES / f"{log}.darshan"))
    assert period.phases == tuple(range(times))
    assert period.pause_seconds == pytest.approx(pause_seconds, abs=0.11)
    assert period.seconds >= period.pause_seconds


@pytest.mark.parametrize("name", ["periodic-a", "periodic-b"])
def test_the_periodic_study_repeats(name: str) -> None:
    # Its README: eight phases ten seconds apart.
    [period] = find_periods(phases_of(DATA / "periodic/logs" / f"{name}-ionodes0.darshan"))
    assert period.phases == tuple(range(8))
    assert period.pause_seconds == pytest.approx(10.0, abs=0.11)


def test_runs_of_known_truth_repeat_as_their_commands_say(shared_data: Path) -> None:
    manifest = shared_data / "runs/manifest.csv"
    for row in csv.DictReader(manifest.read_text().splitlines()):
        if "periodic" not in row["name"]:
            continue
        # The words in front of ior belong to the launcher.
        config = IorConfig.from_command_line("ior " + row["command"].split(" ior ", 1)[1])
        [period] = find_periods(phases_of(shared_data / "runs" / row["log"]))
        assert len(period.phases) == config.repetitions == 8
        assert period.pause_seconds == pytest.approx(config.inter_test_delay, abs=0.11)


def test_epochs_of_a_training_repeat(shared_data: Path) -> None:
    # DLIO reads the same 14 files in each of five epochs.
    [log] = (shared_data / "darshan-logs/dlio_logs").glob("*_id3116902-2110483_*.darshan")
    phases = phases_of(log)
    [period] = find_periods(phases)
    assert len(period.phases) == 5
    assert {phases[place].n_files for place in period.phases} == {14}


@pytest.mark.parametrize("name", ["multiphase", "hacc-posix-fpp-8x100k", "single-a", "stdio-fpp"])
def test_other_programs_have_no_periodic_phases(name: str) -> None:
    assert find_periods(phases_of(FIXTURES / f"{name}.darshan")) == []


def test_two_phases_do_not_repeat(phase: Phase) -> None:
    assert find_periods(with_starts(phase, 0, 10)) == []


def test_phases_with_different_pauses_do_not_repeat(phase: Phase) -> None:
    assert find_periods(with_starts(phase, 0, 10, 30)) == []


def test_phases_that_overlap_do_not_repeat(phase: Phase) -> None:
    assert find_periods(with_starts(phase, 0, 10, 20, seconds=11)) == []


def test_phases_of_other_sizes_do_not_repeat(phase: Phase) -> None:
    first, second, third = with_starts(phase, 0, 10, 20)
    assert find_periods([first, replace(second, bytes=second.bytes - 1), third]) == []


def test_phases_of_several_logs_do_not_repeat_each_other(phase: Phase) -> None:
    first, second, third = with_starts(phase, 0, 10, 20)
    assert find_periods([first, replace(second, log="other.darshan"), third]) == []


@pytest.mark.parametrize(
    ("starts", "seconds"),
    [
        pytest.param([(0, 2), (12, 3), (25, 2)], 12.5, id="equal pauses"),
        pytest.param([(0, 2), (12, 4), (24, 2)], 12.0, id="equal times between starts"),
    ],
)
def test_one_of_both_may_differ(
    phase: Phase, starts: list[tuple[float, float]], seconds: float
) -> None:
    phases = [
        replace(phase, start_seconds=start, end_seconds=start + lasts) for start, lasts in starts
    ]
    [period] = find_periods(phases)
    assert period.seconds == seconds


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ((0, 1, 2, 3), "phases 0 to 3: the same I/O every 10 s, 4 times"),
        ((1, 3, 5), "phases 1, 3 and 5: the same I/O every 10 s, 3 times"),
        (
            tuple(range(0, 2000, 2)),
            "phases 0, 2, 4, 6, 8 and 995 more: the same I/O every 10 s, 1,000 times",
        ),
    ],
)
def test_a_sentence_tells_which_phases_repeat(
    phase: Phase, places: tuple[int, ...], words: str
) -> None:
    other = replace(phase, operation="read")
    phases = [other] * (places[-1] + 1)
    for number, place in enumerate(places):
        [phases[place]] = with_starts(phase, 10 * number)
    [period] = find_periods(phases)
    assert in_words(period) == words
