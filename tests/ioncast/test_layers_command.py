"""`ioncast layers`: genuine traces of MPI-IO, and its errors."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.ioncast.warehouse.test_rows import planted
from tests.support.command import run_ioncast


def asked(*words: str | Path) -> list[dict[str, Any]]:
    done = run_ioncast("layers", *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    # Darshan's trace has no times of servers.
    assert done.stderr.count("\n") == 1
    assert "no times of servers" in done.stderr
    answered: list[dict[str, Any]] = json.loads(done.stdout)
    return answered


@pytest.fixture
def logs(shared_data: Path) -> Path:
    return shared_data / "runs" / "logs"


def test_aggregated_calls_differ_from_calls_that_ran_as_independent_ones(logs: Path) -> None:
    """Sixteen ranks call; `cb_nodes` was 4 in one run, the other one wrote 1:1."""
    aggregated = asked(logs / "mpiio-coll-contig-cb4-dxt.darshan")[-1]
    alone = asked(logs / "mpiio-coll-contig-dxt.darshan")[-1]
    assert [run["processes_per_aggregator"] for run in (aggregated, alone)] == [4, 1]
    assert aggregated["exclusive_mpi_share"] > alone["exclusive_mpi_share"]
    assert alone["fragments"] == alone["calls"] == 256
    assert aggregated["joined_bytes_share"] == alone["joined_bytes_share"] == 1


def test_options_and_words_select_and_unknown_servers_are_minus_one(logs: Path) -> None:
    log = logs / "mpiio-coll-contig-cb4-dxt.darshan"
    rows = asked(log, "latency-max", "process=0-1", "call=2", "--view", "server")
    assert {row["server"] for row in rows} == {-1}
    assert {row["process"] for row in rows} <= {0, 1}
    assert {row["call_number"] for row in rows} == {2}
    [row] = asked(log, "throughput", "call=0")
    assert list(row) == ["server", "call_number", "bytes", "mb_s"]
    assert asked(log, "latency-list", "--time", "1000-2000") == []


def test_csv_has_a_line_for_each_call_and_sum(logs: Path) -> None:
    done = run_ioncast(
        *("layers", logs / "mpiio-indep-contig-dxt.darshan", "latency-exclusive"),
        *("process=3", "call=0-1", "--format", "csv"),
    )
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    kinds = [(row["sum_of"], row["call_number"]) for row in rows]
    assert sorted(kinds) == [("call", "0"), ("call", "1"), ("process", ""), ("total", "")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("LOG",), "the trace has no MPI-IO call"),
        (("PLAIN",), "there is no trace"),
        (("LOG", "latency"), "there is no query 'latency' about layers"),
        (("LOG", "users"), "there is no query 'users' about layers"),
        (("LOG", "critical", "--view", "server"), "the query critical has no parameter 'view'"),
        (("LOG", "energy"), "the query energy needs active_w"),
        (("LOG", "calls", "kind=MDT"), "kind: 'MDT' is not one of OST and ION"),
        (("LOG", "calls", "call=x"), "call: 'x' is not a whole number, or two"),
        (("/nowhere.darshan",), "/nowhere.darshan"),
    ],
)
def test_an_error_is_one_line(
    tmp_path: Path, shared_data: Path, words: tuple[str, ...], said: str
) -> None:
    plain = shared_data / "runs" / "logs" / "hacc-posix-fpp-8x100k.darshan"
    names = {"LOG": str(planted(tmp_path)), "PLAIN": str(plain)}
    done = run_ioncast("layers", *(names.get(word, word) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
