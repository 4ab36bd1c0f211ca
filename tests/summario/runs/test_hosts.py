"""Compute nodes from the host names in logs."""

import struct
import tracemalloc
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt
from summario.reading.apmpi import hosts_by_rank, inflate_hosts
from summario.reading.header import parse_header
from summario.reading.inflate import inflate_joined
from summario.reading.log import DarshanLog, read_log
from summario.runs.hosts import HOST_MODULES, ComputeNodes, NodeCount, compute_nodes, count_nodes
from tests.support.log_bytes import dxt_bytes, write_modules

FIXTURES = Path(__file__).parents[1] / "fixtures"
SEGMENT = (0, 1024, 0.5, 0.75)


def traced(path: Path, hosts: dict[int, str], nprocs: int, byte_order: str = "<") -> DarshanLog:
    records = [Dxt("DXT_POSIX", "/f", rank, host, [SEGMENT]) for rank, host in hosts.items()]
    data = dxt_bytes(records, byte_order=byte_order)
    return read_log(
        write_modules(path, {"DXT_POSIX": (1, data)}, nprocs=nprocs, byte_order=byte_order)
    )


@pytest.mark.parametrize("byte_order", "<>")
def test_processes_of_each_host_are_counted(tmp_path: Path, byte_order: str) -> None:
    log = traced(tmp_path / "a", {0: "n1", 1: "n1", 2: "n2", 3: "n1"}, 4, byte_order)
    found = compute_nodes(log)
    assert found == ComputeNodes({"n1": 3, "n2": 1}, are_all=True)
    assert (found.nodes, found.processes_per_node) == (2, 3)


def test_processes_without_traced_io_make_the_numbers_lower_bounds(tmp_path: Path) -> None:
    log = traced(tmp_path / "a", {0: "n1", 1: "n1", 2: "n2"}, 4)
    assert compute_nodes(log) == ComputeNodes({"n1": 2, "n2": 1}, are_all=False)


def test_both_traces_of_a_log_name_hosts(tmp_path: Path) -> None:
    posix = dxt_bytes([Dxt("DXT_POSIX", "/f", 0, "n1", [SEGMENT])])
    mpiio = dxt_bytes([Dxt("DXT_MPIIO", "/f", rank, f"n{rank + 1}", [SEGMENT]) for rank in (0, 1)])
    modules = {"DXT_POSIX": (1, posix), "DXT_MPIIO": (2, mpiio)}
    log = read_log(write_modules(tmp_path / "a", modules, nprocs=2))
    assert compute_nodes(log) == ComputeNodes({"n1": 1, "n2": 1}, are_all=True)


def test_two_hosts_for_one_process_name_none(tmp_path: Path) -> None:
    data = dxt_bytes([Dxt("DXT_POSIX", f"/{host}", 0, host, [SEGMENT]) for host in ("n1", "n2")])
    log = read_log(write_modules(tmp_path / "a", {"DXT_POSIX": (1, data)}, nprocs=1))
    assert compute_nodes(log) is None


def test_a_process_with_an_empty_host_name_is_unknown(tmp_path: Path) -> None:
    assert compute_nodes(traced(tmp_path / "a", {0: "n1", 1: ""}, 2)) == ComputeNodes(
        {"n1": 1}, are_all=False
    )
    assert compute_nodes(traced(tmp_path / "b", {0: "", 1: ""}, 2)) is None


def test_a_name_that_fills_its_field_is_kept_whole(tmp_path: Path) -> None:
    assert compute_nodes(traced(tmp_path / "a", {0: "n" * 64}, 1)) == ComputeNodes(
        {"n" * 64: 1}, are_all=True
    )


def test_a_process_outside_the_job_is_not_counted(tmp_path: Path) -> None:
    log = traced(tmp_path / "a", {0: "n1", 7: "n2", -1: "n3"}, 2)
    assert compute_nodes(log) == ComputeNodes({"n1": 1}, are_all=False)


def test_the_logs_of_one_run_name_its_compute_nodes_together(tmp_path: Path) -> None:
    """Each process of a program without MPI writes a log, and several are on one compute node."""
    logs = [
        traced(tmp_path / str(number), {0: host}, 1)
        for number, host in enumerate(["n1", "n2", "n1", "n3"])
    ]
    assert count_nodes(logs) == NodeCount(3, are_all=True)
    without = read_log(FIXTURES / "single-a.darshan")
    assert count_nodes([*logs, without]) == NodeCount(3, are_all=False)
    assert count_nodes([without]) is None


