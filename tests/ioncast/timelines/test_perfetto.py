"""A trace for Perfetto has every request once, and no track on which Perfetto leaves some out."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.timelines.perfetto import write_perfetto
from ioncast.timelines.requests import TIMELINE_MODULES, TimedRequests, timed_requests
from ioncast_base.errors import InputError
from ioncast_base.kinds import APIS, OPERATIONS
from summario.reading.log import DarshanLog, read_log
from summario.reading.operations import UNKNOWN_OFFSET, Operations
from summario.runs.logs_of_run import run_of
from tests.support.examples import examples

FIXTURES = Path(__file__).resolve().parents[2] / "summario" / "fixtures"
Event = dict[str, Any]
Request = tuple[int, float, float, int]


def read(log: Path) -> tuple[DarshanLog, TimedRequests]:
    decoded = read_log(log, modules=TIMELINE_MODULES)
    requests = timed_requests(run_of([decoded]))
    assert requests is not None
    return decoded, requests


def written(path: Path, requests: TimedRequests, names: dict[int, str]) -> list[Event]:
    write_perfetto(path, requests, names)
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["displayTimeUnit"] == "ms"
    events: list[Event] = document["traceEvents"]
    return events


def slices_of(events: list[Event]) -> list[Event]:
    return [event for event in events if event["ph"] == "X"]


def names_of(events: list[Event], kind: str) -> dict[tuple[int, int], str]:
    return {
        (event["pid"], event["tid"]): event["args"]["name"]
        for event in events
        if event["name"] == f"{kind}_name"
    }


def made(requests: list[Request]) -> TimedRequests:
    """Make POSIX requests of a rank, with their start and duration in seconds, and bytes."""
    rank, start, seconds, moved = (np.array(column) for column in zip(*requests, strict=True))
    nothing = np.zeros(len(rank), np.int64)
    table = Operations(
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
    return TimedRequests(table, 10, None)


def nanoseconds(microseconds: float) -> int:
    """Read a time as Perfetto does: it multiplies the parts, and drops the rest."""
    whole, _, part = f"{microseconds!r}".partition(".")
    return int((float(whole) + float(part) / 10 ** len(part)) * 1000.0)


def left_out(events: list[Event]) -> list[Event]:
    """Put slices on stacks as Perfetto's slice_tracker.cc does; return those that it drops."""
    stacks: dict[tuple[int, int], list[int]] = defaultdict(list)
    dropped = []
    # Perfetto sorts by start; of equal starts the first in the file stays first.
    for event in sorted(events, key=lambda event: nanoseconds(event["ts"])):
        start = nanoseconds(event["ts"])
        end = start + nanoseconds(event["dur"])
        stack = stacks[event["pid"], event["tid"]]
        while stack and stack[-1] <= start:
            stack.pop()
        if stack and end > stack[-1]:
            dropped.append(event)
        else:
            stack.append(end)
    return dropped


def same_times(event: Event, table: Operations, row: int) -> bool:
    start_us, end_us = event["ts"], event["ts"] + event["dur"]
    expected = (1e6 * table.start_seconds[row], 1e6 * table.end_seconds[row])
    return (start_us, end_us) == pytest.approx(expected, rel=1e-12, abs=0.063)


