"""A run is diagnosed by the runs of its program alone."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from ioncast.diagnosis.stored_runs import diagnosis_of_logs
from ioncast.warehouse.engine import Ask, asking
from tests.support.centre import VERDICTS, harrington

RUNS = harrington().runs
NAMELESS = "f" * 64


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """The 79 runs of Harrington's, and one without a program."""
    tables = harrington().tables()
    rows = [{"log": NAMELESS, "system": "here", "processes": 1, "read_bytes": 1}]
    nameless = pa.Table.from_pylist(rows, schema=tables["jobs"].schema)
    tables["jobs"] = pa.concat_tables([tables["jobs"], nameless])
    with asking(tables) as asked:
        yield asked


@pytest.mark.parametrize("planted", ["", "too few OSTs", "too many OSTs"])
def test_the_planted_cause_is_named(ask: Ask, planted: str) -> None:
    run = next(run for run in RUNS if run.planted == planted)
    found = diagnosis_of_logs(ask, [run.log])
    assert found is not None
    assert (found.log, found.judgement.verdict) == (run.log, VERDICTS[planted])
    assert found.facts.weather is None


def test_the_log_that_lost_most_counts(ask: Ask) -> None:
    usual, slow = (
        next(run for run in RUNS if run.planted == planted).log for planted in ("", "too few OSTs")
    )
    for logs in ([usual, slow], [slow, usual], [NAMELESS[:-1] + "0", usual, slow]):
        found = diagnosis_of_logs(ask, logs)
        assert found is not None
        assert found.log == slow


def test_a_run_without_a_program_is_no_comparison(ask: Ask) -> None:
    found = diagnosis_of_logs(ask, [NAMELESS])
    assert found is not None
    assert found.judgement.verdict == "unknown"
    assert "no program" in str(found.judgement.reason)


def test_a_log_that_the_store_lacks_has_no_diagnosis(ask: Ask) -> None:
    assert diagnosis_of_logs(ask, ["e" * 64]) is None
    assert diagnosis_of_logs(ask, []) is None
