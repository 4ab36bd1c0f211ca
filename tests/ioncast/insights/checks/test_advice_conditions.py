"""Advice that a run cannot follow is not given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ioncast.insights.checks.advice_conditions import CONDITIONS, fits
from ioncast.insights.checks.record import to_record
from ioncast.insights.checks.registry import all_advice
from ioncast.insights.checks.values import Advice
from tests.support.checking import check_log, facts_in
from tests.support.records import CounterRecord, mpiio_record, posix_record, write_log

Records = Sequence[CounterRecord]
READS = {"READS": 4, "BYTES_READ": 400}
WRITES = {"WRITES": 4, "BYTES_WRITTEN": 400}
SHARED = posix_record("/f", OPENS=4, **WRITES)
OWN = [posix_record(f"/f{rank}", rank, **WRITES) for rank in (0, 1)]


def test_all_conditions_of_advice_exist() -> None:
    assert {each for advice in all_advice().values() for each in advice.needs} == set(CONDITIONS)


@pytest.mark.parametrize(
    ("condition", "records", "other_records"),
    [
        ("reads", [posix_record("/f", **READS)], [SHARED]),
        ("writes", [SHARED], [posix_record("/f", **READS)]),
        ("no MPI-IO", [SHARED], [SHARED, mpiio_record("/f", COLL_WRITES=4)]),
        ("shared files", [SHARED], OWN),
        (
            "files that all read",
            [posix_record("/f", **READS), posix_record("/g", **READS)],
            [posix_record("/f", **READS), SHARED],
        ),
        ("files of one process", OWN, [OWN[0], SHARED]),
    ],
)
def test_a_run_fulfils_a_condition(
    condition: str, records: Records, other_records: Records, tmp_path: Path
) -> None:
    advice = Advice("key", "do it", needs=(condition,))
    log, other = (
        facts_in(write_log(tmp_path / f"{n}.darshan", each, nprocs=4))
        for n, each in enumerate((records, other_records))
    )
    assert fits(advice, log, ("posix",))
    assert not fits(advice, other, ("posix",))


def test_a_run_of_one_process_has_no_files_to_share(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.darshan", [OWN[0], posix_record("/g", 0, **WRITES)], nprocs=1)
    advice = Advice("key", "do it", needs=("files of one process",))
    assert not fits(advice, facts_in(log), ("posix",))


def keys(log: Path, code: str) -> list[str]:
    record: dict[str, Any] = to_record("log", check_log(log), facts_in(log))
    [found] = [each for each in record["findings"] if each["code"] == code]
    return [advice["key"] for advice in found["advice"]]


def test_a_program_that_only_writes_gets_no_advice_about_reads(tmp_path: Path) -> None:
    """It writes one file for each process, so there is nothing to broadcast."""
    records = [
        posix_record(f"/f{rank}", rank, OPENS=1, **WRITES, F_META_TIME=40) for rank in range(4)
    ]
    log = write_log(tmp_path / "a.darshan", records, nprocs=4)
    assert keys(log, "P17") == ["fewer_opens", "fewer_files"]


def test_one_file_that_all_read_needs_no_fewer_files(tmp_path: Path) -> None:
    record = posix_record("/f", OPENS=4, **READS, F_META_TIME=160)
    assert keys(write_log(tmp_path / "a.darshan", [record], nprocs=4), "P17") == ["fewer_opens"]


def test_small_files_that_all_read_are_read_by_one(tmp_path: Path) -> None:
    records = [posix_record(f"/f{n}", OPENS=4, **READS, F_META_TIME=80) for n in range(2)]
    log = write_log(tmp_path / "a.darshan", records, nprocs=4)
    assert keys(log, "P17") == ["fewer_opens", "read_by_one"]
