"""Delays in traces: trailing writes, and processes that are late again and again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from ioncast.diagnosis.traced_delays import TracedDelays, delays_of

MIB = 1 << 20
COLUMNS = {
    "api": pa.string(),
    "operation": pa.string(),
    "rank": pa.int64(),
    "length_bytes": pa.int64(),
    "start_seconds": pa.float64(),
    "end_seconds": pa.float64(),
}


def delays(*requests: tuple[int, int, float, float], api: str = "POSIX") -> TracedDelays:
    """The delays of writes: rank, bytes, start and end."""
    names = ("rank", "length_bytes", "start_seconds", "end_seconds")
    rows = [
        {"api": api, "operation": "write", **dict(zip(names, each, strict=True))}
        for each in requests
    ]
    return delays_of(pa.Table.from_pylist(rows, schema=pa.schema(list(COLUMNS.items()))))


def bursts(*late_ranks: int | None) -> list[tuple[int, int, float, float]]:
    """Eight ranks write for 10 s in bursts, in each of which one rank takes 15 s."""
    return [
        (rank, MIB, 100.0 * burst, 100.0 * burst + (15 if rank == late else 10))
        for burst, late in enumerate(late_ranks)
        for rank in range(8)
    ]


def test_a_rank_that_is_late_in_half_of_the_bursts_is_a_straggler() -> None:
    found = delays(*bursts(3, 3, None, None))
    assert found.ranks == (3,)
    assert found.straggler_seconds == pytest.approx(10)


@pytest.mark.parametrize("late", [(3, None), (1, 2, 3, 4), (3, 3, None, None, None), (None, None)])
def test_chance_makes_some_rank_late_now_and_then(late: tuple[int | None, ...]) -> None:
    found = delays(*bursts(*late))
    assert (found.straggler_seconds, found.ranks) == (0, ())


def test_both_layers_see_the_same_stragglers() -> None:
    assert delays(*bursts(3, 3), api="MPIIO").straggler_seconds == pytest.approx(10)


def test_trailing_writes_take_from_their_start_to_their_end() -> None:
    found = delays(*bursts(None), (0, 512, 10.0, 12.0), (0, 512, 12.0, 16.0))
    assert (found.trailing_seconds, found.trailing_requests) == (6, 2)


def test_a_log_without_requests_has_no_delays() -> None:
    assert delays() == TracedDelays(0.0, 0, 0.0, ())
