from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.curve.overlap import seconds_together, timeline_of
from summario.phases.extract import extract_phases
from summario.phases.values import Phase
from summario.reading.log import read_log

TESTBED = Path(__file__).resolve().parents[3] / "experiments" / "data" / "testbed" / "logs"
ROUNDING = 1e-9


def active(start: float, end: float, processes: int = 16, nprocs: int | None = 16) -> Phase:
    """Make a phase of `processes` of `nprocs` from `start` to `end`; other fields do not matter."""
    rank = 0 if processes == 1 else None
    return Phase(
        1, start, end, "write", rank, processes, nprocs, 8, end - start, "POSIX", 1,
        "contiguous", "unique", 1, 1, (),
    )  # fmt: skip


def elapsed(*timed: tuple[Phase, float]) -> float:
    """Compute the time of phases together, from the time of each by itself."""
    return float(timeline_of([p for p, _ in timed]).elapsed(np.array([t for _, t in timed])))


# A coarse grid, so that phases often have equal starts, ends and lengths, or no duration.
moments = st.integers(0, 12).map(lambda quarter: quarter / 4)
phases_of_any_kind = st.builds(
    lambda a, b, processes, nprocs: active(min(a, b), max(a, b), processes, nprocs),
    moments,
    moments,
    st.integers(1, 16),
    st.sampled_from([16, 16, 16, 4, None]),
)
seconds = st.floats(0.001, 1000)
timed_phases = st.lists(st.tuples(phases_of_any_kind, seconds), min_size=1, max_size=8)
Timed = list[tuple[Phase, float]]


def test_two_ranks_at_the_same_time_take_as_long_as_the_slower() -> None:
    one, other = active(0, 2, processes=1), replace(active(0, 2, processes=1), rank=5)
    assert elapsed((one, 3.0), (other, 5.0)) == pytest.approx(5)


def test_all_ranks_that_interleave_two_files_wait_for_both() -> None:
    assert elapsed((active(0, 10), 3.0), (active(1, 9), 5.0)) == pytest.approx(8)


def test_a_header_that_rank_0_writes_during_the_others_data_is_hidden() -> None:
    data, header = active(0, 10, processes=15), active(2, 4, processes=1)
    assert elapsed((data, 10.0), (header, 1.0)) == pytest.approx(10)


def test_a_slow_header_delays_by_what_the_others_data_do_not_hide() -> None:
    # The 2 s of the header in the log hide 2 s of the others' 10 s.
    data, header = active(0, 10, processes=15), active(2, 4, processes=1)
    assert elapsed((data, 10.0), (header, 7.0)) == pytest.approx(8 + 7)


def test_half_the_processes_twice_at_the_same_time_are_all_of_them_once() -> None:
    halves = [(active(0, 1, processes=8), 2.0)] * 2
    assert elapsed(*halves) == pytest.approx(2)


def test_a_process_of_average_load_waits_at_least_for_its_share() -> None:
    # Four phases of 8 of 16 processes: each process is in two phases on average.
    assert elapsed(*[(active(0, 1, processes=8), 2.0)] * 4) == pytest.approx(4)


def test_only_what_overlaps_is_hidden() -> None:
    # Half of each phase overlaps the other, which takes 2 s and 3 s: 2 + max(2, 3) + 3.
    early, late = active(0, 2, processes=1), active(1, 3, processes=1)
    assert elapsed((early, 4.0), (late, 6.0)) == pytest.approx(8)


def test_phases_add_up_if_the_jobs_size_is_unknown() -> None:
    one = active(0, 1, processes=1, nprocs=None)
    assert elapsed((one, 3.0), (one, 5.0)) == pytest.approx(8)


def test_a_phase_without_duration_in_the_log_still_takes_its_time() -> None:
    data, moment = active(0, 10, processes=15), active(3, 3, processes=1)
    assert elapsed((data, 10.0), (moment, 1.0)) == pytest.approx(11)
    assert elapsed((moment, 1.0), (moment, 4.0)) == pytest.approx(4)


def test_phases_that_only_touch_are_simply_summed() -> None:
    in_turn = [active(0, 1, processes=1), active(1, 2, processes=1), active(2, 3)]
    assert timeline_of(in_turn).added.tolist() == [0, 1, 2]
    assert timeline_of([*in_turn, active(0.5, 1.5)]).added.tolist() == [2]


def test_no_phases_take_no_time() -> None:
    assert timeline_of([]).elapsed(np.zeros((0, 3))).tolist() == [0, 0, 0]


