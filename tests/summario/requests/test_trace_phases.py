"""Phases of traces, their slowest ranks and their stragglers."""

import csv
import json
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from statistics import fmean, median, pstdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ioncast_base.kinds import APIS, OPERATIONS
from summario.phases.selection import system_file_ids
from summario.reading.file_ids import is_among
from summario.reading.log import read_log
from summario.reading.operations import Operations, operations_of
from summario.requests.trace_phases import TracePhase, TracePhases, are_too_many, trace_phases

Request = tuple[int, str, int, float, float]
"""Rank, operation, bytes, start and end in seconds."""


def table(requests: Iterable[Request], api: str = "POSIX") -> Operations:
    rows = list(requests)
    rank, operation, length, start, end = zip(*rows, strict=True) if rows else ((),) * 5
    return Operations(
        api=np.full(len(rows), APIS.index(api), np.int8),
        operation=np.array([OPERATIONS.index(name) for name in operation], np.int8),
        file_id=np.zeros(len(rows), np.uint64),
        rank=np.array(rank, np.int64),
        offset=np.zeros(len(rows), np.int64),
        length=np.array(length, np.int64),
        start_seconds=np.array(start, np.float64),
        end_seconds=np.array(end, np.float64),
        host=np.zeros(len(rows), np.int32),
        hosts=("n1",),
    )


def bursts(*times: tuple[float, float]) -> Operations:
    return table((0, "write", 1024, start, end) for start, end in times)


def spans(phases: Iterable[TracePhase]) -> list[tuple[float, float]]:
    return [(phase.start_seconds, phase.end_seconds) for phase in phases]


# The worked examples of definitions/insights.md, section 4.


def test_mean_plus_deviation_of_two_gaps_does_not_join_three_bursts() -> None:
    assert len(trace_phases(bursts((0, 1), (10, 11), (30, 31)), "POSIX")) == 3


def test_pauses_with_jitter_separate_every_burst() -> None:
    times = [(0, 1), (10.2, 11.2), (20, 21), (30.1, 31.1), (39.9, 40.9)]
    assert spans(trace_phases(bursts(*times), "POSIX")) == times


def test_five_checkpoints_at_equal_distances_are_five_phases() -> None:
    times = [(10.0 * index, 10.0 * index + 1) for index in range(5)]
    assert spans(trace_phases(bursts(*times), "POSIX")) == times


def test_two_distant_bursts_are_two_phases() -> None:
    assert len(trace_phases(bursts((0, 1), (101, 102)), "POSIX")) == 2


def test_short_gaps_do_not_separate_where_there_is_a_long_one() -> None:
    first = [(0.002 * index, 0.002 * index + 0.001) for index in range(10)]
    second = [(start + 5, end + 5) for start, end in first]
    phases = trace_phases(bursts(*first, *second), "POSIX")
    assert spans(phases) == [(first[0][0], first[-1][1]), (second[0][0], second[-1][1])]


# Edges of the rule.


def test_one_request_is_a_phase_and_none_is_not() -> None:
    assert len(trace_phases(table([]), "POSIX")) == 0
    [phase] = trace_phases(bursts((3, 3)), "POSIX")
    assert (phase.duration_seconds, phase.lateness, phase.stragglers) == (0, 0, ())


def test_a_gap_as_long_as_the_time_distance_does_not_separate() -> None:
    assert len(trace_phases(bursts((0, 1), (2, 3)), "POSIX")) == 1
    assert len(trace_phases(bursts((0, 1), (2, 3)), "POSIX", time_distance=0.999)) == 2


def test_a_request_that_spans_others_closes_their_gaps() -> None:
    assert len(trace_phases(bursts((0, 100), (1, 2), (50, 51)), "POSIX")) == 1


def test_gaps_up_to_the_shortest_pause_never_separate() -> None:
    times = [(0.0, 1.0), (1.001, 2.0), (2.001, 3.0), (3.001, 4.0), (4.09, 5.0)]
    assert len(trace_phases(bursts(*times), "POSIX")) == 1
    assert len(trace_phases(bursts(*times), "POSIX", shortest_pause=0.01)) == 2


def test_apis_are_kept_apart() -> None:
    operations = table([(0, "write", 1, 0, 1)], api="MPIIO")
    assert len(trace_phases(operations, "POSIX")) == 0
    assert [phase.api for phase in trace_phases(operations, "MPIIO")] == ["MPIIO"]


