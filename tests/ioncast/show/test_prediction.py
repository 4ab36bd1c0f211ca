"""Texts and rows about predictions and phases, from made-up values."""

from __future__ import annotations

from typing import Any

import pytest

from ioncast.show.figures import timelines_figure
from ioncast.show.prediction import (
    answer_of_prediction,
    answer_shown,
    phase_rows,
    phases_of_prediction,
    phases_shown,
    prediction_shown,
    said_of,
)
from ioncast_base.pages.figures import Bars, Points
from ioncast_base.pages.rendering import code
from summario.phases.tables import to_record
from summario.phases.values import Part, Phase
from tests.support.drawn import lines, named

MIB = 1 << 20


def phase(
    moved_mib: int,
    time_s: float,
    *,
    start: float = 0.0,
    kind: str = "write",
    elapsed_s: float | None = None,
) -> dict[str, Any]:
    """The record of a phase; records of older versions have no elapsed time."""
    return to_record(
        Phase(
            job=1,
            start_seconds=start,
            end_seconds=start + time_s,
            operation=kind,
            rank=None,
            processes=4,
            nprocs=4,
            bytes=moved_mib * MIB,
            io_time_seconds=time_s,
            api="POSIX",
            requests=moved_mib,
            spatiality="contiguous",
            file_access="shared",
            n_files=1,
            mode_processes=4,
            parts=(Part(moved_mib, moved_mib * MIB),),
            elapsed_seconds=elapsed_s,
        )
    )


def predicted(
    *phases: tuple[dict[str, Any], float, int | None], curve: dict[int, float], decided: int | None
) -> dict[str, Any]:
    """A prediction: phases with their expected time and benchmark, the curve, the decision."""
    return {
        "curve": [
            {
                "io_nodes": n,
                "bandwidth_mib_s": {"p10": v - 1, "median": v, "mean": v, "p90": v + 1},
                "time_s": 1.0,
                "basis": "measured",
            }
            for n, v in curve.items()
        ],
        "best": {"io_nodes": decided},
        "decision": {"io_nodes": decided, "within_10_percent": 0.934},
        "own_run": None,
        "phases": [
            {
                "phase": record,
                "parts": record["parts"],
                "time_s": {} if benchmark is None else {decided: time_s},
                "match": {
                    "kind": "unknown" if benchmark is None else "exact",
                    "configuration_id": benchmark,
                    "config": None if benchmark is None else "ior -w",
                    "wanted": "ior -w",
                    "distance": None if benchmark is None else 0.0,
                },
            }
            for record, time_s, benchmark in phases
        ],
        "explanation": [],
        "warnings": [],
    }


def test_a_user_reads_the_observed_and_the_possible_bandwidth() -> None:
    record = predicted((phase(8, 1), 1, 1), curve={0: 40.0, 1: 20.0, 4: 100.0}, decided=4)
    shown = answer_of_prediction(record, {0: [39.0, 41.0]}, ran_with=0)
    assert shown.headline == "4 I/O nodes"
    assert shown.expected == (
        "Predicted: 100 MiB/s; four of five runs should get 99 MiB/s to 101 MiB/s"
    )
    assert shown.said == (
        "Measured: 40 MiB/s with direct access (mean of 2 runs).",
        "With 4 I/O nodes it is 2.5 times as fast as with direct access, both predicted"
        " (100 MiB/s, 40 MiB/s).",
        "Predicted for the slowest choice, 1 I/O node: 20 MiB/s.",
    )


def test_the_run_in_the_log_comes_before_other_comparisons() -> None:
    record = predicted((phase(8, 1), 1, 1), curve={0: 40.0, 4: 100.0}, decided=4)
    words = "the run in the log got 64 MiB/s, faster than 60% of the runs expected with 4 I/O nodes"
    record["own_run"] = {"in_words": words}
    first, *_ = answer_of_prediction(record, {0: [39.0, 41.0]}, ran_with=0).said
    assert first == f"T{words[1:]}."


def test_a_measured_number_is_not_compared_with_a_predicted_one() -> None:
    """As of an application with 70.4 MiB/s measured and 62.5 predicted with 4 I/O nodes."""
    record = predicted((phase(8, 1), 1, 1), curve={4: 62.5, 8: 73.9}, decided=8)
    measured, compared, *_ = answer_of_prediction(record, {4: [70.4]}, ran_with=4).said
    assert measured == "Measured: 70.4 MiB/s with 4 I/O nodes."
    assert compared == (
        "With 8 I/O nodes it is 1.2 times as fast as with 4 I/O nodes, both predicted"
        " (73.9 MiB/s, 62.5 MiB/s)."
    )


def test_an_implausible_run_is_said_and_is_in_no_figure_or_mean() -> None:
    record = predicted((phase(8, 1), 1, 1), curve={0: 40.0, 4: 100.0}, decided=4)
    measured = {0: [39.0, 41.0, 584_253.0], 4: [2e3]}
    said = answer_of_prediction(record, measured, ran_with=0).said
    assert said[0] == "Measured: 40 MiB/s with direct access (mean of 2 runs)."
    assert said[1].startswith(
        "Measured, but implausible: 571 GiB/s with direct access, and 1 other. More than 10 times"
    )
    shown = prediction_shown(record, measured)
    assert list(named(shown.curve, "measured runs", Points).values) == [39.0, 41.0]
    assert [[run.is_implausible for run in row.runs_mib_s] for row in shown.rows] == [
        [False, False, True],
        [True],
    ]


