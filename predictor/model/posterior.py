"""The posterior: what an application is expected to get, by a prediction and its own outcomes.

The state is a vector of the logarithms of the bandwidths that a run is expected to get now, one for
each number of I/O nodes. A prediction is its prior; each outcome corrects its own number, and the
others as far as their errors belong together. Nothing is forgotten but by drift.
"""

from __future__ import annotations

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
# Runs scatter by at least this standard deviation of the logarithm of bandwidth.
LEAST_SCATTER = 0.08
# Standard deviations of the logarithm of an application's bandwidth over its prediction, besides
# the doubts that the model knows of: of an error that all numbers of I/O nodes share, and of one
# that numbers share the more, the nearer they are. They are chosen by the errors after one run of
# the shipped applications (benchmarks/learning.py).
_LEVEL, _SHAPE = 0.04, 0.08
# The same of an application of which nothing was measured.
_UNKNOWN = 0.7
# An application may scatter and drift by these factors more or less than usual.
_FACTORS = 2.0 ** np.arange(-1.5, 3, 0.5)
_FACTORS_OF_DRIFT = 2.0 ** np.arange(-2, 4)
# Errors of the 30 outcomes that scatter exactly as usual: quantiles of Student's t distribution
# with 4 degrees (W. T. Shaw, Sampling Student's T distribution, 2006, equation 36).
_SHARES = (np.arange(30) + 0.5) / 30
_ROOTS = np.sqrt(4 * _SHARES * (1 - _SHARES))
_USUAL_ERRORS = 2 * np.sign(_SHARES - 0.5) * np.sqrt(np.cos(np.arccos(_ROOTS) / 3) / _ROOTS - 1)
# A smaller share of the largest variance is rounding.
_SINGULAR = 1e-10
# Days after which the system's load drifts no further.
_MOST_DAYS = 60.0


@dataclass(frozen=True, eq=False)
class Belief:
    """A normal distribution of the logarithms of expected MiB/s, of n numbers of I/O nodes."""

    mean: Array
    covariance: Array


@dataclass(frozen=True)
class ObservedBandwidth:
    """The bandwidth that a run got.

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
    is_cut : bool
        Whether it got its number because too few I/O nodes were free. Then the file system was
        busy too, so that the variance of the usual scatter is twice as large.
    """

    place: int
    log_mib_s: float
    day: float | None = None
    scatter: float = 0.0
    is_cut: bool = False


@dataclass(frozen=True, eq=False)
class Scatter:
    """How runs of a system scatter.

    Attributes
    ----------
    of_runs : ndarray of shape (n,)
        Standard deviation of the logarithm of a run's bandwidth with each number of I/O nodes, but
        for outliers (the scale of Student's t distribution).
    drift : float
        Standard deviation by which the level of all bandwidths changes in a day.
    """

    of_runs: Array
    drift: float | Array = 0.01


def errors_of_predictions(io_nodes: Sequence[int]) -> Array:
    """Compute the covariance of the errors that a model does not know of, shape (n, n)."""
    return _LEVEL**2 + _SHAPE**2 * likeness(io_nodes)


def errors_without_benchmark(io_nodes: Sequence[int]) -> Array:
    """Compute the same covariance if the mean of all benchmarks stands for an application."""
    return _UNKNOWN**2 * (1 + likeness(io_nodes))


def likeness(io_nodes: Sequence[int]) -> Array:
    """Correlations of the errors of shape between numbers of I/O nodes, shape (n, n)."""
    numbers = np.asarray(io_nodes, np.float64)
    logarithms = np.log2(np.maximum(numbers, 1))
    found: Array = np.exp(-np.abs(logarithms[:, None] - logarithms) / 2)
    direct = numbers == 0
    return np.where(direct[:, None] == direct, found, 0.0)


