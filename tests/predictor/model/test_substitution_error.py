"""Benchmarks that stand in: the doubt about them, and what a model learns instead."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from ior_configs import IorConfig
from predictor.curve.prediction import EarlierRun, Prediction, predict
from predictor.matching.configurations import Difference
from predictor.model.fitting import fit_model
from predictor.model.substitution_error import doubt_about, together
from predictor.model.system_model import SystemModel
from summario.phases.values import Phase

KIB, MIB = 1 << 10, 1 << 20
IO_NODES = (0, 1, 2, 4)
SIZES = tuple(4 * KIB << step for step in range(11))
MakePhase = Callable[..., Phase]


def truth(config: IorConfig, io_nodes: int) -> float:
    """A made-up system: an fsync at the end costs a factor 2.7 with 4 KiB, none with 4 MiB."""
    share = math.log2(config.transfer_size / (4 * KIB)) / 10
    cost = (1 - share) * (config.fsync == "end")
    own_file = 0.5 * config.file_per_process
    return math.exp(4 + 2 * share + own_file + 0.2 * math.log2(1 + io_nodes) - cost)


def config_of(transfer: int, fsync: str | None, **told: Any) -> IorConfig:
    return IorConfig(
        write=True,
        block_size=4 * MIB,
        transfer_size=transfer,
        tasks=16,
        nodes=8,
        fsync=fsync,
        **told,
    )


def runs(typical: float, random: Random) -> Iterator[float]:
    return (typical * math.exp(random.gauss(0, 0.03)) for _ in range(3))


def measured(configs: Sequence[IorConfig]) -> tuple[Curve, ...]:
    random = Random(9366)
    return tuple(
        Curve(
            id_,
            config,
            "ior",
            {n: tuple(runs(truth(config, n), random)) for n in IO_NODES},
        )
        for id_, config in enumerate(configs, start=1)
    )


@cache
def both_ways() -> SystemModel:
    """fsync at the end for all sizes, none for all but 64 KiB; with own files only at the end."""
    configs = [config_of(size, "end") for size in SIZES]
    configs += [config_of(size, "none") for size in SIZES if size != 64 * KIB]
    configs += [config_of(size, "end", file_per_process=True) for size in SIZES]
    curves = measured(configs)
    return SystemModel(curves, fit_model(curves))


@cache
def one_way() -> SystemModel:
    curves = measured([config_of(size, "end") for size in SIZES])
    return SystemModel(curves, fit_model(curves))


def predicted(knowledge: SystemModel, phase: Phase) -> Prediction:
    return predict([phase], knowledge, system="made up", nodes=8)


def phase_with(make: MakePhase, size: int, **told: Any) -> Phase:
    return make((64 * MIB // size, 64 * MIB), **told)


def errors(prediction: Prediction, config: IorConfig) -> Mapping[int, float]:
    return {
        point.io_nodes: point.bandwidth_mib_s.mean / truth(config, point.io_nodes) - 1
        for point in prediction.curve
    }


@pytest.mark.slow
def test_the_cost_of_an_fsync_is_learned_by_the_size_of_requests(a_phase: MakePhase) -> None:
    wanted = config_of(64 * KIB, "none")
    found = predicted(both_ways(), phase_with(a_phase, 64 * KIB))
    # The benchmark with an fsync at the end has 45 % less.
    assert truth(config_of(64 * KIB, "end"), 0) / truth(wanted, 0) == pytest.approx(0.55, abs=0.01)
    assert max(map(abs, errors(found, wanted).values())) < 0.1


def test_the_cost_is_learned_from_benchmarks_of_another_kind(a_phase: MakePhase) -> None:
    told = {"file_access": "unique"}
    knowledge, phase = both_ways(), phase_with(a_phase, 32 * KIB, **told)
    found = predicted(knowledge, phase)
    [(_, match)] = found.phases[0].parts
    assert match.differences == (Difference("fsync", "none", "end"),)
    assert knowledge.unlearned(match) == ()
    wanted = config_of(32 * KIB, "none", file_per_process=True)
    benchmark = truth(config_of(32 * KIB, "end", file_per_process=True), 0) / truth(wanted, 0) - 1
    assert max(map(abs, errors(found, wanted).values())) < abs(benchmark) / 2
    assert [line for line in found.warnings if "fsync" in line] == [
        "phase 0: no fsync is called, the benchmark calls it at the end (-e); the model has learned"
        " from other benchmarks how much that changes"
    ]


def test_where_the_cost_was_not_measured_the_benchmark_stands_in_with_a_wider_interval(
    a_phase: MakePhase,
) -> None:
    same, other = (
        predicted(one_way(), phase_with(a_phase, 64 * KIB, fsync=fsync))
        for fsync in ("end", "none")
    )
    for point, doubted in zip(same.curve, other.curve, strict=True):
        mean = point.bandwidth_mib_s.mean
        assert doubted.bandwidth_mib_s.mean == pytest.approx(mean, rel=0.05)
        assert width(doubted) > math.exp(2 * 1.2 * 0.5)
        assert width(point) < 1.5
    assert [line for line in other.warnings if "fsync" in line] == [
        "phase 0: no fsync is called, the benchmark calls it at the end (-e); nothing nearer of"
        " this kind was measured, so the interval is wider"
    ]


def test_without_a_model_the_nearest_stands_in_with_a_wider_interval(a_phase: MakePhase) -> None:
    curves = SystemModel(one_way().curves)
    same, other = (
        predicted(curves, phase_with(a_phase, 64 * KIB, fsync=fsync)) for fsync in ("end", "none")
    )
    for point, doubted in zip(same.curve, other.curve, strict=True):
        assert doubted.bandwidth_mib_s.mean == pytest.approx(point.bandwidth_mib_s.mean)
        assert width(doubted) > math.exp(2 * 1.2 * 0.5)


def width(point: Any) -> float:
    found = point.bandwidth_mib_s
    return float(found.p90 / found.p10)


def test_an_earlier_run_tells_what_the_benchmark_does_not(a_phase: MakePhase) -> None:
    """With a run that reached twice the benchmark's bandwidth, the whole curve follows."""
    phase = phase_with(
        a_phase, 64 * KIB, io_time_seconds=64 / (2 * truth(config_of(64 * KIB, "end"), 2))
    )
    before = predicted(one_way(), phase)
    after = predict([phase], one_way(), system="made up", nodes=8, ran_with=2)
    for one, other in zip(before.curve[1:], after.curve[1:], strict=True):
        assert 1.7 < other.bandwidth_mib_s.mean / one.bandwidth_mib_s.mean < 2.05


