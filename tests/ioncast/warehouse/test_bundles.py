"""A bundle of logs has the rows of each log alone, whichever logs are beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ioncast.warehouse.rows import tables_of
from summario.reading.sources import Source
from tests.ioncast.insights.checks.test_hostile_logs import logs as hostile_logs
from tests.support.examples import examples

FIXTURES = Path(__file__).resolve().parents[2] / "summario" / "fixtures"
Tables = dict[str, pa.Table]


def written(table: pa.Table) -> dict[str, str]:
    """Write all values, so that numbers are alike only bit by bit."""
    return {name: repr(table[name].to_pylist()) for name in table.column_names}


def alone(log: Path) -> Tables:
    return tables_of([Source(str(log))], system="here")


def assert_bundle_is_made_of(logs: Sequence[Path], of_each: Sequence[Tables]) -> None:
    together = tables_of([Source(str(log)) for log in logs], system="here")
    for name, table in together.items():
        expected = pa.concat_tables([tables[name] for tables in of_each])
        assert table.schema == expected.schema
        assert written(table) == written(expected), name


@pytest.mark.slow
def test_logs_of_all_versions_have_the_rows_of_each_alone() -> None:
    logs = sorted(FIXTURES.rglob("*.darshan*"))
    of_each = list(map(alone, logs))
    # Each log is there twice, so that the same files are in several logs.
    assert_bundle_is_made_of([*logs, *logs[::-1]], [*of_each, *of_each[::-1]])


@pytest.mark.slow
def test_genuine_logs_have_the_rows_of_each_alone(shared_data: Path) -> None:
    logs = sorted(shared_data.parent.rglob("*.darshan*"))
    assert len(logs) > 100
    assert_bundle_is_made_of(logs, list(map(alone, logs)))


@settings(
    max_examples=examples(200),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(data=st.data())
def test_impossible_numbers_and_damage_change_no_other_log(
    tmp_path: Path, data: st.DataObject
) -> None:
    logs = [*sorted(FIXTURES.glob("*.darshan")), tmp_path / "missing.darshan"]
    for index in range(data.draw(st.integers(1, 4))):
        folder = tmp_path / str(index)
        folder.mkdir(exist_ok=True)
        log = data.draw(hostile_logs(folder))
        if data.draw(st.booleans()):
            content = log.read_bytes()
            log.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        logs.append(log)
    logs = data.draw(st.permutations(logs))
    assert_bundle_is_made_of(logs, list(map(alone, logs)))


def test_tables_that_nobody_wants_are_empty() -> None:
    log = Source(str(FIXTURES / "reopen-same-5x-dxt.darshan"))
    whole, part = tables_of([log]), tables_of([log], findings=False, requests=False)
    assert whole["findings"].num_rows and whole["requests"].num_rows
    assert not part["findings"].num_rows and not part["requests"].num_rows
    assert whole["jobs"]["has_requests"].to_pylist() == [True]
    assert part["jobs"]["has_requests"].to_pylist() == [False]
    for name in ("files", "phases", "request_sizes"):
        assert written(whole[name]) == written(part[name])