def root(covariance: Array) -> Array:
    """Compute the symmetric square root of a covariance that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    found: Array = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    return found


def inverse_root(covariance: Array) -> Array:
    """Compute the pseudo-inverse of `root`."""
    values, vectors = np.linalg.eigh(covariance)
    kept = values > _SINGULAR * max(float(values[-1]), _SINGULAR)
    inverse = np.where(kept, 1 / np.sqrt(np.where(kept, values, 1)), 0)
    found: Array = (vectors * inverse) @ vectors.T
    return found


def posterior(
    prior: Belief, outcomes: Sequence[ObservedBandwidth], scatter: Scatter, day: float | None = None
) -> Belief:
    """Correct a prior by outcomes.

    Parameters
    ----------
    day : float, optional
        The day whose bandwidths are wanted; by default that of the last outcome.

    References
    ----------
    R. E. Kalman, A new approach to linear filtering and prediction problems, 1960. Outcomes weigh
    as in Student's t distribution: M. Roth et al., Robust Bayesian filtering and smoothing using
    Student's t distribution, 2017.

    Examples
    --------
    >>> prior = Belief(np.log([30.0, 30.0]), 0.3**2 * np.ones((2, 2)))
    >>> outcomes = [ObservedBandwidth(0, np.log(20.0))] * 10
    >>> after = posterior(prior, outcomes, Scatter(np.array([0.1, 0.1])))
    >>> np.exp(after.mean).round().tolist()
    [20.0, 20.0]
    """
    after, _ = _filtered(prior, outcomes, scatter)
    last = next((outcome.day for outcome in reversed(outcomes) if outcome.day is not None), None)
    return _drifted(after, last, day, scatter)


def fitted(prior: Belief, outcomes: Sequence[ObservedBandwidth], usual: Scatter) -> Scatter:
    """Find how the runs of an application scatter and drift, by the likelihood of its outcomes.

    Parameters
    ----------
    usual : Scatter
        How runs scatter as a rule, which counts as 30 outcomes.

    Returns
    -------
    Scatter
        The most likely of `usual`, multiplied by the factors that are tried.
    """
    if not outcomes:
        return usual
    factors, drifts = (each.ravel() for each in np.meshgrid(_FACTORS, _FACTORS_OF_DRIFT))
    tried = Scatter(np.multiply.outer(factors, usual.of_runs), usual.drift * drifts)
    _, likelihood = _filtered(prior, outcomes, tried)
    as_usual = _log_density(_USUAL_ERRORS, factors[:, None] ** 2).sum(axis=1)
    best = np.argmax(likelihood + as_usual - np.log(drifts) ** 2 / 2)
    return Scatter(tried.of_runs[best], float(drifts[best]) * usual.drift)


def _filtered(
    prior: Belief, outcomes: Sequence[ObservedBandwidth], scatter: Scatter
) -> tuple[Belief, Array]:
    """Correct a prior by each of several scatters, and tell the likelihoods of the outcomes."""
    likelihood = np.zeros(np.shape(scatter.drift))
    beliefs = [prior]
    surprises: list[Array] = []
    day = None
    for number, outcome in enumerate(outcomes):
        belief = _drifted(beliefs[-1], day, outcome.day, scatter)
        day = day if outcome.day is None else outcome.day
        noise = _noise(outcome, scatter)
        variance = belief.covariance[..., outcome.place, outcome.place] + noise
        error = outcome.log_mib_s - belief.mean[..., outcome.place]
        likelihood = likelihood + _log_density(error, variance)
        weight = np.minimum(1, (_DEGREES + 1) / (_DEGREES + error**2 / variance))
        beliefs.append(_updated(belief, outcome, noise / weight))
        surprises.append(error / np.sqrt(variance))
        is_news = _are_news(surprises)
        if np.any(is_news):
            first = number + 1 - _NEWS
            news = _believed(beliefs[first], outcomes[first : number + 1], scatter)
            beliefs[-1] = Belief(
                np.where(is_news[..., None], news.mean, beliefs[-1].mean),
                np.where(is_news[..., None, None], news.covariance, beliefs[-1].covariance),
            )
            surprises = [np.where(is_news, 0, surprise) for surprise in surprises]
    return beliefs[-1], likelihood


def _log_density(error: Array, variance: Array) -> Array:
    """Compute the logarithm of the density of Student's t distribution, but for a constant."""
    squared = error**2 / (_DEGREES * variance)
    log_density: Array = -np.log(variance) / 2 - (_DEGREES + 1) / 2 * np.log1p(squared)
    return log_density


def _noise(outcome: ObservedBandwidth, scatter: Scatter) -> Array:
    """Compute the variance of an outcome around what is expected."""
    usual = scatter.of_runs[..., outcome.place] ** 2
    found: Array = usual * (2 if outcome.is_cut else 1) + outcome.scatter**2
    return found


def _are_news(surprises: Sequence[Array]) -> NDArray[np.bool_]:
    """Whether the last outcomes are all far off to one side."""
    last = np.array(surprises[-_NEWS:])
    is_full = len(last) == _NEWS
    return np.asarray(is_full & (np.all(last > _SURPRISING, 0) | np.all(last < -_SURPRISING, 0)))


def _believed(before: Belief, news: Sequence[ObservedBandwidth], scatter: Scatter) -> Belief:
    """Doubt a belief by as much as news is off, and then believe the news."""
    off = np.mean([outcome.log_mib_s - before.mean[..., outcome.place] for outcome in news], axis=0)
    belief = replace(before, covariance=before.covariance + off[..., None, None] ** 2)
    for outcome in news:
        belief = _updated(belief, outcome, _noise(outcome, scatter))
    return belief


def _drifted(belief: Belief, before: float | None, now: float | None, scatter: Scatter) -> Belief:
    """Add what the level of all bandwidths may have changed between two days."""
    if before is None or now is None:
        return belief
    days = min(max(now - before, 0.0), _MOST_DAYS)
    drifted = np.square(scatter.drift)[..., None, None] * days
    return replace(belief, covariance=belief.covariance + drifted)


def _updated(belief: Belief, outcome: ObservedBandwidth, noise: Array) -> Belief:
    """Correct a belief by one outcome whose noise has a variance."""
    at = outcome.place
    together = belief.covariance[..., at]
    gain = together / (together[..., at] + noise)[..., None]
    mean = belief.mean + gain * (outcome.log_mib_s - belief.mean[..., at])[..., None]
    covariance = belief.covariance - gain[..., :, None] * together[..., None, :]
    covariance[..., at, at] = np.maximum(covariance[..., at, at], _LEAST_DEVIATION**2)
    return Belief(mean, covariance)
