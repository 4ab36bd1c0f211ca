"""The MPI-IO calls of traced requests: planted traces, made-up traces, and genuine logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast_base.kinds import APIS, OPERATIONS
from summario.reading.log import read_log
from summario.reading.operations import COLUMNS, UNKNOWN_OFFSET, Operations, operations_of, stack
from summario.reading.records import Records
from summario.requests.calls import CLOCK_SECONDS, NO_CALL, CallsOfRequests, join_calls
from tests.support.examples import examples

FILE = 7
MIB = 1 << 20
GENUINE = {
    "hacc-mpiio-ssf-64x100k": 1,
    "hacc-mpiio-ssf-8x100k": 1,
    "mpiio-coll-contig": 1,
    "mpiio-coll-contig-cb4": None,
    "mpiio-coll-strided": 1,
    "mpiio-coll-strided-cb1": None,
    "mpiio-coll-strided-read-cb4": None,
    "mpiio-indep-contig": 1,
    "mpiio-indep-strided": 1,
}

Row = tuple[str, str, int, float, float]
"""An api, an operation, a rank, a start and an end in seconds."""


def trace_of(
    rows: Iterable[Row], ranges: Iterable[tuple[int, int]] | None = None, file: int = FILE
) -> Operations:
    api, operation, rank, start, end = zip(*rows, strict=True)
    offset, length = zip(*(ranges or [(UNKNOWN_OFFSET, MIB)] * len(api)), strict=True)
    return Operations(
        api=np.array([APIS.index(each) for each in api], np.int8),
        operation=np.array([OPERATIONS.index(each) for each in operation], np.int8),
        file_id=np.full(len(api), file, np.uint64),
        rank=np.array(rank),
        offset=np.array(offset),
        length=np.array(length),
        start_seconds=np.array(start),
        end_seconds=np.array(end),
        host=np.zeros(len(api), np.int32),
        hosts=("n0",),
    )


def together(*traces: Operations) -> Operations:
    return Operations(
        **stack([{name: getattr(trace, name) for name in COLUMNS} for trace in traces])
    )


def counted(**counters: int) -> Records:
    """The MPI-IO record of the file, with some counters."""
    columns = {f"MPIIO_{name}": 2 + place for place, name in enumerate(counters)}
    words = np.array([[FILE, -1, *counters.values()]], np.int64)
    return Records("MPI-IO", words, columns, partial=False)


def genuine(path: Path) -> tuple[Operations, CallsOfRequests]:
    log = read_log(path)
    trace = operations_of(log)
    full = [api for api in APIS if f"DXT_{api}" in log.header.partial_modules]
    return trace, join_calls(trace, [log.records["MPI-IO"]], full)


def exclusive_seconds(trace: Operations, calls: CallsOfRequests, call: int) -> float:
    """The time of a call that none of its fragments takes, for fragments that do not overlap."""
    own = calls.fragment >= 0
    own &= calls.call == call
    below = (trace.end_seconds[own] - trace.start_seconds[own]).sum()
    return float(trace.end_seconds[call] - trace.start_seconds[call] - below)


def test_a_call_of_9_s_over_fragments_of_3_and_4_s_has_2_s_of_its_own() -> None:
    trace = trace_of(
        [
            ("POSIX", "write", 0, 1.0, 4.0),
            ("POSIX", "write", 0, 5.0, 9.0),
            ("MPIIO", "write", 0, 0.5, 9.5),
        ]
    )
    calls = join_calls(trace, [])
    assert calls.call.tolist() == [2, 2, 2]
    assert calls.call_number.tolist() == [0, 0, 0]
    assert calls.fragment.tolist() == [0, 1, NO_CALL]
    assert calls.instance.tolist() == [NO_CALL] * 3
    assert exclusive_seconds(trace, calls, 2) == 2
    assert calls.joined_share(trace) == 1


def test_a_request_outside_of_any_call_is_kept_without_a_call() -> None:
    rows: list[Row] = [
        ("MPIIO", "write", 0, 1.0, 2.0),
        ("POSIX", "write", 0, 1.5, 2.5),  # Ends after the call.
        ("POSIX", "write", 0, 3.0, 4.0),
        ("POSIX", "write", 1, 1.2, 1.4),  # Of another process.
        ("POSIX", "write", 0, 1.0 - CLOCK_SECONDS / 2, 2.0 + CLOCK_SECONDS / 2),
    ]
    trace = trace_of(rows)
    calls = join_calls(trace, [])
    assert calls.call.tolist() == [0, NO_CALL, NO_CALL, NO_CALL, 0]
    assert calls.without_call(trace).tolist() == [False, True, True, True, False]
    assert calls.joined_share(trace) == 1 / 4
    elsewhere = trace_of(rows[4:], file=8)
    assert join_calls(together(trace, elsewhere), []).call.tolist() == [
        0,
        NO_CALL,
        NO_CALL,
        NO_CALL,
        0,
        NO_CALL,
    ]


def test_a_write_call_has_reads_below_but_a_read_call_has_no_writes() -> None:
    rows: list[Row] = [
        ("MPIIO", "write", 0, 1.0, 2.0),
        ("POSIX", "read", 0, 1.2, 1.4),
        ("MPIIO", "read", 0, 3.0, 4.0),
        ("POSIX", "write", 0, 3.2, 3.4),
    ]
    assert join_calls(trace_of(rows), []).call.tolist() == [0, 0, 2, NO_CALL]


def test_of_two_open_calls_of_threads_the_one_with_the_bytes_has_the_request() -> None:
    rows: list[Row] = [
        ("MPIIO", "write", 0, 1.0, 5.0),
        ("MPIIO", "write", 0, 2.0, 6.0),
        *[("POSIX", "write", 0, 3.0, 4.0)] * 3,
    ]
    ranges = [(0, 10), (100, 10), (5, 5), (100, 10), (50, 1)]
    # The last request is in the range of neither, so the last call to start has it.
    assert join_calls(trace_of(rows, ranges), []).call[2:].tolist() == [0, 1, 1]


def test_a_long_call_has_its_requests_after_many_short_calls_of_another_thread() -> None:
    short = 1_000
    rows: list[Row] = [("MPIIO", "write", 0, 0.0, 9_000.0)]
    rows += [("MPIIO", "write", 0, 1.0 + n, 1.5 + n) for n in range(short)]
    rows += [("POSIX", "write", 0, 1.1 + n, 1.4 + n) for n in range(short)]
    rows += [("POSIX", "write", 0, 1.6 + n, 1.9 + n) for n in range(short)]
    calls = join_calls(trace_of(rows), [])
    assert calls.call[1 + short : 1 + 2 * short].tolist() == list(range(1, short + 1))
    assert set(calls.call[1 + 2 * short :].tolist()) == {0}


def test_calls_are_numbered_over_all_files_of_a_process() -> None:
    first = trace_of([("MPIIO", "write", 0, float(t), t + 0.5) for t in (0, 4)])
    second = trace_of([("MPIIO", "read", 0, 2.0, 2.5), ("MPIIO", "read", 1, 3.0, 3.5)], file=8)
    assert join_calls(together(first, second), []).call_number.tolist() == [0, 2, 1, 0]


def test_requests_of_overlapping_collective_calls_are_of_the_aggregators_own_calls() -> None:
    # Rank 1 is late: its first call ends after the second one of rank 0 has begun.
    rows: list[Row] = [
        ("MPIIO", "write", 0, 0.0, 1.0),
        ("MPIIO", "write", 0, 1.1, 3.0),
        ("MPIIO", "write", 1, 0.1, 1.5),
        ("MPIIO", "write", 1, 1.6, 3.1),
        ("POSIX", "write", 0, 0.2, 0.9),
        ("POSIX", "write", 0, 1.2, 1.4),
        ("POSIX", "write", 0, 1.5, 2.9),
    ]
    calls = join_calls(trace_of(rows), [counted(COLL_WRITES=4)])
    assert calls.call[4:].tolist() == [0, 1, 1]
    assert calls.instance.tolist() == [0, 1, 0, 1, 0, 1, 1]
    assert calls.fragment[4:].tolist() == [0, 0, 1]
    assert calls.not_unique == 0


def test_collective_calls_beside_independent_ones_are_told_apart_where_counts_tell() -> None:
    # Rank 0 also writes a header: which of its three calls are collective?
    rows: list[Row] = [("MPIIO", "write", 0, float(t), t + 0.5) for t in range(3)]
    rows += [("MPIIO", "write", 1, float(t), t + 0.5) for t in (1, 2)]
    calls = join_calls(trace_of(rows), [counted(COLL_WRITES=4, INDEP_WRITES=1)])
    assert calls.instance.tolist() == [NO_CALL, NO_CALL, NO_CALL, 0, 1]
    assert calls.not_unique == 3
    assert calls.call_number.tolist() == [0, 1, 2, 0, 1]
    # Processes with unequal numbers of collective calls only.
    calls = join_calls(trace_of(rows), [counted(COLL_WRITES=5)])
    assert set(calls.instance.tolist()) == {NO_CALL}
    assert calls.not_unique == 5
    # No call is collective.
    calls = join_calls(trace_of(rows), [counted(INDEP_WRITES=5)])
    assert (set(calls.instance.tolist()), calls.not_unique) == ({NO_CALL}, 0)


@pytest.mark.parametrize("kind", ["NB_WRITES", "SPLIT_WRITES"])
def test_requests_after_a_nonblocking_call_are_told_by_their_bytes(kind: str) -> None:
    rows: list[Row] = [
        ("MPIIO", "write", 0, 1.0, 1.1),
        ("MPIIO", "write", 0, 2.0, 2.1),
        ("POSIX", "write", 0, 3.0, 4.0),
        ("POSIX", "write", 0, 3.0, 4.0),
        ("POSIX", "write", 0, 3.0, 4.0),
        ("POSIX", "write", 0, 0.1, 0.2),  # Before the call.
    ]
    ranges = [(0, 10), (10, 10), (12, 4), (0, 10), (30, 10), (0, 10)]
    trace = trace_of(rows, ranges)
    calls = join_calls(trace, [counted(**{kind: 2})])
    assert calls.call[2:].tolist() == [1, 0, NO_CALL, NO_CALL]
    assert set(join_calls(trace, [counted(INDEP_WRITES=2)]).call[2:].tolist()) == {NO_CALL}


def test_after_a_full_trace_nothing_belongs_to_a_call() -> None:
    rows: list[Row] = [("MPIIO", "write", 0, float(t), t + 0.5) for t in range(3)]
    rows += [("POSIX", "write", 0, t + 0.1, t + 0.2) for t in range(2)]
    rows += [("MPIIO", "write", 1, 5.0, 6.0), ("POSIX", "write", 1, 5.1, 5.2)]
    trace = trace_of(rows)
    # The POSIX trace of rank 0 ends at 1.2 s, within its second call.
    calls = join_calls(trace, [], ["POSIX"])
    assert calls.call.tolist() == [0, -1, -1, 0, -1, -1, -1]
    assert calls.is_cut.tolist() == [False, True, True, False, False, True, False]
    assert join_calls(trace, [], ["MPIIO"]).call.tolist() == [0, 1, 2, 0, 1, 5, 5]


def test_a_trace_without_requests_or_of_one_layer_has_no_calls() -> None:
    trace = trace_of([("POSIX", "write", 0, 0.0, 1.0), ("MPIIO", "read", 0, 2.0, 3.0)])
    for part in (slice(0, 0), slice(0, 1), slice(1, 2)):
        calls = join_calls(trace.take(part), [counted(COLL_READS=1)])
        assert len(calls.call) == len(trace.take(part))
        assert not (calls.fragment >= 0).any()


TIMES = st.integers(0, 60).map(lambda tenths: tenths / 10)


@st.composite
def made_up(draw: Any) -> Operations:
    """Some calls, and requests of which most are within one of them."""
    rows: list[Row] = []
    for _ in range(draw(st.integers(1, 12))):
        start, length = draw(TIMES), draw(TIMES) / 4
        kind, rank = draw(st.sampled_from(OPERATIONS)), draw(st.integers(0, 1))
        rows.append(("MPIIO", kind, rank, start, start + length))
        for _ in range(draw(st.integers(0, 3))):
            at = start + draw(st.integers(-1, 8)) / 8 * length
            rows.append(("POSIX", kind, rank, at, at + length / 8))
    ranges = [(draw(st.integers(-1, 5)), draw(st.integers(0, 5))) for _ in rows]
    return trace_of(draw(st.permutations(rows)), ranges)


@settings(max_examples=examples(300))
@given(made_up())
def test_a_request_is_within_its_call_and_has_one_where_a_plain_search_finds_one(
    trace: Operations,
) -> None:
    calls = join_calls(trace, [])
    is_call = trace.api == APIS.index("MPIIO")
    for row in np.flatnonzero(~is_call).tolist():
        possible = is_call & (trace.rank == trace.rank[row])
        possible &= trace.operation >= trace.operation[row]  # A write call has both.
        possible &= trace.start_seconds <= trace.start_seconds[row] + CLOCK_SECONDS
        possible &= trace.end_seconds >= trace.end_seconds[row] - CLOCK_SECONDS
        end = trace.offset[row] + trace.length[row]
        has_bytes = possible & (trace.offset >= 0) & (trace.offset <= trace.offset[row])
        has_bytes &= trace.offset + trace.length >= end
        best = has_bytes if has_bytes.any() else possible
        call = int(calls.call[row])
        assert (call == NO_CALL) == (not possible.any())
        if possible.any():
            # Of several equal starts either call may have it.
            assert best[call]
            assert trace.start_seconds[call] == trace.start_seconds[best].max()
            assert calls.call_number[row] == calls.call_number[call]


@settings(max_examples=examples(300))
@given(made_up())
def test_numbers_count_from_0_without_gaps_and_in_the_order_of_starts(trace: Operations) -> None:
    calls = join_calls(trace, [])
    is_call = trace.api == APIS.index("MPIIO")
    groups = [(calls.call_number, is_call & (trace.rank == rank)) for rank in (0, 1)]
    groups += [
        (calls.fragment, ~is_call & (calls.call == call)) for call in np.flatnonzero(is_call)
    ]
    for numbers, rows in groups:
        order = np.argsort(numbers[rows])
        assert numbers[rows][order].tolist() == list(range(np.count_nonzero(rows)))
        assert (np.diff(trace.start_seconds[rows][order]) >= 0).all()


@settings(max_examples=examples(100))
@given(made_up(), st.randoms())
def test_the_order_of_rows_changes_no_call_where_starts_differ(
    trace: Operations, random: Any
) -> None:
    # Distinct starts, far above the clock.
    shift = np.arange(len(trace)) * 1e-4
    trace = replace(
        trace, start_seconds=trace.start_seconds + shift, end_seconds=trace.end_seconds + shift
    )
    order = np.array(random.sample(range(len(trace)), len(trace)))
    expected, calls = join_calls(trace, []), join_calls(trace.take(order), [])
    assert calls.fragment.tolist() == expected.fragment[order].tolist()
    assert calls.call_number.tolist() == expected.call_number[order].tolist()
    found = np.where(calls.call == NO_CALL, NO_CALL, order[calls.call])
    assert found.tolist() == expected.call[order].tolist()


@pytest.mark.parametrize("name", GENUINE)
def test_all_requests_of_genuine_logs_are_joined_and_no_call_is_shorter_than_its_fragments(
    shared_data: Path, name: str
) -> None:
    trace, calls = genuine(shared_data / "runs" / "logs" / f"{name}-dxt.darshan")
    assert not calls.without_call(trace).any()
    fragments = Counter(calls.call[calls.fragment >= 0].tolist())
    each = GENUINE[name]
    if each is not None:
        assert set(fragments.values()) == {each}
        assert len(fragments) == np.count_nonzero(trace.api == APIS.index("MPIIO"))
    for call in fragments:
        assert exclusive_seconds(trace, calls, call) >= -CLOCK_SECONDS * (fragments[call] + 1)


@pytest.mark.parametrize(
    ("name", "aggregators", "instances", "above", "written", "read"),
    [
        ("mpiio-coll-contig-cb4", 4, 16, 256, 3136, 2992),
        ("mpiio-coll-strided-cb1", 1, 64, None, None, 0),
        ("mpiio-coll-strided-read-cb4", 4, 64, None, 0, 256),
        ("mpiio-coll-contig", 16, 16, 256, 256, 0),
        ("mpiio-coll-strided", 16, 64, None, None, 0),
    ],
)
def test_collective_calls_of_genuine_logs_have_their_aggregators_and_bytes(
    shared_data: Path,
    name: str,
    aggregators: int,
    instances: int,
    above: int | None,
    written: int | None,
    read: int | None,
) -> None:
    trace, calls = genuine(shared_data / "runs" / "logs" / f"{name}-dxt.darshan")
    below = calls.fragment >= 0
    assert len(np.unique(trace.rank[below])) == aggregators
    assert np.unique(calls.instance).tolist() == list(range(instances))
    # Each of the 16 processes takes part in each collective call once.
    above_rows = trace.api == APIS.index("MPIIO")
    assert set(np.bincount(calls.instance[above_rows]).tolist()) == {16}
    moved = [
        (trace.length[below & (trace.operation == index)].sum()) / MIB
        for index in map(OPERATIONS.index, ("write", "read"))
    ]
    for expected, found in ((written, moved[0]), (read, moved[1])):
        assert expected is None or found == expected
    assert above is None or trace.length[above_rows].sum() == above * MIB


def test_one_aggregator_makes_64_writes_and_independent_strides_are_1024(
    shared_data: Path,
) -> None:
    logs = shared_data / "runs" / "logs"
    _, calls = genuine(logs / "mpiio-coll-strided-cb1-dxt.darshan")
    assert np.count_nonzero(calls.fragment >= 0) == 64
    _, calls = genuine(logs / "mpiio-indep-strided-dxt.darshan")
    assert np.count_nonzero(calls.fragment == 0) == 1024
    assert set(calls.instance.tolist()) == {NO_CALL}


def test_a_log_with_full_traces_is_joined_but_for_the_last_requests(shared_data: Path) -> None:
    folder = shared_data / "darshan-logs" / "partial_data_dxt"
    trace, calls = genuine(folder / "partial_data_dxt.darshan")
    assert calls.joined_share(trace) == pytest.approx(0.9999, abs=1e-4)
    # DXT kept 7 more requests of POSIX than of MPI-IO.
    assert 0 < np.count_nonzero(calls.without_call(trace)) <= 7
    assert calls.is_cut[calls.without_call(trace)].all()


def test_all_requests_of_a_log_of_hdf5_are_joined(shared_data: Path) -> None:
    [path] = (shared_data / "darshan-logs" / "ior_hdf5_lustre_dxt").rglob("*.darshan")
    trace, calls = genuine(path)
    assert len(trace) == 118
    assert not calls.without_call(trace).any()
