from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from ioncast_base.times import instant

# Spellings of one moment in ISO 8601.
SAME = [
    "2026-11-21T04:15:02Z",
    "2026-11-21T04:15:02z",
    "2026-11-21 04:15:02",
    "2026-11-21T04:15:02",
    "20261121T041502Z",
    "20261121T041502+0000",
    "2026-11-21T04:15:02.0Z",
    "2026-11-21T04:15:02,000",
    "2026-11-21T05:15:02+01:00",
    "2026-11-21T05:15:02+0100",
    "2026-11-21T05:15:02+01",
    "2026-11-21T00:45:02-03:30",
]


@pytest.mark.parametrize("text", SAME)
def test_a_moment_is_the_same_however_it_is_written(text: str) -> None:
    assert instant(text) == datetime(2026, 11, 21, 4, 15, 2, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("text", "microseconds"), [("0.5", 500_000), ("0.123456789", 123_456), ("0,04", 40_000)]
)
def test_fractions_of_a_second_are_read(text: str, microseconds: int) -> None:
    time = instant(f"2026-11-21T04:15:0{text}Z")
    start = datetime(2026, 11, 21, 4, 15, tzinfo=timezone.utc)
    assert time == start + timedelta(microseconds=microseconds)


@pytest.mark.parametrize("text", ["2026-11-21", "20261121"])
def test_a_date_is_its_first_moment(text: str) -> None:
    assert instant(text) == datetime(2026, 11, 21, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    "text",
    [None, "", "soon", "2026", "2026-13-01", "2026-02-30T00:00Z", "2026-11-21T04:15:02+99:00"],
)
def test_other_texts_are_not_times(text: str | None) -> None:
    assert instant(text) is None
