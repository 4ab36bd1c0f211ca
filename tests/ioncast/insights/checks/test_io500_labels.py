"""Checks beside the issues that another project found in logs of IO500 (labelled_issues.csv).

Its labels of the other columns contradict the published rules: 4 KiB at 4 KiB are "aligned" though
Darshan counts blocks of 1 MiB, programs without MPI-IO are "non-collective" or not, and mdtest's
files of one process are "shared".
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.support.checking import check_log

CODES = {
    "small-io": {"P05", "P06"},
    "random-access": {"P11", "P13"},
    "small-io-shared": {"P15", "P16"},
    "non-collective-io": {"M01", "M02", "M03"},
    "misaligned-io": {"P08"},
}
# 4,095 of its 4,095 writes are small.
SMALL_BUT_NOT_LABELLED = {"mdtest-hard_api_POSIX_n_100000_filesPerDir"}
# Logs whose label is another one than the checks.
OTHERS = {
    "small-io-shared": {
        "ior-easy_api_MPIIO_blockSize_1GB_transferSize_4KB_filePerProc_False_uniqueDir_True",
        "ior-hard_api_MPIIO_segmentCount_100000_collective_False",
        "ior-hard_api_MPIIO_segmentCount_100000_collective_True",
        "ior-hard_api_POSIX_segmentCount_100000_collective_False",
        "ior-hard_api_POSIX_segmentCount_100000_collective_True",
        "mdtest-easy_api_POSIX_n_100000",
        "mdtest-hard_api_POSIX_n_100000_filesPerDir",
    },
    "non-collective-io": {
        "ior-easy_api_MPIIO_blockSize_1GB_transferSize_1MB_filePerProc_False_uniqueDir_True",
        "ior-easy_api_MPIIO_blockSize_1GB_transferSize_4KB_filePerProc_False_uniqueDir_True",
        "ior-easy_api_POSIX_blockSize_1GB_transferSize_1MB_filePerProc_False_uniqueDir_True",
        "ior-hard_api_POSIX_segmentCount_100000_collective_True",
        "ior-rnd1MB_api_POSIX_blockSize_1GB_randomPrefill_0",
        "mdtest-easy_api_POSIX_n_100000",
        "mdtest-hard_api_POSIX_n_100000_filesPerDir",
    },
    "misaligned-io": {
        "ior-easy_api_MPIIO_blockSize_1GB_transferSize_4KB_filePerProc_False_uniqueDir_True",
    },
}


def pattern_of(name: str) -> str:
    """The pattern of a log or label; both write sizes in different ways."""
    name = name.removesuffix(".txt").split("__0.")[0].rstrip("_")
    for written, same in (("1073741824", "1GB"), ("Size_1M_", "Size_1MB_"), ("_4K_", "_4KB_")):
        name = name.replace(written, same)
    return name


@pytest.fixture(scope="module")
def compared(shared_data: Path) -> dict[str, tuple[dict[str, bool], set[str]]]:
    """The labels and the codes of each log with labels."""
    folder = shared_data / "io500-traces"
    with (folder / "labelled_issues.csv").open(encoding="utf-8") as file:
        labels = {
            pattern_of(row.pop("")): {name: text == "True" for name, text in row.items()}
            for row in csv.DictReader(file)
        }
    logs = {pattern_of(log.name): log for log in sorted(folder.glob("*.darshan"))}
    return {
        name: (labels[name], {each.check.code for each in check_log(logs[name]).findings})
        for name in labels.keys() & logs.keys()
    }


def unlike(compared: dict[str, tuple[dict[str, bool], set[str]]], column: str) -> set[str]:
    """The logs of which a label is not that of the checks."""
    return {
        name
        for name, (labels, codes) in compared.items()
        if labels[column] != bool(codes & CODES[column])
    }


def test_ten_logs_have_labels(compared: dict[str, tuple[dict[str, bool], set[str]]]) -> None:
    assert len(compared) == 10


def test_small_and_random_requests_are_those_of_the_labels(
    compared: dict[str, tuple[dict[str, bool], set[str]]],
) -> None:
    assert unlike(compared, "random-access") == set()
    assert unlike(compared, "small-io") == SMALL_BUT_NOT_LABELLED


@pytest.mark.parametrize("column", OTHERS)
def test_other_labels_differ_where_it_is_known(
    column: str, compared: dict[str, tuple[dict[str, bool], set[str]]]
) -> None:
    assert unlike(compared, column) == OTHERS[column]
