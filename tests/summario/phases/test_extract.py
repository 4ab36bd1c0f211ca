"""Phases of real logs, compared with the known facts about their runs."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from summario.phases.extract import extract_phases
from summario.phases.grouping import merge_files
from summario.phases.merge import merge_ranks
from summario.phases.selection import select_layer
from summario.phases.settings import ExtractionSettings
from summario.phases.stacks import stacked
from summario.phases.streams import read_streams
from summario.phases.values import Phase
from summario.reading.log import DarshanLog, read_log
from summario.runs.logs_of_run import Run
from tests.support.libdarshan import opened, records_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
# The manifest has the words of the benchmarks' options. The spatiality of independent MPI-IO is
# unknown, and a single process does not share its file, whatever the options say.
SPATIALITY = {"1d-strided": "sequential"}


def phases_of(name: str, **options: Any) -> list[Phase]:
    return extract_phases(read_log(FIXTURES / f"{name}.darshan"), ExtractionSettings(**options))


def major(phases: list[Phase]) -> list[Phase]:
    """Select phases with at least 1 % of the bytes; the manifest counts only these."""
    total = sum(phase.bytes for phase in phases)
    return [phase for phase in phases if phase.bytes >= 0.01 * total]


def manifest(shared_data: Path) -> list[dict[str, str]]:
    with (shared_data / "runs" / "manifest.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_every_run_has_the_phases_of_its_program(shared_data: Path) -> None:
    wrong = []
    for run in manifest(shared_data):
        found = major(extract_phases(read_log(shared_data / "runs" / run["log"])))
        written = sum(phase.bytes for phase in found if phase.operation == "write")
        read = sum(phase.bytes for phase in found if phase.operation == "read")
        single = all(phase.processes == 1 for phase in found)
        expected = {
            "phases": int(run["phases_by_rule"]),
            "bytes": (int(run["bytes_written"]), int(run["bytes_read"])),
            "apis": {run["api"]},
            "nprocs": {int(run["nprocs"])},
        }
        got = {
            "phases": len(found),
            "bytes": (written, read),
            "apis": {phase.api for phase in found},
            "nprocs": {phase.nprocs for phase in found},
        }
        if run["files"] != "mixed" and not single:
            expected["files"] = {run["files"]}
            got["files"] = {phase.file_access for phase in found}
        if run["spatiality"] != "mixed":
            known = SPATIALITY.get(run["spatiality"], run["spatiality"])
            if run["api"] == "MPIIO" and known != "collective":
                known = "unknown"
            expected["spatiality"] = {known}
            got["spatiality"] = {phase.spatiality for phase in found}
        if expected != got:
            wrong.append((run["name"], expected, got))
    assert wrong == []


@pytest.mark.slow
def test_requests_and_sizes_are_those_of_the_command(shared_data: Path) -> None:
    checked = 0
    for run in manifest(shared_data):
        if not run["request_size"].isdecimal() or run["operation"] == "metadata":
            continue
        size, total = int(run["request_size"]), int(run["total_bytes"])
        found = major(extract_phases(read_log(shared_data / "runs" / run["log"])))
        if run["operation"] != "mixed":
            assert sum(phase.requests for phase in found) == total // size, run["name"]
            assert {part.request_bytes for phase in found for part in phase.parts} == {size}
            checked += 1
    assert checked > 40


@pytest.mark.parametrize("name", ["hacc-posix-fpp-64x100k", "hacc-mpiio-ssf-8x100k", "mixed-sizes"])
def test_mixed_request_sizes_become_parts(shared_data: Path, name: str) -> None:
    [run] = [run for run in manifest(shared_data) if run["name"] == name]
    expected = {
        tuple(int(number) for number in part.split("x")) for part in run["request_size"].split(";")
    }
    [phase] = major(extract_phases(read_log(shared_data / "runs" / run["log"])))
    assert {(part.request_bytes, part.requests) for part in phase.parts} == expected
    assert sum(part.bytes for part in phase.parts) == phase.bytes


@pytest.mark.slow
def test_all_logs_of_other_sites_keep_every_byte(shared_data: Path) -> None:
    """Compare with PyDarshan, which reads the same counters in another way."""
    logs = sorted((shared_data / "darshan-logs").rglob("*.darshan"))
    assert len(logs) > 60
    for path in logs:
        log = read_log(path)
        found = extract_phases(log, ExtractionSettings(layer="all", all_files=True))
        assert sum(phase.bytes for phase in found) == pydarshan_bytes(path), path.name
        for phase in found:
            assert sum(part.bytes for part in phase.parts) == phase.bytes, path.name
            assert 0 <= phase.start_seconds <= phase.end_seconds, path.name


def pydarshan_bytes(path: Path) -> int:
    total = 0
    with opened(path) as log:
        for module in ("POSIX", "MPI-IO", "STDIO"):
            prefix = module.replace("-", "")
            for record in records_of(log, module):
                total += record["named"][f"{prefix}_BYTES_READ"]
                total += record["named"][f"{prefix}_BYTES_WRITTEN"]
    return total


def test_a_file_used_through_mpiio_hides_its_posix_records() -> None:
    # Collective writes through few aggregators: MPI-IO counts 256 MiB, POSIX about 3.3 GB of writes
    # and 3.1 GB of reads.
    [phase] = phases_of("mpiio-coll-contig-cb4")
    assert (phase.api, phase.operation, phase.bytes) == ("MPIIO", "write", 256 << 20)
    below = {
        phase.operation: phase.bytes for phase in phases_of("mpiio-coll-contig-cb4", layer="posix")
    }
    assert below["write"] > 3e9
    assert below["read"] > 3e9


def test_files_of_the_launcher_are_left_out_by_default() -> None:
    names = {phase.api for phase in phases_of("mpi4py-partial-mpiio")}
    assert names == {"MPIIO"}
    kept = phases_of("mpi4py-partial-mpiio", all_files=True)
    assert [phase.bytes for phase in kept if phase.operation == "read"] == [2270352]


def test_a_record_per_rank_of_one_file_is_one_shared_phase() -> None:
    [phase] = phases_of("mpi4py-partial-mpiio")
    assert (phase.ranks, phase.processes, phase.nprocs) == (8, 8, 24)
    assert (phase.file_access, phase.n_files, phase.mode_processes) == ("shared", 1, 8)


def test_stdio_streams_are_contiguous_without_seeks() -> None:
    [phase] = phases_of("stdio-fpp")
    assert (phase.api, phase.spatiality, phase.requests) == ("STDIO", "contiguous", 8 * 4096)


def test_with_a_threshold_of_one_any_order_is_contiguous() -> None:
    assert {p.spatiality for p in phases_of("multiphase", threshold=1)} == {"contiguous"}
    assert "sequential" in {p.spatiality for p in phases_of("multiphase", threshold=0)}


def test_a_long_time_distance_merges_phases_of_one_kind() -> None:
    assert len(phases_of("reopen-same-5x", time_distance=60)) == 1


def written_files(log: DarshanLog, seconds: list[tuple[float, float]], ranks: list[int]) -> float:
    """I/O time of a phase of files with these times and ranks; each file takes 1 s."""
    streams = select_layer(read_streams(log.records), "posix")
    rows = np.zeros(len(seconds), np.int64)
    table = streams.take(rows)
    values = {name: getattr(table, name) for name in table.__dataclass_fields__}
    values |= {
        "file_id": np.arange(len(seconds)).astype(np.uint64),
        "rank": np.array(ranks),
        "processes": np.ones(len(seconds), np.int64),
        "start": np.array([start for start, _ in seconds]),
        "end": np.array([end for _, end in seconds]),
        "time": np.ones(len(seconds)),
    }
    stack = stacked([Run((log,))])
    streams = type(streams)(**values)
    [[phase]] = merge_files(merge_ranks(streams, stack.processes), stack, streams, 0.2, 1.0)
    return phase.io_time_seconds


def test_times_of_one_process_add_up_and_those_of_several_do_not() -> None:
    log = read_log(FIXTURES / "hacc-posix-fpp-8x100k.darshan")
    one_after_the_other = [(0.0, 1.0), (1.1, 2.1), (2.2, 3.2)]
    assert written_files(log, one_after_the_other, [0, 0, 0]) == 3.0
    assert written_files(log, one_after_the_other, [0, 1, 2]) == 1.0
    assert written_files(log, one_after_the_other, [0, 1, 0]) == 2.0


def test_a_log_without_records_has_no_phases(shared_data: Path) -> None:
    assert extract_phases(read_log(shared_data / "darshan-logs/empty_log/empty_log.darshan")) == []