@pytest.mark.parametrize("log", sorted(FIXTURES.glob("*dxt*.darshan")), ids=lambda log: log.stem)
def test_every_request_of_a_trace_is_an_event(tmp_path: Path, log: Path) -> None:
    decoded, requests = read(log)
    table = requests.operations
    events = written(tmp_path / "trace.json", requests, decoded.names)
    slices = slices_of(events)
    assert len(slices) == len(table) > 0
    assert sum(event["args"]["bytes"] for event in slices) == table.length.sum()
    # A rank, an offset, a file and an operation are one request.
    rows = {
        (OPERATIONS[operation], rank, offset, decoded.names[file_id]): row
        for row, (operation, rank, offset, file_id) in enumerate(
            zip(
                *(table.operation.tolist(), table.rank.tolist()),
                *(table.offset.tolist(), table.file_id.tolist()),
                strict=True,
            )
        )
    }
    assert len(rows) == len(table)
    for event in slices:
        arguments = event["args"]
        key = (event["name"], event["tid"] // 64, arguments["offset"], arguments["file"])
        row = rows.pop(key)
        assert same_times(event, table, row)
        assert arguments["bytes"] == table.length[row]
        assert arguments["host"] == table.hosts[table.host[row]]
    assert left_out(slices) == []


def test_mpi_io_is_a_process_before_posix(tmp_path: Path, shared_data: Path) -> None:
    decoded, requests = read(shared_data / "runs/logs/mpiio-coll-contig-dxt.darshan")
    events = written(tmp_path / "trace.json", requests, decoded.names)
    processes = {pid: name for (pid, _), name in names_of(events, "process").items()}
    assert processes == {1: "MPI-IO", 2: "POSIX"}
    orders = {
        event["pid"]: event["args"]["sort_index"]
        for event in events
        if event["name"] == "process_sort_index"
    }
    assert orders[1] < orders[2]
    api = requests.operations.api
    for pid, name in ((1, "MPIIO"), (2, "POSIX")):
        of_process = [event for event in slices_of(events) if event["pid"] == pid]
        assert len(of_process) == np.count_nonzero(api == APIS.index(name))
    assert left_out(slices_of(events)) == []


def test_every_thread_with_requests_has_the_name_of_its_rank(tmp_path: Path) -> None:
    events = written(
        tmp_path / "trace.json", made([(0, 0, 2, 1), (0, 1, 2, 1), (0, 1, 1, 1), (7, 0, 1, 1)]), {}
    )
    assert names_of(events, "thread") == {
        (2, 0): "rank 0",
        (2, 1): "rank 0, at the same time",
        (2, 7 * 64): "rank 7",
    }
    assert {event["tid"] for event in events if event["name"] == "thread_sort_index"} == {0, 1, 448}


def test_a_request_within_another_stays_on_its_track(tmp_path: Path) -> None:
    events = written(tmp_path / "trace.json", made([(3, 1, 1, 1), (3, 0, 4, 1), (3, 3, 1, 1)]), {})
    slices = slices_of(events)
    assert {event["tid"] for event in slices} == {3 * 64}
    assert left_out(slices) == []


def test_a_request_that_begins_as_another_ends_is_on_the_same_track(tmp_path: Path) -> None:
    """Perfetto reads 1.001 microseconds as 1,000 ns: without rounding it leaves requests out."""
    ends = [round(1.001e-6 * n, 12) for n in range(2_001)]
    requests = made([(0, 0, 0, 1)] * 2_000)
    table = replace(
        requests.operations, start_seconds=np.array(ends[:-1]), end_seconds=np.array(ends[1:])
    )
    slices = slices_of(written(tmp_path / "trace.json", replace(requests, operations=table), {}))
    assert {event["tid"] for event in slices} == {0}
    assert left_out(slices) == []


def test_a_hundred_requests_at_the_same_time_have_64_tracks(tmp_path: Path) -> None:
    requests = made([(1, n, 1000, 1) for n in range(100)])
    slices = slices_of(written(tmp_path / "trace.json", requests, {}))
    assert [event["tid"] - 64 for event in slices] == [min(n, 63) for n in range(100)]


def test_hostile_names_of_files_and_hosts_are_printable_texts(tmp_path: Path) -> None:
    name, host = 'a"}],\x1b[2J\n\u202e\ud800\\', '"\x00'
    requests = made([(0, 0, 1, 1)])
    requests = replace(requests, operations=replace(requests.operations, hosts=(host,)))
    [event] = slices_of(written(tmp_path / "trace.json", requests, {0: name}))
    assert event["args"] == {"bytes": 1, "offset": 0, "file": repr(name), "host": repr(host)}
    assert (tmp_path / "trace.json").read_text(encoding="utf-8").replace("\n", "").isprintable()


def test_unknown_offsets_files_and_hosts_are_left_out(tmp_path: Path) -> None:
    requests = made([(0, 0, 1, 5)])
    table = replace(requests.operations, offset=np.array([UNKNOWN_OFFSET]), hosts=("",))
    requests = replace(requests, operations=table)
    [event] = slices_of(written(tmp_path / "trace.json", requests, {1: "/other"}))
    assert event["args"] == {"bytes": 5}


def test_a_heat_map_names_no_files(tmp_path: Path) -> None:
    _, requests = read(FIXTURES / "reopen-same-5x.darshan")
    assert requests.bin_seconds is not None
    slices = slices_of(written(tmp_path / "trace.json", requests, {0: "/not/this"}))
    assert len(slices) == len(requests.operations)
    assert {tuple(event["args"]) for event in slices} == {("bytes",)}
    assert left_out(slices) == []


def test_without_requests_the_trace_is_empty(tmp_path: Path) -> None:
    requests = made([(0, 0, 1, 1)])
    nothing = replace(requests, operations=requests.operations.take(slice(0)))
    assert written(tmp_path / "trace.json", nothing, {}) == []


def test_after_an_error_the_older_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    path.write_text("older", encoding="utf-8")

    def full(*_: object) -> list[str]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ioncast.timelines.perfetto._events", full)
    with pytest.raises(InputError, match="No space left on device"):
        write_perfetto(path, made([(0, 0, 1, 1)]), {})
    assert [each.read_text(encoding="utf-8") for each in tmp_path.iterdir()] == ["older"]


# Few different times, so that requests begin or end together; and times of any number of digits.
TIMES = st.one_of(st.integers(0, 20).map(float), st.floats(0, 1e6, allow_subnormal=False))


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.integers(0, 2), TIMES, TIMES, st.integers(0, 9)), max_size=60))
def test_perfetto_shows_every_request(
    tmp_path_factory: pytest.TempPathFactory, requests: list[Request]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    slices = slices_of(written(path, made(requests), {})) if requests else []
    assert left_out(slices) == []
    assert all(event["dur"] >= 0 for event in slices)
    assert sorted((event["tid"] // 64, event["args"]["bytes"]) for event in slices) == sorted(
        (rank, moved) for rank, _, _, moved in requests
    )
