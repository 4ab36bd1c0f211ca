"""Predictions with a model: properties of every prediction, and the effect of earlier runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchdb.measurements.curves import Curve
from ioncast_base.errors import InputError
from predictor.curve.prediction import DecisionRules, EarlierRun, Prediction, predict
from predictor.curve.prediction_formats import to_json
from predictor.model.fitting import fit_model
from predictor.model.system_model import Model, SystemModel
from summario.phases.values import Part, Phase
from tests.support.examples import examples

MIB = 1 << 20
IO_NODES = (0, 1, 2, 4, 8)
# HACC-IO with direct access, RR-9366, Table 9.
TABLE_9 = (488.3, 526.2, 331.5, 41971.4, 409.7)
MakePhase = Callable[..., Phase]
MakeCurve = Callable[..., Curve]


@pytest.fixture(scope="module")
def knowledge(synthetic: Any, fitted: Model) -> SystemModel:
    return SystemModel(synthetic.curves, fitted)


def asked(phases: Sequence[Phase], knowledge: SystemModel, **told: Any) -> Prediction:
    return predict(phases, knowledge, **({"system": "here", "nodes": 8} | told))


def times(found: Prediction) -> dict[int, float]:
    return {point.io_nodes: point.time_s for point in found.curve}


def means(found: Prediction) -> dict[int, float]:
    return {point.io_nodes: point.bandwidth_mib_s.mean for point in found.curve}


@st.composite
def a_written_phase(draw: st.DrawFn) -> Phase:
    """Make a phase of a job of 16 processes, anywhere in its first ten seconds."""
    processes = draw(st.sampled_from([1, 4, 16]))
    sizes = st.tuples(st.sampled_from([4096, 65536, 400_000, MIB, 24 * MIB]), st.integers(1, 50))
    parts = tuple(
        Part(processes * count, processes * count * request)
        for request, count in draw(st.lists(sizes, min_size=1, max_size=3))
    )
    shared = draw(st.booleans())
    start = draw(st.integers(0, 10))
    return Phase(
        job=1,
        start_seconds=float(start),
        end_seconds=float(start + draw(st.integers(0, 5))),
        operation="write",
        rank=None,
        processes=processes,
        nprocs=16,
        bytes=sum(part.bytes for part in parts),
        io_time_seconds=1.0,
        api="POSIX",
        requests=sum(part.requests for part in parts),
        spatiality="contiguous",
        file_access="shared" if shared else "unique",
        n_files=1 if shared else processes,
        mode_processes=processes if shared else 1,
        parts=parts,
        fsync="none",
    )


phase_lists = st.lists(a_written_phase(), min_size=1, max_size=4)
some_examples = settings(deadline=None, max_examples=examples(25))


@given(phases=phase_lists, data=st.data())
@some_examples
def test_the_order_of_the_phases_changes_nothing(
    knowledge: SystemModel, phases: list[Phase], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(phases))
    one, other = asked(phases, knowledge), asked(shuffled, knowledge)
    assert (one.curve, one.best, one.decision) == (other.curve, other.best, other.decision)
    anchors = [asked(order, knowledge, ran_with=2).curve for order in (phases, shuffled)]
    assert anchors[0] == anchors[1]


@given(phases=phase_lists, ran_with=st.none() | st.just(2), data=st.data())
@some_examples
def test_times_change_nothing_if_no_phases_overlap(
    knowledge: SystemModel, phases: list[Phase], ran_with: int | None, data: st.DataObject
) -> None:
    """Runs of the same I/O start and end their phases at other times, and in another order."""

    def one_by_one(gap_seconds: float) -> list[Phase]:
        return [
            replace(phase, start_seconds=gap_seconds * i, end_seconds=gap_seconds * (i + 0.5))
            for i, phase in enumerate(data.draw(st.permutations(phases)))
        ]

    one, other = (
        asked(one_by_one(gap_seconds), knowledge, ran_with=ran_with) for gap_seconds in (1, 7.3)
    )
    assert (one.curve, one.best, one.decision) == (other.curve, other.best, other.decision)


@given(phases=phase_lists, seconds=st.integers(1, 10**6))
@some_examples
def test_a_later_start_of_all_phases_changes_nothing(
    knowledge: SystemModel, phases: list[Phase], seconds: int
) -> None:
    later = [
        replace(
            phase,
            start_seconds=phase.start_seconds + seconds,
            end_seconds=phase.end_seconds + seconds,
            log="other.darshan",
            job=2,
        )
        for phase in phases
    ]
    one, other = asked(phases, knowledge), asked(later, knowledge)
    assert (one.curve, one.best, one.decision) == (other.curve, other.best, other.decision)


@given(phases=phase_lists, more=a_written_phase())
@some_examples
def test_one_more_phase_never_shortens_the_time(
    knowledge: SystemModel, phases: list[Phase], more: Phase
) -> None:
    before, after = times(asked(phases, knowledge)), times(asked([*phases, more], knowledge))
    # The typical time of several phases is a mean over draws, which is exact to a thousandth.
    assert all(after[n] >= before[n] * (1 - 1e-3) for n in IO_NODES)


@given(phases=phase_lists, factor=st.integers(2, 100))
@some_examples
def test_more_bytes_of_the_same_take_longer_by_as_much(
    stonewalled: SystemModel, phases: list[Phase], factor: int
) -> None:
    """The benchmarks had a stone wall, so their bandwidth holds for any number of bytes."""

    def scaled(phase: Phase) -> Phase:
        parts = tuple(Part(p.requests * factor, p.bytes * factor) for p in phase.parts)
        return replace(
            phase, parts=parts, bytes=phase.bytes * factor, requests=phase.requests * factor
        )

    once, often = (
        times(asked(told, stonewalled)) for told in (phases, [scaled(phase) for phase in phases])
    )
    # The typical time of several parts is a mean over draws, which is exact to a thousandth.
    assert often == pytest.approx({n: factor * time for n, time in once.items()}, rel=1e-3)


@pytest.fixture(scope="module")
def stonewalled(synthetic: Any) -> SystemModel:
    curves = tuple(replace(curve, stonewalled=True) for curve in synthetic.curves[:10])
    return SystemModel(curves, fit_model(curves))


@given(phases=phase_lists, ran_with=st.none() | st.sampled_from(IO_NODES))
@some_examples
def test_every_number_is_possible(
    knowledge: SystemModel, phases: list[Phase], ran_with: int | None
) -> None:
    found = asked(phases, knowledge, ran_with=ran_with)
    assert tuple(point.io_nodes for point in found.curve) == IO_NODES
    for point in found.curve:
        bandwidth = point.bandwidth_mib_s
        assert 0 < bandwidth.p10 <= bandwidth.median <= bandwidth.p90 < math.inf
        assert bandwidth.p10 < bandwidth.p90
        assert 0 < bandwidth.mean < math.inf
        moved = sum(phase.bytes for phase in phases) / MIB
        assert point.time_s == pytest.approx(moved / bandwidth.mean)
    decision = found.choice.decide(DecisionRules(min_confidence=0))
    assert decision.source == "model"
    assert decision.within_10_percent is not None
    assert 0 <= decision.within_10_percent <= 1
    assert decision.io_nodes is not None
    assert found.best.io_nodes is not None
    assert decision.io_nodes <= found.best.io_nodes


@given(
    cells=st.lists(st.sets(st.sampled_from(IO_NODES), min_size=1), min_size=1, max_size=3),
    points=st.lists(st.integers(0, 16), min_size=1, max_size=6, unique=True),
    of=st.sets(st.integers(0, 3), min_size=1),
)
@some_examples
def test_no_point_is_called_measured_unless_all_parts_were(
    synthetic: Any, fitted: Model, cells: list[set[int]], points: list[int], of: set[int]
) -> None:
    """Phases 0 to 2 have benchmarks with some numbers of I/O nodes, phase 3 has no benchmark."""
    sizes = (65536, 4 * 65536, 16 * 65536, 24 * MIB)
    configs = [curve.config for curve in synthetic.curves]
    base = replace(configs[0], file_per_process=False, tasks=16, nodes=8)
    curves = tuple(
        Curve(i, replace(base, transfer_size=size, block_size=8 * size), "ior", dict(runs))
        for i, (size, runs) in enumerate(
            (size, dict.fromkeys(own, (100.0, 101.0)))
            for size, own in zip(sizes, cells, strict=False)
        )
    )
    phases = [phase_of(sizes[i], 8) for i in sorted(of)]
    found = asked(phases, SystemModel(curves, fitted), io_nodes=points)
    assert [point.io_nodes for point in found.curve] == sorted(points)
    for point in found.curve:
        measured = all(i < len(cells) and point.io_nodes in cells[i] for i in of)
        assert point.basis == ("measured" if measured else "model")


def phase_of(request: int, count: int, **told: Any) -> Phase:
    """Make a phase of 16 processes that write `count` requests each to a shared file."""
    moved = 16 * request * count
    values: dict[str, Any] = {
        "job": 1,
        "start_seconds": 0.0,
        "end_seconds": 1.0,
        "operation": "write",
        "rank": None,
        "processes": 16,
        "nprocs": 16,
        "bytes": moved,
        "io_time_seconds": 1.0,
        "api": "POSIX",
        "requests": 16 * count,
        "spatiality": "contiguous",
        "file_access": "shared",
        "n_files": 1,
        "mode_processes": 16,
        "parts": (Part(16 * count, moved),),
        "fsync": "none",
    }
    return Phase(**(values | told))


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_phase_that_nothing_resembles_is_left_out_wherever_it_is(
    knowledge: SystemModel, place: str
) -> None:
    written = phase_of(MIB, 8, start_seconds=5.0, end_seconds=6.0)
    start = 0.0 if place == "first" else 10.0
    read = phase_of(MIB, 8, operation="read", start_seconds=start, end_seconds=start + 1)
    alone = asked([written], knowledge)
    for phases in ([written, read], [read, written]):
        found = asked(phases, knowledge)
        assert times(found) == times(alone)
        assert "50.0% of the bytes" in found.warnings[0]


def test_an_unmeasured_number_of_io_nodes_is_filled_in_and_said_to_be(
    knowledge: SystemModel,
) -> None:
    found = asked([phase_of(MIB, 8)], knowledge, io_nodes=[0, 3, 4])
    assert [(p.io_nodes, p.basis) for p in found.curve if p.io_nodes == 3] == [(3, "model")]
    assert any("3 I/O nodes; the model fills in" in warning for warning in found.warnings)


def guesses(found: Prediction) -> list[str]:
    return [line for line in found.warnings if "guess" in line]


@pytest.mark.parametrize(
    ("io_nodes", "beyond"), [([0, 3, 8], None), ([8, 64], "64"), ([16, 32], "16, 32")]
)
def test_io_nodes_beyond_all_that_were_measured_are_said_to_be_a_guess(
    knowledge: SystemModel, io_nodes: list[int], beyond: str | None
) -> None:
    measured = "only direct access and 1 to 8 I/O nodes were measured"
    guess = f"{measured}, so the bandwidth with {beyond} is a guess, and no decision chooses it"
    found = asked([phase_of(MIB, 8)], knowledge, io_nodes=io_nodes)
    assert guesses(found) == ([] if beyond is None else [guess])


def test_direct_access_does_not_end_the_range_of_io_nodes(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    """Direct access is so slow that the model expects the most from the fewest I/O nodes."""
    runs = {0: (10.0,) * 5, 2: (100.0,) * 5, 4: (80.0,) * 5, 8: (60.0,) * 5}
    curves = tuple(a_curve(runs, transfer_size=MIB << shift) for shift in (0, 1, 2))
    knowledge = SystemModel(curves, fit_model(curves))
    found = asked([a_phase()], knowledge, io_nodes=[0, 1, 2, 4, 8])
    assert (found.best.io_nodes, found.decision.io_nodes) == (2, 2)
    assert 1 in [point.io_nodes for point in found.curve]
    [guess] = guesses(found)
    assert "only direct access and 2 to 8 I/O nodes were measured, so the bandwidth with 1" in guess
    # 3 I/O nodes lie between measured ones.
    assert asked([a_phase()], knowledge, io_nodes=[0, 3]).decision.io_nodes == 3


def test_nothing_is_decided_on_a_guess(knowledge: SystemModel) -> None:
    """The curves rise so steeply that the model predicts most with 64 I/O nodes."""
    rising = tuple(
        replace(curve, bandwidths_mib_s={n: (10.0 * (n + 1),) * 2 for n in IO_NODES})
        for curve in knowledge.curves
    )
    known = SystemModel(rising, knowledge.model)
    found = asked([phase_of(MIB, 8)], known, io_nodes=[4, 8, 64])
    assert means(found)[64] > means(found)[8]
    assert (found.best.io_nodes, found.decision.io_nodes) == (8, 8)
    none = asked([phase_of(MIB, 8)], known, io_nodes=[64])
    assert none.curve
    assert (none.best.io_nodes, none.decision.source) == (None, "none")


def test_fewer_io_nodes_than_were_measured_are_a_guess_too(knowledge: SystemModel) -> None:
    forwarded = tuple(
        replace(curve, bandwidths_mib_s={n: (100.0 / n,) * 2 for n in (4, 8)})
        for curve in knowledge.curves
    )
    found = asked([phase_of(MIB, 8)], SystemModel(forwarded, knowledge.model), io_nodes=[1, 4, 8])
    assert len(guesses(found)) == 1
    assert found.decision.io_nodes == 4


def test_a_number_that_any_benchmark_was_measured_with_is_not_a_guess(
    knowledge: SystemModel,
) -> None:
    """The range of decisions and the range without a warning are the same."""
    first, *rest = knowledge.curves
    more = replace(first, bandwidths_mib_s=first.bandwidths_mib_s | {16: (100.0, 110.0)})
    known = SystemModel((more, *rest), knowledge.model)
    found = asked([phase_of(MIB, 8)], known, io_nodes=[8, 16])
    assert guesses(found) == []


def test_a_size_beyond_all_benchmarks_rests_on_the_model_and_is_doubted(
    knowledge: SystemModel,
) -> None:
    near, far = (asked([phase_of(size, 8)], knowledge) for size in (MIB, 64 * MIB))
    assert near.phases[0].main.kind in {"exact", "interpolated"}
    assert far.phases[0].main.kind == "model"

    def width(found: Prediction) -> float:
        bandwidth = found.curve[0].bandwidth_mib_s
        return bandwidth.p90 / bandwidth.p10

    assert width(far) > width(near)


# Modes


def of_two_modes(a_curve: MakeCurve) -> list[SystemModel]:
    steady = dict.fromkeys((1, 2, 4), (600.0, 610.0, 590.0))
    curves = (
        a_curve({0: TABLE_9, **steady}),
        a_curve({0: (300.0, 310.0), **steady}, transfer_size=2 * MIB),
    )
    return [SystemModel(curves), SystemModel(curves, fit_model(curves))]


def test_a_cell_of_two_modes_keeps_them_through_the_composition(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    for knowledge in of_two_modes(a_curve):
        for count in (1, 8):
            phases = [
                a_phase(start_seconds=float(2 * i), end_seconds=2.0 * i + 1) for i in range(count)
            ]
            at_0 = asked(phases, knowledge).curve[0].bandwidth_mib_s
            # All phases of a run have the same mode, so a fifth of the runs is fast throughout.
            assert at_0.p90 > 30_000
            assert 300 < at_0.median < 700
            assert at_0.mean < 700


def test_the_mode_is_one_of_the_run_not_of_the_phase(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    for knowledge in of_two_modes(a_curve):
        one = a_phase()
        later = a_phase(start_seconds=5.0, end_seconds=6.0)
        single, both = asked([one], knowledge), asked([one, later], knowledge)
        assert both.curve[0].bandwidth_mib_s.p90 == pytest.approx(
            single.curve[0].bandwidth_mib_s.p90, rel=0.3
        )


# Time


@pytest.mark.parametrize("with_model", [False, True])
def test_times_of_different_processes_at_the_same_time_are_not_added_up(
    synthetic: Any, fitted: Model, with_model: bool
) -> None:
    knowledge = SystemModel(synthetic.curves, fitted if with_model else None)
    half = {"processes": 8, "mode_processes": 8}
    first = phase_of(MIB, 8, **half)
    same_time = phase_of(MIB, 8, **half)
    later = phase_of(MIB, 8, start_seconds=3.0, end_seconds=4.0, **half)
    alone = times(asked([first], knowledge))
    both, twice = (times(asked([first, other], knowledge)) for other in (same_time, later))
    for n, time in alone.items():
        # The slower of the two counts, and both vary.
        assert time * (1 - 1e-9) <= both[n] <= time * (1.2 if with_model else 1 + 1e-9)
        assert twice[n] == pytest.approx(2 * time, rel=0.05 if with_model else 1e-9)


def test_the_typical_time_of_many_phases_is_near_to_that_of_their_runs(
    synthetic: Any, fitted: Model
) -> None:
    phases = [phase_of(MIB, 8, start_seconds=2.0 * i, end_seconds=2.0 * i + 1) for i in range(20)]
    for point in asked(phases, SystemModel(synthetic.curves, fitted)).curve:
        assert point.bandwidth_mib_s.mean == pytest.approx(point.bandwidth_mib_s.median, rel=0.03)


# The application's own past


def that_got(phase: Phase, bandwidth_mib_s: float) -> Phase:
    return replace(phase, io_time_seconds=phase.bytes / MIB / bandwidth_mib_s)


NEW = phase_of(6 * MIB, 8)


def test_a_run_that_got_what_was_expected_changes_little(knowledge: SystemModel) -> None:
    without = asked([NEW], knowledge)
    for n in IO_NODES:
        found = asked([that_got(NEW, means(without)[n])], knowledge, ran_with=n)
        assert found.earlier is not None
        assert found.earlier.io_nodes == n
        assert found.earlier.bandwidth_mib_s == pytest.approx(means(without)[n])
        assert means(found) == pytest.approx(means(without), rel=0.03)


@pytest.mark.parametrize("ratio", [0.5, 2.0])
def test_a_run_moves_the_curve_its_way_but_not_all_of_it(
    knowledge: SystemModel, ratio: float
) -> None:
    without = means(asked([NEW], knowledge))
    found = means(asked([that_got(NEW, ratio * without[2])], knowledge, ran_with=2))
    moved = {n: math.log(found[n] / without[n]) / math.log(ratio) for n in IO_NODES}
    assert all(0 < share < 1 for share in moved.values())
    # The point of the run moves most.
    assert moved[2] == max(moved.values())
    assert moved[2] > 0.25


def test_a_run_narrows_the_interval_where_the_model_doubts(knowledge: SystemModel) -> None:
    def width(found: Prediction) -> float:
        bandwidth = found.curve[2].bandwidth_mib_s
        return math.log(bandwidth.p90 / bandwidth.p10)

    without = asked([NEW], knowledge)
    found = asked([that_got(NEW, means(without)[2])], knowledge, ran_with=2)
    assert width(found) < width(without)


def test_a_run_moves_little_what_was_measured_well(synthetic: Any) -> None:
    """With thirty repetitions in each cell, one more run is mostly noise."""
    curves = tuple(
        replace(curve, bandwidths_mib_s=synthetic.runs(curve.config, 30))
        for curve in synthetic.curves[:8]
    )
    knowledge = SystemModel(curves, fit_model(curves))
    config = curves[0].config
    told: dict[str, Any] = {
        "processes": config.tasks,
        "nprocs": config.tasks,
        "file_access": config.file_access,
        "n_files": config.tasks if config.file_per_process else 1,
        "mode_processes": 1 if config.file_per_process else config.tasks,
    }
    count = (config.tasks or 1) * config.requests_per_process
    parts = (Part(count, count * config.transfer_size),)
    phase = replace(phase_of(1, 1, **told), parts=parts, bytes=parts[0].bytes, requests=count)
    without = asked([phase], knowledge, nodes=config.nodes)
    assert without.phases[0].main.kind == "exact"
    found = asked(
        [that_got(phase, 2 * means(without)[4])], knowledge, nodes=config.nodes, ran_with=4
    )
    for n in IO_NODES:
        assert abs(math.log(means(found)[n] / means(without)[n])) < 0.2 * math.log(2)


def test_an_earlier_run_counts_although_its_number_is_not_asked_for(knowledge: SystemModel) -> None:
    told = that_got(NEW, 3 * means(asked([NEW], knowledge))[2])
    everything = asked([told], knowledge, ran_with=2)
    found = asked([told], knowledge, ran_with=2, io_nodes=[8, 1])
    assert [point.io_nodes for point in found.curve] == [1, 8]
    assert found.earlier == everything.earlier
    assert means(found) == pytest.approx({n: means(everything)[n] for n in (1, 8)}, rel=0.05)


def test_a_run_that_took_no_time_cannot_correct_anything(knowledge: SystemModel) -> None:
    with pytest.raises(InputError, match="cannot correct its own prediction"):
        asked([replace(NEW, io_time_seconds=0.0)], knowledge, ran_with=2)


def test_an_earlier_run_of_which_nothing_is_known_is_left_out(knowledge: SystemModel) -> None:
    found = asked([replace(NEW, operation="read")], knowledge, ran_with=2)
    assert (found.earlier, found.curve, found.decision.source) == (None, (), "none")


def runs_of(bandwidth_mib_s: float, count: int, io_nodes: int = 2) -> list[EarlierRun]:
    return [EarlierRun(io_nodes, bandwidth_mib_s)] * count


def test_a_run_of_the_application_counts_as_the_run_in_the_log_does(knowledge: SystemModel) -> None:
    got = 2 * means(asked([NEW], knowledge))[2]
    in_log = asked([that_got(NEW, got)], knowledge, ran_with=2)
    elsewhere = asked([NEW], knowledge, earlier=runs_of(got, 1))
    assert elsewhere.earlier_runs == (EarlierRun(2, got),)
    # The bandwidth that a log claims is not exactly that of its run.
    [claimed] = in_log.earlier_runs
    assert claimed == EarlierRun(2, pytest.approx(got), scatter=0.14)
    assert means(asked([NEW], knowledge, earlier=[claimed])) == pytest.approx(means(in_log))
    assert means(asked([NEW], knowledge))[2] < means(in_log)[2] < means(elsewhere)[2]


def test_the_more_runs_say_the_same_the_nearer_they_move_the_curve(knowledge: SystemModel) -> None:
    before = means(asked([NEW], knowledge))[2]
    moved = [
        math.log(means(asked([NEW], knowledge, earlier=runs_of(2 * before, count)))[2] / before)
        for count in (0, 1, 3, 10)
    ]
    assert moved == sorted(set(moved))
    assert moved[-1] < 1.1 * math.log(2)


def test_runs_that_contradict_each_other_move_little(knowledge: SystemModel) -> None:
    before = means(asked([NEW], knowledge))
    earlier = 3 * [*runs_of(2 * before[2], 1), *runs_of(before[2] / 2, 1)]
    found = means(asked([NEW], knowledge, earlier=earlier))
    one = means(asked([NEW], knowledge, earlier=runs_of(2 * before[2], 1)))
    assert abs(math.log(found[2] / before[2])) < abs(math.log(one[2] / before[2]))


def test_the_last_runs_weigh_more(knowledge: SystemModel) -> None:
    """The last five runs count more than twenty runs before them with another bandwidth."""
    slow, fast = runs_of(60.0, 20), runs_of(150.0, 5)
    now_fast, was_fast = (
        means(asked([NEW], knowledge, earlier=earlier))[2]
        for earlier in ([*slow, *fast], [*fast, *slow])
    )
    assert abs(math.log(now_fast / 150)) < abs(math.log(was_fast / 150))


def test_runs_with_any_number_of_io_nodes_count_if_something_is_known_of_it(
    knowledge: SystemModel,
) -> None:
    before = means(asked([NEW], knowledge))
    earlier = [EarlierRun(n, 2 * before[n]) for n in (0, 8)]
    found = asked([NEW], knowledge, earlier=earlier)
    assert found.earlier_runs == tuple(earlier)
    assert found.earlier == earlier[-1]
    assert all(means(found)[n] > before[n] for n in (0, 8))
    unknown = asked([replace(NEW, operation="read")], knowledge, earlier=earlier)
    assert unknown.earlier_runs == ()


def test_an_implausible_run_corrects_nothing_and_a_warning_names_it(knowledge: SystemModel) -> None:
    """As of a log of another machine: 1,000 times what is expected."""
    without = asked([NEW], knowledge)
    got = 1000 * means(without)[2]
    found = asked([NEW], knowledge, earlier=[EarlierRun(2, got)])
    assert means(found) == means(without)
    assert (found.earlier_runs, found.implausible_runs) == ((), (EarlierRun(2, got),))
    [warning] = set(found.warnings) - set(without.warnings)
    assert warning.startswith("an earlier run does not correct the prediction, because its")
    assert "GiB/s with 2 I/O nodes, more than 10 times the" in warning
    several = asked([NEW], knowledge, earlier=[EarlierRun(n, got) for n in (1, 2, 4)])
    assert any(line.startswith("an earlier run (and 2 others)") for line in several.warnings)
    infinite = asked([NEW], knowledge, earlier=[EarlierRun(2, math.inf)])
    assert means(infinite) == means(without)
    in_log = asked([that_got(NEW, got)], knowledge, ran_with=2)
    assert means(in_log) == means(without)


def test_a_run_is_implausible_beyond_ten_times_the_p90(knowledge: SystemModel) -> None:
    p90 = asked([NEW], knowledge).curve[2].bandwidth_mib_s.p90
    for factor, is_used in ((9.99, True), (10.01, False), (1e-3, True)):
        run = EarlierRun(2, factor * p90)
        found = asked([NEW], knowledge, earlier=[run])
        assert found.earlier_runs == ((run,) if is_used else ()), factor


def test_the_newest_run_is_in_the_json(knowledge: SystemModel) -> None:
    earlier = [EarlierRun(2, 50.0), EarlierRun(4, 60.0)]
    record = to_json(asked([NEW], knowledge, earlier=earlier))
    assert record["earlier_run"] == {"io_nodes": 4, "bandwidth_mib_s": 60.0}


def test_a_prediction_can_be_decided_by_any_rules(knowledge: SystemModel) -> None:
    found = asked([NEW], knowledge)
    for policy in (
        DecisionRules(),
        DecisionRules(tolerance=0.5),
        DecisionRules(available=1),
        DecisionRules(available=0),
    ):
        told = asked([NEW], knowledge, policy=policy)
        assert found.choice.decide(policy) == told.decision


# Decisions


def test_a_site_gets_the_fewest_io_nodes_within_its_tolerance(
    a_phase: MakePhase, a_curve: MakeCurve
) -> None:
    runs = {0: (50.0,) * 9, 2: (97.0,) * 9, 8: (100.0,) * 9}
    curves = tuple(a_curve(runs, transfer_size=MIB << shift) for shift in (0, 1, 2))
    knowledge = SystemModel(curves, fit_model(curves))
    for policy, decided in (
        (None, 2),
        (DecisionRules(tolerance=0.0), 8),
        (DecisionRules(tolerance=0.0, available=4), 2),
        (DecisionRules(available=1), 0),
        (DecisionRules(tolerance=0.6), 0),
        (DecisionRules(default=7), 2),
    ):
        found = asked([a_phase()], knowledge, policy=policy)
        assert found.best.io_nodes == 8
        assert (found.decision.io_nodes, found.decision.source) == (decided, "model")


def test_where_nothing_is_known_the_site_decides(knowledge: SystemModel) -> None:
    unlike = [replace(NEW, operation="read")]
    assert asked(unlike, knowledge).decision.source == "none"
    told = asked(unlike, knowledge, policy=DecisionRules(default=2)).decision
    assert (told.io_nodes, told.source, told.within_10_percent) == (2, "default", None)


def test_a_policy_that_is_not_valid_is_rejected(knowledge: SystemModel) -> None:
    with pytest.raises(InputError, match="not a tolerance"):
        asked([NEW], knowledge, policy=DecisionRules(tolerance=1.0))


def test_doubts_about_phases_that_are_nearly_the_same_do_not_average_out(
    knowledge: SystemModel, a_phase: MakePhase
) -> None:
    """The phases are checkpoints that grow by a few bytes, with request sizes not measured."""

    def width(growth: int) -> float:
        sizes = [32 * MIB + growth * i for i in range(20)]
        phases = [
            a_phase((16, 16 * size), start_seconds=2.0 * i, end_seconds=2.0 * i + 1)
            for i, size in enumerate(sizes)
        ]
        point = asked(phases, knowledge).curve[-1]
        return math.log(point.bandwidth_mib_s.p90 / point.bandwidth_mib_s.p10)

    assert width(growth=8) == pytest.approx(width(growth=0), rel=0.1)


@pytest.mark.parametrize(
    ("measured", "left_out", "told"),
    [
        ((0,), (1, 4), "through I/O nodes, so the curve leaves out 1, 4 I/O nodes"),
        ((1, 4), (0,), "with direct access, so the curve leaves out direct access"),
    ],
    ids=["only direct", "never direct"],
)
def test_direct_access_and_i_o_nodes_tell_nothing_of_each_other(
    synthetic: Any,
    a_phase: MakePhase,
    measured: tuple[int, ...],
    left_out: tuple[int, ...],
    told: str,
) -> None:
    curves = tuple(
        replace(curve, bandwidths_mib_s={n: curve.bandwidths_mib_s[n] for n in measured})
        for curve in synthetic.curves[:6]
    )
    knowledge = SystemModel(curves, fit_model(curves))
    found = asked([a_phase()], knowledge, io_nodes=[0, 1, 4])
    assert [point.io_nodes for point in found.curve] == list(measured)
    assert f"nothing was measured {told}" in found.warnings
    alone = asked([a_phase()], knowledge, io_nodes=left_out, ran_with=left_out[0])
    assert (alone.curve, alone.best.io_nodes, alone.decision.source) == ((), None, "none")
    assert alone.earlier is None
