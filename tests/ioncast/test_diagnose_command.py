"""`ioncast diagnose` on planted stores."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ioncast
from experiments.applications.darshan_writer import Record, write_log
from ioncast.asked_data import AskedData
from ioncast.diagnose_command import _evidence
from ioncast.diagnosis.diagnosing import History
from ioncast.warehouse.engine import EngineLimits, TooLargeQueryError, asking
from ioncast.warehouse.queries import query_of, text_query
from ioncast.warehouse.schema import SCHEMAS
from tests.support.command import run_ioncast

MIB = 1 << 20
START_S = 1_767_225_600
SAMPLES = SCHEMAS["server_samples"]


def log_of(folder: Path, job: int, write_seconds: float, **changes: Any) -> Path:
    """A process writes 100 MiB in so many seconds, and metadata take a second more."""
    counters = {"POSIX_OPENS": 1, "POSIX_WRITES": 100, "POSIX_BYTES_WRITTEN": 100 * MIB}
    counters |= {"POSIX_CONSEC_WRITES": 99, "POSIX_SEQ_WRITES": 99}
    times = {
        "POSIX_F_OPEN_START_TIMESTAMP": 1.0,
        "POSIX_F_OPEN_END_TIMESTAMP": 2.0,
        "POSIX_F_WRITE_START_TIMESTAMP": 2.0,
        "POSIX_F_WRITE_END_TIMESTAMP": 2.0 + write_seconds,
        "POSIX_F_WRITE_TIME": write_seconds,
        "POSIX_F_META_TIME": 1.0,
    }
    at_s = START_S + 86_400 * job
    return write_log(
        folder / f"{job}.darshan",
        nprocs=1,
        records=[Record("POSIX", "/data/x", 0, counters, times)],
        exe=changes.get("program", "solver"),
        jobid=job,
        start=(at_s, 1000),
        end=(at_s + 1000, 1000),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine jobs that write for about 9 s, one for 89 s, and another program."""
    folder = tmp_path_factory.mktemp("diagnose")
    logs = folder / "logs"
    logs.mkdir()
    for job in range(1, 10):
        log_of(logs, job, 9 + job / 100)
    log_of(logs, 10, 89)
    log_of(logs, 11, 9, program="other")
    done = run_ioncast("ingest", logs, "--system", "here", "--store", folder / "store")
    assert done.returncode == 0, done.stderr
    return folder / "store"


