"""Trying a number of I/O nodes that may be better than the one that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

Array = NDArray[np.float64]

# No trial may be expected to lose more than this share of the bandwidth.
_MOST_LOSS = 0.3
# At most this share of the jobs try a number.
_MOST_JOBS = 0.25
# Differences of bandwidth below this share, and gains of its logarithm below this one, are nothing.
_NO_LOSS, _NO_GAIN = 0.005, 0.001
# Points and weights of a normal distribution.
_POINTS, _WEIGHTS = hermegauss(9)


class Trial(NamedTuple):
    """A number of I/O nodes to try.

    Attributes
    ----------
    loss : float
        The share of the bandwidth that a job with it is expected to lose.
    gain : float
        The expected gain of the best bandwidth's logarithm, if one more run with it is known.
    jobs : float
        The share of the jobs that try it.
    """

    place: int
    loss: float
    gain: float
    jobs: float


def worth_trying(
    expected_mib_s: Array,
    scatter: Sequence[float] | Array,
    chosen: int,
    columns: Sequence[int],
    explore: float,
) -> Trial | None:
    """Find the number of I/O nodes that teaches most for what trying it costs.

    Parameters
    ----------
    expected_mib_s : ndarray of shape (draws, numbers)
        Draws of the expected bandwidths, jointly over the numbers.
    scatter : ndarray of shape (numbers,)
        Standard deviation of the logarithm of a run's bandwidth.
    columns : sequence of int
        The places of the numbers that the job may get.
    explore : float
        The mean share of the bandwidth that trying may cost.

    Returns
    -------
    Trial or None
        None if no number is worth trying.

    References
    ----------
    The gain is the knowledge gradient: P. Frazier et al., The knowledge-gradient policy for
    correlated normal beliefs, INFORMS Journal on Computing 21(4), 2009.

    Examples
    --------
    Nobody knows whether the second number is as good as the first.

    >>> draws = np.random.default_rng(0).normal([0, -0.1], [0.01, 0.3], (1000, 2))
    >>> trial = worth_trying(100 * np.exp(draws), [0.1, 0.1], 0, [0, 1], explore=0.01)
    >>> trial.place, round(trial.loss, 1), round(trial.jobs, 1)
    (1, 0.1, 0.2)
    """
    means = expected_mib_s.mean(axis=0)
    logarithms = np.log(expected_mib_s[:, columns])
    covariance = np.atleast_2d(np.cov(logarithms, rowvar=False))
    state, best = logarithms.mean(axis=0), logarithms.mean(axis=0).max()
    found: Trial | None = None
    for column, place in enumerate(columns):
        loss = max(0.0, 1 - float(means[place] / means[chosen]))
        if place == chosen or loss > _MOST_LOSS:
            continue
        together = covariance[column]
        move = together / np.sqrt(together[column] + scatter[place] ** 2)
        moved = (state + np.outer(_POINTS, move)).max(axis=1)
        gain = float(_WEIGHTS @ moved / _WEIGHTS.sum() - best)
        if gain <= _NO_GAIN:
            continue
        jobs = min(_MOST_JOBS, explore / loss) if loss else _MOST_JOBS
        trial = Trial(place, loss, gain, jobs)
        if found is None or _worth(trial) > _worth(found):
            found = trial
    return found


def _worth(trial: Trial) -> float:
    """The gain for what it costs."""
    return trial.gain / max(trial.loss, _NO_LOSS)
