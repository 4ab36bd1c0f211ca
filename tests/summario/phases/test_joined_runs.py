"""Phases of runs with several logs: those of a job's processes."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt, Heatmap, Record, write_log
from ioncast_base.errors import DamagedLogError
from summario.phases.extract import extract, extract_run
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Extraction, Phase
from summario.reading.log import DarshanLog, read_log
from summario.reading.operations import operations_of
from summario.requests.of_log import trace_run
from summario.runs.logs_of_run import run_of
from summario.runs.stacking import stacked
from tests.summario.phases.test_rules import MIB, heatmap, mpiio, posix, stdio

FIXTURES = Path(__file__).parents[1] / "fixtures"
START = 1_700_000_000


def log(
    folder: Path,
    name: str,
    records: Sequence[Record],
    delay: float = 0,
    nprocs: int = 1,
    **contents: object,
) -> DarshanLog:
    """A log of a process that starts `delay` seconds after the run."""
    start = (START + int(delay), round(delay % 1 * 1e9))
    path = folder / f"{name}.darshan"
    return read_log(write_log(path, nprocs=nprocs, records=records, start=start, **contents))


def phases_of(*logs: DarshanLog, **settings: object) -> tuple[Phase, ...]:
    return extract_run(run_of(list(logs)), ExtractionSettings(**settings)).phases


def test_two_processes_that_write_one_file_make_a_shared_phase(tmp_path: Path) -> None:
    one = log(tmp_path, "one", [posix("/a", 1, 3, requests=10, seconds=1.5)])
    two = log(tmp_path, "two", [posix("/a", 0, 1, requests=20, seconds=0.5)], delay=2.5)
    [phase] = phases_of(two, one)
    assert phase == Phase(
        job=4242,
        start_seconds=1,
        end_seconds=3.5,
        operation="write",
        rank=None,
        processes=2,
        nprocs=2,
        bytes=30 * MIB,
        io_time_seconds=1.5,
        api="POSIX",
        requests=30,
        spatiality="contiguous",
        file_access="shared",
        n_files=1,
        mode_processes=2,
        parts=phase.parts,
        log=f"{one.path} and 1 more log",
        metadata_seconds=0,
        fsync="none",
        block_requests=15,
        elapsed_seconds=2.5,
    )
    assert [(part.requests, part.bytes) for part in phase.parts] == [(30, 30 * MIB)]


def test_processes_with_a_file_each_make_a_phase_of_unique_files(tmp_path: Path) -> None:
    logs = [
        log(tmp_path, str(rank), [posix(f"/{rank}", 0, 1, seconds=0.25 * rank)])
        for rank in range(4)
    ]
    [phase] = phases_of(*logs)
    assert (phase.file_access, phase.n_files, phase.mode_processes) == ("unique", 4, 1)
    assert (phase.ranks, phase.processes, phase.io_time_seconds) == ("all", 4, 0.75)


def test_times_count_from_the_earliest_start(tmp_path: Path) -> None:
    bursts = [log(tmp_path, str(n), [posix(f"/{n}", 1, 2)], delay=10 * n) for n in range(3)]
    found = [(phase.start_seconds, phase.end_seconds) for phase in phases_of(*reversed(bursts))]
    assert found == [(1, 2), (11, 12), (21, 22)]


def test_the_only_process_of_a_phase_has_its_own_rank(tmp_path: Path) -> None:
    many = log(tmp_path, "many", [posix("/a", 0, 1, rank=2)], nprocs=4)
    helper = log(tmp_path, "helper", [posix("/b", 20, 21)], delay=1)
    assert [phase.ranks for phase in phases_of(many, helper)] == [2, 4]


def test_a_record_of_all_ranks_stands_only_for_those_of_its_log(tmp_path: Path) -> None:
    common = log(tmp_path, "mpi", [posix("/a", 0, 1, rank=-1, seconds=4)], nprocs=4)
    alone = log(tmp_path, "alone", [posix("/b", 50, 51)], delay=1)
    first, second = phases_of(common, alone)
    assert (first.ranks, first.processes, first.nprocs, first.mode_processes) == (4, 4, 5, 4)
    assert (first.file_access, first.io_time_seconds) == ("shared", 1)
    assert (second.ranks, second.file_access) == (4, "unique")


def test_a_file_of_two_mpi_programs_has_the_processes_of_both(tmp_path: Path) -> None:
    both = [
        log(tmp_path, "a", [posix("/a", 0, 1, rank=-1), posix("/a", 0, 1, rank=3)], nprocs=4),
        log(tmp_path, "b", [posix("/a", 0, 1, rank=1), posix("/a", 0, 1, rank=0)], nprocs=8),
    ]
    [phase] = phases_of(*both)
    assert (phase.processes, phase.mode_processes, phase.nprocs) == (6, 6, 12)


def test_the_slowest_process_of_all_logs_counts(tmp_path: Path) -> None:
    mpi = [posix("/a", 0, 1, rank=-1, seconds=4), posix("/b", 0, 1, rank=-1, seconds=2)]
    alone = [posix("/a", 0, 1, seconds=0.5), posix("/b", 0, 1, seconds=0.5)]
    logs = [log(tmp_path, "mpi", mpi, nprocs=4), log(tmp_path, "alone", alone)]
    # A process of the first program: 4 / 4 + 2 / 4 s.
    assert [phase.io_time_seconds for phase in phases_of(*logs)] == [1.5]


def test_mpiio_of_one_log_does_not_hide_posix_of_another(tmp_path: Path) -> None:
    logs = [
        log(tmp_path, "mpi", [mpiio("/a", COLL=10), posix("/a", 0, 1, requests=10)]),
        log(tmp_path, "alone", [posix("/a", 0, 1, requests=5)]),
    ]
    assert sorted((phase.api, phase.bytes // MIB) for phase in phases_of(*logs)) == [
        ("MPIIO", 10),
        ("POSIX", 5),
    ]


def test_a_pause_must_be_one_of_all_logs(tmp_path: Path) -> None:
    def written(name: str, delay: float, *mib: int) -> DarshanLog:
        end = len(mib)
        record = posix("/a", 0, end, requests=sum(mib))
        return log(tmp_path, name, [record], delay, heatmaps=[heatmap(*mib)])

    apart = written("a", 0, 4, 0, 0, 0, 0, 0, 4), written("b", 0.5, 4, 0, 0, 0, 0, 4)
    assert [(p.start_seconds, p.end_seconds, p.bytes // MIB) for p in phases_of(*apart)] == [
        (0, 1.5, 8),
        (5.5, 7, 8),
    ]
    bridged = written("a", 0, 4, 0, 0, 0, 0, 4), written("b", 2, 4, 0, 4)
    assert len(phases_of(*bridged)) == 1


def test_a_log_without_a_heat_map_hides_the_pauses_of_the_others(tmp_path: Path) -> None:
    used = posix("/a", 0, 7, requests=8)
    bins = heatmap(4, 0, 0, 0, 0, 0, 4)
    mapped = log(tmp_path, "mapped", [used], heatmaps=[bins])
    assert len(phases_of(mapped)) == 2
    assert len(phases_of(mapped, log(tmp_path, "unmapped", [used]))) == 1
    # It says nothing about reads, which it does not make.
    reader = log(tmp_path, "reader", [posix("/b", 0, 1, operation="READ")])
    assert len([phase for phase in phases_of(mapped, reader) if phase.operation == "write"]) == 2


def test_traced_requests_of_all_logs_show_the_pause(tmp_path: Path) -> None:
    def traced(name: str, delay: float, *starts: float) -> DarshanLog:
        writes = [(MIB * n, MIB, start, start + 0.5) for n, start in enumerate(starts)]
        record = posix("/a", min(starts), max(starts) + 0.5, requests=len(starts))
        dxt = [Dxt("DXT_POSIX", "/a", 0, "host", writes=writes)]
        return log(tmp_path, name, [record], delay, dxt=dxt)

    logs = traced("a", 0, 1, 2, 5, 6), traced("b", 1.5, 0, 1, 4.5)
    assert [(p.start_seconds, p.end_seconds, p.requests) for p in phases_of(*logs)] == [
        (1, 3, 4),
        (5, 6.5, 3),
    ]


def test_trace_phases_of_a_run_tell_its_processes_apart(tmp_path: Path) -> None:
    def traced(name: str, delay: float) -> DarshanLog:
        writes = [(MIB * n, MIB, float(n), n + 0.5) for n in range(4)]
        dxt = [Dxt("DXT_POSIX", f"/{name}", 0, name, writes=writes)]
        return log(tmp_path, name, [posix(f"/{name}", 0, 3.5, requests=4)], delay, dxt=dxt)

    run = run_of([traced("late", 2), traced("early", 0)])
    [found] = trace_run(run).phases
    assert (found.nprocs, found.log) == (2, f"{tmp_path / 'early.darshan'} and 1 more log")
    assert (found.phase.start_seconds, found.phase.end_seconds) == (0, 5.5)
    assert (found.phase.ranks.rank.tolist(), found.phase.ranks.requests.tolist()) == (
        [0, 1],
        [4, 4],
    )
    operations = stacked(run, [operations_of(each) for each in run.logs])
    assert operations.hosts == ("early", "late")
    assert operations.rank.tolist() == operations.host.tolist() == [0] * 4 + [1] * 4


def in_one_and_apart(
    folder: Path, ranks: Sequence[tuple[list[Record], list[Heatmap], list[Dxt]]]
) -> tuple[DarshanLog, list[DarshanLog]]:
    """Write what each rank did to one log, and to a log of its own."""
    together = [
        [dataclasses.replace(item, rank=rank) for item in items]
        for kinds in [zip(*ranks, strict=True)]
        for kind in kinds
        for rank, items in enumerate(kind)
    ]
    count = len(ranks)
    records, heatmaps, dxt = (
        [item for items in together[kind * count : (kind + 1) * count] for item in items]
        for kind in range(3)
    )
    whole = log(folder, "whole", records, nprocs=count, heatmaps=heatmaps, dxt=dxt)
    apart = [
        log(folder, f"{number}", list(own), heatmaps=bins, dxt=traces)
        for number, (own, bins, traces) in enumerate(ranks)
    ]
    return whole, apart


def test_a_log_for_each_process_gives_the_phases_of_one_log_for_all(tmp_path: Path) -> None:
    traced = [(n * MIB, MIB, float(at), at + 0.25) for n, at in enumerate([0, 1, 6, 7])]
    ranks: list[tuple[list[Record], list[Heatmap], list[Dxt]]] = [
        (
            [
                posix("/shared", 0, 9, requests=20 + rank),
                posix(f"/own-{rank}", 0, 1 + rank, seconds=0.5 * rank),
                posix("/traced", 0, 7.25, requests=4, operation="READ"),
                stdio(f"/log-{rank // 2}", requests=3),
                *([posix("/late", 40, 41)] if rank == 2 else []),
            ],
            [heatmap(20, 4, 0, 0, 0, 0, 0, 0, 10 + rank)],
            [Dxt("DXT_POSIX", "/traced", 0, "host", reads=traced)],
        )
        for rank in range(4)
    ]
    whole, apart = in_one_and_apart(tmp_path, ranks)
    expected = [dataclasses.replace(phase, log="") for phase in extract(whole).phases]
    assert len(expected) > 5
    joined = extract_run(run_of(apart)).phases
    assert [dataclasses.replace(phase, log="") for phase in joined] == expected


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.darshan")), ids=lambda path: path.stem)
def test_a_run_of_one_log_has_the_phases_of_the_log(path: Path) -> None:
    read = read_log(path)
    assert extract_run(run_of([read])) == extract(read)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_python_write_a_file_each(method: str) -> None:
    """Each of three workers wrote 100,000 bytes ten times, and their parent wrote 1,000 bytes."""
    paths = sorted((FIXTURES / "programs").glob(f"{method}-workers-*.darshan"))
    found = phases_of(*map(read_log, paths))
    [phase] = [phase for phase in found if phase.operation == "write"]
    assert (phase.bytes, phase.requests, phase.n_files) == (3_001_000, 31, 4)
    assert (phase.file_access, phase.processes, phase.spatiality) == ("unique", 4, "contiguous")
    assert phase.nprocs == len(paths)


def test_dlios_processes_read_shared_files_and_move_the_bytes_of_all_logs(
    shared_data: Path,
) -> None:
    paths = sorted((shared_data / "darshan-logs" / "dlio_logs").glob("*.darshan"))
    logs = [read_log(path) for path in paths]
    found = phases_of(*logs)
    assert sum(p.bytes for p in found) == sum(p.bytes for log in logs for p in extract(log).phases)
    assert {phase.nprocs for phase in found} == {18}
    # Half of the reads of pyvenv.cfg are at its end. Alone they are no phase.
    assert all(phase.bytes and phase.requests for phase in found)
    requests = sum(phase.requests for log in logs for phase in extract(log).phases)
    assert sum(phase.requests for phase in found) == requests
    # All processes run for 159.6 s together; the last ones start 79 s after the first ones.
    assert max(phase.end_seconds for phase in found) < 160
    samples = [phase for phase in found if phase.bytes > 1 << 30]
    assert min(phase.start_seconds for phase in samples) > 79
    assert {phase.processes for phase in samples} <= set(range(1, 13))
    # Each process reads pyvenv.cfg when it starts, which is not the application's.
    assert not any(p.file_access == "shared" and p.processes == 18 for p in found)


def test_a_warning_names_its_logs(tmp_path: Path) -> None:
    logs = [
        log(tmp_path, str(n), [posix(f"/{n}", 0, 1)], partial_modules=["POSIX"] * (n > 0))
        for n in range(3)
    ]
    found: Extraction = extract_run(run_of(logs))
    [warning] = found.warnings
    assert warning.startswith("1.darshan and 1 more log: Darshan marked the POSIX data as partial")
    assert [phase.partial for phase in found.phases] == [True]


def test_logs_that_add_up_to_impossible_bytes_are_an_error(tmp_path: Path) -> None:
    logs = [
        log(tmp_path, str(n), [posix(f"/{n}", 0, 1, requests=1 << 38, size=4 * MIB)])
        for n in range(9)
    ]
    with pytest.raises(DamagedLogError, match="impossible number of bytes"):
        phases_of(*logs)


def test_logs_without_records_add_their_processes(tmp_path: Path) -> None:
    empty = [log(tmp_path, str(n), [], delay=n) for n in range(2)]
    assert phases_of(*empty) == ()
    [phase] = phases_of(*empty, log(tmp_path, "used", [posix("/a", 0, 1)], delay=2))
    assert (phase.nprocs, phase.processes, phase.ranks) == (3, 1, 2)


def test_phases_of_a_joined_run_are_plain_values(tmp_path: Path) -> None:
    one, two = (log(tmp_path, name, [posix("/a", 0, 1)]) for name in "ab")
    for value in dataclasses.asdict(phases_of(one, two)[0]).values():
        json.dumps(value)
