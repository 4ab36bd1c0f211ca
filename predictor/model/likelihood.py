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
        self._squares = (cells.X.T[:, :, None] - cells.X.T[:, None, :]) ** 2
        self._ones_and_features = np.column_stack([np.ones(len(cells.X)), cells.X])

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
        forms = [matern(np.tensordot(length**-2.0, self._squares, 1)) for length in p.lengths]
        slope, *levels = forms
        linear = (cells.X * p.trend) @ cells.X.T
        covariance = linear * slope.value
        for weight, level in zip(p.weights, levels, strict=True):
            covariance += weight * level.value
        covariance[np.diag_indices_from(covariance)] += noise / cells.repetitions + p.residual
        factor, failed = lapack.dpotrf(covariance, lower=1)
        if failed:
            return np.inf, np.zeros_like(theta)
        inverse, _ = lapack.dpotri(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        solved = inverse @ cells.mean
        by_covariance = (inverse - np.outer(solved, solved)) / 2
        by_diagonal = np.diag(by_covariance)
        free = cells.repetitions - 1
        by_noise = by_diagonal * noise / cells.repetitions + (free - cells.scatter / noise) / 2
        away = (theta - self._centre) / self._width
        value = (
            cells.mean @ solved / 2
            + np.log(np.diag(factor)).sum()
            + np.sum(free * np.log(noise) + cells.scatter / noise) / 2
            + away @ away / 2
        )
        scaled = [
            linear * slope.by_square,
            *(w * k.by_square for w, k in zip(p.weights, levels, strict=True)),
        ]
        gradient = np.concatenate(
            [
                p.trend * np.einsum("id,id->d", cells.X, (by_covariance * slope.value) @ cells.X),
                *(
                    length**-2.0 * -2 * np.tensordot(self._squares, by_covariance * form, 2)
                    for length, form in zip(p.lengths, scaled, strict=True)
                ),
                [
                    w * np.sum(by_covariance * k.value)
                    for w, k in zip(p.weights, levels, strict=True)
                ],
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
