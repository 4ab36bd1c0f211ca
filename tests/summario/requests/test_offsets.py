"""Phases from a DXT trace: order, request sizes, and shares of processes and compute nodes."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Dxt, Record, Segment
from experiments.applications.spec import Application, collective, irregular, multiphase
from ioncast_base.errors import InputError
from summario.phases.extract import extract, extract_phases
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Part, Phase
from summario.reading.log import read_log
from tests.summario.phases.test_rules import MIB, log_of, times
from tests.support.command import run_ioncast

PROJECT = Path(__file__).resolve().parents[3]
LOGS = PROJECT / "experiments" / "data" / "applications" / "logs"
FIXTURES = PROJECT / "tests" / "summario" / "fixtures"
DXT = ExtractionSettings(phases="dxt")


def counted(path: str, segments: Sequence[Segment], rank: int = -1, **more: int) -> Record:
    """The counters of some writes, in no order unless `more` says so."""
    counters = {
        "POSIX_WRITES": len(segments),
        "POSIX_BYTES_WRITTEN": sum(length for _, length, _, _ in segments),
        "POSIX_OPENS": 1,
        **more,
    }
    return Record("POSIX", path, rank, counters, times("POSIX", "WRITE", 0, 1, 0.25))


def writes(*places: tuple[int, int]) -> list[Segment]:
    """Writes of some offsets and lengths, one after the other."""
    return [
        (offset, length, 0.01 * i, 0.01 * i + 0.005) for i, (offset, length) in enumerate(places)
    ]


def traced(rank: int, segments: list[Segment], host: str = "n0", path: str = "/a") -> Dxt:
    return Dxt("DXT_POSIX", path, rank, host, segments)


def phase_of(folder: Path, *dxt: Dxt, **counters: int) -> Phase:
    """The only phase of a file that some processes write, by its trace."""
    everything = [segment for one in dxt for segment in one.writes]
    log = log_of(folder, [counted("/a", everything, **counters)], dxt=dxt)
    [phase] = extract_phases(log, DXT)
    return phase


@pytest.mark.parametrize(
    ("places", "order"),
    [
        ([(i * 8, 8) for i in range(20)], "contiguous"),
        ([(i * 32, 8) for i in range(20)], "sequential"),
        ([(i * 13 % 20 * 8, 8) for i in range(20)], "random"),
        # Overlapping requests begin before the end of the one before.
        ([(i, 8) for i in range(20)], "random"),
    ],
)
def test_the_order_is_that_of_the_offsets(
    places: list[tuple[int, int]], order: str, tmp_path: Path
) -> None:
    phase = phase_of(tmp_path, traced(0, writes(*places)))
    assert (phase.spatiality, phase.order) == (order, order)


def test_the_order_is_that_of_each_process(tmp_path: Path) -> None:
    blocks = [
        traced(rank, writes(*((rank * 1000 + i * 10, 10) for i in range(100)))) for rank in range(4)
    ]
    assert phase_of(tmp_path, *blocks).spatiality == "contiguous"


def test_the_largest_shares_are_of_the_process_and_the_node_that_move_most(tmp_path: Path) -> None:
    phase = phase_of(
        tmp_path,
        traced(0, writes((0, 5 * MIB)), "n0"),
        traced(1, writes((5 * MIB, MIB)), "n0"),
        traced(2, writes((6 * MIB, 4 * MIB)), "n1"),
        traced(3, writes((10 * MIB, 4 * MIB)), "n1"),
    )
    assert phase.largest_process_bytes == 5 * MIB
    assert (phase.nodes, phase.largest_node_bytes) == (2, 8 * MIB)


def test_files_of_one_phase_add_up_for_each_process(tmp_path: Path) -> None:
    own = [
        traced(rank, writes((0, size * MIB)), f"n{rank // 2}", f"/f{rank}.{size}")
        for rank in range(4)
        for size in (1, 2 + rank)
    ]
    records = [counted(one.path, list(one.writes), rank=one.rank) for one in own]
    [phase] = extract_phases(log_of(tmp_path, records, dxt=own), DXT)
    assert (phase.file_access, phase.n_files) == ("unique", 8)
    assert phase.largest_process_bytes == 6 * MIB
    assert (phase.nodes, phase.largest_node_bytes) == (2, 11 * MIB)


def test_without_host_names_only_the_processes_are_known(tmp_path: Path) -> None:
    phase = phase_of(tmp_path, traced(0, writes((0, MIB)), ""), traced(1, writes((MIB, MIB)), ""))
    assert (phase.largest_process_bytes, phase.largest_node_bytes, phase.nodes) == (MIB, None, None)


def test_all_request_sizes_are_told_apart(tmp_path: Path) -> None:
    sizes = [100, 200, 300, 400, 400, 300, 300]
    ends = [sum(sizes[:i]) for i in range(len(sizes))]
    phase = phase_of(tmp_path, traced(0, writes(*zip(ends, sizes, strict=True))))
    assert set(phase.parts) == {Part(1, 100), Part(1, 200), Part(3, 900), Part(2, 800)}


def test_a_phase_of_many_sizes_keeps_the_largest_parts(tmp_path: Path) -> None:
    sizes = range(8, 808, 8)
    places = [(1000 * i, size) for i, size in enumerate(sizes)]
    phase = phase_of(tmp_path, traced(0, writes(*places)))
    assert {800, 792} < {part.bytes for part in phase.parts}
    assert len(phase.parts) == 5
    assert sum(part.requests for part in phase.parts) == 100
    assert sum(part.bytes for part in phase.parts) == phase.bytes == sum(sizes)


def test_a_file_without_a_whole_trace_keeps_its_counters(tmp_path: Path) -> None:
    whole, lacking = writes((0, MIB)), writes((0, MIB), (MIB, MIB))
    in_order = {"POSIX_CONSEC_WRITES": 1, "POSIX_SEQ_WRITES": 1}
    records = [counted("/a", whole, rank=0), counted("/b", lacking, rank=1, **in_order)]
    dxt = [traced(0, whole), traced(1, lacking[:1], path="/b")]
    found = extract(log_of(tmp_path, records, dxt=dxt), DXT)
    [phase] = found.phases
    assert (phase.bytes, phase.requests) == (3 * MIB, 3)
    assert phase.largest_process_bytes is None
    assert found.warnings == ("1 file without a whole DXT trace: the counters tell their I/O",)


def test_a_log_without_a_trace_is_an_error() -> None:
    with pytest.raises(InputError, match="the log has no DXT trace"):
        extract(read_log(FIXTURES / "single-a.darshan"), DXT)


def test_the_command_says_how_to_get_a_trace() -> None:
    done = run_ioncast("phases", FIXTURES / "single-a.darshan", "--phases", "dxt")
    assert done.returncode == 2
    [line] = done.stderr.strip().splitlines()
    assert "the log has no DXT trace" in line
    assert "DXT_ENABLE_IO_TRACE" in line


def test_trace_phases_have_no_other_source() -> None:
    done = run_ioncast("phases", FIXTURES / "single-a.darshan", "--trace", "--phases", "dxt")
    assert done.returncode == 2
    assert "--phases means nothing for a trace" in done.stderr


def test_rank_r_writes_r_mib(shared_data: Path) -> None:
    """`manifest.csv` says so of this run of 24 processes; rank 0 does not open the file."""
    [phase] = extract_phases(read_log(shared_data / "runs/logs/imbalance-shared-dxt.darshan"), DXT)
    assert (phase.processes, phase.largest_process_bytes) == (23, 23 * MIB)
    assert (phase.nodes, phase.largest_node_bytes) == (1, phase.bytes)


def test_phases_of_genuine_runs_are_the_same_by_trace_and_by_counters(shared_data: Path) -> None:
    """Each run did one kind of I/O in requests of one size, or at most four, so both tell all."""
    with (shared_data / "runs/manifest.csv").open() as file:
        logs = [row["log"] for row in csv.DictReader(file) if row["dxt"] == "1"]
    assert len(logs) > 20
    for name in logs:
        log = read_log(shared_data / "runs" / name)
        found = extract(log, DXT)
        nothing = {"largest_process_bytes": None, "largest_node_bytes": None, "nodes": None}
        bare = [replace(phase, **nothing) for phase in found.phases]
        assert bare == extract_phases(log), name
        assert all(phase.largest_process_bytes for phase in found.phases), name


@pytest.mark.parametrize("make", [irregular, collective, multiphase])
def test_the_shares_of_the_shipped_applications_are_those_of_their_plan(make: object) -> None:
    application: Application = make(16, 8, 1 / 32)  # type: ignore[operator]
    phases = extract_phases(read_log(LOGS / f"{application.name}-ionodes0.darshan"), DXT)
    assert len(phases) == len(application.steps)
    for phase, step in zip(phases, application.steps, strict=True):
        by_rank = [step.process_bytes(rank) for rank in range(16)]
        by_node = [by_rank[2 * node] + by_rank[2 * node + 1] for node in range(8)]
        assert phase.largest_process_bytes == max(by_rank)
        assert phase.largest_node_bytes == max(by_node)
        assert phase.nodes == sum(moved > 0 for moved in by_node)
        assert phase.order == ("sequential" if step.layout == "1d-strided" else "contiguous")


numbers = st.sampled_from([0, 1, 8, MIB, 1 << 40, (1 << 62) - 1, (1 << 63) - 1, -1])
moments = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0, 10)
hostile = st.lists(st.tuples(numbers, numbers, moments, moments), max_size=6)


@settings(max_examples=60)
@given(requests=hostile, counters=st.lists(st.integers(0, 1 << 50), min_size=2, max_size=2))
def test_hostile_traces_change_no_bytes(
    requests: list[Segment], counters: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Huge, overlapping and empty requests, and reversed times: the counters' bytes stay."""
    number, moved = counters
    record = counted("/a", [], POSIX_WRITES=number, POSIX_BYTES_WRITTEN=moved)
    log = log_of(tmp_path_factory.mktemp("log"), [record], dxt=[traced(0, requests)])
    try:
        before = extract_phases(log)
    except InputError:
        return
    found = extract_phases(log, DXT)
    for field in ("bytes", "requests", "n_files"):
        assert [getattr(one, field) for one in found] == [getattr(one, field) for one in before]
    for phase in found:
        # Bytes without a number of requests have no parts.
        assert sum(part.bytes for part in phase.parts) in {phase.bytes, 0}
        assert bool(phase.parts) == bool(phase.requests)
