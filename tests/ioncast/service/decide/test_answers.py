from __future__ import annotations

import json
import re
import time
import timeit
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchdb.measurements.curves import Curve
from ioncast.service.background.deciding_ahead import (
    Decided,
    OtherVariant,
    decide_all,
    prepare_group,
)
from ioncast.service.decide.answers import (
    NO_TRIAL,
    Entry,
    PreparedAnswer,
    PreparedGroup,
    answer,
    default_answer,
)
from ioncast.service.decide.questions import DecisionAnswer
from ior_configs import IorConfig
from predictor.curve.prediction import DecisionRules, EarlierRun, Prediction, predict
from predictor.model.system_model import SystemModel
from summario.phases.values import Part, Phase

MIB = 1 << 20
# Each cell gets a second value that is a tenth higher, so that there is some doubt.
CURVE = {0: 50.0, 1: 30.0, 2: 60.0, 4: 97.0, 8: 100.0}
SAYS = "the same executable and user"


def predicted(
    cells: dict[int, float] | None = None, tasks: int = 16, earlier: Sequence[EarlierRun] = ()
) -> Prediction:
    """Predict a job that writes 64 MiB, on a system where exactly this was measured."""
    measured = CURVE if cells is None else cells
    config = IorConfig(
        write=True, block_size=4 * MIB, transfer_size=MIB, tasks=tasks, nodes=min(8, tasks)
    )
    curve = Curve(1, config, "ior", {n: (speed, speed * 1.1) for n, speed in measured.items()})
    phase = Phase(
        job=1,
        start_seconds=0.0,
        end_seconds=1.0,
        operation="write",
        rank=None,
        processes=tasks,
        nprocs=tasks,
        bytes=4 * tasks * MIB,
        io_time_seconds=1.0,
        api="POSIX",
        requests=4 * tasks,
        spatiality="contiguous",
        file_access="shared",
        n_files=1,
        mode_processes=tasks,
        parts=(Part(4 * tasks, 4 * tasks * MIB),),
    )
    knowledge = SystemModel((curve,) if measured else ())
    return predict([phase], knowledge, system="here", nodes=8, earlier=earlier)


POLICY = DecisionRules(tolerance=0.05, default=3)


def group(
    prediction: Prediction | None = None,
    policy: DecisionRules = POLICY,
    explore: float = 0.0,
    **told: Any,
) -> PreparedGroup:
    return prepare(decide_all(prediction or predicted(), policy, explore=explore), **told)


def prepare(decided: Decided, **told: Any) -> PreparedGroup:
    values: dict[str, Any] = {
        "tasks": 16,
        "nodes": 8,
        "application_id": 7,
        "runs": 5,
        "alike": 5,
    }
    return prepare_group(decided, **(values | told))


def asked(
    entry: Entry,
    tasks: int | None = 16,
    nodes: int | None = 8,
    available: int | None = None,
    drawn: int = NO_TRIAL,
) -> dict[str, Any]:
    """Read the answer's fields, and check that they are the documented ones."""
    found = answer(entry, SAYS, tasks, nodes, available, drawn)
    return fields(found)


def fields(found: PreparedAnswer) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(found.body)
    assert set(record) == set(DecisionAnswer.model_fields) - {"decision_id"}
    DecisionAnswer.model_validate({"decision_id": "x", **record}, strict=True)
    assert (record["io_nodes"], record["source"]) == (found.io_nodes, found.source)
    return record


@pytest.mark.parametrize("available", [None, 0, 1, 2, 3, 4, 5, 7, 8, 9, 1000])
def test_an_answer_is_the_decision_for_what_is_available(available: int | None) -> None:
    prediction = predicted()
    decision = prediction.choice.decide(replace(POLICY, available=available))
    found = asked([group(prediction)], available=available)
    assert found["io_nodes"] == decision.io_nodes
    assert found["expected_mib_s"] == pytest.approx(decision.bandwidth_mib_s, rel=1e-5)
    assert found["confidence"] == pytest.approx(decision.within_10_percent, abs=1e-5)
    assert found["why"].endswith(f"; {decision.why}")
    assert (found["source"], found["application_id"]) == ("history", 7)


