"""The limits of an engine: time for all its queries together, memory, and rows of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from ioncast.warehouse.engine import EngineLimits, TooLargeQueryError, asking
from ioncast.warehouse.queries import text_query

ENOUGH: dict[str, Any] = {"seconds": 600, "memory_mib": 512, "threads": 1, "rows": 3}
PAIRS = text_query("select count(*) from range(1000000) a(x), range(1000000) b(y) where x + y = 3")
DISTINCT = text_query("select count(distinct x) from range(30000000) as a(x)")


def test_an_answer_has_the_first_rows() -> None:
    query = text_query("select * from range(10) as a(x) order by x desc")
    with asking({}, limits=EngineLimits(**ENOUGH)) as ask:
        assert ask(query, {}).to_pylist() == [{"x": 9}, {"x": 8}, {"x": 7}]
    with asking({}) as ask:
        assert len(ask(query, {})) == 10


def test_each_query_after_the_end_of_the_time_is_ended_too() -> None:
    with asking({}, limits=EngineLimits(**{**ENOUGH, "seconds": 0.2})) as ask:
        for _ in range(3):
            with pytest.raises(TooLargeQueryError, match=r"this takes longer than 0\.2 s"):
                ask(PAIRS, {})


def test_a_query_that_needs_more_memory_writes_no_file_and_ends() -> None:
    with asking({}, limits=EngineLimits(**{**ENOUGH, "memory_mib": 32})) as ask:
        with pytest.raises(TooLargeQueryError, match="this takes more than 32 MiB of memory"):
            ask(DISTINCT, {})
        settings = "select current_setting('temp_directory') as t, current_setting('threads') as n"
        assert ask(text_query(settings), {}).to_pylist() == [{"t": "", "n": 1}]
