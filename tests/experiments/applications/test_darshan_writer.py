from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from experiments.applications.darshan_writer import (
    CounterModule,
    Dxt,
    Heatmap,
    Record,
    counter_names,
    record_id,
    write_log,
)
from summario.reading.pydarshan import import_pydarshan
from tests.support.darshan_reader import module_versions, read_log
from tests.support.libdarshan import backend

_ONE_WRITE = Record("POSIX", "/scratch/f", 0, {"POSIX_WRITES": 1}, {"POSIX_F_WRITE_TIME": 0.5})


@pytest.fixture
def log_path(tmp_path: Path) -> Path:
    return tmp_path / "written.darshan"


def _full_record(module: CounterModule, path: str, rank: int) -> Record:
    """Make a record in which no two counters of one kind are equal."""
    names, float_names = counter_names(module)
    counters = {name: 2**40 + number for number, name in enumerate(names)}
    fcounters = {name: number + 1 / 3 for number, name in enumerate(float_names)}
    return Record(module, path, rank, counters, fcounters)


@pytest.mark.parametrize("module", get_args(CounterModule))
def test_every_counter_comes_back(log_path: Path, module: CounterModule) -> None:
    records = [_full_record(module, "/scratch/f", -1), _full_record(module, "/scratch/g", 3)]

    write_log(log_path, nprocs=4, records=records)

    assert read_log(log_path)["records"] == records


@pytest.mark.parametrize("module", get_args(CounterModule))
def test_counter_names_are_those_of_pydarshan(module: CounterModule) -> None:
    names, float_names = counter_names(module)

    assert list(names) == backend().counter_names(module)
    assert list(float_names) == backend().fcounter_names(module)


def test_counters_without_a_name_are_zero(log_path: Path) -> None:
    write_log(log_path, nprocs=1, records=[_ONE_WRITE])

    (record,) = read_log(log_path)["records"]
    assert {name: value for name, value in record.counters.items() if value} == _ONE_WRITE.counters
    assert {
        name: value for name, value in record.fcounters.items() if value
    } == _ONE_WRITE.fcounters


@pytest.mark.parametrize(
    "record",
    [
        Record("POSIX", "/scratch/f", 0, {"POSIX_WRITE": 1}),
        Record("STDIO", "/scratch/f", 0, {}, {"POSIX_F_WRITE_TIME": 1.0}),
    ],
)
def test_an_unknown_counter_is_rejected_before_anything_is_written(
    log_path: Path, record: Record
) -> None:
    with pytest.raises(KeyError, match="POSIX_"):
        write_log(log_path, nprocs=1, records=[record])

    assert not log_path.exists()


def test_records_of_many_modules_come_in_the_order_of_a_log(log_path: Path) -> None:
    records = [Record(module, "/scratch/f", 0) for module in ("STDIO", "POSIX", "MPI-IO")]

    write_log(log_path, nprocs=1, records=records)

    modules = [record.module for record in read_log(log_path)["records"]]
    assert modules == ["POSIX", "MPI-IO", "STDIO"]


def test_the_job_comes_back(log_path: Path) -> None:
    job: dict[str, Any] = {
        "nprocs": 512,
        "jobid": 2**40,
        "uid": 1234,
        "exe": "/opt/ior -a POSIX",
        "start": (1_580_000_000, 25),
        "end": (1_580_000_100, 999_999_999),
        "mounts": [("/scratch/long", "lustre"), ("/home", "nfs"), ("/", "ext4")],
        "metadata": "lib_ver=3.2.1\nh=cb_nodes=4\n",
    }

    write_log(log_path, records=[_ONE_WRITE], **job)

    content = read_log(log_path)
    assert {key: content[key] for key in job} == job


