"""Heat maps by process, compared with what was written and with PyDarshan."""

import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Heatmap, record_id
from summario.reading.heatmap import heatmaps_of
from summario.reading.log import DarshanLog, read_log
from tests.support import log_bytes
from tests.support.darshan_reader import read_log as read_with_pydarshan
from tests.support.log_bytes import write_modules


def heatmap_bytes(
    rank: int, write: list[int], read: list[int], *, byte_order: str, width: float = 0.5
) -> bytes:
    return log_bytes.heatmap_bytes(
        [Heatmap("POSIX", rank, width, write, read)], byte_order=byte_order
    )


def log_with(folder: Path, data: bytes, *, nprocs: int = 1, byte_order: str = "<") -> DarshanLog:
    modules = {"HEATMAP": (1, data)}
    names = ["heatmap:POSIX"]
    path = folder / "log.darshan"
    return read_log(write_modules(path, modules, nprocs=nprocs, byte_order=byte_order, names=names))


@pytest.mark.parametrize("byte_order", "<>")
def test_a_process_with_a_bin_less_moved_nothing_in_it(tmp_path: Path, byte_order: str) -> None:
    """By a bug of Darshan's runtime the number of bins may differ by one."""
    data = heatmap_bytes(0, [1, 2, 3], [4, 5, 6], byte_order=byte_order)
    data += heatmap_bytes(1, [7, 8], [9, 10], byte_order=byte_order)
    found = heatmaps_of(log_with(tmp_path, data, nprocs=2, byte_order=byte_order))
    assert found.keys() == {("POSIX", "write"), ("POSIX", "read")}
    assert found["POSIX", "write"].bin_seconds == 0.5
    assert found["POSIX", "write"].rank.tolist() == [0, 1]
    assert found["POSIX", "write"].bytes.tolist() == [[1, 2, 3], [7, 8, 0]]
    assert found["POSIX", "read"].bytes.tolist() == [[4, 5, 6], [9, 10, 0]]


@pytest.mark.parametrize("width", [0.0, -1.0, float("nan"), float("inf"), 1e9, 1e308])
def test_an_impossible_width_means_no_heat_map(tmp_path: Path, width: float) -> None:
    data = heatmap_bytes(0, [1], [1], byte_order="<", width=width)
    assert heatmaps_of(log_with(tmp_path, data)) == {}


def test_bins_of_different_widths_mean_no_heat_map(tmp_path: Path) -> None:
    """Darshan gives the bins of all processes one width; PyDarshan rejects others too."""
    rows = [
        heatmap_bytes(rank, [1, 2], [3, 4], byte_order="<", width=width)
        for rank, width in enumerate((0.5, 1.0))
    ]
    assert heatmaps_of(log_with(tmp_path, b"".join(rows), nprocs=2)) == {}


@pytest.mark.parametrize("bins", [0, -1, 3, 1 << 62])
def test_impossible_numbers_of_bins_mean_no_heat_map(tmp_path: Path, bins: int) -> None:
    data = bytearray(heatmap_bytes(0, [1, 2], [3, 4], byte_order="<"))
    struct.pack_into("<q", data, 24, bins)
    assert heatmaps_of(log_with(tmp_path, bytes(data))) == {}


def test_data_that_end_within_a_record_mean_no_heat_map(tmp_path: Path) -> None:
    data = heatmap_bytes(0, [1, 2], [3, 4], byte_order="<") * 2
    for end in (len(data) - 1, len(data) - 33, len(data) // 2 + 1):
        assert heatmaps_of(log_with(tmp_path, data[:end])) == {}


def test_very_different_numbers_of_bins_mean_no_heat_map(tmp_path: Path) -> None:
    data = heatmap_bytes(0, [1] * 4, [1] * 4, byte_order="<")
    data += heatmap_bytes(1, [1, 2], [3, 4], byte_order="<")
    assert heatmaps_of(log_with(tmp_path, data, nprocs=2)) == {}


@pytest.mark.parametrize("rank", [-1, 1, 1 << 62])
def test_a_process_outside_the_job_means_no_heat_map(tmp_path: Path, rank: int) -> None:
    assert heatmaps_of(log_with(tmp_path, heatmap_bytes(rank, [1], [1], byte_order="<"))) == {}


@pytest.mark.parametrize("bins", [([-1], [1]), ([1], [-1])])
def test_negative_bytes_mean_no_heat_map(tmp_path: Path, bins: tuple[list[int], list[int]]) -> None:
    assert heatmaps_of(log_with(tmp_path, heatmap_bytes(0, *bins, byte_order="<"))) == {}


def test_impossible_bytes_mean_no_heat_map(tmp_path: Path) -> None:
    """Together they are 2^64, which is 0 in 64 bits."""
    rows = [heatmap_bytes(rank, [1 << 62], [0], byte_order="<") for rank in range(4)]
    assert heatmaps_of(log_with(tmp_path, b"".join(rows), nprocs=4)) == {}


def test_two_heat_maps_of_one_name_mean_no_heat_map(tmp_path: Path) -> None:
    data = heatmap_bytes(0, [1], [2], byte_order="<")
    modules = {"HEATMAP": (1, data + struct.pack("<Q", record_id("/a")) + data[8:])}
    path = write_modules(tmp_path / "log.darshan", modules, nprocs=1, names=["heatmap:POSIX", "/a"])
    log = read_log(path)
    assert heatmaps_of(log).keys() == {("POSIX", "write"), ("POSIX", "read")}
    assert heatmaps_of(replace(log, names=dict.fromkeys(log.names, "heatmap:POSIX"))) == {}


@given(st.binary(max_size=300), st.sampled_from("<>"))
def test_any_bytes_give_bytes_of_processes_of_the_job(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, byte_order: str
) -> None:
    data = heatmap_bytes(0, [1, 2], [3, 4], byte_order=byte_order) + noise
    log = log_with(tmp_path_factory.mktemp("log"), data, nprocs=3, byte_order=byte_order)
    for heatmap in heatmaps_of(log).values():
        assert heatmap.bytes.min() >= 0
        assert set(heatmap.rank.tolist()) <= {0, 1, 2}
        assert heatmap.bytes.shape[1] <= 3


@pytest.mark.parametrize(
    "name",
    [
        "runs/logs/reopen-same-5x-dxt",
        "runs/logs/wr-shared-dxt",
        "darshan-logs/e3sm_io_heatmaps_and_dxt/e3sm_io_heatmap_only",
        "darshan-logs/release_logs/mpi-io-test-x86_64-3.4.0",
    ],
)
def test_bins_of_every_process_are_pydarshans(shared_data: Path, name: str) -> None:
    path = shared_data / f"{name}.darshan"
    found = heatmaps_of(read_log(path))
    rows = {
        (api, operation, rank): bins
        for (api, operation), heatmap in found.items()
        for rank, bins in zip(heatmap.rank.tolist(), heatmap.bytes, strict=True)
    }
    expected = read_with_pydarshan(path)["heatmaps"]
    assert len(rows) == 2 * len(expected)
    for heatmap in expected:
        for operation in ("read", "write"):
            bins = getattr(heatmap, f"{operation}_bins")
            assert np.array_equal(rows[heatmap.module, operation, heatmap.rank], bins)
