"""Snapshots of counters become rows without being kept, and lose no bytes in silence."""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from ioncast.diagnosis.server_logs.counters import JobCounters, Snapshot, rows_of_snapshots
from ioncast.diagnosis.server_logs.sample_rows import ServerName

SERVER = ServerName("fs", "OST", "1")
START_S, US = 1_700_000_000, 1_000_000


def snapshot(second: int, **counters: float) -> Snapshot:
    return Snapshot(SERVER, (START_S + second) * US, {"a": JobCounters(None, counters)})


def test_only_the_last_snapshot_of_a_server_is_kept() -> None:
    """A snapshot may have counters of thousands of jobs."""
    alive: list[weakref.ref[Snapshot]] = []
    most = 0

    def snapshots() -> Iterator[Snapshot]:
        nonlocal most
        for second in range(100):
            each = snapshot(second, written_bytes=second * 7.0)
            alive.append(weakref.ref(each))
            most = max(most, sum(one() is not None for one in alive))
            yield each

    [table] = rows_of_snapshots(snapshots(), "file")
    assert table["written_bytes"].to_pylist() == [7] * 99
    # The new one, the one before it, and names that still hold them.
    assert most <= 4