def by_the_rule(timed: Timed) -> float:
    """Compute the definition exactly, segment by segment; an instant is a segment of its own."""

    def taken(together: Sequence[tuple[Fraction, Phase]]) -> Fraction:
        shares = [
            x * min(Fraction(1), Fraction(p.processes, p.nprocs or p.processes))
            for x, p in together
        ]
        return max([sum(shares, Fraction(0)), *(x for x, _ in together)])

    spans = [(Fraction(p.start_seconds), Fraction(p.end_seconds), Fraction(t), p) for p, t in timed]
    total = Fraction(0)
    for moment in {start for start, end, _, _ in spans if start == end}:
        total += taken([(t, p) for start, end, t, p in spans if start == end == moment])
    cuts = sorted({cut for start, end, _, _ in spans for cut in (start, end)})
    for low, high in pairwise(cuts):
        total += taken(
            [
                (t * (high - low) / (end - start), p)
                for start, end, t, p in spans
                if start <= low and end >= high and end > start
            ]
        )
    return float(total)


@given(timed=timed_phases)
@settings(deadline=None)
def test_the_total_is_that_of_the_definition(timed: Timed) -> None:
    assert elapsed(*timed) == pytest.approx(by_the_rule(timed))


@given(timed=timed_phases, another=st.tuples(phases_of_any_kind, seconds))
@settings(deadline=None)
def test_another_phase_never_shortens_the_total_nor_adds_more_than_its_own_time(
    timed: Timed, another: tuple[Phase, float]
) -> None:
    before, with_it = elapsed(*timed), elapsed(*timed, another)
    assert before * (1 - ROUNDING) <= with_it <= (before + another[1]) * (1 + ROUNDING)


@given(timed=timed_phases, data=st.data())
@settings(deadline=None)
def test_a_slower_phase_never_shortens_the_total(timed: Timed, data: st.DataObject) -> None:
    i = data.draw(st.integers(0, len(timed) - 1))
    slower = [*timed[:i], (timed[i][0], timed[i][1] * 2), *timed[i + 1 :]]
    assert elapsed(*slower) >= elapsed(*timed) * (1 - ROUNDING)


@given(timed=timed_phases, data=st.data())
@settings(deadline=None)
def test_the_order_of_the_phases_does_not_matter(timed: Timed, data: st.DataObject) -> None:
    assert elapsed(*data.draw(st.permutations(timed))) == pytest.approx(elapsed(*timed))


@given(timed=timed_phases, factor=st.floats(1e-6, 1e6))
@settings(deadline=None)
def test_phases_that_all_take_longer_take_longer_together_by_as_much(
    timed: Timed, factor: float
) -> None:
    longer = [(phase, time * factor) for phase, time in timed]
    assert elapsed(*longer) == pytest.approx(elapsed(*timed) * factor)


@given(timed=timed_phases, later=st.floats(-100, 1e6), slower=st.floats(0.01, 100))
@settings(deadline=None)
def test_when_the_log_began_and_how_slow_it_was_does_not_matter(
    timed: Timed, later: float, slower: float
) -> None:
    moved = [
        (
            replace(
                p,
                start_seconds=later + p.start_seconds * slower,
                end_seconds=later + p.end_seconds * slower,
            ),
            t,
        )
        for p, t in timed
    ]
    assert elapsed(*moved) == pytest.approx(elapsed(*timed), rel=1e-6)


@given(phase=phases_of_any_kind, time=seconds)
def test_a_phase_alone_takes_its_own_time(phase: Phase, time: float) -> None:
    assert elapsed((phase, time)) == time


@given(timed=timed_phases)
@settings(deadline=None)
def test_phases_that_do_not_overlap_in_the_log_add_up(timed: Timed) -> None:
    # Put the phases one after the other, without gaps.
    begin, in_turn = 0.0, []
    for phase, time in timed:
        end = begin + phase.end_seconds - phase.start_seconds
        # Two phases without duration would be at the same instant and overlap.
        if end > begin:
            in_turn.append((replace(phase, start_seconds=begin, end_seconds=end), time))
        begin = end
    assert elapsed(*in_turn) == pytest.approx(sum(time for _, time in in_turn))


@given(timed=timed_phases)
@settings(deadline=None)
def test_phases_of_all_processes_add_up_even_where_they_overlap(timed: Timed) -> None:
    everyone = [(replace(phase, processes=16, nprocs=16), time) for phase, time in timed]
    assert elapsed(*everyone) == pytest.approx(sum(time for _, time in timed))


@given(timed=timed_phases)
@settings(deadline=None)
def test_the_total_is_between_the_longest_and_the_sum(timed: Timed) -> None:
    times = [time for _, time in timed]
    assert max(times) * (1 - ROUNDING) <= elapsed(*timed) <= sum(times) * (1 + ROUNDING)


@given(phases=st.lists(phases_of_any_kind, min_size=1, max_size=6), seed=st.integers(0, 99))
@settings(deadline=None)
def test_draws_by_io_nodes_are_each_what_they_are_alone(phases: list[Phase], seed: int) -> None:
    times = np.random.default_rng(seed).uniform(1, 9, (len(phases), 3, 2))
    timeline = timeline_of(phases)
    together = timeline.elapsed(times)
    assert together.shape == (3, 2)
    for draw, n in np.ndindex(3, 2):
        assert together[draw, n] == pytest.approx(float(timeline.elapsed(times[:, draw, n])))


