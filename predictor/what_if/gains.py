"""The seconds that a changed run saves, from predictions that are drawn together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ioncast_base.kinds import Operation
from predictor.curve.composing import Point
from predictor.curve.overlap import own_seconds
from predictor.curve.prediction import Prediction
from predictor.curve.reasons import Defaulted, Unsure
from predictor.what_if.hiding import hiding_of
from summario.phases.values import Phase

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Span:
    """An expected saving, and the interval in which four of five draws lie.

    The interval ends at today's time, because a run cannot save more. Draws of today's time can be
    much longer than that.
    """

    p10: float
    expected: float
    p90: float


def decided(prediction: Prediction) -> Point | None:
    """The point of the decision; None if nothing can be chosen.

    If a decision is not sure enough, and the site's default is not on the curve, it is the point
    that the decision would take.
    """
    points = {point.io_nodes: point for point in prediction.choice.curve}
    decision = prediction.decision
    if decision.source == "model" and decision.io_nodes is not None:
        return points[decision.io_nodes]
    if isinstance(decision.reason, Defaulted) and isinstance(decision.reason.cause, Unsure):
        likeliest = points[decision.reason.cause.io_nodes]
        return likeliest if decision.io_nodes is None else points.get(decision.io_nodes, likeliest)
    return None


def saved_seconds(today: Prediction, then: Prediction) -> Span | None:
    """Compute the seconds that a run saves, each version with its own decision.

    Returns
    -------
    Span or None
        Below 0 if the changed run takes longer; None without a decision.
    """
    here, there = decided(today), decided(then)
    return None if here is None or there is None else _saved(today, here, then, there)


def saved_by_io_nodes(today: Prediction, then: Prediction) -> dict[int, Span]:
    """Compute the seconds that a run saves with each number of I/O nodes."""
    points = {point.io_nodes: point for point in then.choice.curve}
    return {
        point.io_nodes: _saved(today, point, then, points[point.io_nodes])
        for point in today.choice.curve
        if point.io_nodes in points
    }


def hidden_seconds(
    phases: Sequence[Phase], today: Prediction, operations: frozenset[Operation]
) -> Span:
    """Compute the I/O time that asynchronous MPI-IO hides, with today's decision.

    Phases that nothing predicts take the time that they took in the log.
    """
    hiding = hiding_of(phases, operations)
    seconds = np.array([own_seconds(phase) for phase in phases])
    point = decided(today)
    if point is None:
        saved = float(hiding.saved(seconds))
        return Span(saved, saved, saved)
    predicted = np.zeros(len(phases), bool)
    for matched in today.phases:
        if point.io_nodes in matched.time_s:
            seconds[matched.index] = matched.time_s[point.io_nodes]
            predicted[matched.index] = True
    # Phases at the same time take less than the sum of their times.
    together = point.time_s / seconds[predicted].sum()
    seconds[predicted] *= together
    expected = float(hiding.saved(seconds))
    draws = np.repeat(seconds[:, None], len(today.choice.expected_mib_s), axis=1)
    draws[predicted] *= _seconds(today, point) / point.time_s
    return _span(expected, hiding.saved(draws), float(seconds.sum()))


def _saved(today: Prediction, here: Point, then: Prediction, there: Point) -> Span:
    draws = _seconds(today, here) - _seconds(then, there)
    return _span(here.time_s - there.time_s, draws, here.time_s)


def _seconds(prediction: Prediction, point: Point) -> Array:
    """Draws of the expected time of a run."""
    column = prediction.choice.curve.index(point)
    moved_mib = point.time_s * point.bandwidth_mib_s.mean
    seconds: Array = moved_mib / prediction.choice.expected_mib_s[:, column]
    return seconds


def _span(expected: float, draws: Array, today_s: float) -> Span:
    tenth, ninetieth = np.minimum(np.percentile(draws, [10, 90]), today_s).tolist()
    return Span(tenth, expected, ninetieth)