def test_one_run_that_is_a_little_off_is_scatter_but_many_are_not(a_phase: MakePhase) -> None:
    """Runs of an application vary by a fifth or more, so one of them decides nothing."""
    phase = phase_with(a_phase, 64 * KIB)
    before = predicted(one_way(), phase)
    place = IO_NODES.index(2)
    run = EarlierRun(2, 1.3 * before.curve[place].bandwidth_mib_s.mean)
    once, often = (
        predict([phase], one_way(), system="made up", nodes=8, earlier=[run] * number)
        for number in (1, 8)
    )
    for one, after, later in zip(before.curve, once.curve, often.curve, strict=True):
        mean = one.bandwidth_mib_s.mean
        assert after.bandwidth_mib_s.mean == pytest.approx(mean, rel=0.15)
        assert width(after) == pytest.approx(width(one), rel=0.1)
        assert later.bandwidth_mib_s.mean > mean * (1.1 if later.io_nodes == 0 else 1.2)


def test_an_unknown_property_is_doubted_half_as_much() -> None:
    other = doubt_about([Difference("fsync", "none", "end")])
    for ours, theirs in ((None, "end"), ("none", None), (None, None)):
        assert doubt_about([Difference("fsync", ours, theirs)]) == other / 2
    assert doubt_about([]) == 0
    order = Difference("order", "random", "contiguous")
    assert doubt_about([order, Difference("fsync", "none", "end")]) == pytest.approx(
        other + doubt_about([order])
    )


def test_errors_with_direct_access_are_less_like_those_through_io_nodes() -> None:
    found = together([0, 1, 8])
    assert np.diag(found).tolist() == [1, 1, 1]
    assert found[1, 2] == 1
    assert found[0, 1] == found[0, 2] < 1
