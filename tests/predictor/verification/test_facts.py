"""The facts of a phase are those of the command that wrote its log."""

from __future__ import annotations

from pathlib import Path

import pytest

from predictor.verification.facts import PhaseFacts, facts_of
from summario.phases.extract import extract_run
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of

VARIATIONS = Path(__file__).parent / "fixtures/variations"


def facts(log: Path) -> list[PhaseFacts]:
    run = run_of([read_log(log)])
    return facts_of(run, extract_run(run).phases)


@pytest.mark.parametrize(
    ("name", "known"),
    [
        # -w -b 4m -t 64k, 4 processes
        (
            "plain",
            {
                "bytes": 16 << 20,
                "requests": 256,
                "processes": 4,
                "consecutive": 1.0,
                "sequential": 1.0,
                "opens": 1.0,
                "unaligned": 0.0,
                "deviation_of_bytes": 0.0,
                "collective": None,
                "gap_bytes": None,
            },
        ),
        # -b 64k -t 64k -s 64: between two blocks of a process are three of others
        ("strided", {"consecutive": 0.0, "sequential": 1.0, "gap_bytes": 3 * (64 << 10)}),
        ("collective", {"collective": 1.0, "below": 1.0, "consecutive": 1.0}),
        ("collective-strided", {"collective": 1.0, "gap_bytes": 3 * (64 << 10)}),
        ("mpiio", {"collective": 0.0, "below": 1.0}),
        # The phase is shorter than half a second.
        ("read", {"bytes": 16 << 20, "opens": 1.0, "metadata": None, "busy": None}),
    ],
)
def test_facts_are_those_of_the_command(name: str, known: dict[str, object]) -> None:
    [found] = facts(VARIATIONS / f"{name}.darshan")
    assert {field: getattr(found, field) for field in known} == known


def test_a_file_that_is_used_in_several_phases_gives_each_its_opens(shared_data: Path) -> None:
    # 24 processes open one file five times, each time for four requests.
    found = facts(shared_data / "runs/logs/reopen-same-5x.darshan")
    assert [(each.requests, each.opens) for each in found] == [(96, 1.0)] * 5


def test_many_files_of_a_process_are_many_opens(shared_data: Path) -> None:
    # mdtest -n 200 with 4 processes
    [found] = facts(shared_data / "live/small-files.darshan")
    assert (found.opens, found.consecutive) == (200, None)


def test_processes_with_other_numbers_of_bytes_are_seen(shared_data: Path) -> None:
    # Rank r writes r MiB, from 1 to 23: the standard deviation is 6.633, the mean 12.
    [found] = facts(shared_data / "runs/logs/imbalance-shared.darshan")
    assert found.deviation_of_bytes == pytest.approx(6.633 / 12, rel=1e-3)


def test_reads_below_collective_writes_are_seen(shared_data: Path) -> None:
    # Its README: 3.3 GB of writes below 256 MiB above; read-modify-write reads as much again.
    [found] = facts(shared_data / "runs/logs/mpiio-coll-contig-cb4.darshan")
    assert found.below is not None
    assert found.below > 2 * 3.2e9 / (256 << 20) * 0.95


@pytest.mark.slow
def test_every_log_has_facts(shared_data: Path) -> None:
    for log in sorted((shared_data / "runs/logs").glob("*.darshan")):
        run = run_of([read_log(log)])
        phases = extract_run(run).phases
        assert [each.bytes for each in facts_of(run, phases)] == [each.bytes for each in phases]
