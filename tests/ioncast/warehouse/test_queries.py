"""Named queries: their files, their parameters, and answers that were counted by hand."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from experiments.applications.darshan_writer import Record, write_log
from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import Parameter, in_duckdb, queries, query_of, text_query
from ioncast.warehouse.rows import tables_of
from ioncast_base.errors import InputError
from summario.reading.sources import find_sources
from tests.ioncast.warehouse.test_rows import planted, rows_of
from tests.support.command import run_ioncast

# Values of the parameters that have no usual one.
NEEDED = {
    "path": "%",
    "rank": "0",
    "seconds": "1",
    "server": "0",
    "active_w": "13",
    "inactive_w": "9",
    "program": "x",
    "processes": "1",
    "log": "0",
    "servers": ",0,",
    "system": "here",
    "start_us": "1700000000000000",
    "from_us": "1700000000000000",
    "to_us": "1700000600000000",
    "length_us": "60000000",
}
# Seconds since 1970 of the first second of a month in UTC, as `date -u -d 2026-01-01 +%s` says.
JANUARY, MARCH = 1767225600, 1772323200


def asked(*words: str | Path) -> list[dict[str, Any]]:
    done = run_ioncast("sql", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    answered: list[dict[str, Any]] = json.loads(done.stdout)
    return answered


@pytest.fixture(scope="module")
def of_logs(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> list[dict[str, Any]]:
    """The tables of no log, of one, and of many."""
    log = planted(tmp_path_factory.mktemp("planted"))
    return [
        tables_of(find_sources(map(str, logs)))
        for logs in ((), (log,), (shared_data / "darshan-logs",))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("query", queries(), ids=lambda query: query.name)
def test_every_query_is_answered_for_no_log_one_log_and_many(
    query: Any, of_logs: list[dict[str, Any]]
) -> None:
    values = query.values(
        {each.name: NEEDED[each.name] for each in query.parameters if each.usual is None}
    )
    names = set()
    for tables in of_logs:
        with asking(tables) as ask:
            names.add(tuple(ask(query, values).column_names))
    assert len(names) == 1


def test_answers_are_the_numbers_of_the_planted_log(tmp_path: Path) -> None:
    log = planted(tmp_path)
    [program] = asked(log, "programs")
    assert (program["program"], program["jobs"], program["io_seconds"]) == ("solver", 1, 5.0)
    sizes = asked(log, "access-sizes")
    assert [(row["bin"], row["requests"], row["small"]) for row in sizes] == [
        ("1K_10K", 300, 300),
        ("100K_1M", 5, 0),
    ]
    [rank] = asked(log, "rank", "rank=1")
    assert (rank["path"], rank["requests"], rank["bytes"]) == ("/data/1", 5, 5 << 20)
    [file] = asked(log, "file", "path=%/0")
    assert (file["api"], file["written_bytes"]) == ("POSIX", 300 * 4096)
    # Of rank 1 the request from 1.2 to 1.3 s, of rank 0 the one that begins with it.
    under_way = asked(log, "time", "seconds=1.2005")
    assert sorted((row["rank"], row["path"]) for row in under_way) == [
        (0, "/data/0"),
        (1, "/data/1"),
    ]
    assert asked(log, "users", "limit=0") == []


@pytest.mark.slow
def test_counts_are_those_of_all_shared_logs(shared_data: Path) -> None:
    logs = shared_data / "darshan-logs"
    jobs = rows_of(logs)["jobs"]
    parallel = [row for row in jobs if row["processes"] > 1]
    [mpiio] = asked(logs, "mpiio")
    assert mpiio["jobs"] == len(parallel)
    assert mpiio["mpiio_share"] == pytest.approx(
        sum(row["uses_mpiio"] for row in parallel) / len(parallel)
    )
    [files] = asked(logs, "files-per-job")
    assert (files["jobs"], files["most"]) == (len(jobs), max(row["files"] for row in jobs))
    assert sum(row["jobs"] for row in asked(logs, "programs", "limit=1000")) == len(jobs)


def test_a_text_has_parameters_and_can_be_written_as_csv(tmp_path: Path) -> None:
    log = planted(tmp_path)
    text = "select path, writes, ':no' as colon from files where path = :path -- :neither"
    done = run_ioncast("sql", log, "--text", text, "path=/data/1", "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert list(csv.DictReader(io.StringIO(done.stdout))) == [
        {"path": "/data/1", "writes": "5", "colon": ":no"}
    ]


def test_a_table_aligns_numbers_below_an_unknown_one(tmp_path: Path) -> None:
    text = (
        "select nullif(reads, 0) as reads, writes from files union all select 1, 2 order by 2 desc"
    )
    done = run_ioncast("sql", planted(tmp_path), "--text", text)
    assert done.stdout.splitlines()[-1].split() == ["1", "2"]
    assert done.stdout.splitlines()[-1] == f"{1:>5}  {2:>6}"


def test_only_parameters_are_replaced() -> None:
    text = "select ':a', \":b\", c::text, :d -- :e"
    assert [each.name for each in text_query(text).parameters] == ["d"]
    assert in_duckdb(text) == "select ':a', \":b\", c::text, $d -- :e"


@pytest.mark.parametrize(
    ("kind", "text", "low", "high"),
    [
        ("month", "2026-01-2026-03", "2026-01", "2026-03"),
        ("month", "2026-01", "2026-01", "2026-01"),
        ("month", "-", None, None),
        ("integer", "3-17", 3, 17),
        ("integer", "-1", -1, -1),
        ("integer", "-3--1", -3, -1),
        ("number", "0.5-2", 0.5, 2.0),
    ],
)
def test_a_range_is_two_values_one_or_neither(kind: str, text: str, low: Any, high: Any) -> None:
    parameter = Parameter("of", kind, is_range=True, usual="-", meaning="")
    assert parameter.values(text) == {"of_from": low, "of_to": high}


def test_a_range_that_is_needed_cannot_be_open() -> None:
    with pytest.raises(InputError):
        Parameter("of", "month", is_range=True, usual=None, meaning="").values("-")


@pytest.mark.parametrize("query", queries(), ids=lambda query: query.name)
def test_all_engines_order_rows_alike(query: Any) -> None:
    text = re.sub(
        r"within group \(order by \w+\)|rows between.*?\)", ")", query.text, flags=re.DOTALL
    )
    for keys in re.findall(r"order by (.*?)(?:\)|\nlimit|$)", text, re.DOTALL):
        for key in keys.split(","):
            assert key.strip().endswith("nulls last"), key


@pytest.fixture(scope="module")
def of_two_systems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    """Three jobs of two systems and two months, each with a file of its own size, and no log."""
    folder = tmp_path_factory.mktemp("systems")
    parts = []
    for number, (system, start) in enumerate((("a", JANUARY), ("a", MARCH - 1), ("b", MARCH))):
        moved = 1000 * (number + 1)
        counters = {"POSIX_WRITES": 1, "POSIX_BYTES_WRITTEN": moved, "POSIX_SIZE_WRITE_1K_10K": 1}
        counters["POSIX_MAX_BYTE_WRITTEN"] = moved - 1
        log = write_log(
            folder / f"{number}.darshan",
            nprocs=2,
            uid=number,
            start=(start, 0),
            end=(start + 10, 0),
            records=[Record("POSIX", f"/data/{number}", 0, counters, {"POSIX_F_WRITE_TIME": 1.0})],
        )
        parts.append(tables_of(find_sources([str(log)]), system=system))
    bad = folder / "bad.darshan"
    bad.write_bytes(b"no log")
    parts.append(tables_of(find_sources([str(bad)]), system="a"))
    return {name: pa.concat_tables([part[name] for part in parts]) for name in parts[0]}


def answers(tables: dict[str, pa.Table], name: str, **given: str) -> list[dict[str, Any]]:
    query = query_of(name)
    with asking(tables) as ask:
        rows: list[dict[str, Any]] = ask(query, query.values(given)).to_pylist()
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "jobs"),
    [
        ({}, {0, 1, 2}),
        ({"system": "a"}, {0, 1}),
        ({"month": "2026-02"}, {1}),
        ({"month": "2026-02-2026-03"}, {1, 2}),
        ({"month": "2026-01-2026-02", "system": "b"}, set()),
    ],
)
def test_queries_count_the_jobs_of_a_system_and_of_months(
    of_two_systems: dict[str, pa.Table], given: dict[str, str], jobs: set[int]
) -> None:
    moved = sum(1000 * (job + 1) for job in jobs)
    for name in ("users", "programs", "by-month"):
        assert sum(row["jobs"] for row in answers(of_two_systems, name, **given)) == len(jobs), name
    assert {row["user_id"] for row in answers(of_two_systems, "users", **given)} == jobs
    for name in ("mpiio", "io-share", "files-per-job"):
        assert answers(of_two_systems, name, **given)[0]["jobs"] == len(jobs), name
    assert sum(row["files"] for row in answers(of_two_systems, "sizes", **given)) == len(jobs)
    for name in ("reads-writes", "by-month"):
        rows = answers(of_two_systems, name, **given)
        assert sum(row["written_bytes"] for row in rows) == moved, name
    bins = answers(of_two_systems, "access-sizes", **given)
    assert sum(row["requests"] for row in bins) == len(jobs)
    causes = answers(of_two_systems, "causes", **given)
    assert max((row["jobs"] for row in causes), default=0) == len(jobs)


def test_users_are_ordered_by_an_amount_and_have_their_share(
    of_two_systems: dict[str, pa.Table],
) -> None:
    rows = answers(of_two_systems, "users", by="bytes", limit="2")
    assert [(row["user_id"], row["share"]) for row in rows] == [(2, 3 / 6), (1, 2 / 6)]
    [program] = answers(of_two_systems, "programs")
    # Each job is a second in I/O, of 10 seconds of 2 processes.
    assert (program["users"], program["io_share"]) == (3, 3 / 60)


def test_a_log_that_cannot_be_read_has_a_system_and_no_month(
    of_two_systems: dict[str, pa.Table],
) -> None:
    assert [row["logs"] for row in answers(of_two_systems, "unusable")] == [1]
    assert answers(of_two_systems, "unusable", system="b") == []
    assert answers(of_two_systems, "unusable", month="2026-01-2026-03") == []


def test_a_server_has_the_bytes_of_each_job_and_file(shared_data: Path) -> None:
    log = shared_data / "darshan-logs/ior_hdf5_lustre_dxt/ior_hdf5_example.darshan"
    rows = rows_of(log)
    [server] = {row["server"] for row in rows["file_servers"]}
    found = asked(log, "server", f"server={server}")
    assert {(row["job_id"], row["file_path"]) for row in found} == {
        (rows["jobs"][0]["job_id"], "/global/cscratch1/sd/ssnyder/test123.h5")
    }
    assert {row["api"]: row["bytes"] for row in found} == {
        row["api"]: row["bytes"] for row in rows["file_servers"]
    }
    assert asked(log, "server", f"server={server + 1}") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("programs",), "a store or a log, and a query are needed"),
        (("LOG", "program"), "there is no query 'program'"),
        (("LOG", "programs", "most=3"), "the query programs has no parameter 'most'"),
        (("LOG", "programs", "limit=many"), "limit: 'many' is not a whole number"),
        (("LOG", "rank"), "the query rank needs rank"),
        (("LOG", "users", "by=age"), "by: 'age' is not one of io, metadata, bytes and jobs"),
        (("LOG", "users", "month=2026"), "month: '2026' is not a month such as 2026-01, or two"),
        (("LOG", "users", "month=2026-03-2026-01"), "month: 2026-03-2026-01 ends before it beg"),
        (("LOG", "--text", "select 1 from nothing"), "the query fails: "),
        (("LOG", "--text", "select * from read_csv('/etc/passwd')"), "the query fails: "),
        (("LOG", "--text", "copy jobs to '/tmp/jobs.csv'"), "a query is one select"),
        (("LOG", "--text", "select :a"), "the query text needs a"),
    ],
)
def test_an_error_is_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    log = str(planted(tmp_path))
    done = run_ioncast("sql", *(log if word == "LOG" else word for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_damaged_log_is_told_and_the_others_are_asked(tmp_path: Path) -> None:
    (tmp_path / "bad.darshan").write_bytes(b"no log")
    planted(tmp_path)
    done = run_ioncast("sql", tmp_path, "unusable")
    assert done.returncode == 2
    assert "bad.darshan" in done.stderr
    assert done.stdout.split("\n")[2].endswith(" 1")


def test_a_folder_of_a_site_adds_queries_and_replaces_some(tmp_path: Path) -> None:
    log = planted(tmp_path)
    folder = tmp_path / "queries"
    folder.mkdir()
    text = "-- title: Jobs\n-- least: integer = 1; processes\n"
    text += "select count(*) as jobs from jobs where processes >= :least"
    for name in ("ours", "users"):
        (folder / f"{name}.sql").write_text(text)
    assert asked(log, "ours", "least=3", "--queries", folder) == [{"jobs": 0}]
    done = run_ioncast("sql", log, "users", environment={"IONCAST_QUERIES": str(folder)})
    assert done.stdout.split() == ["jobs", "----", "1"]
    assert "ours" in run_ioncast("sql", "--list", "--queries", folder).stdout


@pytest.mark.parametrize(
    "text",
    [
        "select 1",
        "-- title: A\n-- limit = 20\nselect 1",
        "-- title:\nselect 1",
        "-- title: A\n-- part: nothing\nselect 1",
    ],
)
def test_a_query_file_without_a_description_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "mine.sql").write_text(text)
    done = run_ioncast("sql", "--list", "--queries", tmp_path)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "mine.sql" in done.stderr


def test_the_error_of_an_unknown_query_names_similar_ones(tmp_path: Path) -> None:
    done = run_ioncast("sql", planted(tmp_path), "user")
    assert "there are users" in done.stderr
    assert "not a folder" in run_ioncast("sql", "--list", "--queries", "/nowhere").stderr
