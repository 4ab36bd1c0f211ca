"""Fit a Gaussian process to repeated measurements, as a scikit-learn estimator.

Many cells with few repetitions each tell more together than each cell alone. Cells with similar
configurations and numbers of I/O nodes support each other; a cell whose repetitions agree keeps its
own mean. The fitted function also predicts cells that were not measured, and its doubt about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack
from scipy.optimize import minimize
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from predictor.model.gaussian import (
    Array,
    Cells,
    Hyperparameters,
    Posterior,
    condition,
    matern,
)
from predictor.model.priors import BOUNDS, Prior, weak

# The starts are compared after this many steps on this many cells, to save time.
_SCREENED_CELLS, _SCREENING_STEPS = 250, 15


class CurveProcess(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression of repeated measurements with unequal noise.

    The covariance is a sum of Matérn-3/2 components and a linear trend whose slopes vary with a
    Matérn-3/2 covariance. Each component has a length scale for each feature; with a long one,
    places share the component although they differ in that feature. The noise of a repetition
    depends on the place. Hyperparameters are fitted by maximum marginal likelihood with weak
    priors; the scatter within cells also determines the noise.

    Parameters
    ----------
    components : int
        Number of Matérn components.
    parameters : Hyperparameters, optional
        Hyperparameters to use instead of fitting them.
    standard : Hyperparameters, optional
        How to standardise features and targets; by default by those that are fitted.
    prior : callable
        Makes the `Prior` from how features and targets are standardised; see
        `predictor.model.priors`.
    starts : int
        Number of starts of the optimiser.
    max_iterations : int
        Most steps from the best start.
    random_state : int, RandomState or None
        Seed of the starts.

    Attributes
    ----------
    parameters_ : Hyperparameters
        The fitted or given hyperparameters.
    conditioned_ : Conditioned
        The process, conditioned on the measurements.

    References
    ----------
    C. E. Rasmussen and C. K. I. Williams, Gaussian Processes for Machine Learning, 2006:
    algorithm 2.1 (prediction), equations 5.9 (likelihood) and 5.12 (leaving out).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[0.0], [1.0], [2.0]], 3, axis=0)
    >>> y = [0.9, 1.0, 1.1, 1.9, 2.0, 2.1, 2.9, 3.0, 3.1]
    >>> process = CurveProcess(components=1).fit(X, y)
    >>> process.predict([[1.0], [1.5]]).round(1)
    array([2. , 2.5])
    """

    def __init__(
        self,
        components: int = 3,
        *,
        parameters: Hyperparameters | None = None,
        standard: Hyperparameters | None = None,
        prior: Callable[[Hyperparameters], Prior] = weak,
        starts: int = 6,
        max_iterations: int = 80,
        random_state: int | None = 0,
    ) -> None:
        self.components = components
        self.parameters = parameters
        self.standard = standard
        self.prior = prior
        self.starts = starts
        self.max_iterations = max_iterations
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> CurveProcess:
        """Fit the hyperparameters to measurements.

        Parameters
        ----------
        X : array of shape (n_measurements, n_features)
            The features; equal rows are repetitions of one cell.
        y : array of shape (n_measurements,)
            The measured targets.

        Returns
        -------
        CurveProcess
            This estimator.
        """
        X, y = cast(
            tuple[Array, Array], validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        )
        given = self.parameters
        if given is None:
            standard = self.standard or standardising(X, y, self.components)
            # SciPy brings linear-algebra libraries of its own, so limit all of them.
            with threadpool_limits(limits=1):
                given = self._learn(standard, condition(standard, X, y).cells)
        self.parameters_ = given
        self.conditioned_ = condition(given, X, y)
        return self

    def _learn(self, standard: Hyperparameters, cells: Cells) -> Hyperparameters:
        random = check_random_state(self.random_state)
        prior = self.prior(standard)
        few = cells.take(random.permutation(len(cells.mean))[:_SCREENED_CELLS])
        screened = Likelihood(standard, few, prior)
        ends = [screened.climb(screened.draw(random), _SCREENING_STEPS) for _ in range(self.starts)]
        best, _ = min(ends, key=lambda end: end[1])
        likelihood = Likelihood(standard, cells, prior)
        return likelihood.unpack(likelihood.climb(best, self.max_iterations)[0])

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predict the mean of repetitions.

        Parameters
        ----------
        X : array of shape (n_places, n_features)
            The features.
        return_std : bool
            Whether to return the standard deviation of the mean as well.

        Returns
        -------
        array of shape (n_places,), or two such arrays
            The mean, and its standard deviation if asked for, in the units of the target.
        """
        found = self.posterior(X)
        if return_std:
            return found.mean, np.sqrt(np.diag(found.covariance))
        return found.mean

    def posterior(self, X: ArrayLike) -> Posterior:
        """Predict the mean of repetitions, with doubt and noise.

        Parameters
        ----------
        X : array of shape (n_places, n_features)
            The features.
        """
        check_is_fitted(self)
        found: Posterior = self.conditioned_.posterior(
            validate_data(self, X, dtype=np.float64, reset=False)
        )
        return found


class Likelihood:
    """The likelihood of hyperparameters, given some cells; `CurveProcess` maximises it.

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