def diagnosed(*words: str | Path) -> list[dict[str, Any]]:
    done = run_ioncast("diagnose", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_a_slow_job_of_the_store(store: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    [found] = diagnosed("10", "--store", store, "--html", page)
    assert (found["verdict"], found["reason"]) == ("unknown", "no samples of servers")
    # It takes 90 s, and others 10 s.
    assert found["slowdown"] == pytest.approx(9, rel=0.01)
    assert found["lost_seconds"] == pytest.approx(80, rel=0.01)
    assert found["class"] == "data"
    assert found["usual"]["jobs"] == 9
    [part] = found["parts"]
    assert (part["cause"], part["share"]) == ("unknown", 1)
    text = page.read_text("utf-8")
    assert "The cause is unknown" in text
    assert "Slowdown ratio of each run" in text


def test_python_diagnoses_the_same(store: Path, tmp_path: Path) -> None:
    result = ioncast.diagnose(10, store=store)
    [row] = result.frame.to_dict("records")
    # It takes 90 s, and others 10 s.
    assert row["slowdown"] == pytest.approx(9, rel=0.01)
    assert row["lost_seconds"] == pytest.approx(80, rel=0.01)
    assert "Slowdown ratio of each run" in result.plot().svg
    assert ioncast.diagnose(store=store).frame["job_id"].tolist() == [10]
    normal = ioncast.diagnose(log_of(tmp_path, 20, 9.05), store=store)
    assert normal.frame["verdict"].tolist() == ["normal"]
    for job, place in ((99, store), (10, tmp_path)):
        with pytest.raises(ioncast.IoncastError):
            ioncast.diagnose(job, store=place)


def test_a_log_outside_of_the_store(store: Path, tmp_path: Path) -> None:
    done = run_ioncast("diagnose", log_of(tmp_path, 20, 9.05), "--store", store)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "solver, job 20, 1 process: The bandwidth is normal."
    assert "the median of 10 other jobs from 2026-01-02 to 2026-01-11" in lines[1]


def test_a_log_that_the_store_has_counts_once(store: Path) -> None:
    log = store.parent / "logs" / "10.darshan"
    [found] = diagnosed(log, "--store", store)
    assert found["usual"]["jobs"] == 9


def test_a_short_history_is_no_comparison(store: Path) -> None:
    done = run_ioncast("diagnose", "11", "--store", store)
    assert "It is unknown whether the run is slow (no comparison: 0 other jobs" in done.stdout
    assert done.returncode == 0


def test_a_prediction_stands_in_for_a_short_history(store: Path, tmp_path: Path) -> None:
    """Benchmarks get 100 MiB/s with the same I/O, and the run got 10."""
    measured, database = tmp_path / "measured.csv", tmp_path / "bench.sqlite"
    rows = "0,100,mpiexec -n 1 ior -a POSIX -w -F -b 100m -t 1m\n" * 5
    measured.write_text("io_nodes,bandwidth_mib_s,command\n" + rows)
    done = run_ioncast("bench", "import", measured, "--db", database, "--system", "here")
    assert done.returncode == 0, done.stderr
    [found] = diagnosed("11", "--store", store, "--db", database, "--io-nodes", "0")
    assert found["is_slow"]
    assert found["usual"]["basis"] == "prediction"
    assert found["usual"]["mib_s"] == pytest.approx(100, rel=0.15)


def test_all_slow_runs_of_a_store(store: Path) -> None:
    done = run_ioncast("diagnose", "--store", store)
    assert done.stdout.startswith("1 of 10 runs with a usual bandwidth are slow.\n")
    done = run_ioncast("diagnose", "--store", store, "--format", "csv")
    [row] = csv.DictReader(io.StringIO(done.stdout))
    assert (row["job_id"], row["verdict"]) == ("10", "unknown")
    assert float(row["unknown_seconds"]) == pytest.approx(80, rel=0.01)


def test_no_server_is_slow_where_no_server_is_known(store: Path) -> None:
    done = run_ioncast("diagnose", "--servers", "--store", store)
    assert done.stdout == "No server is surely slower than others.\n"
    assert (
        json.loads(
            run_ioncast("diagnose", "--servers", "--store", store, "--format", "json").stdout
        )
        == []
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--html", "x.html"), "a page and a prediction are of a run"),
        (("10", "--servers"), "slow servers are those of a store"),
        (("10", "--db", "x.sqlite"), "a prediction is of a number of I/O nodes"),
        (("--servers", "--placement", "x.csv"), "a placement is for the causes of slow runs"),
        (("999",), "the store has no job 999"),
        (("missing.darshan",), "missing.darshan"),
    ],
)
def test_wrong_words_are_one_line(store: Path, words: tuple[str, ...], message: str) -> None:
    done = run_ioncast("diagnose", *words, "--store", store)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_folder_without_a_store_is_one_line(tmp_path: Path) -> None:
    done = run_ioncast("diagnose", "1", "--store", tmp_path)
    assert done.returncode == 2
    assert "this folder is not a store" in done.stderr


def test_samples_of_servers_are_evidence_about_runs_of_the_store(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    for job in range(1, 8):
        log_of(logs, job, 9 if job < 7 else 89)
    assert run_ioncast("ingest", logs, "--system", "here", "--store", store).returncode == 0
    [before] = diagnosed("7", "--store", store)
    assert before["servers"] == []
    at_s = START_S + 7 * 86_400
    lines = [f"OST,3,{at_s + each},{at_s + each + 5},1000" for each in range(0, 1000, 5)]
    samples = tmp_path / "samples.csv"
    samples.write_text("\n".join(("kind,server,time_start,time_end,written_bytes", *lines)))
    done = run_ioncast("servers", "import", samples, "--system", "here", "--store", store)
    assert done.returncode == 0, done.stderr
    [after] = diagnosed("7", "--store", store)
    # The log has no layout of the file, so no sample is of its server.
    [evidence] = after["servers"]
    assert (evidence["answer"], evidence["reason"]) == ("unknown", "servers not known")
    assert after["verdict"] == "unknown"


def test_the_interval_of_other_jobs_is_without_the_own_run(store: Path) -> None:
    [found] = diagnosed("10", "--store", store)
    # 100 MiB in 10.01 to 10.09 s with metadata, where this run took 90 s.
    assert found["usual"]["jobs"] == 9
    assert 100 / 10.1 < found["usual"]["low_mib_s"] < found["usual"]["high_mib_s"] < 100 / 10


def test_a_number_of_no_possible_job_is_one_line(store: Path) -> None:
    done = run_ioncast("diagnose", "9" * 30, "--store", store)
    assert done.returncode == 2
    assert "the store has no job 9999" in done.stderr


def test_without_slow_runs_a_csv_has_its_header(tmp_path: Path) -> None:
    logs, store = tmp_path / "logs", tmp_path / "store"
    logs.mkdir()
    log_of(logs, 1, 9)
    assert run_ioncast("ingest", logs, "--system", "here", "--store", store).returncode == 0
    lines = run_ioncast("diagnose", "--store", store, "--format", "csv").stdout.splitlines()
    assert [line.partition(",")[0] for line in lines] == ["program"]
    text = run_ioncast("diagnose", "--store", store).stdout
    assert "1 run cannot be compared: fewer than 5 other jobs." in text


def test_a_system_that_the_store_lacks_is_one_line(store: Path) -> None:
    done = run_ioncast("diagnose", "--store", store, "--system", "nope")
    assert done.returncode == 2
    assert "it has no logs of the system 'nope'" in done.stderr


@pytest.mark.slow
def test_the_samples_of_other_times_are_not_read(store: Path, tmp_path: Path) -> None:
    """The memory suffices for the samples of a few hours, and there are those of a month."""
    copied = tmp_path / "store"
    shutil.copytree(store, copied)
    bundle = copied / f"bundle={'f' * 64}"
    bundle.mkdir()
    for name, schema in SCHEMAS.items():
        pq.write_table(schema.empty_table(), bundle / f"{name}.parquet")
    number = 2_000_000
    starts = np.arange(number, dtype=np.int64) * 1_000_000 + START_S * 1_000_000
    columns = {
        "system": pa.repeat("here", number),
        "kind": pa.repeat("OST", number),
        "server": pa.repeat("3", number),
        "time_start_us": starts,
        "time_end_us": starts + 1_000_000,
        "written_bytes": pa.repeat(1, number),
    }
    table = pa.table({name: columns.get(name, pa.nulls(number)) for name in SAMPLES.names})
    pq.write_table(table.cast(SAMPLES), bundle / "server_samples.parquet", row_group_size=100_000)
    limits = EngineLimits(seconds=600, memory_mib=100, threads=1, rows=100_000)
    with asking(copied, limits=limits) as ask:
        query = query_of("variant-runs")
        rows = ask(query, query.values({}))
        [slow] = History(rows).slow_logs
        [found] = _evidence(AskedData(ask), rows, {})(slow)
        with pytest.raises(TooLargeQueryError):
            ask(text_query("select count(*) from server_samples"), {})
    assert found.reason == "servers not known"
