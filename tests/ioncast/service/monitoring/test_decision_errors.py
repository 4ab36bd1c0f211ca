"""Errors of decisions, computed by hand; drift is detected, and false alarms are rare."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchdb.store.database import opened_database, transaction
from ioncast.service.monitoring.decision_errors import (
    UNKNOWN,
    Drift,
    ErrorSummary,
    Judged,
    drift,
    errors_so_far,
    errors_to_json,
)
from ioncast.service.store.applications import Application
from ioncast.service.store.decisions import DecisionRow, store_decisions
from ioncast.service.store.outcomes import JoinedOutcome, joined_outcomes, store_outcome
from ioncast.service.store.runs import NewRun, store_run
from ioncast.service.store.same_run import Outcome
from predictor.validation.against_reruns import Errors, Expected

APP = Application(1, "here", "/opt/app", "app", "ada")
OTHER = Application(2, "here", "/opt/other", "other", "bob")
WRITE = "write POSIX contiguous shared"
# Standard deviations between the mean and p10 or p90 of a normal distribution.
TENTH = 1.2815516
SIGMA = 0.1
DECISION = DecisionRow(
    id="d",
    asked_at="2026-11-21T12:00:00.000000+00:00",
    system="here",
    user="ada",
    executable="/opt/app",
    name=None,
    job_id=None,
    nodes=8,
    tasks=16,
    available=None,
    io_nodes=4,
    source="history",
    expected_mib_s=80.0,
    confidence=0.9,
    application_id=1,
    why="it ran before",
    curve=((0, 50.0, 45.0, 55.0), (4, 80.0, 70.0, 100.0)),
)
START = "2026-11-21T10:00:05.000000+00:00"
_numbers = count(1)


def row(
    observed: float,
    *,
    io_nodes: int = 4,
    decision: DecisionRow | None = DECISION,
    application: Application | None = APP,
    pattern: str | None = WRITE,
    tasks: int | None = 16,
    system: str = "here",
) -> JoinedOutcome:
    number = next(_numbers)
    outcome = Outcome(
        number, system, f"j{number}", START, None, None, io_nodes, observed, f"time {number}"
    )
    return JoinedOutcome(outcome, decision, application, pattern, tasks)


@pytest.mark.parametrize(
    ("io_nodes", "available", "explored", "is_cut"),
    # 4 were decided, and 8 are best.
    [
        (4, None, False, False),
        (4, 8, False, False),
        (4, 4, False, True),
        (4, 4, True, False),
        (2, None, False, True),
        (8, 4, False, False),
    ],
)
def test_a_run_is_cut_where_more_io_nodes_were_better_but_not_free(
    io_nodes: int, available: int | None, explored: bool, is_cut: bool
) -> None:
    curve = (*DECISION.curve, (8, 90.0, 80.0, 110.0))
    decision = replace(DECISION, available=available, explored=explored, curve=curve)
    assert row(80, io_nodes=io_nodes, decision=decision).is_cut is is_cut
    assert not row(80, io_nodes=io_nodes, decision=None).is_cut


def with_interval(sigma: float, expected: float = 100.0) -> DecisionRow:
    """Make a decision with a lognormal interval of the prediction with 4 I/O nodes."""
    low, high = (expected * math.exp(sign * TENTH * sigma) for sign in (-1, 1))
    return replace(DECISION, curve=((4, expected, low, high),))


def series(ratios: Iterable[float], sigma: float = SIGMA) -> list[JoinedOutcome]:
    return [row(100 * ratio, decision=with_interval(sigma)) for ratio in ratios]


def whole(found: Sequence[Drift]) -> Drift:
    """Find the drift of all kinds of I/O of the system together."""
    [drifts] = [each for each in found if each.pattern is None]
    return drifts


def lognormal(numbers: random.Random, sigma: float = SIGMA) -> Iterator[float]:
    while True:
        yield math.exp(numbers.gauss(0, sigma))


def test_errors_are_as_by_hand() -> None:
    rows = [row(40.0, io_nodes=0), row(60.0, io_nodes=0), row(100.0), row(80.0)]
    found = errors_so_far(rows)
    # Errors: 10/40, 10/60, 20/100, 0/80. 40 and 60 are outside 45 to 55; ends are inside.
    assert [each.error for each in found.judged] == pytest.approx([1 / 4, 1 / 6, 1 / 5, 0])
    assert [each.inside for each in found.judged] == [False, False, True, True]
    expected = Errors(4, 0, pytest.approx(37 / 240), pytest.approx(11 / 60), 0.25)
    # The means are 50 and 90, and all decisions were for 4 I/O nodes.
    assert found.systems == (ErrorSummary("here", "here", None, 4, expected, 0.5, 0.0),)
    assert found.applications == (
        ErrorSummary("here", "/opt/app of ada", 1, 4, expected, 0.5, 0.0),
    )
    assert found.sources == (ErrorSummary("here", "history", None, 4, expected, 0.5, 0.0),)
    assert [each.outcome_id for each in found.worst] == [rows[i].outcome.id for i in (0, 2, 1, 3)]


def test_a_judgement_says_all_that_is_known() -> None:
    outcome = row(100.0)
    assert errors_so_far([outcome]).judged == (
        Judged(
            outcome_id=outcome.outcome.id,
            decision_id="d",
            system="here",
            job_id=outcome.outcome.job_id,
            started=START,
            application_id=1,
            executable="/opt/app",
            user="ada",
            pattern=WRITE,
            source="history",
            decided=4,
            io_nodes=4,
            observed_mib_s=100.0,
            expected=Expected(80.0, 70.0, 100.0),
            error=pytest.approx(0.2),
            inside=True,
            implausible=False,
            regret=None,
            reported_at=outcome.outcome.reported_at,
        ),
    )


def test_outcomes_without_a_decision_or_an_expectation_have_no_error() -> None:
    default = replace(DECISION, source="default", curve=(), io_nodes=None)
    rows = [
        row(40.0, io_nodes=2, decision=None),
        row(40.0, io_nodes=2),
        row(40.0, decision=default, application=None, pattern=None, tasks=None),
    ]
    found = errors_so_far(rows)
    assert (found.outcomes, len(found.judged), found.worst) == (3, 2, ())
    assert [(each.error, each.inside, each.regret) for each in found.judged] == [(None,) * 3] * 2
    assert found.judged[1].pattern == UNKNOWN
    # The application is unknown, so the executable of the decision is shown.
    assert found.judged[1].executable == "/opt/app"
    assert found.sources == (
        ErrorSummary("here", "default", None, 1, None, None, None),
        ErrorSummary("here", "history", None, 1, None, None, None),
    )
    [application] = found.applications
    assert application.decisions == 1


def test_without_outcomes_no_error_is_computed() -> None:
    found = errors_so_far([])
    assert (found.outcomes, found.judged, found.systems, found.worst) == (0, (), (), ())
    assert drift([]) == ()


def test_regret_needs_the_decided_number_and_another_one() -> None:
    assert errors_so_far([row(80.0), row(90.0)]).systems[0].regret is None
    assert errors_so_far([row(80.0, io_nodes=0), row(90.0, io_nodes=2)]).systems[0].regret is None
    # The mean with 4 I/O nodes is 80, with 0 it is 100.
    rows = [row(70.0), row(90.0), row(100.0, io_nodes=0, decision=None)]
    found = errors_so_far(rows)
    assert [each.regret for each in found.judged] == pytest.approx([0.2, 0.2])
    assert found.systems[0].regret == pytest.approx(0.2)


def test_regret_is_of_the_same_application_and_processes_and_of_what_was_available() -> None:
    odd = [
        row(1000.0, io_nodes=0, application=OTHER),
        row(1000.0, io_nodes=0, application=None),
        row(1000.0, io_nodes=0, tasks=32),
        row(1000.0, io_nodes=0, tasks=None),
    ]
    assert errors_so_far([row(80.0), *odd]).judged[0].regret is None
    limited = replace(DECISION, available=4)
    more = [row(80.0, decision=limited), row(1000.0, io_nodes=8), row(160.0, io_nodes=0)]
    assert errors_so_far(more).judged[0].regret == pytest.approx(0.5)


def test_an_implausible_outcome_counts_as_an_error_but_not_in_a_regret() -> None:
    rows = [row(80.0), row(60.0, io_nodes=0), row(584_253.0, io_nodes=0)]
    found = errors_so_far(rows)
    assert [each.implausible for each in found.judged] == [False, False, True]
    assert [each.regret for each in found.judged] == [0, 0, 0]
    assert found.systems[0].errors is not None
    assert found.systems[0].errors.count == 3


def test_errors_are_kept_apart_by_system_application_and_source() -> None:
    model = replace(DECISION, source="model")
    rows = [
        row(80.0),
        row(40.0, application=OTHER, decision=model),
        row(80.0, system="there", application=replace(APP, id=3, system="there")),
    ]
    found = errors_so_far(rows)
    assert [(each.system, each.decisions) for each in found.systems] == [("here", 2), ("there", 1)]
    assert [(each.application_id, each.name) for each in found.applications] == [
        (1, "/opt/app of ada"),
        (2, "/opt/other of bob"),
        (3, "/opt/app of ada"),
    ]
    by_source = {(each.system, each.name): each.errors for each in found.sources}
    assert by_source["here", "model"] == Errors(1, 1.0, 1.0, 1.0, 1.0)
    assert by_source["here", "history"] == by_source["there", "history"] == Errors(1, 0, 0, 0, 0)


def test_the_ten_worst_are_said() -> None:
    found = errors_so_far([row(80.0 / (1 + error / 100)) for error in range(30)])
    assert [round(100 * (each.error or 0)) for each in found.worst] == list(range(29, 19, -1))


@given(st.floats(0.001, 1.0), st.integers(1, 100))
def test_outcomes_as_predicted_never_drift(sigma: float, length: int) -> None:
    found = drift(series([1.0] * length, sigma))
    assert [(each.pattern, each.count) for each in found] == [(None, length), (WRITE, length)]
    for each in found:
        assert (each.drifted, each.since, each.ewma) == (False, None, 0)
        assert each.ratio == pytest.approx(1)


@given(st.floats(0.005, 0.35), st.integers(0, 50), st.sampled_from([0.5, 2.0]))
def test_half_and_double_are_seen_after_few(sigma: float, before: int, ratio: float) -> None:
    """ln 2 is at least two standard deviations, so the average crosses the limit in five runs."""
    rows = series([1.0] * before + [ratio] * 5, sigma)
    found = whole(drift(rows))
    assert found.drifted
    assert math.copysign(1, found.ewma) == math.copysign(1, math.log(ratio))
    times = [each.outcome.reported_at for each in rows[before:]]
    assert found.since in times
    assert not whole(drift(rows[: before + 1])).drifted


def test_the_ratio_is_that_of_the_last_ten() -> None:
    found = whole(drift(series([1.0] * 50 + [0.5] * 10)))
    assert found.ratio == pytest.approx(0.5)
    # The geometric mean of 0.5 and 2.0 is 1.
    assert whole(drift(series([0.5, 2.0]))).ratio == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.05, 0.1, 0.5])
def test_false_alarms_of_lognormal_runs_are_3_in_1000(sigma: float) -> None:
    """At any time, 0.27 % of unchanged series are in alarm."""
    numbers = random.Random(1959)
    runs = lognormal(numbers, sigma)
    alarms = 0
    for _ in range(2000):
        alarms += whole(drift(series((next(runs) for _ in range(15)), sigma))).drifted
    assert alarms / 2000 < 0.008


def test_an_interval_of_no_width_takes_a_percent_for_chance() -> None:
    exact = replace(DECISION, curve=((4, 100.0, 100.0, 100.0),))
    assert not whole(drift([row(100.9, decision=exact)] * 2)).drifted
    assert whole(drift([row(110.0, decision=exact)] * 2)).drifted


def test_systems_and_kinds_of_io_drift_apart() -> None:
    kinds = ["read POSIX random shared", WRITE, None]
    rows = [
        row(100.0 if pattern == WRITE else 50.0, decision=with_interval(SIGMA), pattern=pattern)
        for _ in range(5)
        for pattern in kinds
    ]
    rows += [row(100.0, decision=with_interval(SIGMA), system="there") for _ in range(5)]
    rows += [row(1.0, decision=None), row(1.0, io_nodes=8)]
    found = drift(rows)
    assert [(each.system, each.pattern, each.count, each.drifted) for each in found] == [
        ("here", None, 15, True),
        ("here", "read POSIX random shared", 5, True),
        ("here", UNKNOWN, 5, True),
        ("here", WRITE, 5, False),
        ("there", None, 5, False),
        ("there", WRITE, 5, False),
    ]


def test_all_of_it_is_json() -> None:
    rows = [row(40.0, io_nodes=0), row(80.0), row(80.0, decision=None)]
    record = json.loads(json.dumps(errors_to_json(errors_so_far(rows)), allow_nan=False))
    assert (record["outcomes"], record["decisions"]) == (3, 2)
    assert record["systems"][0]["errors"]["maximum"] == 0.25
    assert record["worst"][0]["expected"] == {"mean": 50.0, "p10": 45.0, "p90": 55.0}
    first = json.loads(json.dumps(asdict(drift(rows)[0]), allow_nan=False))
    assert (first["system"], first["pattern"], first["drifted"]) == ("here", None, False)


def test_outcomes_joined_by_a_database_are_judged(tmp_path: Path) -> None:
    kind = {"type": "write", "api": "POSIX", "spatiality": "contiguous", "files": "shared"}
    place = tmp_path / "bench.sqlite"
    with opened_database(place) as engine:
        with transaction(engine, write=True) as connection:
            new = NewRun(
                system="here",
                executable="/opt/app",
                user="ada",
                logs=["0" * 64],
                tasks=16,
                phases=[kind | {"bytes": 1}],
            )
            run, _ = store_run(connection, new)
            told = {"asked_at": "2020-01-01", "application_id": run.application.id}
            rows = [replace(DECISION, id=str(i), job_id=str(i), **told) for i in range(20)]  # type: ignore[arg-type]
            store_decisions(connection, rows)
            for i in range(20):
                store_outcome(
                    connection,
                    system="here",
                    job_id=str(i),
                    io_nodes=4 * (i % 2),
                    bandwidth_mib_s=25.0 if i % 2 == 0 else 40.0,
                )
        with transaction(engine) as connection:
            joined = joined_outcomes(connection, system="here")
    found = errors_so_far(joined)
    assert found.systems[0].errors == Errors(20, 1.0, 1.0, 1.0, 1.0)
    assert (found.systems[0].coverage, found.systems[0].regret) == (0.0, 0.0)
    changed = drift(joined)
    assert [(each.pattern, each.drifted) for each in changed] == [(None, True), (WRITE, True)]
    assert changed[0].ratio == pytest.approx(0.5)
    assert changed[0].since == joined[1].outcome.reported_at
