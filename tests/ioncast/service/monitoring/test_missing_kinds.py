"""The kinds of I/O without a benchmark are listed, those of most runs first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.monitoring.missing_kinds import missing_kinds
from summario.phases.tables import to_record
from tests.support.history import PHASE, put_run

pytestmark = pytest.mark.both_databases

WRITES, READS = "write POSIX contiguous shared", "read POSIX contiguous shared"


def test_kinds_of_runs_without_a_benchmark_are_listed_by_their_runs(database: Engine) -> None:
    reads = to_record(replace(PHASE, operation="read"))
    strided = to_record(replace(PHASE, spatiality="sequential"))
    for phase, number in ((to_record(PHASE), 2), (reads, 3), (strided, 1)):
        for _ in range(number):
            put_run(database, phases=(phase,))
    put_run(database, system="there", phases=(reads,))
    with transaction(database) as connection:
        assert missing_kinds(connection, {"here": {WRITES}, "there": {READS}}) == [
            {"system": "here", "kind": READS, "runs": 3},
            {"system": "here", "kind": "write POSIX sequential shared", "runs": 1},
        ]
        # A system whose benchmarks are not counted yet has no missing ones.
        assert missing_kinds(connection, {}) == []
