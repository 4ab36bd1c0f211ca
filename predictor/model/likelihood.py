"""Learn the hyperparameters of a Gaussian process by maximum marginal likelihood.

Source: C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006,
equation 5.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from predictor.model.gaussian import Array, Cells, Hyperparameters, condition, matern
from predictor.model.priors import BOUNDS, Prior, weak

# The starts are compared after this many steps on this many cells, to save time.
_SCREENED_CELLS, _SCREENING_STEPS = 250, 15
_COMPONENTS, _STARTS, _MOST_STEPS, _SEED = 3, 6, 80, 0


def most_likely(
    X: Array,
    y: Array,
    components: int = _COMPONENTS,
    *,
    standard: Hyperparameters | None = None,
    prior: Callable[[Hyperparameters], Prior] = weak,
    starts: int = _STARTS,
    max_iterations: int = _MOST_STEPS,
    random: np.random.RandomState | None = None,
) -> Hyperparameters:
    """Learn hyperparameters from measurements.

    Parameters
    ----------
    X : array of shape (n_measurements, n_features)
        The features; equal rows are repetitions of one cell.
    y : array of shape (n_measurements,)
        The measured targets.
    components : int
        Number of Matérn components.
    standard : Hyperparameters, optional
        How to standardise features and targets; by default by those that are given.
    prior : callable
        Makes the `Prior` from how features and targets are standardised; see
        `predictor.model.priors`.
    starts, max_iterations : int
        Number of starts of the optimiser, and most steps from the best one.
    random : RandomState, optional
        Draws the starts; by default always the same ones.
    """
    random = random or np.random.RandomState(_SEED)
    standard = standard or standardising(X, y, components)
    # SciPy brings linear-algebra libraries of its own, so limit all of them.
    with threadpool_limits(limits=1):
        cells = condition(standard, X, y).cells
        of_features = prior(standard)
        few = cells.take(random.permutation(len(cells.mean))[:_SCREENED_CELLS])
        screened = Likelihood(standard, few, of_features)
        ends = [screened.climb(screened.draw(random), _SCREENING_STEPS) for _ in range(starts)]
        best, _ = min(ends, key=lambda end: end[1])
        likelihood = Likelihood(standard, cells, of_features)
        return likelihood.unpack(likelihood.climb(best, max_iterations)[0])


class Likelihood:
    """The likelihood of hyperparameters, given some cells; `most_likely` maximises it.

    Here the hyperparameters are one vector: the logarithms of trend, lengths, weights and noise,
    the slopes of the noise, the logarithm of the residual.
    """

    def __init__(self, standard: Hyperparameters, cells: Cells, prior: Prior) -> None:
        self._standard, self._cells = standard, cells
        self._centre, self._width = prior
        self._ones_and_features = np.column_stack([np.ones(len(cells.X)), cells.X])
        # Pairs of cells are columns of arrays, each pair once: LAPACK stores a matrix column by
        # column, and reads only its lower triangle.
        one, other = self._pair = np.triu_indices(len(cells.X))
        self._flat = np.ravel_multi_index(self._pair, (len(cells.X), len(cells.X)))
        self._is_diagonal = one == other
        self._times = np.where(self._is_diagonal, 1.0, 2.0)
        self._products = (cells.X[one] * cells.X[other]).T
        self._squares = ((cells.X[one] - cells.X[other]) ** 2).T

    def draw(self, random: np.random.RandomState) -> Array:
        """Draw a start from the priors, with half their standard deviations."""
        start: Array = self._centre + random.normal(0, 0.5, len(self._centre)) * self._width
        return start

    def unpack(self, theta: Array) -> Hyperparameters:
        """Turn the vector into hyperparameters."""
        return unpacked(self._standard, theta)

    def climb(self, start: Array, steps: int) -> tuple[Array, float]:
        """Optimise from a start; return the end and minus the logarithm of its likelihood."""
        end = minimize(
            self.descent,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=[BOUNDS] * len(start),
            options={"maxiter": steps},
        )
        return end.x, float(end.fun)

    def descent(self, theta: Array) -> tuple[float, Array]:
        """Compute minus the logarithm of likelihood times priors, and the gradient of that."""
        p, cells = self.unpack(theta), self._cells
        noise = np.exp(self._ones_and_features @ p.noise)
        by_length = p.lengths**-2.0
        forms = matern(by_length @ self._squares)
        slope, levels = forms.value[0], forms.value[1:]
        linear = p.trend @ self._products
        pairs = linear * slope + p.weights @ levels
        pairs[self._is_diagonal] += noise / cells.repetitions + p.residual
        covariance = np.zeros(len(cells.X) ** 2)
        covariance[self._flat] = pairs
        factor, failed = lapack.dpotrf(
            covariance.reshape(len(cells.X), -1).T, lower=1, overwrite_a=1
        )
        if failed:
            return np.inf, np.zeros_like(theta)
        log_determinant = 2 * np.log(np.diag(factor)).sum()
        solved, _ = lapack.dpotrs(factor, cells.mean, lower=1)
        inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        one, other = self._pair
        by_pair = (inverse.ravel("F")[self._flat] - solved[one] * solved[other]) / 2
        by_diagonal = by_pair[self._is_diagonal]
        by_pair *= self._times
        free = cells.repetitions - 1
        by_noise = by_diagonal * noise / cells.repetitions + (free - cells.scatter / noise) / 2
        away = (theta - self._centre) / self._width
        value = (
            cells.mean @ solved / 2
            + log_determinant / 2
            + np.sum(free * np.log(noise) + cells.scatter / noise) / 2
            + away @ away / 2
        )
        by_square = forms.by_square * by_pair
        by_square[0] *= linear
        by_square[1:] *= p.weights[:, None]
        gradient = np.concatenate(
            [
                p.trend * (self._products @ (by_pair * slope)),
                (-2 * by_length * (by_square @ self._squares.T)).ravel(),
                p.weights * (levels @ by_pair),
                self._ones_and_features.T @ by_noise,
                [by_diagonal.sum() * p.residual],
            ]
        )
        return float(value), gradient + away / self._width


def unpacked(standard: Hyperparameters, theta: Array) -> Hyperparameters:
    """Turn a vector, in the order of `Likelihood`, into hyperparameters."""
    features, components = len(standard.trend), len(standard.weights)
    counts = (features, (1 + components) * features, components, 1, features)
    trend, lengths, weights, noise, slopes, residual = np.split(theta, np.cumsum(counts))
    return replace(
        standard,
        trend=np.exp(trend),
        lengths=np.exp(lengths).reshape(-1, len(trend)),
        weights=np.exp(weights),
        noise=np.concatenate([noise, slopes]),
        residual=float(np.exp(residual[0])),
    )


def standardising(X: Array, y: Array, components: int) -> Hyperparameters:
    """Compute how to standardise features and targets; the other values are placeholders.

    Parameters
    ----------
    X : array of shape (n, n_features)
        The features.
    y : array of shape (n,)
        The targets.
    components : int
        Number of Matérn components.
    """
    features = X.shape[1]
    # The standard deviation of equal numbers may be a rounding error instead of 0.
    return Hyperparameters(
        centre=X.mean(axis=0),
        scale=np.where(np.ptp(X, axis=0) > 0, X.std(axis=0), 0.0),
        offset=float(y.mean()),
        spread=float(y.std()) if np.ptp(y) > 0 else 1.0,
        trend=np.zeros(features),
        weights=np.zeros(components),
        lengths=np.ones((1 + components, features)),
        noise=np.zeros(1 + features),
        residual=0.0,
    )