def test_some_jobs_try_a_number_that_may_be_better() -> None:
    """Benchmarks with unknown fsync do not tell which of two numbers is the best."""
    unsure = predicted({0: 100.0, 4: 97.0, 8: 60.0})
    entry = [group(unsure, explore=0.01)]
    usual = asked(entry)
    tried = asked(entry, drawn=0)
    assert (usual["explored"], tried["explored"]) == (False, True)
    assert (usual["io_nodes"], tried["io_nodes"]) == (0, 4)
    assert "tried, because" in tried["why"]
    assert re.search("better than direct access; [34]% less is expected$", tried["why"])
    numbers = {each["io_nodes"] for each in [tried, *tried["alternatives"]]}
    assert numbers == {each["io_nodes"] for each in [usual, *usual["alternatives"]]}
    least = next(
        drawn for drawn in range(0, NO_TRIAL, 1 << 24) if asked(entry, drawn=drawn) == usual
    )
    loss = 1 - tried["expected_mib_s"] / usual["expected_mib_s"]
    assert least / 2**32 == pytest.approx(min(0.25, 0.01 / max(loss, 1e-9)), rel=0.3)
    # Of another size it is not sure what the job will do.
    assert not asked(entry, tasks=1000, drawn=0)["explored"]
    assert asked([group(unsure)], drawn=0) == usual
    assert asked(entry, available=3, drawn=0)["io_nodes"] == 0


def test_a_number_that_no_run_had_and_that_may_be_better_is_named() -> None:
    curve = {0: 100.0, 4: 97.0, 8: 60.0}
    found = decide_all(predicted(curve), POLICY).untried
    assert found is not None
    assert (found.io_nodes, found.chosen) == (4, 0)
    assert found.loss == pytest.approx(0.035, abs=0.01)
    assert 0 < found.gain < 1
    # The service tries it itself.
    assert decide_all(predicted(curve), POLICY, explore=0.01).untried is None
    # It ran with 4.
    again = predicted(curve, earlier=[EarlierRun(4, 97.0)])
    assert decide_all(again, POLICY).untried is None
    assert decide_all(predicted({}), POLICY).untried is None


@pytest.mark.parametrize("available", [None, 0, 1, 2, 3, 4, 5, 7, 8, 9, 1000])
@pytest.mark.parametrize("default", [None, 0, 1, 3, 8])
def test_a_number_that_is_not_sure_enough_leaves_it_to_the_site(
    available: int | None, default: int | None
) -> None:
    rng = np.random.default_rng(42)
    found = predicted()
    doubtful = found.choice.expected_mib_s * np.exp(rng.normal(0, 1, (1000, 5)))
    prediction = replace(found, choice=replace(found.choice, expected_mib_s=doubtful))
    policy = DecisionRules(default=default, min_confidence=0.8)
    decision = prediction.choice.decide(replace(policy, available=available))
    told = asked([group(prediction, policy)], available=available)
    assert told["io_nodes"] == decision.io_nodes
    assert told["why"].endswith(f"; {decision.why}")
    is_model = decision.source == "model"
    assert told["source"] == ("history" if is_model else "default")
    assert (told["confidence"], told["expected_mib_s"]) == (
        (
            pytest.approx(decision.within_10_percent, abs=1e-5),
            pytest.approx(decision.bandwidth_mib_s, rel=1e-5),
        )
        if is_model
        else (None, None)
    )


def test_alternatives_are_all_other_numbers_of_io_nodes() -> None:
    prediction = predicted()
    for available in (None, 2):
        found = asked([group(prediction)], available=available)
        chosen = {name: found[name] for name in found["alternatives"][0]}
        told = {each["io_nodes"]: each for each in [chosen, *found["alternatives"]]}
        assert sorted(told) == [0, 1, 2, 4, 8]
        assert len(found["alternatives"]) == 4
        for point in prediction.curve:
            speed = point.bandwidth_mib_s
            assert told[point.io_nodes] == pytest.approx(
                {
                    "io_nodes": point.io_nodes,
                    "expected_mib_s": speed.mean,
                    "p10_mib_s": speed.p10,
                    "p90_mib_s": speed.p90,
                },
                rel=1e-5,
            )