@pytest.mark.slow
@pytest.mark.parametrize("overlap", [0.5, 4000.0])
def test_five_thousand_overlapping_phases_need_little_memory(overlap: float) -> None:
    phases = [active(i, i + 1 + overlap, processes=1, nprocs=64) for i in range(5000)]
    times = np.ones((5000, 2))
    tracemalloc.start()
    total = timeline_of(phases).elapsed(times)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A table of phases by segments would have 50 million entries.
    assert peak < 10_000_000
    assert (total >= 1).all()
    assert (total <= 5000).all()


@pytest.mark.parametrize("log", sorted(TESTBED.glob("*.darshan")), ids=lambda log: log.stem)
def test_the_testbeds_phases_are_of_all_processes_so_their_times_add_up(log: Path) -> None:
    phases = extract_phases(read_log(log))
    times = [phase.io_time_seconds for phase in phases]
    assert elapsed(*zip(phases, times, strict=True)) == pytest.approx(sum(times))


def test_no_process_of_a_real_run_waited_longer_than_the_run(shared_data: Path) -> None:
    logs = sorted(shared_data.glob("io500-traces/ior-*.darshan"))
    logs += sorted(shared_data.glob("darshan-logs/imbalanced_io/*.darshan"))
    overlapping = 0
    for log in logs:
        phases = extract_phases(read_log(log))
        waited = elapsed(*((phase, phase.io_time_seconds) for phase in phases))
        begin = min(phase.start_seconds for phase in phases)
        assert waited <= max(phase.end_seconds for phase in phases) - begin
        overlapping += waited < sum(phase.io_time_seconds for phase in phases) * (1 - 1e-6)
    assert overlapping > 3


# Runs


def ran(start: float, end: float, elapsed: float | None, io_time: float = 0.5, **who: int) -> Phase:
    """Make a phase of a run; `elapsed` seconds from its first open to its last close."""
    phase = replace(active(start, end, **who), io_time_seconds=io_time)
    return replace(phase, elapsed_seconds=elapsed)


def test_a_run_took_the_elapsed_times_of_its_phases() -> None:
    assert seconds_together([ran(0, 4, 4.5), ran(10, 12, 2.5)]) == pytest.approx(7)


def test_elapsed_times_of_phases_at_the_same_time_count_once() -> None:
    """All processes read one file and write another in turns: both take the whole time."""
    assert seconds_together([ran(0, 10, 10.5), ran(0, 10, 10.5)]) == pytest.approx(10.5)
    assert seconds_together([ran(0, 10, 10), ran(4, 6, 2), ran(8, 13, 5)]) == pytest.approx(13)
    # A file is opened half a second before its only request, while another one is written.
    assert seconds_together([ran(0, 10, 10), ran(5, 5, 0.5, processes=1)]) == pytest.approx(10)


def test_a_phase_whose_elapsed_time_is_not_known_takes_its_io_time() -> None:
    assert seconds_together([ran(0, 4, None, 1.5), ran(10, 12, 2.5)]) == pytest.approx(4)
    # A log file, written now and then while a checkpoint is written.
    assert seconds_together([ran(0, 10, None, 0.5), ran(2, 6, 4)]) == pytest.approx(4.3)


runs = st.lists(
    st.builds(
        lambda phase, times: replace(phase, io_time_seconds=times[0], elapsed_seconds=times[1]),
        phases_of_any_kind,
        st.tuples(seconds, st.one_of(st.none(), seconds)),
    ),
    min_size=1,
    max_size=8,
)


@given(runs)
def test_without_elapsed_times_a_run_took_what_its_prediction_would_add_up(
    phases: list[Phase],
) -> None:
    old = [replace(phase, elapsed_seconds=None) for phase in phases]
    expected = elapsed(*((phase, phase.io_time_seconds) for phase in old))
    assert seconds_together(old) == pytest.approx(expected)


@given(runs, st.randoms())
def test_a_run_takes_at_least_its_longest_phase_and_at_most_all_one_after_another(
    phases: list[Phase], random: object
) -> None:
    took = [
        phase.io_time_seconds if phase.elapsed_seconds is None else phase.elapsed_seconds
        for phase in phases
    ]
    total = seconds_together(phases)
    known = [phase.elapsed_seconds for phase in phases if phase.elapsed_seconds is not None]
    assert max(known, default=0) <= total * (1 + ROUNDING) <= sum(took) * (1 + 2 * ROUNDING)
    random.shuffle(phases)
    assert seconds_together(phases) == pytest.approx(total)
