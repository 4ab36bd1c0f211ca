"""Errors and drift as figures, from made-up outcomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ioncast.service.monitoring.decision_errors import Judged
from ioncast.service.web.pages.accuracy_view import ratios
from ioncast_base.pages.figures import Points
from predictor.validation.against_reruns import Expected
from tests.support.drawn import lines


def judged(pattern: str, observed: float, expected: float) -> Judged:
    return Judged(
        outcome_id=1,
        decision_id="d",
        system="here",
        job_id="1",
        started=None,
        application_id=None,
        executable=None,
        user=None,
        pattern=pattern,
        source="history",
        decided=4,
        io_nodes=4,
        observed_mib_s=observed,
        expected=Expected(expected, expected, expected),
        error=abs(expected - observed) / observed,
        inside=False,
        implausible=False,
        regret=None,
        reported_at="2026-11-21T04:15:02+00:00",
    )


def test_drift_is_drawn_as_ratios_with_a_moving_average_of_their_logarithms() -> None:
    compared = [judged("a", 200, 100), judged("b", 50, 100), judged("a", 200, 100)]
    figure = ratios(compared)
    points = [series for series in figure.series if isinstance(series, Points)]
    assert [(list(each.at), list(each.values)) for each in points] == [
        ([1, 3], [2, 2]),
        ([2], [0.5]),
    ]
    # A fifth of the newest: 2 ** 0.2, then 2 ** (0.2 + 0.8 * 0.2).
    assert lines(figure)["a, on here"] == pytest.approx([2**0.2, 2**0.36])


def test_outcomes_without_an_expected_bandwidth_have_no_drift() -> None:
    figure = ratios([replace(judged("a", 200, 100), expected=None)])
    assert [list(line) for line in lines(figure).values()] == [[1, 1], []]