@pytest.mark.parametrize("speed", [1e-7, 0.123456789, 123456.789, 1234567.89, 98765432123.4])
def test_numbers_have_six_digits(speed: float) -> None:
    found = asked([group(predicted({0: speed, 4: speed / 2}))])
    assert found["expected_mib_s"] == pytest.approx(speed * 2 / (1 + 1 / 1.1), rel=5e-6)
    assert len(repr(found["expected_mib_s"]).replace(".", "").strip("0").split("e")[0]) <= 6


def test_why_begins_with_the_runs_that_it_rests_on() -> None:
    assert asked([group()])["why"].startswith(
        "5 earlier runs of the same executable and user, 16 processes on 8 nodes; "
    )
    alone = asked([group(predicted(tasks=1), runs=1, alike=1, tasks=1, nodes=1)], 1, 1)
    assert alone["why"].startswith(
        "1 earlier run of the same executable and user, 1 process on 1 node; "
    )
    unknown_nodes = asked([group(nodes=None)])
    assert unknown_nodes["why"].startswith(
        "5 earlier runs of the same executable and user, 16 processes; "
    )


def test_runs_that_do_something_else_are_told() -> None:
    found = asked([group(alike=3)])
    assert "16 processes on 8 nodes, 3 of which do the same I/O; " in found["why"]


@pytest.mark.parametrize(
    ("chosen", "available", "share"),
    [
        # With 8 available, 4 I/O nodes are the decision, with 2 available 2 of them.
        (((8, 8),), None, 0.7),
        (((8, 4),), None, 0.9),
        ((), None, 0.7),
        # The number of the other variant depends on the available number too.
        (((8, 8), (2, 2), (0, 0)), 2, 0.9),
        (((8, 4), (2, 0)), 2, 0.7),
    ],
)
def test_the_share_of_other_runs_counts_where_they_get_another_number(
    chosen: tuple[tuple[int, int], ...], available: int | None, share: float
) -> None:
    others = [OtherVariant(0.2, chosen), OtherVariant(0.1, ())]
    policy = replace(POLICY, min_confidence=0)
    whole, part = (
        asked([prepare(decide_all(predicted(), policy, *told))], available=available)
        for told in ((), (0.7, others))
    )
    assert part["io_nodes"] == whole["io_nodes"]
    assert part["confidence"] == pytest.approx(share * whole["confidence"], abs=1e-5)


def test_a_number_for_half_of_the_runs_is_not_sure_enough() -> None:
    others = [OtherVariant(0.6, ((8, 0),))]
    told = asked([prepare(decide_all(predicted(), POLICY, 0.4, others))])
    assert (told["io_nodes"], told["source"]) == (3, "default")
    assert "(give jobs with different I/O different names)" in told["why"]


def sizes(*tasks_and_nodes: tuple[int, int | None]) -> list[PreparedGroup]:
    return [group(tasks=tasks, nodes=nodes) for tasks, nodes in tasks_and_nodes]


@pytest.mark.parametrize(
    ("tasks", "nearest"), [(1, 4), (7, 4), (9, 16), (16, 16), (31, 16), (33, 64), (999, 64)]
)
def test_the_nearest_number_of_processes_answers(tasks: int, nearest: int) -> None:
    """The factor counts: 8 is in the middle of 4 and 16, and 32 in the middle of 16 and 64."""
    found = asked(sizes((16, 8), (4, 8), (64, 8)), tasks)
    assert f", {nearest} processes on 8 nodes" in found["why"]


@pytest.mark.parametrize(("nodes", "nearest"), [(1, 2), (2, 2), (5, 8), (99, 8)])
def test_of_as_many_processes_the_nearest_number_of_nodes_answers(nodes: int, nearest: int) -> None:
    found = asked(sizes((16, 8), (16, 2), (16, None)), 16, nodes)
    assert f", 16 processes on {nearest} nodes" in found["why"]


def test_the_newest_answers_where_no_size_is_asked_for() -> None:
    found = asked(sizes((16, 8), (4, 8), (64, 8)), None, None)
    assert ", 16 processes on 8 nodes; " in found["why"]


