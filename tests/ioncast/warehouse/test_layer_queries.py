"""IOPro's queries on planted calls: the values follow from its equations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from ioncast.warehouse.engine import asking
from ioncast.warehouse.queries import query_of
from ioncast.warehouse.schema import SCHEMAS

Row = dict[str, Any]
MEGABYTE = 10**6


def request(
    number: int,
    api: str,
    times: tuple[float, float],
    call: int | None,
    *,
    process: int = 0,
    call_number: int | None = 0,
    fragment: int | None = None,
    length: int = 20 * MEGABYTE,
) -> Row:
    """A row of `requests` of one collective call, or of none."""
    return {
        "log": "a",
        "id": number,
        "api": api,
        "operation": "write",
        "file": "f",
        "rank": process,
        "length_bytes": length,
        "call": call,
        "call_number": call_number,
        "start_seconds": times[0],
        "end_seconds": times[1],
        "fragment": fragment,
        "instance": None if call is None else 0,
    }


def at_server(
    number: int, server: int, times: tuple[float, float], *, own_times: bool = True
) -> Row:
    """A row of `request_servers` with half of a request's bytes."""
    return {
        "log": "a",
        "id": number,
        "server_kind": "OST",
        "server": server,
        "bytes": 10 * MEGABYTE,
        "start_seconds": times[0],
        "end_seconds": times[1],
        "own_times": own_times,
    }


def tables(requests: list[Row], servers: list[Row]) -> dict[str, pa.Table]:
    rows: Mapping[str, list[Row]] = {"requests": requests, "request_servers": servers}
    return {
        name: pa.Table.from_pylist(rows.get(name, []), schema=schema)
        for name, schema in SCHEMAS.items()
    }


def planted(*, own_times: bool = True) -> dict[str, pa.Table]:
    """A collective call of two processes, of which process 0 writes two fragments to two servers.

    A request at 20 s joins no call.
    """
    return tables(
        [
            request(0, "MPIIO", (0, 9), 0, length=40 * MEGABYTE),
            request(1, "POSIX", (1, 4), 0, fragment=0),
            request(2, "POSIX", (4, 8), 0, fragment=1),
            request(3, "MPIIO", (0, 9), 3, process=1, length=0),
            request(4, "POSIX", (20, 21), None, process=1, call_number=None),
        ],
        [
            at_server(1, 0, (1, 3), own_times=own_times),
            at_server(1, 1, (1, 4), own_times=own_times),
            at_server(2, 0, (4, 5), own_times=own_times),
            at_server(2, 1, (4, 8), own_times=own_times),
        ],
    )


def answers(data: dict[str, pa.Table], name: str, **given: str) -> list[Row]:
    query = query_of(name)
    with asking(data) as ask:
        rows: list[Row] = ask(query, query.values(given)).to_pylist()
    return rows


def seconds(row: Row) -> tuple[float | None, ...]:
    return row["mpi_seconds"], row["client_seconds"], row["server_seconds"]


def test_a_call_has_the_seconds_of_each_layer() -> None:
    inclusive = answers(planted(), "latency-inclusive")
    assert [(row["sum_of"], row["process"], seconds(row)) for row in inclusive] == [
        ("call", 0, (9, 7, 7)),
        ("process", 0, (9, 7, 7)),
        ("call", 1, (9, 0, 0)),
        ("process", 1, (9, 0, 0)),
        ("total", None, (18, 7, 7)),
    ]
    exclusive = answers(planted(), "latency-exclusive")
    assert [seconds(row) for row in exclusive[::2]] == [(2, 0, 7), (9, 0, 0), (11, 0, 7)]
    for row, whole in zip(exclusive, inclusive, strict=True):
        assert sum(each or 0 for each in seconds(row)) == whole["mpi_seconds"]


def test_without_own_times_servers_have_no_seconds_and_the_client_keeps_them() -> None:
    data = planted(own_times=False)
    assert seconds(answers(data, "latency-inclusive", process="0")[0]) == (9, 7, None)
    assert seconds(answers(data, "latency-exclusive", process="0")[0]) == (2, 7, None)


def test_overlapping_fragments_count_once_at_the_client_and_each_at_the_server() -> None:
    data = tables(
        [
            request(0, "MPIIO", (0, 9), 0),
            request(1, "POSIX", (1, 5), 0, fragment=0),
            request(2, "POSIX", (2, 5.5), 0, fragment=1),
            request(3, "POSIX", (5.5, 6), 0, fragment=2),
        ],
        [at_server(1, 0, (1, 5)), at_server(2, 0, (2, 5.5)), at_server(3, 0, (5.5, 5.5))],
    )
    [row, *_] = answers(data, "latency-inclusive")
    assert seconds(row) == (9, 5, 7.5)


def test_a_call_whose_requests_end_after_it_has_no_seconds_of_its_own() -> None:
    data = tables(
        [
            request(0, "MPIIO", (0, 1), 0),
            request(1, "POSIX", (0, 5), 0, fragment=0),
            request(2, "MPIIO", (6, 9), 2, call_number=1),
        ],
        [],
    )
    call, other, process, _ = answers(data, "latency-exclusive")
    assert [row["mpi_seconds"] for row in (call, other, process)] == [None, 3, 3]
    assert answers(data, "layers")[0]["exclusive_mpi_share"] == 1


