"""Spans are exactly the times in which a row is busy, and few enough for a screen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast.timelines.spans import MOST_ROWS, Spans, rows_of, spans_of, units_of_a_row
from summario.reading.operations import Operations

REQUESTS = st.lists(
    st.tuples(
        st.integers(0, 9),
        st.floats(0, 100, allow_subnormal=False),
        st.floats(0, 10, allow_subnormal=False),
        st.integers(0, 1 << 20),
    ),
    min_size=1,
    max_size=60,
)


def operations(requests: list[tuple[int, float, float, int]]) -> Operations:
    """Requests of a rank, with their start, duration and bytes."""
    rank, start, seconds, moved = (np.array(column) for column in zip(*requests, strict=True))
    nothing = np.zeros(len(rank), np.int64)
    return Operations(
        api=nothing.astype(np.int8),
        operation=nothing.astype(np.int8),
        file_id=nothing.astype(np.uint64),
        rank=rank.astype(np.int64),
        offset=nothing,
        length=moved.astype(np.int64),
        start_seconds=start.astype(np.float64),
        end_seconds=(start + seconds).astype(np.float64),
        host=nothing.astype(np.int32),
    )


def by_rank(
    requests: list[tuple[int, float, float, int]], ranks_of_a_row: int = 1, most: int = 5_000
) -> Spans:
    table = operations(requests)
    return spans_of(table, rows_of(table.rank, ranks_of_a_row), most)


@given(REQUESTS)
def test_few_requests_are_a_span_each(requests: list[tuple[int, float, float, int]]) -> None:
    spans = by_rank(requests)
    found = zip(spans.row, spans.start_seconds, spans.end_seconds, spans.bytes, strict=True)
    assert sorted(found) == sorted(
        (rank, start, start + seconds, moved) for rank, start, seconds, moved in requests
    )
    assert (spans.bin_seconds, set(spans.requests.tolist())) == (0, {1})


@given(REQUESTS, st.sampled_from([1, 3]))
def test_joined_requests_are_busy_times_to_the_resolution(
    requests: list[tuple[int, float, float, int]], ranks_of_a_row: int
) -> None:
    spans = by_rank(requests, ranks_of_a_row, most=0 if len(requests) > 1 else 1)
    assert spans.requests.sum() == len(requests)
    assert spans.bytes.sum() == sum(moved for *_, moved in requests)
    slack = 1.001 * spans.bin_seconds + 1e-9
    of_row = {
        row: [
            (start, end)
            for each, start, end in zip(
                spans.row, spans.start_seconds, spans.end_seconds, strict=True
            )
            if each == row
        ]
        for row in set(spans.row.tolist())
    }
    for rank, start, seconds, _ in requests:
        assert any(
            low - slack <= start and start + seconds <= high + slack
            for low, high in of_row[rank // ranks_of_a_row]
        )
    for row, of_this in of_row.items():
        for low, high in of_this:
            # Both ends of a span are those of requests.
            theirs = [each for each in requests if each[0] // ranks_of_a_row == row]
            assert any(abs(start - low) <= slack for _, start, _, _ in theirs)
            assert any(abs(start + seconds - high) <= slack for _, start, seconds, _ in theirs)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 64])
def test_many_requests_give_few_spans(ranks: int) -> None:
    """Each rank writes for half of each millisecond."""
    requests = [(n % ranks, n // ranks * 1e-3, 5e-4, 1) for n in range(64_000)]
    spans = by_rank(requests, units_of_a_row(ranks))
    assert 0 < len(spans) <= 5_000
    assert spans.requests.sum() == 64_000


def test_ranks_that_the_run_does_not_have_take_no_memory() -> None:
    spans = by_rank([(2**40, 0, 1, 1)] * 6_000)
    assert spans.row.tolist() == [MOST_ROWS - 1]


@pytest.mark.parametrize(("nprocs", "ranks"), [(1, 1), (128, 1), (129, 2), (2**31, 2**24)])
def test_ranks_share_rows_where_there_are_many(nprocs: int, ranks: int) -> None:
    assert units_of_a_row(nprocs) == ranks


@given(REQUESTS, st.data())
def test_a_span_is_named_by_the_masks_that_select_its_requests(
    requests: list[tuple[int, float, float, int]], data: st.DataObject
) -> None:
    table = operations(requests)
    flags = st.lists(st.booleans(), min_size=len(requests), max_size=len(requests))
    masks = [np.array(data.draw(flags)) for _ in range(2)]
    for most in (len(requests), 0 if len(requests) > 1 else 1):
        spans = spans_of(table, rows_of(table.rank, 1), most, masks)
        for bit, mask in enumerate(masks):
            has_bit = spans.named >> bit & 1 > 0
            chosen = [each for each, flag in zip(requests, mask, strict=True) if flag]
            # Each selected request begins in a span with the bit, and no other has it.
            begins = [
                {
                    place
                    for place in np.flatnonzero(spans.row == rank)
                    if spans.start_seconds[place] <= start + 1e-9 <= spans.end_seconds[place] + 2e-9
                }
                for rank, start, _, _ in chosen
            ]
            assert all(any(has_bit[place] for place in places) for places in begins)
            assert set(np.flatnonzero(has_bit)) <= {each for places in begins for each in places}