@pytest.mark.parametrize(
    ("operations", "expected"),
    [(["read"], "read"), (["write", "write"], "write"), (["write", "read"], "read&write")],
)
def test_the_operations_of_a_phase_are_named(operations: list[str], expected: str) -> None:
    [phase] = trace_phases(table((0, name, 1, 0, 1) for name in operations), "POSIX")
    assert phase.operation == expected


# Ranks.


def test_each_rank_has_its_sums_and_its_last_end() -> None:
    requests = [
        (7, "write", 10, 0.0, 1.0),
        (2, "write", 20, 0.5, 0.75),
        (7, "read", 30, 2.0, 2.5),
        (2, "write", 40, 0.8, 0.9),
    ]
    [phase] = trace_phases(table(requests), "POSIX")
    ranks = phase.ranks
    assert ranks.rank.tolist() == [2, 7]
    assert ranks.requests.tolist() == [2, 2]
    assert ranks.bytes.tolist() == [60, 40]
    assert ranks.busy_seconds.tolist() == pytest.approx([0.35, 1.5])
    assert ranks.end_seconds.tolist() == [0.9, 2.5]
    assert (phase.bytes, phase.requests) == (100, 4)
    # The shortest single request is not the fastest rank: rank 7 has the last end.
    assert (phase.slowest_rank, phase.fastest_rank) == (7, 2)


def test_of_ranks_that_end_together_the_lowest_is_named() -> None:
    [phase] = trace_phases(table((rank, "read", 1, 0, 1) for rank in (5, 3, 9)), "POSIX")
    assert (phase.slowest_rank, phase.fastest_rank) == (3, 3)


def one_late(delay: float, ranks: int = 8, end: float = 10.0) -> TracePhase:
    requests = [(rank, "write", 1, 0.0, end) for rank in range(ranks - 1)]
    [phase] = trace_phases(table([*requests, (ranks - 1, "write", 1, 0.0, end + delay)]), "POSIX")
    return phase


def test_a_rank_that_ends_late_by_more_than_15_percent_of_the_phase_is_a_straggler() -> None:
    # 1.7 of 11.7 seconds are 14.5 %, 1.8 of 11.8 are 15.3 %.
    assert one_late(1.7).stragglers == ()
    assert one_late(1.8).stragglers == (7,)
    assert one_late(1.8).lateness == pytest.approx(1.8 / 11.8)


def test_clocks_that_differ_by_20_ms_make_no_straggler() -> None:
    assert one_late(0.019, end=0.05).stragglers == ()
    assert one_late(0.021, end=0.05).stragglers == (7,)


def test_ranks_that_end_at_scattered_times_are_no_stragglers() -> None:
    # The median end is 5, the median absolute deviation 2.5: only later than 12.5 would count.
    ends = [0.5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    [phase] = trace_phases(
        table((rank, "write", 1, 0.0, end) for rank, end in enumerate(ends)), "POSIX"
    )
    assert phase.stragglers == ()
    assert phase.lateness == 0.5


def test_two_ranks_have_no_straggler() -> None:
    assert one_late(100, ranks=2).stragglers == ()
    assert one_late(100, ranks=3).stragglers == (2,)


def test_many_phases_with_short_pauses_are_too_many() -> None:
    def phases(count: int, pause: float) -> TracePhases:
        times = [(index * (2 + pause), index * (2 + pause) + 2) for index in range(count)]
        found = trace_phases(bursts(*times), "POSIX")
        assert len(found) == count
        return found

    assert are_too_many(phases(101, 1.5))
    assert not are_too_many(phases(100, 1.5))
    assert not are_too_many(phases(101, 2.5))
    assert are_too_many(phases(11, 1.5), most=10)
    assert not are_too_many(trace_phases(table([]), "POSIX"))


# The rule, written as slowly and literally as the definition.

ticks = st.integers(0, 400).map(lambda tick: tick / 8)
requests_of_ranks = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(OPERATIONS),
        st.integers(0, 1 << 30),
        ticks,
        st.integers(0, 40).map(lambda tick: tick / 8),
    ).map(lambda row: (*row[:4], row[3] + row[4])),
    max_size=30,
)


