"""Outputs that several runs of IOR wrote into one file, one after the other or at the same time."""

from __future__ import annotations

import itertools
import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from ioncast_base.errors import InputError
from ior_configs import IorResult, read_outputs

FIXTURES = Path(__file__).parent / "fixtures"
NAMES = ["periodic-b-dxt.txt", "wr-shared-dxt.txt", "killed-first.txt", "periodic-a.json"]
FPP, SHARED = (FIXTURES / "two-runs-different.txt").read_text().split("\nIOR-", 1)
FPP, SHARED = f"{FPP}\n", f"IOR-{SHARED}"
CSV = (FIXTURES / "csv-without-numtasks.csv").read_text()


def read(text: str, **options: Any) -> list[IorResult]:
    return read_outputs(text, where="x", **options)


def refusal(text: str, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read(text, **options)
    return str(caught.value)


def brief(results: list[IorResult]) -> list[tuple[str, float]]:
    return [(r.config.command_line(launcher=True), r.bandwidth_mib_s) for r in results]


def test_each_run_in_one_text_has_its_own_options() -> None:
    assert brief(read((FIXTURES / "two-runs-different.txt").read_text())) == [
        ("mpiexec -n 4 ior -a POSIX -w -F -e -b 16m -t 1m -o /scratch/t", 100.0),
        ("mpiexec -n 4 ior -a POSIX -w -b 16m -t 1m -o /scratch/t", 50.0),
    ]


def test_the_run_after_a_killed_one_has_its_own_options() -> None:
    results = read((FIXTURES / "killed-first.txt").read_text())
    assert [(r.config.fsync, r.repetition, r.bandwidth_mib_s) for r in results] == [
        ("end", 0, 100.0),
        ("none", 0, 900.0),
    ]


def test_each_json_document_is_a_run() -> None:
    results = read((FIXTURES / "appended.json").read_text())
    assert [(r.bandwidth_mib_s, r.config.test_file) for r in results] == [
        (547.0203, "data/mpiio-coll-contig/f"),
        (77.2453, "data/mpiio-coll-contig-cb4/f"),
    ]


@pytest.mark.parametrize("names", [*itertools.permutations(NAMES, 2)])
def test_runs_of_any_format_one_after_the_other_are_those_of_the_single_files(
    names: tuple[str, str],
) -> None:
    texts = [(FIXTURES / name).read_text() for name in names]
    assert read("".join(texts)) == [*read(texts[0]), *read(texts[1])]
    assert read(f"\nloading modules\n{texts[0]}\nreal 0m1s\n{texts[1]}done\n") == [
        *read(texts[0]),
        *read(texts[1]),
    ]


def test_a_run_that_was_killed_before_its_first_result_is_left_out_with_a_warning() -> None:
    for end in range(0, FPP.index("\nwrite "), 41):
        killed = f"{FPP[: FPP.index('Machine') + end]}\nslurmstepd: error: CANCELLED\n"
        if "\nwrite " not in killed:
            [result] = read(f"{SHARED}{killed}{SHARED}")[1:]
            assert result.bandwidth_mib_s == 50.0
            [warning] = result.warnings
            line = SHARED.count("\n") + 1
            assert warning.startswith(f"left out the run of line {line}: ")


def test_a_json_document_that_is_cut_off_is_left_out_with_a_warning() -> None:
    text = (FIXTURES / "wr-shared.json").read_text()
    results = read(f"{text[:1500]}\n{text}")
    assert [r.bandwidth_mib_s for r in results] == [662.5639, 9784.4161]
    assert all("left out the run of line 1: the JSON is cut off" in r.warnings[0] for r in results)


def test_lines_above_the_first_run_and_between_two_belong_to_the_next_run() -> None:
    warning = "WARNING: fsync() not supported in selected backend.  Using value of 0.\n"
    assert [r.config.fsync for r in read(FPP + warning + FPP)] == ["end", "none"]


def test_runs_that_wrote_at_the_same_time_are_an_error_or_keep_their_results() -> None:
    """Each process writes its header, its options, its result, its summary and its end at once."""
    marks = ("TestID", "write  ", "\nSummary", "Finished")
    pieces = []
    for text in (FPP, SHARED):
        cuts = [0, *(text.index(mark) for mark in marks), len(text)]
        pieces.append([text[start:end] for start, end in itertools.pairwise(cuts)])
    for places in itertools.combinations(range(10), 5):
        waiting = [iter(pieces[0]), iter(pieces[1])]
        mixed = "".join(next(waiting[place in places]) for place in range(10))
        try:
            results = read(mixed)
        except InputError as error:
            assert error.remedy == "let each run write to a file of its own", mixed
        else:
            assert sorted(brief(results)) == sorted(brief(read(FPP)) + brief(read(SHARED))), mixed


def test_a_result_twice_or_of_an_operation_that_the_command_lacks_is_an_error() -> None:
    row = next(line for line in FPP.splitlines() if line.startswith("write "))
    assert "two of write 0" in refusal(FPP.replace(row, f"{row}\n{row}"))
    read_row = row.replace("write", "read ")
    assert "there is a read" in refusal(FPP.replace(row, f"{row}\n{read_row}"))


def test_the_header_of_another_run_in_csv_is_an_error() -> None:
    text = CSV.replace("total(s),", "total(s),numTasks,").replace("00,0\n", "00,4,0\n")
    command = "mpiexec -n 4 ior -w -r -b 2m -t 2k"
    assert len(read(text, command=command)) == 2
    assert "x:4: another header begins here" in refusal(text + text, command=command)
    ranks = "access,rank,runtime-with-openclose,throughput-withopenclose\n"
    ranks += "write,0,1.0000000000e+00,2.0971520000e+06\n"
    assert "another header begins here" in refusal(ranks * 2, command="ior -w -b 2m -t 2k")


def test_the_runs_of_a_file_with_unknown_numbers_of_tasks_are_not_pooled() -> None:
    text = (FIXTURES / "wr-shared.txt").read_text()
    message = refusal(text + text)
    assert "x:11: the numbers of tasks of several runs" in message
    assert "--tasks" in message
    assert [r.config.tasks for r in read(text + text, tasks=16)] == [16] * 4
    assert len(read(text + text, command="mpiexec -n 16 ior")) == 4
    assert len(read(text + text.replace("-b 16m", "-b 32m"))) == 4


@pytest.mark.parametrize("name", ["two-runs-different.txt", "appended.json"])
@pytest.mark.parametrize(
    "rank",
    [
        "0: ",
        "000:",
        " 0: ",
        "[0] ",
        "[1,0]<stdout>: ",
        "[1,0]<stdout>:",
        "[prterun-n1-7@1,0]<stdout>: ",
    ],
)
def test_ranks_in_front_of_the_lines_change_nothing(name: str, rank: str) -> None:
    text = (FIXTURES / name).read_text()
    ranked = "".join(f"{rank}{line}\n" for line in text.splitlines())
    assert read(ranked) == read(text)


def test_a_rank_that_mpiexec_repeats_within_a_line_changes_nothing() -> None:
    text = (FIXTURES / "label-srun.txt").read_text()
    assert brief(read(text)) == brief(read(FPP))
    inside = re.sub("^0: ", "[0] ", text, flags=re.MULTILINE)
    inside = inside.replace(" -w", "[0]  -w").replace("100.0", "[0] 100.0")
    assert read(inside) == read(text)


def test_the_header_of_ior_3_2_above_its_json_is_not_a_run() -> None:
    text = (FIXTURES / "wr-shared.json").read_text()
    assert read(f"IOR-3.2.1: MPI Coordinated Test of Parallel I/O\n{text}") == read(text)


def test_ior_3_3_has_a_list_of_results_for_each_repetition() -> None:
    document = json.loads((FIXTURES / "periodic-a.json").read_text())
    [test] = document["tests"]
    entries = read(json.dumps(document))
    test["Results"] = [[entry, {"access": "remove", "totalTime": 1.0}] for entry in test["Results"]]
    assert read(json.dumps(document)) == entries


@pytest.mark.slow
def test_the_lines_of_an_output_are_not_held_in_memory() -> None:
    """IOR prints a line for each request with -vvvv; 100,000 of them would take 10 MB."""
    above, row, below = re.split(r"(?m)^(write  .*\n)", FPP, maxsplit=1)
    noise = (f"Task {n} access: write of file /scratch/t" for n in range(100_000))
    lines = itertools.chain(above.splitlines(), noise, row.splitlines(), below.splitlines())
    tracemalloc.start()
    try:
        results = read_outputs(lines, where="x")
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert results == read(FPP)
    assert peak_bytes < 1 << 20
