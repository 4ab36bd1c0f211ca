"""`ioncast interference` on planted logs and stores."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt, Record, write_log
from tests.support.command import run_ioncast

MIB = 1 << 20
START_S = 1_767_225_600


def log_of(
    folder: Path, name: str, seconds: int, *, job: int = 1, at_s: int = START_S, node: str = "n1"
) -> Path:
    """A process writes 64 requests of 1 MiB in as many equal parts of its run time."""
    step = seconds / 64
    requests = [(n * MIB, MIB, n * step, (n + 0.5) * step) for n in range(64)]
    counters = {
        "POSIX_OPENS": 1,
        "POSIX_WRITES": 64,
        "POSIX_BYTES_WRITTEN": 64 * MIB,
        "POSIX_CONSEC_WRITES": 63,
        "POSIX_SEQ_WRITES": 63,
    }
    times = {
        "POSIX_F_WRITE_END_TIMESTAMP": float(seconds),
        "POSIX_F_WRITE_TIME": seconds / 2,
    }
    # With part of a second, Darshan noted the start exactly.
    return write_log(
        folder / f"{name}-{job}-{at_s}.darshan",
        nprocs=1,
        records=[Record("POSIX", "/data/x", 0, counters, times)],
        dxt=[Dxt("DXT_POSIX", "/data/x", 0, node, requests)],
        exe=name,
        jobid=job,
        start=(at_s, 1000),
        end=(at_s + seconds, 1000),
    )


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    return [
        log_of(tmp_path, "solver", 64),
        log_of(tmp_path, "filter", 64, job=2, at_s=START_S + 16, node="n2"),
    ]


@pytest.fixture
def placement(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.csv"
    path.write_text("n1,3\nn2,3\n")
    return path


def test_jobs_on_one_io_node_disturb_each_other(
    logs: list[Path], placement: Path, tmp_path: Path
) -> None:
    alone = log_of(tmp_path, "solver", 40, job=9, at_s=START_S + 9000)
    words = *logs, "--placement", placement, "--alone", alone
    done = run_ioncast("interference", *words, "--format", "json", "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "no log of --alone is of this program" in done.stderr
    found = json.loads(done.stdout)
    [solver, other] = found["runs"]
    assert (solver["alone"]["basis"], solver["slowdown"]) == ("alone", pytest.approx(0.6))
    assert (other["alone"], other["slowdown"]) == (None, None)
    assert found["bottlenecks"] == [{"system": "", "kind": "ION", "number": 3}]
    [blamed] = [each for each in found["disturbances"] if each["log"] == solver["log"]]
    # 48 of 64 s are common.
    assert blamed["by_bytes"] == pytest.approx(48 * MIB, rel=0.01)
    assert blamed["blamed_seconds"] == pytest.approx(24)
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "MiB/s at I/O node 3" in page
    assert "largest server time" in page
    assert solver["alone"]["server_seconds"] == pytest.approx(20)


def test_csv_has_a_line_for_each_application_and_server(logs: list[Path], placement: Path) -> None:
    done = run_ioncast("interference", *logs, "--placement", placement, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    places = sorted((row["program"], row["server_kind"], row["server"]) for row in rows)
    assert places == [
        ("filter", "ION", "3"),
        ("solver", "ION", "3"),
    ]
    assert {float(row["bytes"]) for row in rows} == {64 * MIB}


def test_logs_without_servers_are_one_line(logs: list[Path]) -> None:
    done = run_ioncast("interference", *logs)
    assert done.stdout == (
        "No log tells the servers of its I/O, so nothing can be said about them.\n"
    )


def test_history_is_the_median_of_the_same_variant_in_the_store(
    logs: list[Path], placement: Path, tmp_path: Path
) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for number in range(5):
        at_s = START_S - 9000 * (number + 1)
        log_of(earlier, "solver", 48 + number, job=100 + number, at_s=at_s)
    # Another log of the same job is no history.
    log_of(earlier, "solver", 90, job=1, at_s=START_S - 90000)
    store = tmp_path / "store"
    assert run_ioncast("ingest", earlier, "--system", "here", "--store", store).returncode == 0
    done = run_ioncast("interference", *logs, "--placement", placement, "--store", store)
    assert done.returncode == 0, done.stderr
    assert "28% longer than 50 s (the median of 5 other runs)" in done.stdout
    assert "filter of job 2: its slowdown is unknown" in done.stdout


@pytest.mark.parametrize("io_nodes", ["4", "0"])
def test_a_prediction_stands_in_for_a_run_alone_and_says_so(
    logs: list[Path], placement: Path, io_nodes: str, tmp_path: Path
) -> None:
    # From its first to its last access the run needs 64 s for 64 MiB, the benchmark 16 s.
    measured = tmp_path / "measured.csv"
    command = "mpiexec -n 1 ior -a POSIX -w -F -b 64m -t 1m"
    rows = f"{io_nodes},4,{command}\n" * 5
    measured.write_text("io_nodes,bandwidth_mib_s,command\n" + rows)
    words = "--db", tmp_path / "bench.sqlite", "--system", "here"
    done = run_ioncast("bench", "import", measured, *words)
    assert done.returncode == 0, done.stderr
    done = run_ioncast(
        *("interference", *logs, "--placement", placement, *words),
        *("--io-nodes", io_nodes, "--format", "json"),
    )
    assert done.returncode == 0, done.stderr
    [run, _] = json.loads(done.stdout)["runs"]
    assert run["alone"]["basis"] == "prediction"
    assert run["alone"]["seconds"] == pytest.approx(16, rel=0.1)


def test_a_job_of_a_store_is_beside_those_of_its_time(logs: list[Path], tmp_path: Path) -> None:
    later = log_of(tmp_path, "later", 64, job=3, at_s=START_S + 9000)
    store = tmp_path / "store"
    assert (
        run_ioncast(
            "ingest", *logs, later, "--requests", "--system", "here", "--store", store
        ).returncode
        == 0
    )
    words = "--store", store, "--job", "1"
    done = run_ioncast("interference", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert {run["program"] for run in json.loads(done.stdout)["runs"]} == {"solver", "filter"}
    done = run_ioncast("interference", *words, "--system", "elsewhere")
    assert "one job cannot be disturbed" in done.stderr
    pairs = run_ioncast("interference", "--store", store)
    assert pairs.stdout == "no two applications ran 5 times together and 5 times apart\n"


def test_pairs_of_a_store_have_one_row_each(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(12):
        at_s = START_S + 1000 * number
        is_together = number < 6
        log_of(folder, "solver", 96 + number if is_together else 32 + number, job=number, at_s=at_s)
        log_of(folder, "other", 32, job=50 + number, at_s=at_s + (0 if is_together else 500))
    store = tmp_path / "store"
    assert run_ioncast("ingest", folder, "--system", "here", "--store", store).returncode == 0
    done = run_ioncast("interference", "--store", store, "--format", "json")
    assert done.returncode == 0, done.stderr
    [pair, other] = json.loads(done.stdout)
    names = pair["program"], pair["by_program"], pair["places"]
    assert names == ("solver", "other", "file system")
    # The 6 slowest of 12 jobs by chance: 1 of 924, times two pairs.
    assert pair["p"] == pytest.approx(2 / 924, rel=0.4)
    assert (pair["is_disturbing"], other["is_disturbing"]) == (True, False)
    table = run_ioncast("interference", "--store", store)
    assert "not shown" in table.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no logs"),
        (["--job", "3"], "a job is in a store"),
        (["a", "b", "--db", "x"], "a prediction is of a system and a number of I/O nodes"),
        (["--store", "/", "--placement", "x"], "a placement is of logs"),
        (["--store", "/"], "this folder is not a store"),
    ],
)
def test_impossible_questions_are_one_line(words: list[str], said: str) -> None:
    done = run_ioncast("interference", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_bad_placement_and_one_log_are_errors(logs: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("n1;3\n")
    done = run_ioncast("interference", *logs, "--placement", path)
    assert "each line must be NODE,NUMBER" in done.stderr
    done = run_ioncast("interference", logs[0])
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "one job cannot be disturbed" in done.stderr