def oracle(requests: list[Request], time_distance: float) -> list[tuple[object, ...]]:
    intervals: list[list[float]] = []
    for start, end in sorted((start, end) for _, _, _, start, end in requests):
        if intervals and start <= intervals[-1][1]:
            intervals[-1][1] = max(intervals[-1][1], end)
        else:
            intervals.append([start, end])
    gaps = [after[0] - before[1] for before, after in pairwise(intervals)]
    if len(gaps) <= 2 or pstdev(gaps) <= fmean(gaps) / 2:
        threshold = time_distance
    else:
        threshold = min(max(fmean(gaps) + pstdev(gaps), 0.1), time_distance)
    phases: list[list[float]] = []
    for start, end in intervals:
        if phases and start - phases[-1][1] <= threshold:
            phases[-1][1] = end
        else:
            phases.append([start, end])
    return [oracle_phase(requests, start, end) for start, end in phases]


def oracle_phase(requests: list[Request], start: float, end: float) -> tuple[object, ...]:
    inside = [row for row in requests if start <= row[3] <= end]
    ends = {
        rank: max(row[4] for row in inside if row[0] == rank)
        for rank in sorted({row[0] for row in inside})
    }
    middle = median(ends.values())
    deviation = median(abs(last - middle) for last in ends.values())
    least = max(0.15 * (end - start), 3 * deviation, 0.02)
    late = tuple(rank for rank, last in ends.items() if last - middle > least)
    return (
        start,
        end,
        "&".join(name for name in ("read", "write") if any(row[1] == name for row in inside)),
        sum(row[2] for row in inside),
        len(inside),
        max(ends, key=lambda rank: ends[rank]),
        min(ends, key=lambda rank: ends[rank]),
        late if len(ends) >= 3 else (),
        pytest.approx((max(ends.values()) - middle) / (end - start) if end > start else 0),
        [
            (rank, sum(row[2] for row in own), len(own), sum(row[4] - row[3] for row in own), last)
            for rank, last in ends.items()
            for own in [[row for row in inside if row[0] == rank]]
        ],
    )


@given(requests_of_ranks, st.sampled_from([0.0, 0.5, 1.0, 4.0]))
def test_phases_are_those_of_the_definition(requests: list[Request], distance: float) -> None:
    found = trace_phases(table(requests), "POSIX", time_distance=distance)
    assert [
        (
            phase.start_seconds,
            phase.end_seconds,
            phase.operation,
            phase.bytes,
            phase.requests,
            phase.slowest_rank,
            phase.fastest_rank,
            phase.stragglers,
            phase.lateness,
            list(
                zip(
                    phase.ranks.rank.tolist(),
                    phase.ranks.bytes.tolist(),
                    phase.ranks.requests.tolist(),
                    phase.ranks.busy_seconds.tolist(),
                    phase.ranks.end_seconds.tolist(),
                    strict=True,
                )
            ),
        )
        for phase in found
    ] == oracle(requests, distance)


# Genuine logs.


def test_phases_of_genuine_logs_are_those_of_the_rules(shared_data: Path) -> None:
    """The manifest's `phases_by_rule`, at the api of each run."""
    with (shared_data / "runs/manifest.csv").open() as file:
        runs = [row for row in csv.DictReader(file) if row["dxt"] == "1"]
    different = set()
    for run in runs:
        log = read_log(shared_data / "runs" / run["log"])
        operations = operations_of(log)
        operations = operations.take(~is_among(operations.file_id, system_file_ids(log)))
        if len(trace_phases(operations, run["api"])) != int(run["phases_by_rule"]):
            different.add(run["name"])
    assert len(runs) == 25
    # Reads that follow the writes at once are a phase of their own kind, but no pause is between.
    assert different == {"wr-shared-dxt"}


@pytest.mark.parametrize(
    "name",
    ["imbalance-shared", "partial-ranks-0-7-of-24", "reopen-same-5x", "two-shared-10s"],
)
def test_ranks_end_when_the_program_says(shared_data: Path, name: str) -> None:
    """Each phase of the program noted its bytes, its requests and the end of every rank."""
    truth = json.loads((shared_data / f"runs/truth/{name}-dxt.json").read_text())["phases"]
    log = read_log(shared_data / f"runs/logs/{name}-dxt.darshan")
    found = trace_phases(operations_of(log), "POSIX")
    assert [(phase.bytes, phase.requests) for phase in found] == [
        (real["bytes"], real["requests"]) for real in truth
    ]
    for phase, real in zip(found, truth, strict=True):
        assert len(phase.ranks.rank) == real["active_ranks"]
        ends = [real["rank_t1"][rank] - real["t_io_first"] for rank in phase.ranks.rank]
        # The clocks of the ranks differ by up to 20 ms.
        assert phase.ranks.end_seconds - phase.start_seconds == pytest.approx(ends, abs=0.02)
