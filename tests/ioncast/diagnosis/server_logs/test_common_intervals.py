"""The time of a server counts once, also where only its reads or its writes have a gap."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.diagnosis.server_logs import read_lmt, read_tokio
from ioncast.diagnosis.server_logs.counters import differences
from ioncast.diagnosis.server_logs.sample_rows import ImportSettings, ServerName, sample_tables
from tests.support.examples import examples

START_S, US = 1_700_000_000, 1_000_000
SERVERS = [ServerName("fs", "OST", str(number)) for number in range(2)]
BYTES = ("read_bytes", "written_bytes")
Row = dict[str, Any]
Steps = Sequence[int | None]


def rows_of(tables: Iterable[pa.Table]) -> list[Row]:
    """Read rows as the store's view does: those of the same interval are one."""
    found: dict[tuple[Any, ...], Row] = {}
    for row in (row for table in tables for row in table.to_pylist()):
        key = row["server"], row["time_start_us"], row["time_end_us"]
        row |= {"start": row["time_start_us"] / US - START_S, "end": key[2] / US - START_S}
        found[key] = found.get(key, {}) | {name: row[name] for name in row if row[name] is not None}
    return [found[key] for key in sorted(found)]


def columns_of(rows: list[Row]) -> list[tuple[Any, ...]]:
    return [(row["start"], row["end"], *(row.get(name) for name in BYTES)) for row in rows]


def counters_of(steps: Steps) -> list[float]:
    """A counter that starts at 1 and grows by these steps, NaN where it is not known."""
    counters = np.cumsum([1, *(step or 0 for step in steps)]).astype(float)
    counters[1:][[step is None for step in steps]] = np.nan
    return counters.tolist()


def tables_of(servers: Sequence[tuple[Steps, Steps]]) -> Iterable[pa.Table]:
    times = [(START_S + 5 * np.arange(len(reads) + 1)) * US for reads, _ in servers]
    columns = {
        name: [
            differences(time, np.array(counters_of(both[n])))[0]
            for time, both in zip(times, servers, strict=True)
        ]
        for n, name in enumerate(BYTES)
    }
    together = {
        name: type(of_servers[0])(*map(np.concatenate, zip(*of_servers, strict=True)))
        for name, of_servers in columns.items()
    }
    server = np.repeat(np.arange(len(servers)), [len(time) for time in times])
    return sample_tables(SERVERS, server, np.concatenate(times), together, "file")


def test_reads_with_a_gap_are_cut_at_the_intervals_of_the_writes() -> None:
    tables = tables_of([([4, None, None, 30], [1, 2, 3, 4]), ([7, 7], [8, 8])])
    rows = rows_of(tables)
    assert columns_of([row for row in rows if row["server"] == "0"]) == [
        (0, 5, 4, 1),
        (5, 10, 10, 2),
        (10, 15, 10, 3),
        (15, 20, 10, 4),
    ]
    # The other server has no gap.
    assert columns_of([row for row in rows if row["server"] == "1"]) == [
        (0, 5, 7, 8),
        (5, 10, 7, 8),
    ]


def test_a_gap_of_both_directions_is_one_interval() -> None:
    rows = rows_of(tables_of([([4, None, 30], [1, None, 3])]))
    assert columns_of(rows) == [(0, 5, 4, 1), (5, 15, 30, 3)]


STEPS = st.lists(st.integers(0, 1000) | st.none(), min_size=12, max_size=12)


@given(st.lists(st.tuples(STEPS, STEPS), min_size=2, max_size=2))
@settings(max_examples=examples(200))
def test_no_byte_is_lost_and_no_second_counts_twice(servers: list[tuple[Steps, Steps]]) -> None:
    rows = rows_of(tables_of(servers))
    for number, both in enumerate(servers):
        of_server = [row for row in rows if row["server"] == str(number)]
        for name, steps in zip(BYTES, both, strict=True):
            known = [each for each in counters_of(steps) if not np.isnan(each)]
            assert sum(row.get(name, 0) for row in of_server) == known[-1] - known[0]
        assert all(one["end"] <= other["start"] for one, other in pairwise(of_server))


def lmt(path: Path, reads: Steps, writes: Steps) -> Path:
    with closing(sqlite3.connect(path)) as database, database:
        for table in (
            "TIMESTAMP_INFO (TS_ID, TIMESTAMP)",
            "OST_INFO (OST_ID, OST_NAME)",
            "OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES)",
            "OSS_INFO (OSS_ID, HOSTNAME)",
            "OSS_DATA (OSS_ID, TS_ID, PCT_CPU)",
            "MDS_INFO (MDS_ID, HOSTNAME)",
            "MDS_DATA (MDS_ID, TS_ID, PCT_CPU)",
            "MDS_OPS_DATA (MDS_ID, TS_ID, OPERATION_ID, SAMPLES)",
            "OPERATION_INFO (OPERATION_ID, OPERATION_NAME)",
        ):
            database.execute(f"create table {table}")
        database.execute("insert into OST_INFO values (1, 'fs-OST0000')")
        counters = zip(counters_of(reads), counters_of(writes), strict=True)
        for number, both in enumerate(counters):
            time = datetime.fromtimestamp(START_S + 5 * number, timezone.utc)
            database.execute(
                "insert into TIMESTAMP_INFO values (?, ?)", (number, f"{time:%Y-%m-%d %H:%M:%S}")
            )
            database.execute(
                "insert into OST_DATA values (1, ?, ?, ?)",
                (number, *(None if np.isnan(each) else int(each) for each in both)),
            )
    return path


def tokio(path: Path, reads: Steps, writes: Steps) -> Path:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file["datatargets/timestamps"] = START_S + 5 * np.arange(len(reads))
        for name, steps in (("readbytes", reads), ("writebytes", writes)):
            cells = [[-0.0 if step is None else step] for step in steps]
            file[f"datatargets/{name}"] = np.array(cells, np.float64)
            file[f"datatargets/{name}"].attrs["columns"] = [b"fs-OST0000"]
    return path


@pytest.mark.parametrize("rows_at_once", [100, 4])
@pytest.mark.parametrize("format_", ["lmt", "tokio"])
def test_formats_with_gaps_of_one_direction_give_common_intervals(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, rows_at_once: int
) -> None:
    """Pieces of 4 rows end within the gap, whose bytes then belong to no known interval."""
    reads, writes = [1, 2, None, None, 21, 3], [10] * 6
    import_settings = ImportSettings(ZoneInfo("UTC"))
    if format_ == "lmt":
        monkeypatch.setattr(read_lmt, "_ROWS_AT_ONCE", rows_at_once)
        path = lmt(tmp_path / "file", reads, writes)
        rows = rows_of(read_lmt.read_lmt([path], import_settings))
    else:
        monkeypatch.setattr(read_tokio, "_CELLS_AT_ONCE", rows_at_once)
        path = tokio(tmp_path / "file", reads, writes)
        rows = rows_of(read_tokio.read_tokio([path], import_settings))
    assert [(row["start"], row["end"]) for row in rows] == [(5 * n, 5 * n + 5) for n in range(6)]
    assert [row["written_bytes"] for row in rows] == writes
    found = [row.get("read_bytes") for row in rows]
    assert found == ([1, 2, 7, 7, 7, 3] if rows_at_once == 100 else [1, 2, None, None, None, 3])