@pytest.mark.parametrize(
    ("before", "says"),
    [
        (
            99.0,
            "4 I/O nodes and 2 I/O nodes are about as fast, both predicted (100 MiB/s, 99 MiB/s).",
        ),
        (
            125.0,
            "With 4 I/O nodes it has 80% of the bandwidth with 2 I/O nodes, both predicted"
            " (100 MiB/s, 125 MiB/s).",
        ),
    ],
)
def test_a_small_gain_and_a_loss_have_their_own_words(before: float, says: str) -> None:
    record = predicted((phase(8, 1), 1, 1), curve={2: before, 4: 100.0}, decided=4)
    assert says in answer_of_prediction(record, {}, ran_with=2).said


def test_no_decision_is_named_as_no_answer() -> None:
    record = predicted((phase(8, 1), 1, None), curve={}, decided=None)
    answer, shown = answer_of_prediction(record, {}), prediction_shown(record, {})
    assert (answer.headline, answer.expected) == ("No answer: the scheduler uses its default", None)
    assert (answer.confidence, answer.curve.figure) == ("", None)
    assert (shown.curve, shown.rows) == (None, ())


def test_the_answer_to_the_scheduler_is_shown_instead_of_the_prediction_from_one_run() -> None:
    record = predicted((phase(8, 1), 1, 1), curve={0: 40.0, 4: 100.0}, decided=4)
    band = {"p10_mib_s": 50.0, "p90_mib_s": 70.0}
    answer = {
        "io_nodes": 0,
        "expected_mib_s": 60.0,
        "confidence": 0.812,
        "why": "its runs are as fast without I/O nodes",
        "alternatives": [{"io_nodes": 4, "expected_mib_s": 61.0} | band],
    } | band
    shown = answer_shown(answer, {}, None)
    assert (shown.headline, shown.why) == (
        "Direct access",
        ("Its runs are as fast without I/O nodes.",),
    )
    assert shown.confidence.startswith(
        "Confidence: 81%, the probability that the run does the same"
    )
    assert "With 0, 4 I/O nodes: 60 MiB/s, 61 MiB/s." in shown.curve.said
    prediction = prediction_shown(record, {4: [58.0]}, answer)
    assert prediction.has_answer
    assert [
        (
            row.io_nodes,
            row.expected and row.expected.mean,
            row.alone and row.alone.bandwidth_mib_s.mean,
        )
        for row in prediction.rows
    ] == [(0, 60.0, 40.0), (4, 61.0, 100.0)]
    assert lines(prediction.curve) == {"predicted mean": [60.0, 61.0]}


def test_the_observed_bandwidth_contains_opens_and_closes() -> None:
    record = predicted((phase(30, 2.0, elapsed_s=3.0), 1.0, 7), curve={4: 10.0}, decided=4)
    [row] = prediction_shown(record, {}).matched
    assert row.observed_mib_s == 10.0


def test_phases_that_rest_on_one_benchmark_are_one_row() -> None:
    often = [(phase(10, 2.0, start=4.0 * i), 1.0, 7) for i in range(9)]
    record = predicted(
        *often,
        (phase(30, 1.0, kind="read"), 3.0, 8),
        (phase(5, 1.0, kind="read"), 0, None),
        curve={4: 10.0},
        decided=4,
    )
    often_row, read, unknown = prediction_shown(record, {}).matched
    assert often_row.numbers == "0, 1, 2, 3, 4, 5 and 3 more"
    # The phases moved 90 MiB in 18 s; 9 s of 12 s are expected.
    assert (often_row.observed_mib_s, often_row.expected_mib_s) == (5.0, 10.0)
    assert often_row.share == 0.75
    assert (read.phases, read.match.benchmark, read.share) == ((9,), 8, 0.25)
    assert (unknown.match.word, unknown.expected_mib_s, unknown.share) == ("unknown", None, None)


def test_the_kind_that_took_most_of_the_time_is_named() -> None:
    record = predicted(
        (phase(10, 1.0), 1, 7), (phase(10, 3.0, kind="read"), 1, 8), curve={4: 10.0}, decided=4
    )
    shown = phases_shown(phases_of_prediction(record))
    assert shown is not None
    assert shown.slowest == (
        "75% of the 4 s of I/O went into one kind, read POSIX contiguous shared:"
        " 10 requests of 1 MiB on average."
    )


def test_phases_that_repeat_are_named() -> None:
    often = [(phase(10, 1.0, start=4.0 * number), 1.0, 7) for number in range(9)]
    shown = phases_shown([record for record, _, _ in often])
    assert shown is not None
    assert shown.slowest.endswith(" Phases 0 to 8: the same I/O every 4 s, 9 times.")


def test_phases_that_cannot_be_read_do_not_repeat() -> None:
    often = [{**phase(10, 1.0, start=4.0 * number), "n_files": -1} for number in range(3)]
    assert "the same I/O" not in said_of(phase_rows(often))


def test_only_the_slowest_of_thousands_of_phases_are_drawn() -> None:
    phases = [phase(1, 1.0 if number % 2 else 2.0) for number in range(2000)]
    [lane, _] = timelines_figure({"": phases}).series
    assert isinstance(lane, Bars)
    assert set(lane.at) == {0}
    lengths = [end - start for start, end in zip(lane.starts, lane.ends, strict=True) if end]
    assert lengths == [2.0] * 1000


def test_code_in_a_description_is_marked_and_the_rest_is_text() -> None:
    assert code("send `<b>` & <i>") == "send <code>&lt;b&gt;</code> &amp; &lt;i&gt;"
