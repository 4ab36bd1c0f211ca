"""The benchmark run that teaches most: pure functions of what is believed about all cells.

A cell is a configuration with a number of I/O nodes. The belief is a normal distribution of the
natural logarithms of MiB/s; its cells are in the order of configurations, then of I/O nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.typing import NDArray

from predictor.model.gaussian import Posterior

Array = NDArray[np.float64]

# Points and weights of a normal distribution.
_POINTS, _WEIGHTS = hermegauss(8)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
# Draws of each configuration's curve for the expected regret, and as many with the other sign.
_DRAWS = 1_000
_SEED = 9366
# Draws of a curve that is not measured yet, and as many with the other sign.
_DRAWS_OF_CURVE = 32
# Later configurations of a plan are seldom run, so their order is that of one ranking.
_CHOSEN_ONE_BY_ONE = 30


def gains_of_decisions(belief: Posterior, hours: Array) -> Array:
    """Compute what one run of each cell is expected to gain by better choices of I/O nodes.

    This is the knowledge gradient of the best logarithm of bandwidth, times hours of I/O.

    Parameters
    ----------
    belief : Posterior
        The belief about n * k cells.
    hours : array of shape (n,)
        The weight of each configuration: the hours that applications spend in its I/O.

    Returns
    -------
    array of shape (n * k,)
        Hours.

    References
    ----------
    P. Frazier et al., The knowledge-gradient policy for correlated normal beliefs, INFORMS Journal
    on Computing 21(4), 2009.

    Examples
    --------
    Only the second of two numbers of I/O nodes is uncertain, so only its run can change a choice.

    >>> belief = Posterior(np.zeros(2), np.diag([1e-9, 1.0]), np.full(2, 0.1))
    >>> gains_of_decisions(belief, np.ones(1)).round(1).tolist()
    [0.0, 0.4]
    """
    moves = _moves(belief).reshape(len(hours), -1, len(belief.mean)).astype(np.float32)
    means = belief.mean.reshape(len(hours), -1, 1).astype(np.float32)
    gains = np.zeros(len(belief.mean))
    for point, weight in zip(_POINTS.astype(np.float32), _WEIGHTS, strict=True):
        best = means[:, 0] + point * moves[:, 0]
        for place in range(1, means.shape[1]):
            np.maximum(best, means[:, place] + point * moves[:, place], out=best)
        gains += weight * (hours @ best)
    # Single precision suffices to rank cells, and its rounding may be below 0.
    found: Array = np.maximum(gains - hours @ means.max(axis=1), 0.0)
    return found


def gains_of_certainty(belief: Posterior, hours: Array) -> Array:
    """Compute by how much one run of each cell lowers the variance of all cells, times hours.

    Parameters
    ----------
    belief, hours
        As of `gains_of_decisions`.

    Returns
    -------
    array of shape (n * k,)
        Hours times the variance of a logarithm, summed over all cells.
    """
    of_cells = np.repeat(hours, len(belief.mean) // len(hours))
    gains: Array = of_cells @ _moves(belief) ** 2
    return gains


# They take turns: choices alone leave bandwidths unknown that only tell how long a run takes, and
# certainty alone measures cells that nobody would choose (benchmarks/planning.py).
_TURNS: tuple[Callable[[Posterior, Array], Array], ...] = (gains_of_decisions, gains_of_certainty)


def next_cell(
    belief: Posterior, hours: Array, seconds: Array, turn: int, allowed: NDArray[np.bool_]
) -> int | None:
    """Choose the cell whose next run gains most in a second of benchmarking.

    Parameters
    ----------
    belief, hours
        As of `gains_of_decisions`.
    seconds : array of shape (n * k,)
        The time that a run of each cell takes.
    turn : int
        The number of runs before this one, by which both gains take turns.
    allowed : array of bool, shape (n * k,)
        Whether a cell may run once more.

    Returns
    -------
    int or None
        The index of a cell; None if no cell may run.
    """
    if not allowed.any():
        return None
    gains = _TURNS[turn % len(_TURNS)](belief, hours)
    return int(np.argmax(np.where(allowed, gains / seconds, -np.inf)))


def order_of_curves(belief: Posterior, hours: Array, seconds: Array, repetitions: int) -> list[int]:
    """Order configurations by what their whole curves gain in a second, the best first.

    The first ones are chosen one after the other, as if the curves before were known.

    Parameters
    ----------
    belief, hours
        As of `gains_of_decisions`.
    seconds : array of shape (n,)
        The time that all runs of a configuration take.
    repetitions : int
        Number of runs of each cell.

    Returns
    -------
    list of int
        Indices of configurations.
    """
    curves = np.arange(len(belief.mean)).reshape(len(hours), -1)
    order: list[int] = []
    rest = list(range(len(hours)))
    while rest:
        moves = [_moves_of_curve(belief, curves[config], repetitions) for config in rest]
        is_decision = len(order) % 2 == 0
        gain_of = _gain_of_decisions if is_decision else _gain_of_certainty
        gains = [gain_of(belief.mean, own, hours) for own in moves] / seconds[rest]
        if len(order) >= _CHOSEN_ONE_BY_ONE:
            return order + [rest[place] for place in np.argsort(-gains)]
        best = int(np.argmax(gains))
        order.append(rest.pop(best))
        known = belief.covariance - moves[best] @ moves[best].T
        belief = replace(belief, covariance=known)
    return order


def after_run(belief: Posterior, cell: int, log_mib_s: float | None = None) -> Posterior:
    """Update a belief by one run of a cell; without its bandwidth the run is only expected."""
    known = belief.covariance[cell]
    gain = known / (known[cell] + belief.noise[cell])
    error = 0.0 if log_mib_s is None else log_mib_s - belief.mean[cell]
    return replace(
        belief,
        mean=belief.mean + gain * error,
        covariance=belief.covariance - np.outer(gain, known),
    )


def expected_regret(belief: Posterior, hours: Array) -> float:
    """Compute the share of bandwidth that today's choices are expected to lose.

    The choice for a configuration is the number of I/O nodes with the highest mean.

    Parameters
    ----------
    belief, hours
        As of `gains_of_decisions`.

    Returns
    -------
    float
        The mean of 1 - bandwidth at the choice / highest bandwidth, weighed by hours; 0 to 1.
    """
    count = len(belief.mean) // len(hours)
    curves = np.arange(len(belief.mean)).reshape(-1, count)
    means = belief.mean.reshape(-1, count)
    deviates = _deviates(_DRAWS, count)
    values, vectors = np.linalg.eigh(belief.covariance[curves[:, :, None], curves[:, None, :]])
    roots = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    drawn = means[:, None, :] + np.einsum("ijk,dk->idj", roots, deviates)
    chosen = np.take_along_axis(drawn, means.argmax(axis=1)[:, None, None], axis=2)[:, :, 0]
    lost = 1 - np.exp(chosen - drawn.max(axis=2))
    return float(np.average(lost.mean(axis=1), weights=hours))


def _moves(belief: Posterior) -> Array:
    """Compute by how much means (rows) move with a run of each cell (columns): deviations."""
    moves: Array = belief.covariance / np.sqrt(np.diag(belief.covariance) + belief.noise)
    return moves


def _moves_of_curve(belief: Posterior, cells: NDArray[np.intp], repetitions: int) -> Array:
    """Compute how means move with the runs of some cells: shape (all cells, these cells)."""
    together = belief.covariance[np.ix_(cells, cells)] + np.diag(belief.noise[cells] / repetitions)
    root = np.linalg.cholesky(together)
    moves: Array = np.linalg.solve(root, belief.covariance[cells]).T
    return moves


def _gain_of_decisions(mean: Array, moves: Array, hours: Array) -> float:
    """The hours that better choices gain once a curve is known."""
    deviates = np.random.default_rng(_SEED).standard_normal((moves.shape[1], _DRAWS_OF_CURVE))
    drawn = (mean[:, None] + moves @ np.hstack([deviates, -deviates])).reshape(
        len(hours), -1, 2 * _DRAWS_OF_CURVE
    )
    best = mean.reshape(len(hours), -1).max(axis=1)
    return float(hours @ (drawn.max(axis=1).mean(axis=1) - best))


def _gain_of_certainty(_mean: Array, moves: Array, hours: Array) -> float:
    """The variance of all cells, times hours, that a curve removes."""
    of_cells = np.repeat(hours, len(moves) // len(hours))
    return float(of_cells @ (moves**2).sum(axis=1))


def _deviates(draws: int, count: int) -> Array:
    """Draw standard normal numbers, and the same with the other sign: shape (2 * draws, count)."""
    half = np.random.default_rng(_SEED).standard_normal((draws, count))
    return np.concatenate([half, -half])
