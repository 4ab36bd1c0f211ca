"""Reads that may come from the memory of the nodes that wrote the data are marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ior_configs import IorResult, read_outputs

FIXTURES = Path(__file__).parent / "fixtures"
CSV = (FIXTURES / "csv-without-numtasks.csv").read_text()
WRITTEN = (FIXTURES / "two-runs-different.txt").read_text().split("\nIOR-")[0] + "\n"


def warned(results: list[IorResult]) -> list[str]:
    return [result.operation for result in results if result.maybe_cached]


def warned_with(options: str) -> list[str]:
    return warned(read_outputs(CSV, where="x", command=f"ior -b 2m -t 2k {options}", tasks=4))


@pytest.mark.parametrize(
    "options", ["", "-w -r", "-a MPIIO -c", "-F -e", "-i 3", "-Q 4", "-a HDF5", "-k"]
)
def test_a_read_after_its_write_may_come_from_the_page_cache(options: str) -> None:
    assert warned_with(options) == ["read"]


@pytest.mark.parametrize(
    "options",
    [
        *("-C", "-F -C -Q 2", "-Z", "-Z -Z", "-O reorderTasksRandom=1", "-d 60", "-a DFS"),
        *("--posix.odirect", "-B", "-M 80%", "-O memoryPerTask=1g"),
    ],
)
def test_reads_of_other_nodes_or_after_a_pause_are_not_marked(options: str) -> None:
    assert not warned_with(options)


@pytest.mark.parametrize(
    ("options", "expected"),
    [("-r", ["read"]), ("-r -C", []), ("-r -o /scratch/u", []), ("-w", [])],
)
def test_a_run_that_reads_the_file_of_a_run_before_it_is_marked_too(
    options: str, expected: list[str]
) -> None:
    text = WRITTEN.replace("-w -F", f"{options} -F")
    if "-w" not in options:
        text = text.replace("\nwrite ", "\nread ")
    if "/scratch/u" in options:
        text = text.replace("/scratch/t", "/scratch/u")
    if "-C" in options:
        text = text.replace("no tasks offsets", "constant task offset")
    assert warned(read_outputs(WRITTEN + text, where="x")) == expected
    assert not warned(read_outputs(text + WRITTEN, where="x"))


def test_many_results_without_a_bandwidth_are_told_in_few_words() -> None:
    text = (FIXTURES / "zero-bandwidth-write.txt").read_text()
    [row] = [line for line in text.splitlines(keepends=True) if line.startswith("write  ")]
    rows = [row.replace(" 0   \n", f" {number}\n") for number in range(1000)]
    [result] = read_outputs(text.replace(row, "".join(rows)), where="x")
    told = [warning for warning in result.warnings if warning.startswith("left out")]
    assert told[0] == "left out write of repetition 0: its bandwidth is 0.000000"
    assert told[-1] == "left out 995 more such results"
    assert len(told) == 6