# All on one machine; the names of the logs say which ranks did I/O, and rank 0 of imbalance-shared
# did not (runs/truth/imbalance-shared.json).
@pytest.mark.parametrize(
    ("name", "processes", "are_all"),
    [
        ("runs/logs/hacc-mpiio-ssf-64x100k-dxt", [64], True),
        ("runs/logs/rank0-only-dxt", [1], False),
        ("runs/logs/partial-ranks-0-7-of-24-dxt", [8], False),
        ("runs/logs/imbalance-shared-dxt", [23], False),
        ("darshan-logs/release_logs/mpi-io-test-ppc64-3.1.6", [4], True),
    ],
)
def test_hosts_of_genuine_logs(
    shared_data: Path, name: str, processes: list[int], are_all: bool
) -> None:
    found = compute_nodes(read_log(shared_data / f"{name}.darshan"))
    assert list(found.processes.values()) == processes
    assert found.are_all == are_all


def with_mpi_module(path: Path) -> DarshanLog:
    return read_log(path, modules=HOST_MODULES)


def test_the_mpi_module_names_the_host_of_every_process(shared_data: Path) -> None:
    """The README beside the log: "512 processes were used on 8 Theta compute nodes"."""
    folder = shared_data / "darshan-logs/e3sm_io_heatmaps_and_dxt"
    found = compute_nodes(with_mpi_module(folder / "e3sm_io_heatmap_only.darshan"))
    assert (found.nodes, found.processes_per_node, found.are_all) == (8, 64, True)
    assert set(found.processes.values()) == {64}


def content_of(path: Path, module: str) -> bytes:
    blob = path.read_bytes()
    place = parse_header(blob, str(path)).modules[module]
    return inflate_joined(blob[place.offset :][: place.length], 0, 1 << 30)


def test_a_damaged_mpi_module_names_no_host(tmp_path: Path, shared_data: Path) -> None:
    genuine = shared_data / "darshan-logs/apmpi_apxc/mpi-io-test.darshan"
    assert compute_nodes(with_mpi_module(genuine)) == ComputeNodes({"nid00783": 4}, are_all=True)
    whole = content_of(genuine, "APMPI")

    def read(data: bytes, version: int = 1) -> DarshanLog:
        modules = {"APMPI": (version, data)}
        return with_mpi_module(write_modules(tmp_path / "a.darshan", modules, nprocs=4))

    assert compute_nodes(read(whole)) == ComputeNodes({"nid00783": 4}, are_all=True)
    assert compute_nodes(read(whole[:48])) is None
    assert compute_nodes(read(bytes(len(whole)))) is None
    assert compute_nodes(read(whole, version=2)) is None
    for damaged in (whole[:-1], whole[:60], b"", whole[:47], whole + b"0"):
        log = read(damaged)
        assert compute_nodes(log) is None
        assert log.warnings == ("the APMPI data cannot be read and is not used",)


@pytest.mark.slow
def test_host_names_of_many_processes_need_little_memory(tmp_path: Path) -> None:
    """The counters of 20,000 processes have 105 MB, their host names 2.5 MB."""
    streams = [zlib.compress(bytes(48) + apmpi_record(0))]
    streams += [zlib.compress(apmpi_record(rank)) for rank in range(1, 20_000)]
    tracemalloc.start()
    data = inflate_hosts(b"".join(streams), 0, 1 << 30)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert dict(hosts_by_rank(data, "<")) == {rank: f"n{rank // 64}" for rank in range(20_000)}
    assert peak_bytes < 20 << 20


def apmpi_record(rank: int) -> bytes:
    return struct.pack("<Qq5088x128s", 7, rank, f"n{rank // 64}".encode())


def test_the_module_that_names_more_processes_counts(tmp_path: Path, shared_data: Path) -> None:
    mpi = with_mpi_module(shared_data / "darshan-logs/apmpi_apxc/mpi-io-test.darshan")
    # DXT writes the kernel's name of the same host, in full.
    few = dxt_bytes([Dxt("DXT_POSIX", "/f", 0, "nid00783.local", [SEGMENT])])
    versions = {**mpi.header.module_versions, "DXT_POSIX": 1}
    header = replace(mpi.header, module_versions=versions)
    both = replace(mpi, header=header, traces={**mpi.traces, "DXT_POSIX": few})
    assert compute_nodes(both) == ComputeNodes({"nid00783": 4}, are_all=True)
