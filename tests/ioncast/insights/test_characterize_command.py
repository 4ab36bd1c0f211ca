"""`ioncast characterize`: one log, several side by side, folders, errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pytest

from tests.ioncast.insights.published_logs import chombo, s3d
from tests.support.command import run_ioncast

FIXTURES = Path(__file__).parents[2] / "summario" / "fixtures"
SHARED = FIXTURES / "single-a.darshan"


@pytest.fixture
def s3d_logs(tmp_path: Path) -> list[Path]:
    return [s3d(tmp_path, name) for name in ("collective", "independent", "sieving")]


def line_of(text: str, table: str, characteristic: str) -> str:
    """Find the first line about a characteristic in a table."""
    lines = text.split(f"\n{table}\n", 1)[1].splitlines()
    return next(line for line in lines if characteristic in line)


def test_one_log_prints_its_tables() -> None:
    done = run_ioncast("characterize", SHARED)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ior -a POSIX -w -b 32m -t 2m" in done.stdout.splitlines()[0]
    for name, value in (("job", "32526"), ("processes", "32"), ("modules", "POSIX 4, HEATMAP 1")):
        assert line_of(done.stdout, "Job", f" {name} ").split(name)[1].strip() == value
    assert line_of(done.stdout, "Operations", "writes").split() == [
        *("writes", "512", "48.48%", "calls")
    ]


def test_several_logs_stand_side_by_side(s3d_logs: list[Path]) -> None:
    done = run_ioncast("characterize", *s3d_logs)
    assert done.returncode == 0
    table = "Layers"
    head = done.stdout.split(f"\n{table}\n", 1)[1].splitlines()[0].split()
    assert head[2:] == ["collective", "independent", "sieving"]
    assert line_of(done.stdout, table, " writes ").split("writes")[1].split() == [
        *("5", "≠", "102,401", "≠", "81")
    ]
    # The bytes of two of the runs are the same.
    assert line_of(done.stdout, table, "bytes written").split("written")[1].split() == [
        *("6.25", "MiB", "6.25", "MiB", "≠", "87.1", "MiB")
    ]


def test_the_largest_differences_come_first(s3d_logs: list[Path]) -> None:
    done = run_ioncast("characterize", *s3d_logs[:2])
    [sentence] = (line for line in done.stdout.splitlines() if " beside " in line)
    assert sentence.startswith("independent beside collective: ")
    assert "POSIX writes 5 → 102,401 (20,480 ×)" in sentence
    assert "run time 6 s → 1,443 s (240 ×)" in sentence


def test_a_larger_tolerance_marks_less(s3d_logs: list[Path]) -> None:
    few, many = (
        run_ioncast("characterize", "--tolerance", tolerance, *s3d_logs[:2]).stdout.count("≠ ")
        for tolerance in ("0.99", "0")
    )
    assert few < many


def test_json_has_ratio_and_flag(s3d_logs: list[Path]) -> None:
    records = json.loads(run_ioncast("characterize", "--format", "json", *s3d_logs).stdout)
    assert [record["log"] for record in records] == list(map(str, s3d_logs))
    [layers] = (table for table in records[2]["tables"] if table["name"] == "layers")
    rows = [dict(zip(layers["columns"], row, strict=True)) for row in layers["rows"]]
    [writes] = (row for row in rows if (row["layer"], row["characteristic"]) == ("POSIX", "writes"))
    assert (writes["value"], writes["ratio"], writes["differs"]) == (81, 81 / 5, True)


def test_json_of_one_log_has_no_ratio(tmp_path: Path) -> None:
    [record] = json.loads(run_ioncast("characterize", "--format", "json", chombo(tmp_path)).stdout)
    assert set(record) == {"log", "job", "tables", "files", "not_recorded", "warnings"}
    assert record["job"]["processes"] == 512
    for table in record["tables"]:
        assert table["columns"] == [
            *("layer", "characteristic", "value", "unit", "share", "of", "note")
        ]
    assert any("datatypes" in sentence for sentence in record["not_recorded"])


def test_csv_has_a_row_for_each_characteristic(s3d_logs: list[Path]) -> None:
    done = run_ioncast("characterize", "--format", "csv", "--per-file", *s3d_logs[:2])
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    [writes] = (
        row
        for row in rows
        if row["log"] == str(s3d_logs[1])
        and (row["file"], row["table"]) == ("", "layers")
        and (row["layer"], row["characteristic"]) == ("POSIX", "writes")
    )
    assert (writes["value"], writes["differs"]) == ("102401", "1")
    files = {row["file"] for row in rows}
    assert files == {"", "/pvfs/s3d.field"}


def test_more_logs_than_columns_have_a_line_each(tmp_path: Path) -> None:
    for number in range(7):
        folder = tmp_path / str(number)
        folder.mkdir()
        s3d(folder, "collective")
    done = run_ioncast("characterize", tmp_path)
    lines = [line for line in done.stdout.splitlines() if "collective.darshan" in line]
    assert len(lines) == 7
    assert all(" 6 s " in line for line in lines)


def test_a_compressed_log_is_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "single-a.darshan.gz"
    packed.write_bytes(gzip.compress(SHARED.read_bytes()))
    plain, other = (
        json.loads(run_ioncast("characterize", "--format", "json", path).stdout)
        for path in (SHARED, packed)
    )
    assert other[0]["tables"] == plain[0]["tables"]


def test_a_damaged_log_is_one_line_and_the_others_are_printed(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.darshan"
    damaged.write_bytes(SHARED.read_bytes()[:2000])
    done = run_ioncast("characterize", damaged, SHARED)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert "damaged.darshan" in line
    assert "Operations" in done.stdout


def test_a_pattern_that_matches_no_file_says_so() -> None:
    done = run_ioncast("characterize", "--only", "*.h5", SHARED)
    assert done.returncode == 0
    assert "no file matches *.h5" in done.stderr


def test_joined_logs_are_one_run(tmp_path: Path) -> None:
    logs = sorted((FIXTURES / "programs").glob("fork-workers-*.darshan"))
    done = run_ioncast("characterize", "--format", "json", "--join", "job", *logs)
    [record] = json.loads(done.stdout)
    assert record["job"]["processes"] == len(logs) > 1
