"""A Gaussian process with given hyperparameters: from measurements to what is expected.

Nothing is learned here (see `process`), so that predicting needs numpy alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from typing import NamedTuple, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

Array = NDArray[np.float64]
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Blocks of a matrix that stay in a processor's cache.
_BLOCK = 64
# More than rounding takes from a thousand cells.
_ROUNDING = 1e-8
# A cell's own scatter counts beside what is usual at its place as if that were known from so
# many repetitions. Left-out repetitions of FORGE's are predicted about equally well by 4 to 16.
_USUAL_REPETITIONS = 6.0


def _one_threaded(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function do its linear algebra in one thread.

    Its matrices are so small that several threads would only wait for each other.
    """

    @wraps(function)
    def limited(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        with _libraries().limit(limits=1):
            return function(*args, **options)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """The libraries whose threads are limited. Looking for them reads /proc, so do it once."""
    return ThreadpoolController()


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """What a `CurveProcess` learns; the rest is data.

    Attributes
    ----------
    centre, scale : array of shape (n_features,)
        Features are standardised by; a scale of 0 is of a feature that never differed.
    offset, spread : float
        Targets are standardised by.
    trend : array of shape (n_features,)
        Variance of the slope that the target has along each feature.
    weights : array of shape (n_components,)
        Variance of each component.
    lengths : array of shape (1 + n_components, n_features)
        How far apart, in each feature, two places still have much in common: their slopes,
        and each component.
    noise : array of shape (1 + n_features,)
        Logarithm of a repetition's variance: at the centre, and its slopes.
    residual : float
        Variance of a cell around what it shares with others.
    """

    centre: Array
    scale: Array
    offset: float
    spread: float
    trend: Array
    weights: Array
    lengths: Array
    noise: Array
    residual: float

    def standardise(self, X: Array) -> Array:
        """Features around 0, about 1 wide."""
        return (X - self.centre) / np.where(self.scale > 0, self.scale, np.inf)


@dataclass(frozen=True, eq=False)
class Cells:
    """Repetitions at the same place, in standardised units.

    Attributes
    ----------
    X : array of shape (n_cells, n_features)
        The places.
    mean : array of shape (n_cells,)
        Of the repetitions.
    repetitions : array of shape (n_cells,)
        How many there are.
    scatter : array of shape (n_cells,)
        Sum of their squared distances from the mean.
    """

    X: Array
    mean: Array
    repetitions: Array
    scatter: Array

    def take(self, index: NDArray[np.intp]) -> Cells:
        """Some of them."""
        return Cells(self.X[index], self.mean[index], self.repetitions[index], self.scatter[index])


@dataclass(frozen=True, eq=False)
class Posterior:
    """What is expected at some places, in the units of the target.

    Attributes
    ----------
    mean : array of shape (n_places,)
        Of the repetitions that would be measured there.
    covariance : array of shape (n_places, n_places)
        Of that mean: doubt.
    noise : array of shape (n_places,)
        Variance of a repetition around it.
    """

    mean: Array
    covariance: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A process that knows some cells.

    Attributes
    ----------
    parameters : Hyperparameters
        Of the process.
    cells : Cells
        What it knows.
    """

    parameters: Hyperparameters
    cells: Cells

    @cached_property
    def noise(self) -> Array:
        """Variance of a repetition in each cell, standardised.

        What is usual at its place, and what its own repetitions show.
        """
        usual = noise_at(self.parameters, self.cells.X)
        known = _USUAL_REPETITIONS + self.cells.repetitions - 1
        together: Array = (_USUAL_REPETITIONS * usual + self.cells.scatter) / known
        return together

    @cached_property
    def _factor(self) -> Array:
        """The lower Cholesky factor of the covariance of what was measured."""
        matrix = _lower_covariance(self.parameters, self.cells.X)
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += self.noise / self.cells.repetitions + self.parameters.residual
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            # Without any noise, cells may be as good as equal.
            matrix[diagonal] *= 1 + _ROUNDING
            factor = np.linalg.cholesky(matrix)
        return factor.astype(np.float64, copy=False)

    @cached_property
    def _mean(self) -> Array:
        """The mean of the cells as numbers that say nothing of each other."""
        return _solved(self._factor, self.cells.mean[:, None])[:, 0]

    @cached_property
    def _index(self) -> dict[bytes, int]:
        return {row.tobytes(): cell for cell, row in enumerate(self.cells.X)}

    @_one_threaded
    def posterior(self, X: Array) -> Posterior:
        """Expect the mean of repetitions, with doubt and noise.

        Parameters
        ----------
        X : array of shape (n_places, n_features)
            Where.
        """
        p = self.parameters
        places = p.standardise(X)
        across = covariance(p, self.cells.X, places)
        told = _solved(self._factor, across)
        doubt = covariance(p, places, places) - told.T @ told
        doubt[np.diag_indices_from(doubt)] += p.residual
        noise = _noise_among(p, places, self.cells.X)
        for place, cell in enumerate(self._index.get(row.tobytes()) for row in places):
            if cell is not None:
                noise[place] = self.noise[cell]
        return Posterior(
            mean=p.offset + p.spread * (told.T @ self._mean),
            covariance=p.spread**2 * doubt,
            noise=p.spread**2 * noise,
        )

    @_one_threaded
    def leave_out(self, groups: NDArray[np.intp]) -> Posterior:
        """Expect each cell's mean without the cells of its group.

        Parameters
        ----------
        groups : array of shape (n_cells,)
            A label for each of `cells`.

        Returns
        -------
        Posterior
            For each of `cells`; covariances of cells of different groups are 0.
        """
        p, places, mean = self.parameters, self.cells.X, self.cells.mean.copy()
        doubt = np.zeros((len(mean), len(mean)))
        noise = noise_at(p, places)
        measured = self.noise / self.cells.repetitions
        root = _solved(self._factor, np.eye(len(mean)))
        inverse, weights = root.T @ root, root.T @ self._mean
        for group in np.unique(groups):
            [members] = np.nonzero(groups == group)
            block = np.ix_(members, members)
            doubt[block] = np.linalg.inv(inverse[block])
            mean[members] -= doubt[block] @ weights[members]
            doubt[members, members] -= measured[members]
            if len(members) < len(mean):
                noise[members] = _noise_among(p, places[members], places[groups != group])
        return Posterior(
            mean=p.offset + p.spread * mean,
            covariance=p.spread**2 * doubt,
            noise=p.spread**2 * noise,
        )


@_one_threaded
def condition(parameters: Hyperparameters, X: Array, y: Array) -> Conditioned:
    """Let a process know measurements.

    Parameters
    ----------
    parameters : Hyperparameters
        Of the process.
    X : array of shape (n_measurements, n_features)
        Equal rows are repetitions.
    y : array of shape (n_measurements,)
        What was measured.
    """
    known = cells_of(parameters.standardise(X), (y - parameters.offset) / parameters.spread)
    return Conditioned(parameters, known)


class Form(NamedTuple):
    """A covariance function, and its derivative by the squared distance."""

    value: Array
    by_square: Array


def matern(squares: Array) -> Form:
    """Matérn-3/2 of squared distances."""
    root = np.sqrt(3 * squares)
    decay = np.exp(-root)
    return Form((1 + root) * decay, -1.5 * decay)


def covariance(p: Hyperparameters, here: Array, there: Array) -> Array:
    """Covariance of standardised places, without noise and residual."""
    slope, *levels = p.lengths
    total: Array = (here * p.trend) @ there.T
    total *= _matern_between(here / slope, there / slope)
    for weight, length in zip(p.weights, levels, strict=True):
        level = _matern_between(here / length, there / length)
        level *= weight
        total += level
    return total


def _lower_covariance(p: Hyperparameters, places: Array) -> Array:
    """Covariance of places with each other; above the diagonal are any numbers."""
    matrix = np.zeros((len(places), len(places)))
    for start in range(0, len(places), _BLOCK):
        end = start + _BLOCK
        matrix[start:end, :end] = covariance(p, places[start:end], places[:end])
    return matrix


def _matern_between(here: Array, there: Array) -> Array:
    """The value of `matern`, in place."""
    root = _squares(here, there)
    root *= 3
    np.sqrt(root, out=root)
    # To have memory takes as long as to count.
    decay = np.negative(root)
    np.exp(decay, out=decay)
    root += 1
    root *= decay
    return root


def _squares(here: Array, there: Array) -> Array:
    """Squared distances, by the faster formula that loses what is far below noise."""
    squares: Array = -2 * here @ there.T
    squares += (here**2).sum(axis=1)[:, None]
    squares += (there**2).sum(axis=1)
    return np.maximum(squares, 0, out=squares)


def _solved(factor: Array, right: Array) -> Array:
    """Solve for a lower triangular matrix, by forward substitution of blocks."""
    solved = right.copy()
    for start in range(0, len(factor), _BLOCK):
        end = start + _BLOCK
        solved[start:end] -= factor[start:end, :start] @ solved[:start]
        solved[start:end] = np.linalg.solve(factor[start:end, start:end], solved[start:end])
    return solved


def noise_at(p: Hyperparameters, places: Array) -> Array:
    """Usual variance of a repetition at standardised places."""
    noise: Array = np.exp(p.noise[0] + places @ p.noise[1:])
    return noise


def _noise_among(p: Hyperparameters, places: Array, known: Array) -> Array:
    """Usual variance, beyond known places that at their edge: nothing else would bound it."""
    return noise_at(p, np.clip(places, known.min(axis=0), known.max(axis=0)))


def cells_of(X: Array, y: Array) -> Cells:
    """Group equal rows of standardised measurements."""
    places, cell = np.unique(X, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    repetitions = np.bincount(cell).astype(np.float64)
    mean = np.bincount(cell, y) / repetitions
    scatter = np.bincount(cell, (y - mean[cell]) ** 2).astype(np.float64)
    return Cells(places, mean, repetitions, scatter)
