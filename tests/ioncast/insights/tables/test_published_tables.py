"""The tables of Carns et al. (2009), from logs with their counters.

Expected values are the printed ones; percentages are compared after rounding to their digits.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ioncast.insights.tables.histograms_table import BINS
from ioncast.insights.tables.values import Characteristic
from tests.ioncast.insights.published_logs import (
    CHOMBO_SIZES,
    CHOMBO_STRIDES,
    MIB,
    chombo,
    homme,
    madbench,
    s3d,
)
from tests.ioncast.insights.tables.reading import characterisation, rows_of


def percent(row: Characteristic, digits: int) -> float:
    assert row.share is not None
    return round(100 * row.share, digits)


def test_madbench(tmp_path: Path) -> None:
    found = characterisation(madbench(tmp_path))
    pattern, sizes = rows_of(found, "pattern"), rows_of(found, "sizes")
    for layer in ("POSIX", "MPIIO"):
        operations = [pattern[layer, name].value for name in ("reads", "writes")]
        assert sum(operations) == 16_384
        size = sizes[layer, "requests of 19,568,768 bytes"]
        assert (size.value, percent(size, 0)) == (16_384, 100)
    stride = sizes["POSIX", "strides of 1,920 bytes"]
    assert (stride.value, percent(stride, 0)) == (12_288, 75)
    # The paper prints the fraction 32 / 16,384 as a percentage.
    aligned = pattern["POSIX", "aligned in the file"]
    assert (aligned.value, percent(aligned, 3)) == (32, 0.195)
    assert pattern["POSIX", "consecutive"].value == 0
    sequential = pattern["POSIX", "sequential"]
    assert (sequential.value, percent(sequential, 0)) == (14_344, 88)
    alternation = pattern["POSIX", "alternations of reads and writes"]
    assert (alternation.value, percent(alternation, 0)) == (7_168, 44)


def test_madbench_in_time_and_size(tmp_path: Path) -> None:
    found = characterisation(madbench(tmp_path))
    in_mpiio = rows_of(found, "time")["MPIIO", "read, write and metadata"]
    assert percent(in_mpiio, 0) == 81
    size = rows_of(found, "files")["", "size of the largest"]
    assert size.value == 80_161_536_128
    assert round(size.value / 2**30, 2) == 74.66


def test_chombo(tmp_path: Path) -> None:
    found = characterisation(chombo(tmp_path))
    pattern = rows_of(found, "pattern")
    printed = {
        "preceded by a seek": (49_123, 50.76),
        "consecutive": (47_661, 49.25),
        # Printed as 99.99 %, cut off; 96,780 of 96,783 are 99.997 %.
        "sequential": (96_762, 99.98),
        "unaligned in the file": (96_780, 100.00),
        "unaligned in memory": (70, 0.07),
    }
    assert {
        name: (row.value, percent(row, 2)) for name in printed for row in [pattern["POSIX", name]]
    } == printed
    assert pattern["POSIX", "writes"].value == pattern["MPIIO", "writes"].value == 96_783
    assert percent(rows_of(found, "time")["MPIIO", "write"], 0) == 75


def test_sizes_and_strides_of_chombo(tmp_path: Path) -> None:
    sizes = rows_of(characterisation(chombo(tmp_path)), "sizes")
    expected = {f"requests of {size:,} bytes": count for size, count in CHOMBO_SIZES}
    expected |= {f"strides of {stride:,} bytes": count for stride, count in CHOMBO_STRIDES}
    found = {name: row.value for (layer, name), row in sizes.items() if layer == "POSIX"}
    assert list(found.items()) == list(expected.items())


def test_most_requests_of_chombo_have_10_kb_to_1_mb_and_none_more(tmp_path: Path) -> None:
    rows = rows_of(characterisation(chombo(tmp_path)), "histograms")
    writes = [rows["POSIX", f"writes of {bin_}"] for bin_ in BINS]
    first_above = BINS.index("1–4 MiB")
    assert sum(row.value for row in writes[first_above:]) == 0
    assert sum(row.share for row in writes[BINS.index("10–100 KiB") : first_above]) > 0.99


def test_without_seeks_requests_elsewhere_count(tmp_path: Path) -> None:
    # n - CONSEC - 1: all but the consecutive ones and the first one, which starts at 0.
    pattern = rows_of(characterisation(chombo(tmp_path, seeks=0)), "pattern")
    assert ("POSIX", "preceded by a seek") not in pattern
    elsewhere = pattern["POSIX", "moved elsewhere first, without a seek"]
    assert elsewhere.value == 96_783 - 47_661 - 1


@pytest.mark.parametrize(
    ("name", "posix", "unaligned", "written_mib", "run", "mpiio", "percentage", "factor"),
    [
        ("collective", (5, 0), 4, 6.25, 6, 0.60, 10, 1),
        ("independent", (102_401, 0), 102_399, 6.25, 1_443, 1_426.47, 99, 1),
        ("sieving", (81, 80), 80, 87.11, 11, 4.82, 44, 13.9),
    ],
)
def test_s3d(
    tmp_path: Path,
    name: str,
    posix: tuple[int, int],
    unaligned: int,
    written_mib: float,
    run: float,
    mpiio: float,
    percentage: int,
    factor: float,
) -> None:
    found = characterisation(s3d(tmp_path, name))
    layers = rows_of(found, "layers")
    assert (layers["POSIX", "writes"].value, layers["POSIX", "reads"].value) == posix
    assert layers["MPIIO", "writes"].value == 64
    assert layers["POSIX", "unaligned in the file"].value == unaligned
    assert round(layers["POSIX", "bytes written"].value / MIB, 2) == written_mib
    assert layers["", "run time"].value == run
    per_process = layers["MPIIO", "time per process"]
    assert (round(per_process.value, 2), percent(per_process, 0)) == (mpiio, percentage)
    assert round(layers["MPIIO", "amplification of writes"].value, 1) == factor
    aggregation = layers["MPIIO", "aggregation of writes"].value
    assert aggregation == pytest.approx(64 / posix[0])


def test_reads_below_mpiio_that_only_wrote_are_only_below(tmp_path: Path) -> None:
    layers = rows_of(characterisation(s3d(tmp_path, "sieving")), "layers")
    amplification = layers["MPIIO", "amplification of reads"]
    assert (amplification.value, amplification.note) == (None, "only below")
    assert layers["MPIIO", "read only below"].value == 80 * MIB


def test_homme(tmp_path: Path) -> None:
    collective = characterisation(homme(tmp_path, "collective"))
    independent = characterisation(homme(tmp_path, "independent"))
    assert {row.characteristic: row.value for row in rows_of(collective, "sizes").values()} == {
        "requests of 16,777,216 bytes": 128,
        "requests of 8,388,608 bytes": 59,
        "requests of 4,194,304 bytes": 4,
        "requests of 6,078,464 bytes": 1,
    }
    [size] = rows_of(independent, "sizes").values()
    assert (size.characteristic, size.value) == ("requests of 30,848 bytes", 86_400)
    for found, run_seconds in ((collective, 120), (independent, 176)):
        layers = rows_of(found, "layers")
        assert layers["POSIX", "bytes written"].value == 2_665_267_200
        assert layers["", "run time"].value == run_seconds
    assert percent(rows_of(collective, "pattern")["POSIX", "aligned in the file"], 2) == 100
    assert percent(rows_of(independent, "pattern")["POSIX", "unaligned in the file"], 2) == 100
