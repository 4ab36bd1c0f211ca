"""Trailing writes of a trace: small, late and long."""

from __future__ import annotations

import pytest

from summario.requests.trailing import trailing_writes
from tests.summario.requests.test_trace_phases import Request, table

MIB = 1 << 20
# The main phase of 4 seconds, in which four ranks write 4 GiB.
MAIN = [(rank, "write", 1024 * MIB, 0.0, 4.0) for rank in range(4)]


@pytest.mark.parametrize(
    ("trailing", "is_reported"),
    [
        # 5 s of small writes, as in the source.
        ([(0, "write", 4096, 4.0, 6.5), (1, "write", 512, 6.5, 9.0)], True),
        ([(0, "write", 4096, 4.0, 4.4)], False),  # Less than half a second.
        ([(0, "read", 4096, 4.0, 9.0)], False),
        ([(0, "write", 65536, 4.0, 9.0)], False),  # A large one belongs to the main phase.
        ([(0, "write", 4096, 3.0, 9.0)], False),  # It begins in the main phase.
        ([(0, "write", 60_000, 4 + n * 0.05, 9.0) for n in range(80)], False),  # 0.11 % of bytes.
        ([], False),
    ],
)
def test_trailing_writes_are_small_late_and_long(
    trailing: list[Request], is_reported: bool
) -> None:
    found = trailing_writes(table([*MAIN, *trailing]))
    assert (found is not None) == is_reported
    if found is not None:
        assert (found.start_seconds, found.end_seconds) == (4, 9)
        assert (found.requests, found.bytes) == (2, 4608)


def test_a_tenth_of_a_long_main_phase_is_not_long() -> None:
    main = [(0, "write", 1024 * MIB, 0.0, 100.0)]
    assert trailing_writes(table([*main, (0, "write", 10, 100.0, 109.0)])) is None
    assert trailing_writes(table([*main, (0, "write", 10, 100.0, 111.0)])) is not None


def test_small_writes_alone_do_not_trail() -> None:
    assert trailing_writes(table([(0, "write", 10, 0.0, 9.0)])) is None
    assert trailing_writes(table([])) is None
