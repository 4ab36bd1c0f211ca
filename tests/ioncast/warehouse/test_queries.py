"""Named queries: their files, their parameters, and answers that were counted by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import in_duckdb, queries, text_query
from ioncast.warehouse.rows import tables_of
from summario.reading.sources import find_sources
from tests.ioncast.warehouse.test_rows import planted, rows_of
from tests.support.command import run_ioncast

# Values of the parameters that have no usual one.
NEEDED = {"path": "%", "rank": "0", "seconds": "1"}


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
    assert mpiio["with_mpiio"] == pytest.approx(
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


def test_only_parameters_are_replaced() -> None:
    text = "select ':a', \":b\", c::text, :d -- :e"
    assert [each.name for each in text_query(text).parameters] == ["d"]
    assert in_duckdb(text) == "select ':a', \":b\", c::text, $d -- :e"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("programs",), "a store or a log, and a query are needed"),
        (("LOG", "program"), "there is no query 'program'"),
        (("LOG", "programs", "most=3"), "the query programs has no parameter 'most'"),
        (("LOG", "programs", "limit=many"), "limit: 'many' is no integer"),
        (("LOG", "rank"), "the query rank needs rank"),
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
