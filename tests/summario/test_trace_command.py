"""`ioncast phases --trace`: the phases that DXT shows."""

import csv
import io
import json
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt, Segment
from tests.support.command import run_ioncast
from tests.support.log_bytes import dxt_bytes, write_modules

PROJECT = Path(__file__).resolve().parents[2]
REOPENED = PROJECT / "tests/summario/fixtures/reopen-same-5x-dxt.darshan"


def traced(path: Path, segments: dict[int, list[Segment]], file: str = "/f") -> Path:
    records = [Dxt("DXT_POSIX", file, rank, "n1", rows) for rank, rows in segments.items()]
    modules = {"DXT_POSIX": (1, dxt_bytes(records))}
    return write_modules(path, modules, nprocs=len(segments), names=[file])


def rows_of(output: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(output)))


def test_the_phases_are_those_of_the_program(shared_data: Path) -> None:
    truth = json.loads((shared_data / "runs/truth/reopen-same-5x-dxt.json").read_text())["phases"]
    done = run_ioncast("phases", "--trace", "--format", "csv", REOPENED)
    rows = rows_of(done.stdout)
    assert [(row["type"], row["api"], row["processes"]) for row in rows] == [
        ("write", "POSIX", str(real["active_ranks"])) for real in truth
    ]
    assert [(int(row["bytes"]), int(row["requests"])) for row in rows] == [
        (real["bytes"], real["requests"]) for real in truth
    ]


def test_json_has_the_columns_of_csv_and_the_ranks() -> None:
    header = run_ioncast("phases", "--trace", "--format", "csv", REOPENED).stdout.split("\n")[0]
    [first, *_] = json.loads(run_ioncast("phases", "--trace", "--format", "json", REOPENED).stdout)
    assert [*header.split(","), "ranks"] == list(first)


def test_the_sums_of_the_ranks_are_those_of_the_phase() -> None:
    phases = json.loads(run_ioncast("phases", "--trace", "--format", "json", REOPENED).stdout)
    assert len(phases) == 5
    for phase in phases:
        ranks = phase["ranks"]
        assert sum(rank["bytes"] for rank in ranks) == phase["bytes"]
        assert sum(rank["requests"] for rank in ranks) == phase["requests"]
        assert max(rank["end"] for rank in ranks) == phase["slowest_end"] == phase["end"]
        assert min(rank["end"] for rank in ranks) == phase["fastest_end"]


def test_stragglers_are_named(tmp_path: Path) -> None:
    ends = dict.fromkeys(range(9), 1.0) | {3: 5.0, 7: 4.0}
    log = traced(tmp_path / "a", {rank: [(0, 8, 0.0, end)] for rank, end in ends.items()})
    [row] = rows_of(run_ioncast("phases", "--trace", "--format", "csv", log).stdout)
    assert (row["stragglers"], row["slowest_rank"], row["fastest_rank"]) == ("3;7", "3", "0")
    assert float(row["lateness"]) == 0.8
    table = run_ioncast("phases", "--trace", log).stdout
    assert "3, 7" in table
    assert "4.00" in table


def test_a_table_names_only_the_first_of_many_stragglers(tmp_path: Path) -> None:
    ends = {rank: 9.0 if rank >= 20 else 1.0 for rank in range(30)}
    log = traced(tmp_path / "a", {rank: [(0, 8, 0.0, end)] for rank, end in ends.items()})
    assert "20, 21, 22, 23 and 6 more" in run_ioncast("phases", "--trace", log).stdout


def test_each_api_has_its_phases(shared_data: Path) -> None:
    log = shared_data / "runs/logs/mpiio-coll-contig-dxt.darshan"
    for layer, apis in (("all", ["MPIIO", "POSIX"]), ("posix", ["POSIX"]), ("mpiio", ["MPIIO"])):
        done = run_ioncast("phases", "--trace", "--format", "csv", "--layer", layer, log)
        assert [row["api"] for row in rows_of(done.stdout)] == apis


def test_system_files_count_only_if_wanted(tmp_path: Path) -> None:
    log = traced(tmp_path / "a", {0: [(0, 8, 0.0, 1.0)]}, "/proc/cpuinfo")
    assert run_ioncast("phases", "--trace", log).stdout == "no trace phases\n"
    assert "8 bytes" in run_ioncast("phases", "--trace", "--all-files", log).stdout


def test_a_shorter_time_distance_makes_more_phases(tmp_path: Path) -> None:
    log = traced(tmp_path / "a", {0: [(0, 8, 0.0, 1.0), (8, 8, 1.5, 2.0)]})
    for distance, count in (("1", 1), ("0.4", 2)):
        done = run_ioncast("phases", "--trace", "--format", "csv", "--time-distance", distance, log)
        assert len(rows_of(done.stdout)) == count


def test_a_log_without_a_trace_is_named(shared_data: Path) -> None:
    log = shared_data / "runs/logs/single-a.darshan"
    done = run_ioncast("phases", "--trace", log)
    assert (done.returncode, done.stdout) == (0, "no trace phases\n")
    assert f"{log}: the log has no trace: Darshan writes one if DXT_ENABLE_IO_TRACE" in done.stderr


@pytest.mark.parametrize("output_format", ["table", "csv", "json"])
def test_logs_without_a_trace_share_a_warning(
    shared_data: Path, tmp_path: Path, output_format: str
) -> None:
    for number in range(30):
        (tmp_path / f"{number}.darshan").symlink_to(shared_data / "runs/logs/single-a.darshan")
    traced(tmp_path / "traced.darshan", {0: [(0, 8, 0.0, 1.0)]})
    done = run_ioncast("phases", "--trace", "--format", output_format, tmp_path)
    assert done.returncode == 0
    [warning] = done.stderr.splitlines()
    assert warning.startswith("ioncast: warning: 30 of 31 runs have no trace: Darshan writes one")


def test_damage_of_a_trace_is_a_warning(tmp_path: Path) -> None:
    log = traced(tmp_path / "a", {0: [(0, 8, 0.0, 1.0), (8, -8, 1.0, 2.0)]})
    done = run_ioncast("phases", "--trace", "--format", "csv", log)
    assert done.returncode == 0
    assert [row["requests"] for row in rows_of(done.stdout)] == ["1"]
    assert "1 DXT_POSIX request of 2 left out" in done.stderr


def test_too_many_phases_are_a_warning(tmp_path: Path) -> None:
    segments = [(0, 8, 4.0 * index, 4.0 * index + 2.5) for index in range(101)]
    done = run_ioncast("phases", "--trace", traced(tmp_path / "a", {0: segments}))
    assert "101 POSIX phases are many" in done.stderr
    done = run_ioncast("phases", "--trace", traced(tmp_path / "b", {0: segments[:100]}))
    assert done.stderr == ""


@pytest.mark.parametrize("option", ["--threshold 0.3", "--min-share 0.1", "--layer stdio"])
def test_options_that_mean_nothing_for_a_trace_are_rejected(option: str) -> None:
    done = run_ioncast("phases", "--trace", *option.split(), REOPENED)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"ioncast: {option.split(maxsplit=1)[0]}")
    assert done.stderr.count("\n") == 1