def test_that_another_size_was_asked_for_is_told() -> None:
    found = asked([group()], tasks=24)
    assert ", 16 processes on 8 nodes, the nearest to 24; " in found["why"]
    assert found["source"] == "history"


@pytest.mark.parametrize(
    ("tasks", "source"), [(8, "history"), (32, "history"), (7, "model"), (33, "model")]
)
def test_runs_of_twice_the_size_are_history_and_larger_ones_are_not(
    tasks: int, source: str
) -> None:
    found = asked([group()], tasks)
    assert found["source"] == source
    assert ("not yet scaled to" in found["why"]) == (source == "model")
    assert (found["confidence"] is None) == (source == "model")


def test_scaled_phases_are_the_models_and_are_told() -> None:
    entry = [group(), group(predicted(tasks=256), tasks=256, scaled_from=16)]
    found = asked(entry, 256)
    assert found["source"] == "model"
    assert (
        "earlier runs of the same executable and user, 16 processes, scaled to 256; "
        in found["why"]
    )
    near = asked(entry, 250)
    assert ", 16 processes, scaled to 256, the nearest to 250; " in near["why"]
    assert near["source"] == "model"


@pytest.mark.parametrize("available", [None, 2, 9])
def test_runs_that_no_benchmark_resembles_get_the_default_and_are_named(
    available: int | None,
) -> None:
    found = asked([group(predicted({}))], available=available)
    assert found["io_nodes"] == min(3, 3 if available is None else available)
    assert (found["source"], found["application_id"]) == ("default", 7)
    assert found["why"].startswith("5 earlier runs of the same executable and user, 16 processes")
    assert "; the site's default" in found["why"]
    assert found["why"].endswith(", because nothing in the database resembles any phase")
    assert (found["expected_mib_s"], found["confidence"], found["alternatives"]) == (None, None, [])


def test_fewer_than_anything_known_get_the_default() -> None:
    """`decide` gives the same answer, because no available number was measured."""
    prediction = predicted({2: 60.0, 4: 97.0})
    decision = prediction.choice.decide(replace(POLICY, available=1))
    found = asked([group(prediction)], available=1)
    assert (found["io_nodes"], found["source"]) == (decision.io_nodes, "default") == (1, "default")
    assert found["why"].endswith(f"; {decision.why}")


@pytest.mark.parametrize(
    ("default", "available", "io_nodes"),
    [(None, None, None), (None, 4, None), (4, None, 4), (4, 2, 2), (4, 8, 4), (0, None, 0)],
)
def test_of_an_unknown_job_the_default_is_taken(
    default: int | None, available: int | None, io_nodes: int | None
) -> None:
    found = fields(default_answer(default, available))
    assert (found["io_nodes"], found["source"]) == (io_nodes, "default")
    assert found["application_id"] is None
    assert "no earlier run" in found["why"]


@pytest.mark.parametrize("unheard_of", [None, "mn4"])
def test_while_runs_may_be_missing_an_answer_says_why(unheard_of: str | None) -> None:
    found = fields(default_answer(4, 2, unheard_of, ["testbed"], not_ready="runs are being read"))
    assert (found["io_nodes"], found["source"]) == (2, "default")
    assert "no earlier run " in found["why"]
    assert found["why"].endswith(" is known yet: runs are being read")


@pytest.mark.parametrize("says", ["the same executable and user"])
def test_an_entry_that_went_through_json_answers_the_same(says: str) -> None:
    entry = [group(), group(tasks=4)]
    kept = [PreparedGroup(*each) for each in json.loads(json.dumps(entry))]
    for tasks in (None, 4, 16, 100):
        for available in (None, 0, 3, 9):
            assert answer(kept, says, tasks, None, available) == answer(
                entry, says, tasks, None, available
            )


def test_an_answer_takes_microseconds() -> None:
    """A question may take a millisecond; the limit here is fifty times the usual time."""
    entry = [group()]

    def ask() -> None:
        answer(entry, SAYS, 20, 8, 3)

    once = min(timeit.repeat(ask, timer=time.thread_time, number=1000, repeat=5)) / 1000
    assert once < 100e-6
