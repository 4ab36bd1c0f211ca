"""Fit a Gaussian process to repeated measurements, as a scikit-learn estimator.

Many cells with few repetitions each tell more together than each cell alone. Cells with similar
configurations and numbers of I/O nodes support each other; a cell whose repetitions agree keeps its
own mean. The fitted function also predicts cells that were not measured, and its doubt about them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from predictor.model.gaussian import Array, Hyperparameters, Posterior, condition
from predictor.model.likelihood import most_likely
from predictor.model.priors import Prior, weak


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
        self.parameters_ = self.parameters or most_likely(
            X,
            y,
            self.components,
            standard=self.standard,
            prior=self.prior,
            starts=self.starts,
            max_iterations=self.max_iterations,
            random=check_random_state(self.random_state),
        )
        self.conditioned_ = condition(self.parameters_, X, y)
        return self

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
