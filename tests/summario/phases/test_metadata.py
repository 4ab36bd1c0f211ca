"""The metadata time of phases, with a made-up log for each rule and with PyDarshan on real logs."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Record, write_log
from summario.phases import tables
from summario.phases.extract import extract_phases
from summario.phases.settings import ExtractionSettings
from summario.phases.values import Phase
from summario.reading.log import read_log
from summario.reading.pydarshan import import_pydarshan

MIB = 1 << 20
NPROCS = 4
MODULES = {"POSIX": "POSIX", "MPIIO": "MPI-IO", "STDIO": "STDIO"}


def record(
    path: str,
    *,
    api: str = "POSIX",
    rank: int = 0,
    write_s: float = 0.0,
    read_s: float = 0.0,
    metadata_s: float,
    reads: int = 0,
    writes: int = 1,
) -> Record:
    """Make requests of 1 MiB to a file in the first second of the job."""
    calls = "INDEP_" if api == "MPIIO" else ""
    counters = {
        f"{api}_{calls}READS": reads,
        f"{api}_{calls}WRITES": writes,
        f"{api}_BYTES_READ": reads * MIB,
        f"{api}_BYTES_WRITTEN": writes * MIB,
    }
    seconds = {
        f"{api}_F_READ_TIME": read_s,
        f"{api}_F_WRITE_TIME": write_s,
        f"{api}_F_META_TIME": metadata_s,
        f"{api}_F_READ_END_TIMESTAMP": 1.0 if reads else 0.0,
        f"{api}_F_WRITE_END_TIMESTAMP": 1.0 if writes else 0.0,
    }
    return Record(MODULES[api], path, rank, counters, seconds)


def phases_of(folder: Path, *records: Record, layer: str = "highest") -> list[Phase]:
    path = write_log(folder / "a.darshan", nprocs=NPROCS, records=records)
    return extract_phases(read_log(path), ExtractionSettings(layer=layer))


def metadata_of(phases: Sequence[Phase]) -> dict[str, float | None]:
    return {phase.operation: phase.metadata_seconds for phase in phases}


def test_files_of_one_process_add_up_and_the_slowest_process_counts(tmp_path: Path) -> None:
    [phase] = phases_of(
        tmp_path,
        *(record(f"/a{i}", rank=0, write_s=0.01, metadata_s=0.2) for i in range(5)),
        *(record(f"/b{i}", rank=1, write_s=0.02, metadata_s=0.1) for i in range(5)),
    )
    assert phase.metadata_seconds == pytest.approx(1.0)
    assert phase.io_time_seconds == pytest.approx(0.1)
    assert phase.is_mostly_metadata


def test_a_reduced_record_has_the_time_of_all_processes(tmp_path: Path) -> None:
    [phase] = phases_of(tmp_path, record("/a", rank=-1, write_s=8, metadata_s=2))
    assert phase.metadata_seconds == pytest.approx(2 / NPROCS)
    assert not phase.is_mostly_metadata


@pytest.mark.parametrize("api", ["POSIX", "STDIO", "MPIIO"])
def test_every_layer_has_metadata_time(tmp_path: Path, api: str) -> None:
    [phase] = phases_of(tmp_path, record("/a", api=api, write_s=1, metadata_s=3))
    assert (phase.api, phase.metadata_seconds) == (api, 3)


def test_reads_and_writes_divide_a_files_metadata_time_by_their_io_time(tmp_path: Path) -> None:
    found = phases_of(tmp_path, record("/a", reads=1, read_s=3, write_s=1, metadata_s=8))
    assert metadata_of(found) == {"read": 6, "write": 2}


def test_without_io_time_all_metadata_time_belongs_to_each_operation(tmp_path: Path) -> None:
    found = phases_of(tmp_path, record("/a", reads=1, metadata_s=8))
    assert metadata_of(found) == {"read": 8, "write": 8}


@pytest.mark.parametrize(
    ("mpiio_s", "posix_s", "expected_s"),
    [
        pytest.param(5, 0.5, 0.5, id="the collective open waits for other processes"),
        pytest.param(0.5, 5, 0.5, id="seeks below are part of the MPI-IO write"),
    ],
)
def test_metadata_of_mpiio_counts_once(
    tmp_path: Path, mpiio_s: float, posix_s: float, expected_s: float
) -> None:
    records = [
        record("/a", api="MPIIO", rank=-1, write_s=8, metadata_s=mpiio_s * NPROCS),
        record("/a", rank=1, write_s=8, metadata_s=posix_s),
        record("/a", rank=0, write_s=8, metadata_s=posix_s / 2),
    ]
    [phase] = phases_of(tmp_path, *records)
    assert (phase.api, phase.metadata_seconds) == ("MPIIO", pytest.approx(expected_s))
    [below] = phases_of(tmp_path, *records, layer="posix")
    assert below.metadata_seconds == pytest.approx(posix_s)


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), -float("inf"), 1e300])
@pytest.mark.parametrize("api", ["POSIX", "STDIO", "MPIIO"])
def test_an_impossible_metadata_time_is_unknown_and_loses_no_bytes(
    tmp_path: Path, api: str, seconds: float
) -> None:
    records = [
        record("/a", api=api, write_s=1, metadata_s=seconds),
        record("/b", api=api, write_s=1, metadata_s=1),
    ]
    [phase] = phases_of(tmp_path, *records)
    assert (phase.bytes, phase.io_time_seconds) == (2 * MIB, 2)
    assert phase.metadata_seconds is None
    assert not phase.is_mostly_metadata
    assert tables.from_record(tables.to_record(phase)) == phase


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("live/small-files", ["write"]),
        pytest.param("runs/logs/large-64k-records", ["write"], marks=pytest.mark.slow),
        ("live/fsync-each", ["write"]),
        ("live/multi-rep", ["write"] * 3),
    ],
)
def test_the_metadata_time_is_that_of_pydarshans_records(
    name: str, operations: list[str], shared_data: Path
) -> None:
    path = shared_data / f"{name}.darshan"
    phases = extract_phases(read_log(path))
    assert [phase.operation for phase in phases] == operations
    darshan = import_pydarshan("this test")
    report = darshan.DarshanReport(str(path), read_all=False, dtype="numpy")
    report.mod_read_all_records("POSIX", dtype="numpy")
    names = darshan.backend.cffi_backend.counter_names("POSIX", fcnts=True)
    place = names.index("POSIX_F_META_TIME")
    of_ranks: dict[int, float] = defaultdict(float)
    for read in report.records["POSIX"]:
        of_ranks[read["rank"]] += read["fcounters"][place]
    longest = of_ranks.pop(-1, 0.0) / report.metadata["job"]["nprocs"]
    longest += max(of_ranks.values(), default=0.0)
    assert sum(phase.metadata_seconds or 0.0 for phase in phases) == pytest.approx(longest)


@pytest.mark.parametrize(
    ("name", "is_mostly_metadata"),
    [
        ("live/small-files", True),
        ("runs/logs/mdtest-2000", True),
        ("runs/logs/large-64k-records", True),
        ("live/fsync-each", False),
        ("live/fsync-end", False),
        ("live/mpiio-contig", False),
        ("live/mpiio-coll-block", False),
        ("runs/logs/single-a", False),
        ("runs/logs/hacc-mpiio-ssf-64x100k", False),
    ],
)
def test_thousands_of_files_are_mostly_metadata_and_large_files_are_not(
    name: str, is_mostly_metadata: bool, shared_data: Path
) -> None:
    phases = extract_phases(read_log(shared_data / f"{name}.darshan"))
    assert [phase.is_mostly_metadata for phase in phases] == [is_mostly_metadata] * len(phases)


def test_the_table_shows_metadata_only_if_it_takes_longer_than_io(tmp_path: Path) -> None:
    [much] = phases_of(tmp_path, record("/a", write_s=1, metadata_s=3))
    [little] = phases_of(tmp_path, record("/a", write_s=3, metadata_s=1))
    assert "metadata s" not in tables.to_text([little])
    lines = tables.to_text([much, little]).splitlines()
    assert lines[0].endswith("metadata s")
    assert [float(line.split()[-1]) for line in lines[2:]] == [3.0, 1.0]


def test_phases_of_an_older_csv_or_json_have_an_unknown_metadata_time(tmp_path: Path) -> None:
    [phase] = phases_of(tmp_path, record("/a", write_s=1, metadata_s=3))
    old = tables.to_record(phase)
    del old["metadata_time"]
    read = tables.from_record(old)
    assert read == replace(phase, metadata_seconds=None)
    assert not read.is_mostly_metadata
    [row] = csv.DictReader(io.StringIO(tables.to_csv([phase])))
    del row["metadata_time"]
    file = tmp_path / "old.csv"
    file.write_text("\n".join(",".join(line) for line in (row, row.values())))
    assert tables.read_csv(file) == [read]
