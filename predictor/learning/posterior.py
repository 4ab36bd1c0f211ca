"""The posterior: what an application is expected to get, by a prediction and its own outcomes.

The state is a vector of the logarithms of the bandwidths that a run is expected to get now, one for
each number of I/O nodes. A prediction is its prior; each outcome corrects its own number, and the
others as far as their errors belong together. Nothing is forgotten but by drift.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Degrees of freedom of Student's t distribution, by which single outcomes scatter.
_DEGREES = 4
# However many outcomes agree, a bandwidth is not known better than by this standard deviation.
_LEAST_DEVIATION = 0.03
# So many outcomes in a row that are this many standard deviations off, all to one side, are news.
_NEWS, _SURPRISING = 3, 2.5
# Days after which the system's load drifts no further.
_MOST_DAYS = 60.0


@dataclass(frozen=True, eq=False)
class Belief:
    """A normal distribution of the logarithms of expected bandwidths.

    Attributes
    ----------
    mean : ndarray of shape (n,)
        Logarithms of MiB/s.
    covariance : ndarray of shape (n, n)
        Their covariance.
    """

    mean: Array
    covariance: Array


@dataclass(frozen=True)
class Observation:
    """The bandwidth that a run of the application got.

    Attributes
    ----------
    place : int
        The place of its number of I/O nodes in the belief.
    log_mib_s : float
        The logarithm of its bandwidth in MiB/s.
    day : float or None
        When it ran, in days since any moment; None if it is not known.
    scatter : float
        Standard deviation of the logarithm, besides the usual scatter of runs.
    """

    place: int
    log_mib_s: float
    day: float | None = None
    scatter: float = 0.0


@dataclass(frozen=True, eq=False)
class Parameters:
    """How runs of a system scatter.

    Attributes
    ----------
    scatter : ndarray of shape (n,)
        Standard deviation of the logarithm of a run's bandwidth with each number of I/O nodes.
    drift : float
        Standard deviation by which the level of all bandwidths changes in a day.
    """

    scatter: Array
    drift: float = 0.01


def likeness(io_nodes: Sequence[int]) -> Array:
    """Correlations of the errors of shape between numbers of I/O nodes, shape (n, n)."""
    numbers = np.asarray(io_nodes, np.float64)
    logarithms = np.log2(np.maximum(numbers, 1))
    found: Array = np.exp(-np.abs(logarithms[:, None] - logarithms) / 2)
    direct = numbers == 0
    return np.where(direct[:, None] == direct, found, 0.0)


def posterior(prior: Belief, outcomes: Sequence[Observation], parameters: Parameters) -> Belief:
    """Correct a prior by outcomes.

    Parameters
    ----------
    prior : Belief
        The prediction.
    outcomes : sequence of Observation
        The runs, the oldest first.
    parameters : Parameters
        How runs scatter.

    Returns
    -------
    Belief
        The expectation after the last outcome.

    References
    ----------
    R. E. Kalman, A new approach to linear filtering and prediction problems, 1960. Outcomes weigh
    as in Student's t distribution: M. Roth et al., Robust Bayesian filtering and smoothing using
    Student's t distribution, 2017.

    Examples
    --------
    >>> prior = Belief(np.log([30.0, 30.0]), 0.3**2 * np.ones((2, 2)))
    >>> outcomes = [Observation(0, np.log(20.0))] * 10
    >>> after = posterior(prior, outcomes, Parameters(np.array([0.1, 0.1])))
    >>> np.exp(after.mean).round().tolist()
    [20.0, 20.0]
    """
    beliefs = [prior]
    surprises: list[float] = []
    day = None
    for number, outcome in enumerate(outcomes):
        belief = _drifted(beliefs[-1], day, outcome.day, parameters)
        day = day if outcome.day is None else outcome.day
        noise = _noise(outcome, parameters)
        variance = float(belief.covariance[outcome.place, outcome.place]) + noise
        error = outcome.log_mib_s - float(belief.mean[outcome.place])
        weight = min(1.0, (_DEGREES + 1) / (_DEGREES + error**2 / variance))
        beliefs.append(_updated(belief, outcome, noise / weight))
        surprises.append(error / math.sqrt(variance))
        if _is_news(surprises):
            first = number + 1 - _NEWS
            beliefs[-1] = _believed(beliefs[first], outcomes[first : number + 1], parameters)
            surprises.clear()
    return beliefs[-1]


def _noise(outcome: Observation, parameters: Parameters) -> float:
    """Compute the variance of an outcome around what is expected."""
    return float(parameters.scatter[outcome.place]) ** 2 + outcome.scatter**2


def _is_news(surprises: Sequence[float]) -> bool:
    """Whether the last outcomes are all far off to one side."""
    last = surprises[-_NEWS:]
    return len(last) == _NEWS and (min(last) > _SURPRISING or max(last) < -_SURPRISING)


def _believed(before: Belief, news: Sequence[Observation], parameters: Parameters) -> Belief:
    """Doubt a belief by as much as news is off, and then believe the news."""
    off = np.mean([outcome.log_mib_s - before.mean[outcome.place] for outcome in news])
    belief = replace(before, covariance=before.covariance + off**2)
    for outcome in news:
        belief = _updated(belief, outcome, _noise(outcome, parameters))
    return belief


def _drifted(
    belief: Belief, before: float | None, now: float | None, parameters: Parameters
) -> Belief:
    """Add what the level of all bandwidths may have changed between two days."""
    if before is None or now is None:
        return belief
    days = min(max(now - before, 0.0), _MOST_DAYS)
    return replace(belief, covariance=belief.covariance + parameters.drift**2 * days)


def _updated(belief: Belief, outcome: Observation, noise: float) -> Belief:
    """Correct a belief by one outcome whose noise has a variance."""
    at = outcome.place
    together = belief.covariance[:, at]
    gain = together / (together[at] + noise)
    mean = belief.mean + gain * (outcome.log_mib_s - belief.mean[at])
    covariance = belief.covariance - np.outer(gain, together)
    covariance[at, at] = max(covariance[at, at], _LEAST_DEVIATION**2)
    return Belief(mean, covariance)
