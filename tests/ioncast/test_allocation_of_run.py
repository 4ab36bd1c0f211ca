"""`ioncast check --ran-with N --system NAME` compares the I/O nodes of a run with the decision.

In RR-9366's case study III, which the testbed repeats, HACC-IO is faster with more I/O nodes.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import run_ioncast

TESTBED = Path(__file__).parents[2] / "experiments/data/testbed"
HACC = TESTBED / "logs/hacc-io-ionodes0.darshan"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("testbed") / "testbed.db"
    words = ("--system", "testbed", "--tasks", "16", "--nodes", "8", "--db", path)
    assert run_ioncast("bench", "import", TESTBED / "benchmarks.csv", *words).returncode == 0
    return path


def checked(database: Path, io_nodes: int) -> dict[str, Any]:
    """The record of HACC-IO, as a job that had some I/O nodes."""
    words = ("--ran-with", str(io_nodes), "--system", "testbed", "--nodes", "8", "--db", database)
    answer = run_ioncast("check", HACC, *words, "--format", "json")
    assert answer.returncode == 0, answer.stderr
    record: dict[str, Any]
    [record] = json.loads(answer.stdout)
    return record


def decision(database: Path, ran_with: int) -> int:
    words = ("--system", "testbed", "--nodes", "8", "--ran-with", str(ran_with), "--db", database)
    answer = run_ioncast("predict", HACC, *words, "--format", "json")
    decided: int = json.loads(answer.stdout)["decision"]["io_nodes"]
    return decided


@pytest.mark.slow
def test_an_allocation_unlike_the_decision_is_found(database: Path) -> None:
    decided = decision(database, ran_with=0)
    found = {each["code"]: each for each in checked(database, 0)["findings"]}["I01"]
    numbers = found["numbers"]
    assert (numbers["io_nodes"], numbers["decided"]) == (0, decided)
    assert numbers["decided_mib_s"] > numbers["expected_mib_s"]


def test_the_allocation_of_the_decision_is_not_a_finding(database: Path) -> None:
    decided = decision(database, ran_with=8)
    record = checked(database, decided)
    assert "I01" not in {each["code"] for each in record["findings"]}


def test_an_allocation_without_a_known_bandwidth_is_a_warning(database: Path) -> None:
    warnings = checked(database, 5000)["warnings"]
    assert warnings == ["I01 is left out: no bandwidth is known with 5,000 I/O nodes"]


def test_an_unknown_system_is_an_error(database: Path) -> None:
    words = ("--ran-with", "4", "--system", "other", "--db", database)
    answer = run_ioncast("check", HACC, *words)
    assert answer.returncode == 2
    assert "nothing was measured on 'other'; systems with measurements: testbed" in answer.stderr