@pytest.mark.parametrize(
    ("name", "at_servers", "latencies", "of_call"),
    [
        ("latency-max", [1, 1], [3, 4], [False, True]),
        ("latency-min", [0, 0], [2, 1], [False, True]),
    ],
)
def test_the_longest_and_the_shortest_fragment_name_their_server(
    name: str, at_servers: list[int], latencies: list[float], of_call: list[bool]
) -> None:
    rows = answers(planted(), name)
    assert [row["server"] for row in rows] == at_servers
    assert [row["latency_seconds"] for row in rows] == latencies
    assert [row["is_of_call"] for row in rows] == of_call
    assert {row["process"] for row in answers(planted(), name, view="server")} == {0}


def test_equal_latencies_name_the_lowest_server() -> None:
    data = tables(
        [request(0, "MPIIO", (0, 9), 0), request(1, "POSIX", (1, 4), 0, fragment=0)],
        [at_server(1, 5, (1, 4), own_times=False), at_server(1, 2, (1, 4), own_times=False)],
    )
    assert [row["server"] for row in answers(data, "latency-max")] == [2]


def test_a_selection_has_only_its_fragments_servers_calls_and_seconds() -> None:
    listed = answers(planted(), "latency-list")
    assert [(row["fragment"], row["server"], row["latency_seconds"]) for row in listed] == [
        *((0, 0, 2), (0, 1, 3), (1, 0, 1), (1, 1, 4), (None, None, 1))
    ]
    assert [row["joined"] for row in listed] == [True] * 4 + [False]
    for given, count in (
        ({"fragment": "1"}, 2),
        ({"server": "0"}, 2),
        ({"server": "-1"}, 1),
        ({"call": "0-3"}, 4),
        ({"process": "1"}, 1),
        ({"time": "0-10"}, 4),
        ({"time": "10-30"}, 1),
        ({"log": "b"}, 0),
        ({"job": "7"}, 0),
        ({"kind": "ION", "call": "0"}, 2),
    ):
        assert len(answers(planted(), "latency-list", **given)) == count, given


def test_the_mean_is_over_fragments_and_servers() -> None:
    [row] = answers(planted(), "latency-mean")
    assert (row["operations"], row["mean_seconds"]) == (4, 2.5)


def test_throughput_is_bytes_over_the_seconds_in_which_a_server_works() -> None:
    by_server = {row["server"]: row["mb_s"] for row in answers(planted(), "throughput")}
    assert by_server == pytest.approx({0: 20 / 3, 1: 20 / 7})
    [process] = answers(planted(), "throughput", view="process")
    assert process["mb_s"] == pytest.approx(sum(by_server.values()))
    assert process["bytes"] == 40 * MEGABYTE


def test_a_server_that_works_3_of_10_seconds_takes_102_joules() -> None:
    data = tables(
        [
            request(0, "MPIIO", (0, 12), 0),
            request(1, "POSIX", (1, 3), 0, fragment=0),
            request(2, "POSIX", (2, 3), 0, fragment=1),
            request(3, "MPIIO", (0, 12), 3, process=1),
            request(4, "POSIX", (10, 11), 3, process=1, fragment=0),
        ],
        [at_server(1, 0, (1, 3)), at_server(2, 0, (2, 3)), at_server(4, 0, (10, 11))],
    )
    watts = {"active_w": "13", "inactive_w": "9"}
    [server] = answers(data, "energy", **watts)
    assert server["estimated_joules"] == pytest.approx(102)
    by_process = answers(data, "energy", **watts, view="process")
    assert [row["estimated_joules"] for row in by_process] == pytest.approx([68, 34])


def test_requests_of_servers_add_up_to_those_of_calls() -> None:
    rows = answers(planted(), "calls")
    counted = {
        (row["process"], row["server"]): row["requests"] for row in rows if row["sum_of"] == "total"
    }
    assert counted == {(0, 0): 2, (0, 1): 2, (1, None): 1}
    for pair, requests in counted.items():
        of_pair = (row for row in rows if (row["process"], row["server"]) == pair)
        assert sum(row["requests"] for row in of_pair if row["sum_of"] == "call") == requests
    most = [row["server"] for row in rows if row["process"] == 0 and row["has_most"]]
    assert most == [0, 0]


def test_a_collective_call_waits_for_its_longest_chain() -> None:
    [chain] = answers(planted(), "critical")
    names = ("instance", "process", "fragment", "server", "server_seconds")
    assert [chain[name] for name in names] == [0, 0, 1, 1, 4]


def test_participants_of_a_collective_call_are_its_processes_aggregators_and_servers() -> None:
    [call] = answers(planted(), "participants")
    names = ("processes", "aggregators", "processes_per_aggregator", "servers", "fragments")
    assert [call[name] for name in names] == [2, 1, 2, 2, 2]
    assert call["below_bytes"] == 40 * MEGABYTE
    assert call["exclusive_mpi_share"] == pytest.approx(11 / 18)


def test_the_summary_tells_the_share_of_bytes_that_join_a_call() -> None:
    by_process = answers(planted(), "layers")
    assert [row["joined_bytes_share"] for row in by_process] == pytest.approx([1, 0, 2 / 3])
    assert [row["fragments"] for row in by_process] == [2, 0, 2]