@pytest.mark.parametrize(
    "too_long",
    [
        {"exe": "x" * 3016},
        {"metadata": "x" * 1023},
        {"mounts": [("/" * 4000, "ext4")]},
        {"names": ["/" * 4096]},
        {"dxt": [Dxt("DXT_POSIX", "/f", 0, "h" * 64)]},
    ],
)
def test_a_text_longer_than_its_place_is_rejected(log_path: Path, too_long: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Darshan has room for"):
        write_log(log_path, nprocs=1, **too_long)


def test_everything_with_a_record_has_one_name_record(log_path: Path) -> None:
    write_log(
        log_path,
        nprocs=2,
        records=[_ONE_WRITE, Record("STDIO", "/scratch/f", 1), Record("STDIO", "<STDERR>", 0)],
        heatmaps=[Heatmap("MPIIO", 0, 1.0, [0], [0])],
        dxt=[Dxt("DXT_MPIIO", "/scratch/traced", 0, "node")],
    )

    assert read_log(log_path)["names"] == sorted(
        ["/scratch/f", "<STDERR>", "heatmap:MPIIO", "/scratch/traced"]
    )


def test_names_can_be_chosen(log_path: Path) -> None:
    write_log(log_path, nprocs=1, records=[_ONE_WRITE], names=["/elsewhere", "<STDIN>"])

    log = backend().log_open(str(log_path))
    names = backend().log_get_name_records(log)
    record = backend().log_get_record(log, "POSIX")
    backend().log_close(log)
    assert names == {record_id(name): name for name in ("/elsewhere", "<STDIN>")}
    assert record["id"] == record_id("/scratch/f")


def test_heatmap_bins_come_back(log_path: Path) -> None:
    heatmaps = [
        Heatmap("POSIX", 0, 0.1, [1, 2, 3], [4, 5, 6]),
        Heatmap("STDIO", 0, 0.1, [0, 0, 7], [0, 0, 0]),
        Heatmap("MPIIO", 1, 0.1, [2**40, 0, 0], [0, 0, 2**41]),
    ]

    write_log(log_path, nprocs=2, heatmaps=heatmaps)

    assert read_log(log_path)["heatmaps"] == heatmaps


def test_a_heatmap_with_unequal_bins_is_rejected(log_path: Path) -> None:
    with pytest.raises(ValueError, match="2 write bins but 1 read bins"):
        write_log(log_path, nprocs=1, heatmaps=[Heatmap("POSIX", 0, 0.1, [1, 2], [3])])


def test_dxt_segments_come_back(log_path: Path) -> None:
    dxt = [
        Dxt("DXT_POSIX", "/scratch/f", 0, "node01", [(0, 4096, 0.1, 0.2)], [(1, 2, 0.3, 0.4)]),
        Dxt(
            "DXT_POSIX", "/scratch/f", 1, "node02", [(4096, 4096, 0.1, 0.25), (0, 1, 1.0, 2.0)], []
        ),
        Dxt("DXT_MPIIO", "/scratch/g", 1, "node02", [], [(2**40, 1, 0.5, 0.75)]),
    ]

    write_log(log_path, nprocs=2, dxt=dxt)

    assert read_log(log_path)["dxt"] == dxt


def test_partial_modules_are_flagged(log_path: Path) -> None:
    records = [_ONE_WRITE, Record("STDIO", "/scratch/f", 0)]

    write_log(log_path, nprocs=1, records=records, partial_modules=["STDIO"])

    assert read_log(log_path)["partial_modules"] == ["STDIO"]


def test_a_log_of_a_job_without_io_can_be_read(log_path: Path) -> None:
    write_log(log_path, nprocs=1)

    content = read_log(log_path)
    assert (content["records"], content["names"]) == ([], [])


def test_a_written_log_can_be_overwritten_and_damaged(log_path: Path) -> None:
    write_log(log_path, nprocs=1)
    write_log(log_path, nprocs=2)

    assert read_log(log_path)["nprocs"] == 2
    log_path.write_bytes(log_path.read_bytes()[:100])


def test_a_failure_of_the_library_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot create"):
        write_log(tmp_path / "no folder" / "written.darshan", nprocs=1)


def test_the_report_of_pydarshan_reads_a_written_log(log_path: Path) -> None:
    write_log(
        log_path,
        nprocs=2,
        records=[_ONE_WRITE],
        heatmaps=[Heatmap("POSIX", 0, 0.1, [1, 2], [0, 0])],
        dxt=[Dxt("DXT_POSIX", "/scratch/f", 0, "node01", [(0, 4096, 0.1, 0.2)])],
    )

    with import_pydarshan("this test").DarshanReport(str(log_path), read_all=True) as report:
        assert set(report.records) == {"POSIX", "DXT_POSIX"}
        assert list(report.heatmaps) == ["POSIX"]
        assert report.records["POSIX"].to_df()["counters"]["POSIX_WRITES"].tolist() == [1]


@pytest.mark.parametrize(
    "name",
    [
        "mpiio-coll-contig-cb4-dxt",
        "hacc-posix-fpp-64x100k-dxt",
        "mpi4py-partial-mpiio",
        "stdio-fpp",
    ],
)
def test_a_copy_of_a_real_log_holds_the_same(log_path: Path, shared_data: Path, name: str) -> None:
    original = shared_data / "runs" / "logs" / f"{name}.darshan"

    write_log(log_path, **read_log(original))

    assert read_log(log_path) == read_log(original)
    assert module_versions(log_path) == module_versions(original)
