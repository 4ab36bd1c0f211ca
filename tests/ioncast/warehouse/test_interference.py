"""Interference in synthetic traces of Kim et al. (2014), section 6.3, and in planted tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.show.interference import write_interference
from ioncast.warehouse.engine import asking
from ioncast.warehouse.interference import (
    Interference,
    Server,
    TimeAlone,
    bytes_by_time,
    interference_of,
    server_uses,
)
from ioncast.warehouse.interference_texts import plain, sentences, to_rows
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.schema import SCHEMAS

MIB = 1 << 20
# 123,456 µs after a second: the log of a Darshan that notes more than seconds.
START_US = 1_767_225_600_123_456
# Bytes of a component of S3D's global array, and the components and fragments of its four calls.
COMPONENT = 400 * 200 * 200 * 8
CALLS = ((11, 11), (1, 1), (1, 1), (3, 3))
AGGREGATORS, FILES = 8, 3
SCHEMA = pa.schema(
    [
        ("log", pa.string()),
        ("server_kind", pa.string()),
        ("server", pa.int64()),
        ("bytes", pa.int64()),
        ("start_seconds", pa.float64()),
        ("end_seconds", pa.float64()),
        ("estimated", pa.bool_()),
    ]
)


def use(
    log: str, server: int, moved: int | None, start: float, end: float, **more: Any
) -> dict[str, Any]:
    times = {"start_seconds": start, "end_seconds": end}
    return {
        "log": log,
        "server_kind": "OST",
        "server": server,
        "bytes": moved,
        **times,
        "estimated": False,
        **more,
    }


def job(log: str, seconds: float | None = 60.0, start_us: int | None = START_US) -> dict[str, Any]:
    return {
        "log": log,
        "path": f"{log}.darshan",
        "system": None,
        "job_id": 1,
        "program": log,
        "processes": 64,
        "start_us": start_us,
        "run_seconds": seconds,
    }


def found(
    jobs: Sequence[dict[str, Any]],
    uses: Iterable[dict[str, Any]],
    alone: dict[str, float] | None = None,
) -> Interference:
    times = {log: TimeAlone("alone", seconds, 1) for log, seconds in (alone or {}).items()}
    return interference_of(jobs, pa.Table.from_pylist(list(uses), schema=SCHEMA), times)


def s3d(servers: Sequence[int], seconds: float, busy: dict[int, float]) -> list[dict[str, Any]]:
    """S3D: each fragment of 8 aggregators reaches all servers at once, one after the other."""
    fragments = [
        components * COMPONENT // count
        for _ in range(FILES)
        for components, count in CALLS
        for _ in range(count)
    ]
    step = seconds / len(fragments)
    return [
        use(
            *("s3d", server, moved // AGGREGATORS // len(servers)),
            *(place * step, place * step + busy[server] / len(fragments)),
        )
        for place, moved in enumerate(fragments)
        for _ in range(AGGREGATORS)
        for server in servers
    ]


def synthetic(seconds: float) -> list[dict[str, Any]]:
    """64 processes write 2 GiB to server 0."""
    return [use("b", 0, 32 * MIB, 0.0, seconds) for _ in range(64)]


def busy(servers: Iterable[int], seconds: float, at_first: float | None = None) -> dict[int, float]:
    return {each: at_first if not each and at_first else seconds for each in servers}


ALL, WITHOUT = range(8), range(1, 8)
ALONE = {"s3d": 39.63, "b": 36.43}
TOGETHER = found(
    [job("s3d", 56.18), job("b", 61.11)],
    [*s3d(ALL, 56.18, busy(ALL, 46.15, 46.31)), *synthetic(55.9)],
    ALONE,
)
MOVED = found(
    [job("s3d", 42.35), job("b", 36.43)],
    [*s3d(WITHOUT, 42.35, busy(WITHOUT, 32.73)), *synthetic(35.64)],
    ALONE,
)


def test_fragments_are_those_of_s3d() -> None:
    sizes = [components * COMPONENT / AGGREGATORS / (16 * MIB) for components, _ in CALLS]
    assert [int(np.ceil(each)) for each in sizes] == [count for _, count in CALLS]


def test_bytes_of_each_server_are_those_of_the_paper() -> None:
    of_s3d = {each.server.number: each.bytes / MIB for each in TOGETHER.uses if each.log == "s3d"}
    assert of_s3d == pytest.approx(dict.fromkeys(ALL, 732.4), rel=1e-3)
    at_first = sum(each.bytes for each in TOGETHER.uses if each.server.number == 0) / MIB
    assert at_first == pytest.approx(2780, rel=1e-3)
    moved = {each.server.number: each.bytes / MIB for each in MOVED.uses if each.log == "s3d"}
    assert moved == pytest.approx(dict.fromkeys(WITHOUT, 837.1), rel=1e-3)


def test_slowdowns_and_the_bottleneck_are_those_of_the_paper() -> None:
    slowdowns = {run.log: run.slowdown for run in TOGETHER.runs}
    assert slowdowns == pytest.approx({"s3d": 0.42, "b": 0.68}, abs=0.005)
    assert TOGETHER.bottlenecks == (Server("", "OST", 0),)
    assert {run.log: run.server_seconds for run in TOGETHER.runs}["s3d"] == pytest.approx(46.31)
    assert {run.log: run.slowdown for run in MOVED.runs}["s3d"] == pytest.approx(0.07, abs=0.005)
    assert (MOVED.bottlenecks, MOVED.disturbances) == ((), ())


def test_the_move_leaves_the_shared_server_and_costs_a_seventh_at_most() -> None:
    [move] = TOGETHER.moves
    assert (move.log, move.beside, move.left, move.kept) == ("s3d", "b", (0,), tuple(WITHOUT))
    assert move.cost == pytest.approx(1 / 7)
    assert move.cost_seconds == pytest.approx(39.63 / 7)


def test_sentences_name_who_where_and_how_much() -> None:
    said = "\n".join(sentences(TOGETHER))
    assert "The bottleneck is OST 0: from 2026-01-01 00:00 UTC" in said
    assert "42% longer than 39.6 s (its run alone)" in said
    assert "b of job 1 has 100% of the blame for s3d of job 1, 16.5 s at most" in said
    assert "stripe s3d of job 1 over 7 OSTs, without OST 0" in said
    assert "at most 14% of its time alone, 5.66 s" in said


def test_no_common_server_is_one_line() -> None:
    assert list(sentences(MOVED)) == [
        "No two of these logs move bytes on the same server at the same time."
    ]


def test_without_a_time_alone_there_is_no_slowdown() -> None:
    result = found([job("a"), job("b")], [use("a", 0, 5, 0, 9), use("b", 0, 5, 0, 9)])
    assert [run.slowdown for run in result.runs] == [None, None]
    assert [each.blamed_seconds for each in result.disturbances] == [None, None]
    assert sum("its slowdown is unknown" in each for each in sentences(result)) == 2


def test_times_are_those_of_the_wall_clock() -> None:
    uses = [use("a", 0, 90, 0, 9), use("b", 0, 40, 0, 4)]
    late = found([job("a"), job("b", start_us=START_US + 7_000_000)], uses)
    [of_a] = [each for each in late.disturbances if each.log == "a"]
    assert (of_a.start_us, of_a.end_us) == (START_US + 7_000_000, START_US + 9_000_000)
    assert (of_a.bytes, of_a.by_bytes) == pytest.approx((20, 20))
    assert found([job("a"), job("b", start_us=START_US + 9_500_000)], uses).disturbances == ()


def test_starts_in_whole_seconds_widen_the_end_by_one_second() -> None:
    second = START_US // 1_000_000 * 1_000_000
    uses = [use("a", 0, 90, 0, 9), use("a", 0, 1, 8, 9), use("b", 0, 40, 0, 4)]
    jobs = [job("a", start_us=second), job("b", start_us=second + 8_500_000)]
    [of_a] = [each for each in found(jobs, uses).disturbances if each.log == "a"]
    assert of_a.end_us == second + 10_000_000


requests = st.lists(
    st.tuples(
        st.sampled_from("abcd"),
        st.integers(0, 2),
        st.integers(1, 1 << 40),
        st.floats(0, 100),
        st.floats(0, 50),
    ),
    max_size=30,
)


@settings(max_examples=60, deadline=None)
@given(requests=requests, lost=st.floats(0, 1000))
def test_blames_of_all_disturbers_sum_to_the_lost_time(requests: Any, lost: float) -> None:
    uses = [use(log, at, moved, start, start + more) for log, at, moved, start, more in requests]
    jobs = [job(log, 60 + lost) for log in "abcd"]
    result = found(jobs, uses, dict.fromkeys("abcd", 60.0))
    disturbed = {each.log for each in result.disturbances}
    for log in disturbed:
        blamed = [each.blamed_seconds for each in result.disturbances if each.log == log]
        assert sum(each or 0.0 for each in blamed) == pytest.approx(lost, abs=1e-6)
        blames = [each.blame for each in result.disturbances if each.log == log]
        assert sum(each or 0.0 for each in blames) == pytest.approx(1)
    for each in result.uses:
        assert -1e-6 <= each.common_bytes <= each.bytes * (1 + 1e-6)


@settings(max_examples=30, deadline=None)
@given(requests=requests)
def test_swapped_logs_swap_the_answers(requests: Any) -> None:
    swap = dict(zip("abcd", "badc", strict=True))
    uses = [use(log, at, moved, start, start + more) for log, at, moved, start, more in requests]
    jobs = [job(log) for log in "abcd"]
    swapped = found(jobs[::-1], [{**each, "log": swap[each["log"]]} for each in uses])
    assert {
        (swap[each.log], swap[each.by], each.server, each.blame)
        for each in found(jobs, uses).disturbances
    } == {(each.log, each.by, each.server, each.blame) for each in swapped.disturbances}


def test_impossible_times_and_sizes_do_not_count() -> None:
    good = [use("a", 0, 5, 0, 9), use("b", 0, 5, 0, 9)]
    bad = [
        *(use("a", 0, 5, start, end) for start, end in ((9, 0), (-1, 5), (0, np.inf), (0, np.nan))),
        *(use("a", 0, moved, 0, 1) for moved in (-5, None)),
        use("a", 0, 5, 0, 1e300),
    ]
    jobs = [job("a"), job("b"), job("c", None, None), job("d", -1.0, 1 << 62)]
    result = found(jobs, [*good, *bad, use("c", 0, 5, 0, 9), use("d", 0, 5, 0, 9)])
    assert result.undated == ("c", "d")
    assert {each.log: each.bytes for each in result.uses} == {"a": 5, "b": 5}
    huge = found([job("a"), job("b")], [{**each, "bytes": (1 << 63) - 1} for each in good])
    assert plain(huge)["disturbances"][0]["bytes"] == pytest.approx(2.0**63)


def test_bytes_outside_the_time_of_the_other_are_no_bottleneck() -> None:
    # B moves bytes before and after A, but not while A does.
    uses = [use("a", 0, 5, 4, 5), use("b", 0, 5, 0, 1), use("b", 0, 5, 9, 10)]
    result = found([job("a"), job("b")], uses)
    assert (result.bottlenecks, result.disturbances) == ((), ())
    assert list(sentences(result)) == list(sentences(MOVED))


def test_a_page_of_jobs_without_times_and_servers_is_written(tmp_path: Path) -> None:
    write_interference(tmp_path / "page.html", found([job("a", None), job("b", None)], []))
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "No log tells the servers of its I/O" in text


def test_bytes_by_time_add_up_to_the_bytes() -> None:
    uses = pa.Table.from_pylist([use("a", 0, 90, 0, 9)], schema=SCHEMA)
    [at_first] = server_uses([job("a")], uses)
    edges = [START_US + second * 3_000_000 for second in range(5)]
    bins = bytes_by_time(at_first.requests, edges)
    assert bins.tolist() == pytest.approx([30, 30, 30, 0])


def test_jobs_on_one_io_node_get_different_ones() -> None:
    uses = [use(log, 4, 8, 0.0, 1.0, server_kind="ION") for log in "ab"]
    result = found([job("a"), job("b")], uses)
    assert result.bottlenecks == (Server("", "ION", 4),)
    [move] = result.moves
    assert (move.kind, move.left, move.cost) == ("ION", (4,), None)
    assert "an I/O node that b of job 1 does not use" in "\n".join(sentences(result))


def test_requests_count_at_servers_once_and_files_stand_in_for_them() -> None:
    rows: dict[str, list[dict[str, Any]]] = {
        "requests": [
            {"log": "a", "id": number, "api": api, "start_seconds": 0.0, "end_seconds": 2.0}
            for number, api in enumerate(("MPIIO", "POSIX"))
        ],
        "request_servers": [
            {
                "log": "a",
                "id": number,
                "server_kind": "OST",
                "server": 3,
                "bytes": 10,
                "start_seconds": 0.0,
                "end_seconds": 2.0,
            }
            for number in range(2)
        ],
        "file_servers": [{"log": log, "api": "POSIX", "server": 3, "bytes": 30} for log in "ab"],
        "phases": [{"log": "b", "start_seconds": 1.0, "end_seconds": 4.0}],
    }
    tables = {
        name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
        for name, schema in SCHEMAS.items()
    }
    query = query_of("server-uses")
    with asking(tables) as ask:
        uses = ask(query, {"log": None})
    assert [(row["log"], row["bytes"], row["estimated"]) for row in uses.to_pylist()] == [
        ("a", 10, False),
        ("b", 30, True),
    ]
    result = interference_of([job("a"), job("b")], uses, {})
    assert "(estimated)" in next(sentences(result))
    assert [row["server"] for row in to_rows(result)] == [3, 3]
    assert [each.busy_seconds for each in server_uses([job("a")], uses)] == pytest.approx([2.0])
