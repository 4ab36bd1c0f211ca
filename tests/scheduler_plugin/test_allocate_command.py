"""`ioncast allocate` as a user types it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ioncast.cli import cli
from ioncast_base.errors import InputError
from scheduler_plugin.allocate_command import allocate_command

TESTBED = Path(__file__).resolve().parents[2] / "experiments" / "data" / "testbed"
JOBS: list[dict[str, Any]] = [
    {"id": "4711", "nodes": 8, "curve": {"0": 45.0, "2": 53.1, "4": 66.0}},
    {"id": 4712, "nodes": 2, "curve": {"2": 80.0, "4": 170}},
    {"id": "4690", "nodes": 4, "current": 4, "fixed": True},
]
DECISION = {
    "decision_id": "04a94459990f44be8a32fd781700b04e",
    "io_nodes": 4,
    "expected_mib_s": 66.0,
    "p10_mib_s": 58.9,
    "p90_mib_s": 73.6,
    "source": "history",
    "alternatives": [
        {"io_nodes": 0, "expected_mib_s": 45.0, "p10_mib_s": 41.1, "p90_mib_s": 49.0},
        {"io_nodes": 2, "expected_mib_s": 53.1, "p10_mib_s": 48.9, "p90_mib_s": 57.7},
    ],
    "confidence": 1.0,
    "application_id": 1,
    "why": "3 earlier runs",
}
PREDICTION = {
    "system": "testbed",
    "curve": [
        {"io_nodes": n, "bandwidth_mib_s": {"mean": mean, "p10": 1.0, "median": 2.0, "p90": 3.0}}
        for n, mean in ((0, 45.0), (2, 53.1), (4, 66.0))
    ],
    "phases": [],
}


def run(document: Any, *options: str, pool: int = 8) -> Result:
    """Run the command with the jobs on standard input."""
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return CliRunner().invoke(allocate_command, ["-", "--pool", str(pool), *options], input=text)


def printed(document: Any, *options: str, pool: int = 8) -> str:
    found = run(document, *options, pool=pool)
    assert found.exit_code == 0, found.output
    return found.stdout


def refused(document: Any, *options: str, pool: int = 8) -> str:
    """The error, which is one line."""
    error = run(document, *options, pool=pool).exception
    assert isinstance(error, InputError)
    assert "\n" not in str(error)
    return str(error)


def divided(document: Any, *options: str, pool: int = 8) -> dict[str, int | None]:
    """Numbers of I/O nodes by job."""
    record = json.loads(printed(document, "--format", "json", *options, pool=pool))
    assert record["pool"] == pool
    return {job["id"]: job["io_nodes"] for job in record["jobs"]}


def test_the_table_has_a_row_for_each_job_and_one_for_all() -> None:
    assert printed(JOBS, pool=6).splitlines() == [
        "job   nodes  weight  I/O nodes  MiB/s  of own best",
        "----  -----  ------  ---------  -----  -----------",
        "4711  8      1       0          45.0   68.2%",
        "4712  2      1       2          80.0   47.1%",
        "4690  4      1       4          ?",
        "all   14             6 of 6     125.0  57.6%",
    ]


def test_a_job_that_waits_is_shown() -> None:
    jobs = [{"id": name, "nodes": 1, "curve": {"2": 80.0}} for name in "ab"]
    assert [line.split() for line in printed(jobs, pool=3).splitlines()[2:]] == [
        ["a", "1", "1", "2", "80.0", "100.0%"],
        ["b", "1", "1", "waits"],
        ["all,", "1", "waiting", "2", "2", "of", "3", "80.0", "50.0%"],
    ]


def test_csv_has_a_row_for_each_job() -> None:
    rows = list(csv.DictReader(io.StringIO(printed(JOBS, "--format", "csv", pool=6))))
    assert len(rows) == 3
    assert rows[1] == {
        "id": "4712",
        "nodes": "2",
        "weight": "1.0",
        "current": "",
        "fixed": "false",
        "io_nodes": "2",
        "expected_mib_s": "80.0",
    }


def test_json_has_the_sums_and_the_io_nodes_of_each_job() -> None:
    # 170 MiB/s of one job are more than 66 of the other one.
    jobs = [JOBS[0] | {"curve": {"2": 53.0, "4": 66.0}}, JOBS[1]]
    assert json.loads(printed(jobs, "--format", "json", pool=6)) == {
        "pool": 6,
        "io_nodes": 6,
        "expected_mib_s": 223.0,
        "weighted_mib_s": 223.0,
        "of_own_best": pytest.approx((53 / 66 + 1) / 2),
        "jobs": [
            {"id": "4711", "io_nodes": 2, "expected_mib_s": 53.0},
            {"id": "4712", "io_nodes": 4, "expected_mib_s": 170.0},
        ],
    }


def test_a_file_may_be_a_list_or_an_object_with_one(tmp_path: Path) -> None:
    file = tmp_path / "jobs.json"
    file.write_text(json.dumps({"jobs": JOBS, "made": "today"}), encoding="utf-8")
    found = CliRunner().invoke(allocate_command, [str(file), "--pool", "8"])
    assert found.stdout == printed(JOBS)


@pytest.mark.parametrize("curve", [DECISION, PREDICTION], ids=["decision", "prediction"])
def test_answers_of_ours_are_curves(curve: dict[str, Any]) -> None:
    assert divided([JOBS[0] | {"curve": curve}, JOBS[1]]) == divided(JOBS[:2])


@pytest.mark.slow
def test_the_output_of_ioncast_predict_is_a_curve(tmp_path: Path) -> None:
    place = ("--system", "testbed", "--nodes", "8", "--db", str(tmp_path / "bench.sqlite"))
    benchmarks, log = (
        str(TESTBED / "benchmarks.csv"),
        str(TESTBED / "logs/hacc-io-ionodes0.darshan"),
    )
    imported = CliRunner().invoke(cli, ["bench", "import", benchmarks, "--tasks", "16", *place])
    assert imported.exit_code == 0, imported.output
    predicted = CliRunner().invoke(cli, ["predict", log, *place, "--format", "json"])
    prediction = json.loads(predicted.stdout)
    found = divided([{"id": "hacc", "nodes": 8, "curve": prediction}])
    assert found["hacc"] == prediction["best"]["io_nodes"]


def test_options_reach_the_allocation() -> None:
    jobs = [
        {"id": "a", "nodes": 1, "curve": {"0": 10.0, "2": 100.0}, "current": 0},
        {"id": "b", "nodes": 1, "curve": {"0": 10.0, "2": 20.0, "4": 500.0}, "weight": 0.1},
    ]
    assert divided(jobs, pool=4) == {"a": 2, "b": 2}
    assert divided(jobs, "--weight", "none", pool=4) == {"a": 0, "b": 4}
    one = [jobs[0] | {"curve": {"0": 10.0, "2": 11.0}}]
    assert divided(one) == {"a": 2}
    assert divided(one, "--minimum-gain", "0.2") == {"a": 0}
    forwarded = [
        {"id": "a", "nodes": 1, "curve": {"2": 10.0, "4": 20.0}},
        {"id": "b", "nodes": 1, "curve": {"2": 1000.0, "4": 1300.0}},
    ]
    assert divided(forwarded, pool=4) == {"a": 2, "b": 2}
    assert divided(forwarded, pool=6) == {"a": 2, "b": 4}
    assert divided(forwarded, "--objective", "proportional", pool=6) == {"a": 4, "b": 2}


def test_no_jobs_get_nothing() -> None:
    assert printed([]).splitlines()[2].split() == ["all", "0", "0", "of", "8", "0.0"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"{", "standard input: this is not JSON: "),
        (b"[" * 100_000, "standard input: this is not JSON: "),
        (b"\xff", "standard input: this is not JSON: "),
        (b"[" + b"1" * 5000 + b"]", "standard input: this is not JSON: "),
        ({}, "standard input: a list of jobs is missing"),
        (3, "standard input: a list of jobs is missing"),
        ([3], "standard input: job number 1: must be an object"),
    ],
)
def test_a_document_without_a_list_of_jobs_is_rejected(document: Any, said: str) -> None:
    assert refused(document).startswith(said)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": ""}, "standard input: job number 2: id: "),
        ({"id": "a\nb"}, r"'standard input: job a\nb': id: must be one line of visible"),
        ({"nodes": 0}, "standard input: job x: nodes: must be at least 1"),
        ({"nodes": "many"}, "standard input: job x: nodes: must be a whole number"),
        ({"nodes": None}, "standard input: job x: nodes: must be a whole number"),
        ({"curve": None}, "standard input: job x: curve: must be an object"),
        ({"curve": [1, 2]}, "standard input: job x: curve: must be an object"),
        ({"curve": {}}, "standard input: job x: curve: it is empty"),
        ({"nodes": None, "node": 4}, "standard input: job x: node: is not a field of a job"),
        ({"curve": {"4": 0}}, "standard input: job x: curve.4: must be at least 1e-09"),
        ({"curve": {"4": "fast"}}, "standard input: job x: curve.4: must be a number"),
        ({"curve": {"4": float("nan")}}, "standard input: job x: curve.4: "),
        ({"curve": {"-4": 1.0}}, "standard input: job x: curve.-4: is not a number of I/O nodes"),
        ({"curve": {"04": 1.0}}, "standard input: job x: curve.04"),
        (
            {"curve": DECISION | {"expected_mib_s": -1}},
            "standard input: job x: curve.expected_mib_s: must be at least 1e-09",
        ),
        (
            {"curve": PREDICTION | {"curve": [{"io_nodes": 2}]}},
            "standard input: job x: curve.curve.0.bandwidth_mib_s: is missing",
        ),
        ({"weight": 0}, "standard input: job x: weight: must be at least 1e-12"),
        ({"current": -1}, "standard input: job x: current: must be at least 0"),
        ({"fixed": True}, "standard input: job x: the job is fixed, but `current` is missing"),
        ({"decision": {}}, "standard input: job x: decision: is not a field of a job"),
        ({"wieght": 2}, "standard input: job x: wieght: is not a field of a job"),
        ({"id": "4711"}, "job 4711: two jobs have this id"),
    ],
)
def test_a_job_that_cannot_be_is_named(change: dict[str, Any], said: str) -> None:
    jobs = [JOBS[0], {"id": "x", "nodes": 2, "curve": {"2": 80.0}} | change]
    assert refused(jobs).startswith(said)


def test_a_missing_field_is_named() -> None:
    assert refused([{"id": "x", "curve": {"0": 1.0}}]) == "standard input: job x: nodes: is missing"


def test_fixed_jobs_must_fit_into_the_pool() -> None:
    assert refused(JOBS, pool=3).startswith("pool: fixed jobs have 4 I/O nodes, more than the pool")


def test_a_gain_that_is_not_a_number_is_rejected() -> None:
    found = run(JOBS, "--minimum-gain", "nan")
    assert found.exit_code == 2
    assert "'--minimum-gain': 'nan' is not a valid number." in found.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    found = CliRunner().invoke(allocate_command, [str(tmp_path / "no.json"), "--pool", "1"])
    # The command `ioncast` prints this error in one line.
    assert isinstance(found.exception, FileNotFoundError)
    assert found.exception.filename == str(tmp_path / "no.json")
