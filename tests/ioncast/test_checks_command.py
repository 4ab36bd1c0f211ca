"""`ioncast check`: its formats, its settings, its exit codes, and the checks of a site."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest

from ioncast.insights.checks.registry import all_checks
from ioncast.insights.findings.rows import COLUMNS
from tests.support.command import run_ioncast
from tests.support.records import mpiio_record, posix_record, write_log

SMALL = posix_record(
    "/scratch/f",
    WRITES=5000,
    CONSEC_WRITES=4996,
    SEQ_WRITES=4996,
    SIZE_WRITE_0_100=5000,
    BYTES_WRITTEN=500_000,
    MAX_BYTE_WRITTEN=499_999,
    FILE_ALIGNMENT=-1,
    F_WRITE_TIME=48,
    F_META_TIME=8,
)
COLLECTIVE = mpiio_record("/scratch/f", COLL_WRITES=9, BYTES_WRITTEN=500_000, F_WRITE_TIME=52)
KEYS = {
    *("log", "job", "processes", "libraries", "verdict", "causes", "findings", "unknown"),
    "warnings",
}


# Metadata take 6 of 100 s in a process.
MINOR = posix_record("/scratch/f", WRITES=4, BYTES_WRITTEN=1 << 24, F_META_TIME=12, F_WRITE_TIME=1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "app.darshan", [SMALL, COLLECTIVE], nprocs=4)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return write_log(
        tmp_path / "clean.darshan", [posix_record("/f", OPENS=1)], nprocs=4, run_seconds=0
    )


def json_of(*args: str | Path) -> list[dict[str, object]]:
    answer = run_ioncast("check", *args, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    found: list[dict[str, object]] = json.loads(answer.stdout)
    return found


def codes_of(*args: str | Path) -> set[str]:
    [run] = json_of(*args)
    return {finding["code"] for finding in run["findings"]}  # type: ignore[attr-defined]


def test_the_table_begins_with_a_verdict_and_the_cause_that_costs_most(log: Path) -> None:
    """Of 4 processes, each writes for 13 s and needs 2 s for metadata; POSIX writes for 12 s."""
    answer = run_ioncast("check", log)
    lines = answer.stdout.splitlines()
    assert lines[0] == f"{log}: 4 processes, job 4242"
    assert " ".join(lines[2:5]) == (
        "I/O and metadata take 15 s of 100 s run time (15%) in a process on average: write 13 s,"
        " metadata 2 s. All processes move 488 KiB, 0.0318 MiB/s in this time. Of it at most 12 s"
        " (12% of the run time) are at stake, as far as the log tells."
    )
    assert lines[6:9] == [
        "MAJOR    Small requests: at most 12 s, 12% of the run time",
        "HIGH  P06  5,000 of 5,000 writes (100.00%) are smaller than 1 MiB",
        "           5,000 (100.00%): /scratch/f",
    ]
    assert "OK    M05  9 writes through MPI-IO are collective (100.00%)" in lines
    assert any(line.startswith("not checked: P08") for line in lines)
    # No pause follows the writes, so asynchronous ones would save nothing.
    assert "negligible, with next to no time at stake: blocking calls (M07)" in lines
    [advice] = [line for line in lines if "Let the parts of the processes interleave" in line]
    assert advice.startswith("  advice:  ")
    # The snippet is for the library that the run uses.
    assert "           | MPI_Type_commit(&own_parts);" in lines


def test_details_are_printed_when_asked(log: Path) -> None:
    lines = run_ioncast("check", log, "--details").stdout.splitlines()
    assert "           thresholds: small_share 0.1, least_count 1,000" in lines
    assert "NEGLIGIBLE Blocking calls: at most 0 s" in lines
    assert not any(line.startswith("negligible") for line in lines)


def test_with_too_little_io_nothing_is_major(tmp_path: Path) -> None:
    log = write_log(tmp_path / "app.darshan", [SMALL], nprocs=4, run_seconds=10_000)
    shown = run_ioncast("check", log).stdout
    assert "negligible, with next to no time at stake: small requests (P06, P16)," in shown
    assert "take 14 s of 10,000 s run time (less than 1%)" in shown
    assert "INFO  I06  the slowest process spends at most 14 s of 10,000 s in I/O" in shown


def test_several_runs_are_summed_up(log: Path, clean: Path) -> None:
    """Of 100 s of 4 processes (0.111 core-hours) 12 s are at stake."""
    shown = run_ioncast("check", log, clean).stdout
    assert shown.startswith(
        "2 runs with 0.111 core-hours, of which at most 0.0133 (12%) are at stake\n"
    )
    rows = [line.split() for line in shown.splitlines()]
    assert ["0.0133", "12%", "small", "requests", str(log)] in rows
    assert ["small", "requests", "1", "1", "0", "0.0133"] in rows
    assert str(clean) not in shown
    assert "P06" not in shown


def test_details_of_several_runs_come_before_their_sum(log: Path, clean: Path) -> None:
    lines = run_ioncast("check", log, clean, "--details").stdout.splitlines()
    assert f"{clean}: 4 processes, job 4242" in lines
    assert lines.index("MAJOR    Small requests: at most 12 s, 12% of the run time") < lines.index(
        "Most frequent causes, major or minor:"
    )


def test_the_summary_alone_is_for_programs_too(log: Path, clean: Path) -> None:
    found = json.loads(run_ioncast("check", log, clean, "--summary", "--format", "json").stdout)
    assert found["runs"] == 2
    assert found["core_hours"] == pytest.approx(400 / 3600)
    [worst] = found["worst_runs"]
    assert (worst["log"], worst["cause"]) == (str(log), "small requests")
    assert worst["core_hours_at_stake"] == pytest.approx(48 / 3600)
    [cause] = found["causes"]
    assert (cause["cause"], cause["major"], cause["minor"]) == ("small requests", 1, 0)
    text = run_ioncast("check", log, clean, "--summary", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["kind"], row["cause"]) for row in rows] == [
        ("run", "small requests"),
        ("cause", "small requests"),
    ]
    assert "MAJOR" not in run_ioncast("check", log, "--summary").stdout


def test_json_has_a_record_for_each_run(log: Path, clean: Path) -> None:
    found = json_of(log, clean)
    assert [set(run) for run in found] == [KEYS, KEYS]
    assert found[0]["log"] == str(log)
    assert found[0]["libraries"] == ["mpiio"]
    [small] = [each for each in found[0]["findings"] if each["code"] == "P06"]  # type: ignore
    assert small["files"] == [
        {"path": "/scratch/f", "number": 5000, "share": 1.0, "words": "5,000 (100.00%)"}
    ]
    assert small["numbers"]["share"] == 1
    assert small["thresholds"] == {"small_share": 0.1, "least_count": 1000}
    assert next(iter(small["advice"][0]["snippets"])) == "mpiio"
    assert (small["importance"], small["cause"]) == ("major", "small requests")
    assert small["seconds_at_stake"] == pytest.approx(12)
    assert small["share_of_run"] == pytest.approx(0.12)
    assert found[0]["causes"][0] == {
        "cause": "small requests",
        "importance": "major",
        "seconds_at_stake": pytest.approx(12),
        "share_of_run": pytest.approx(0.12),
        "is_estimate": False,
        "codes": ["P06", "P16"],
    }


def test_csv_has_a_row_for_each_finding_and_each_check_without_data(log: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run_ioncast("check", log, "--format", "csv").stdout)))
    assert tuple(rows[0]) == COLUMNS
    by_code = {row["code"]: row for row in rows}
    assert by_code["P06"]["worst_file"] == "/scratch/f"
    assert by_code["P06"]["advice"] == "collective_buffering larger_writes"
    assert (by_code["P08"]["level"], by_code["P08"]["title"]) == ("UNKNOWN", "")


def test_sarif_has_the_properties_that_the_standard_requires(log: Path, tmp_path: Path) -> None:
    """SARIF 2.1.0, sections 3.13 to 3.27 and 3.49; the kinds and levels are those of 3.27.9."""
    unreadable = tmp_path / "bad log.darshan"
    unreadable.write_bytes(b"no log")
    answer = run_ioncast("check", log, unreadable, "--format", "sarif")
    document = json.loads(answer.stdout)
    assert document["version"] == "2.1.0"
    [run] = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert run["tool"]["driver"]["name"] == "ioncast"
    assert [rule["id"] for rule in rules] == [check.code for check in all_checks()]
    assert all(rule["help"]["text"] and rule["shortDescription"]["text"] for rule in rules)
    results = {result["ruleId"]: result for result in run["results"]}
    for code, result in results.items():
        assert rules[result["ruleIndex"]]["id"] == code
        [location] = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"] == str(log)
        assert result["message"]["text"].endswith(".")
        # A result that is no failure has no level.
        assert (result["kind"] == "fail") == (result["level"] != "none")
    kinds = {code: (results[code]["kind"], results[code]["level"]) for code in results}
    assert kinds["P06"] == ("fail", "error")
    assert kinds["M07"] == ("fail", "note")
    assert results["P06"]["properties"]["importance"] == "major"
    assert kinds["M05"] == ("pass", "none")
    assert kinds["P01"] == ("informational", "none")
    assert kinds["P08"] == ("open", "none")
    [file] = results["P06"]["locations"][0]["logicalLocations"]
    assert file["fullyQualifiedName"] == "/scratch/f"
    [invocation] = run["invocations"]
    assert invocation["executionSuccessful"] is False
    [error] = invocation["toolExecutionNotifications"]
    assert "bad log.darshan" in error["message"]["text"]


def test_a_path_is_a_valid_uri_in_sarif(tmp_path: Path) -> None:
    odd = write_log(tmp_path / "a b#c%.darshan", [SMALL], nprocs=1)
    document = json.loads(run_ioncast("check", odd, "--format", "sarif").stdout)
    result = document["runs"][0]["results"][0]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/a%20b%23c%25.darshan")


def test_the_page_shows_all_snippets_and_needs_no_network(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan",
        [posix_record("/<b>f\u202e", WRITES=5000, SIZE_WRITE_0_100=5000, BYTES_WRITTEN=9000)],
        nprocs=4,
    )
    run_ioncast("check", log, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "/&lt;b&gt;f\\u202e" in page
    assert "<b>" not in page
    assert "ncmpi_put_vara_double_all(ncid, varid, start, count, data);" in page
    assert "H5Pset_dxpl_mpio(transfer_list, H5FD_MPIO_COLLECTIVE);" in page
    assert "http" not in page.replace("<!DOCTYPE html>", "")


def test_the_page_begins_sentences_with_capitals_and_names_each_reason_once(
    log: Path, tmp_path: Path
) -> None:
    run_ioncast("check", log, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "All 9 writes through MPI-IO block until their data are taken.</p>" in page
    assert "<dt>D03, I05</dt><dd>The log has no trace (DXT).</dd>" in page


@pytest.mark.parametrize("output_format", ["table", "json", "csv", "sarif"])
def test_a_log_may_have_any_name(output_format: str, tmp_path: Path) -> None:
    odd = os.fsencode(tmp_path) + b"/odd\xff\n<b>.darshan"
    write_log(tmp_path / "app.darshan", [SMALL], nprocs=1).rename(os.fsdecode(odd))
    words = ("--format", output_format, "--html", tmp_path / "page.html")
    answer = run_ioncast("check", os.fsdecode(odd), *words)
    assert answer.returncode == 0, answer.stderr
    assert "P06" in answer.stdout
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "/odd\\udcff\\n&lt;b&gt;.darshan" in page


@pytest.mark.parametrize(
    ("level", "records", "code"),
    [
        ("major", [SMALL], 1),
        ("MAJOR", [SMALL], 1),
        ("minor", [SMALL], 1),
        ("minor", [MINOR], 1),
        ("major", [MINOR], 0),
        ("minor", [mpiio_record("/f", COLL_WRITES=9)], 0),
        ("high", [mpiio_record("/f", COLL_WRITES=9)], 0),
        ("high", [SMALL], 1),
        ("warn", [mpiio_record("/f", COLL_WRITES=9)], 1),
        ("warn", [posix_record("/f", OPENS=1)], 0),
    ],
)
def test_findings_make_the_command_fail_only_if_asked(
    level: str, records: list[object], code: int, tmp_path: Path
) -> None:
    log = write_log(tmp_path / "a.darshan", records, nprocs=2)  # type: ignore[arg-type]
    settings = tmp_path / "checks.toml"
    settings.write_text("fail_on_levels = true\n", encoding="utf-8")
    assert run_ioncast("check", log).returncode == 0
    asked = ("check", log, "--fail-on", level, "--settings", settings)
    assert run_ioncast(*asked).returncode == code


@pytest.mark.parametrize("level", ["high", "warn"])
def test_a_published_level_fails_only_where_the_site_wants_it(level: str, log: Path) -> None:
    answer = run_ioncast("check", log, "--fail-on", level)
    assert answer.returncode == 2
    assert f"--fail-on {level}: a published level says nothing about the time" in answer.stderr


def test_an_unusable_log_is_an_error_beside_the_others(log: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.darshan").write_bytes(b"no log")
    answer = run_ioncast("check", tmp_path / "bad.darshan", log, "--fail-on", "major")
    assert answer.returncode == 2
    assert "bad.darshan" in answer.stderr
    assert "small requests" in answer.stdout


def test_thresholds_come_from_a_file_or_its_variable(log: Path, tmp_path: Path) -> None:
    settings = tmp_path / "checks.toml"
    settings.write_text("least_count = 5_000\n", encoding="utf-8")
    assert "P06" in codes_of(log)
    assert "P06" not in codes_of(log, "--settings", settings)
    answer = run_ioncast(
        "check", log, "--format", "json", environment={"IONCAST_CHECKS": str(settings)}
    )
    assert "P06" not in answer.stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("small_share = 0.5\nsmal_share = 0.2\n", "2: key `smal_share` is unknown; did you mean"),
        ("small_share = 10\n", "1: key `small_share`: must be at most 1.0, not 10"),
        ("least_count = 1.5\n", "1: key `least_count`: must be a whole number, not 1.5"),
        ("repeated_factor = nan\n", "1: key `repeated_factor`: must be at"),
        ("[thresholds]\n", "1: key `thresholds` is unknown; the keys here are least_count"),
    ],
)
def test_an_unusable_setting_is_one_line(
    text: str, problem: str, log: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "checks.toml"
    settings.write_text(text, encoding="utf-8")
    answer = run_ioncast("check", log, "--settings", settings)
    assert answer.returncode == 2
    assert answer.stdout == ""
    [line] = answer.stderr.splitlines()
    assert line.startswith(f"ioncast: {settings}:{problem}")


def test_checks_can_be_left_out(log: Path) -> None:
    assert codes_of(log) - codes_of(log, "--ignore", "P06, m07") == {"P06", "M07"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--ignore", "X99"], "--ignore: there is no check 'X99'"),
        (["--system", "mysite"], "--ran-with and --system belong together"),
        (["--ran-with", "4"], "--ran-with and --system belong together"),
    ],
)
def test_options_that_mean_nothing_are_errors(words: list[str], problem: str, log: Path) -> None:
    answer = run_ioncast("check", log, *words)
    assert answer.returncode == 2
    assert problem in answer.stderr


def test_a_log_is_needed() -> None:
    answer = run_ioncast("check")
    assert answer.returncode == 2
    assert "Missing argument 'LOG...'" in answer.stderr


def test_all_checks_are_listed_with_their_conditions() -> None:
    shown = run_ioncast("check", "--list").stdout
    assert (
        "P06   Many small writes (HIGH)\n"
        "      if more than 10% of the writes are smaller than 1 MiB, and more than 1,000 are\n"
        "      source: Drishti (Ather 2022), Table II\n"
    ) in shown
    listed = json.loads(run_ioncast("check", "--list", "--format", "json").stdout)
    assert [each["code"] for each in listed] == [check.code for check in all_checks()]
    assert set(listed[0]) == {"code", "levels", "title", "condition", "source"}
