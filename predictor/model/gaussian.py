"""Predict with a Gaussian process whose hyperparameters are given.

`likelihood` fits the hyperparameters. It needs SciPy; predicting needs NumPy alone,
so that a command starts in half a second.
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

# Rows and columns of blocks that fit into a processor's cache.
_BLOCK = 64
# Larger than the rounding errors of a matrix of a thousand cells.
_ROUNDING = 1e-8
# The usual variance at a cell's place counts like this many repetitions, beside the cell's own
# scatter. On FORGE's measurements, held-back repetitions are predicted about equally well with any
# number from 4 to 16.
_USUAL_REPETITIONS = 6.0


def _one_threaded(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Let a function do its linear algebra in one thread.

    The matrices are so small that several threads would only wait for each other.
    """

    @wraps(function)
    def limited(*args: _Arguments.args, **options: _Arguments.kwargs) -> _Result:
        with _libraries().limit(limits=1):
            return function(*args, **options)

    return limited


@cache
def _libraries() -> ThreadpoolController:
    """Find the libraries whose threads are limited. The search reads /proc, so it is done once."""
    return ThreadpoolController()


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """The values that `likelihood` fits.

    Attributes
    ----------
    centre, scale : array of shape (n_features,)
        Subtracted from features, and divided by; the scale of a feature that never differed is 0.
    offset, spread : float
        Subtracted from targets, and divided by.
    trend : array of shape (n_features,)
        Variance of the target's slope along each feature.
    weights : array of shape (n_components,)
        Variance of each component.
    lengths : array of shape (1 + n_components, n_features)
        Length scales in each feature: of the slopes first, then of each component.
    noise : array of shape (1 + n_features,)
        Logarithm of a repetition's variance at the centre, and its slope along each feature.
    residual : float
        Variance of a cell's mean that it shares with no other cell.
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
        """Shift and scale features to a mean of 0 and a standard deviation of 1."""
        return (X - self.centre) / np.where(self.scale > 0, self.scale, np.inf)


@dataclass(frozen=True, eq=False)
class Cells:
    """Repetitions, grouped by their features, in standardised units.

    Attributes
    ----------
    X : array of shape (n_cells, n_features)
        Features of each cell, which are its place.
    mean : array of shape (n_cells,)
        Mean of the repetitions.
    repetitions : array of shape (n_cells,)
        Number of repetitions.
    scatter : array of shape (n_cells,)
        Sum of the squared distances of the repetitions from their mean.
    """

    X: Array
    mean: Array
    repetitions: Array
    scatter: Array

    def take(self, index: NDArray[np.intp]) -> Cells:
        """Take the cells with these indices."""
        return Cells(self.X[index], self.mean[index], self.repetitions[index], self.scatter[index])


@dataclass(frozen=True, eq=False)
class Posterior:
    """The expected measurements at some places, in the units of the target.

    Attributes
    ----------
    mean : array of shape (n_places,)
        Expected mean of repetitions.
    covariance : array of shape (n_places, n_places)
        Covariance of that mean, the doubt about it.
    noise : array of shape (n_places,)
        Variance of one repetition around the mean.
    """

    mean: Array
    covariance: Array
    noise: Array


@dataclass(frozen=True, eq=False)
class Conditioned:
    """A Gaussian process that is conditioned on measured cells."""

    parameters: Hyperparameters
    cells: Cells

    @cached_property
    def noise(self) -> Array:
        """Variance of a repetition in each cell, standardised.

        It is a mean of the usual variance at the cell's place and the variance of its repetitions.
        """
        usual = noise_at(self.parameters, self.cells.X)
        known = _USUAL_REPETITIONS + self.cells.repetitions - 1
        together: Array = (_USUAL_REPETITIONS * usual + self.cells.scatter) / known
        return together

    @cached_property
    def _factor(self) -> Array:
        """The lower Cholesky factor of the covariance of the measured means."""
        matrix = _lower_covariance(self.parameters, self.cells.X)
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += self.noise / self.cells.repetitions + self.parameters.residual
        try:
            factor = np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            # Without noise, two cells may be so close that the matrix is singular after rounding.
            matrix[diagonal] *= 1 + _ROUNDING
            factor = np.linalg.cholesky(matrix)
        return factor.astype(np.float64, copy=False)

    @cached_property
    def _mean(self) -> Array:
        """The means of the cells, decorrelated by the Cholesky factor."""
        return _solved(self._factor, self.cells.mean[:, None])[:, 0]

    @cached_property
    def _index(self) -> dict[bytes, int]:
        return {row.tobytes(): cell for cell, row in enumerate(self.cells.X)}

    @_one_threaded
    def posterior(self, X: Array) -> Posterior:
        """Predict the mean of repetitions, with doubt and noise.

        Parameters
        ----------
        X : array of shape (n_places, n_features)
            The features, not standardised.
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
        """Predict each cell's mean without the measurements of its group.

        Parameters
        ----------
        groups : array of shape (n_cells,)
            The group of each cell.
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
    """Condition a Gaussian process on measurements.

    Parameters
    ----------
    X : array of shape (n_measurements, n_features)
        The features; equal rows are repetitions of one cell.
    y : array of shape (n_measurements,)
        The measured targets.
    """
    known = cells_of(parameters.standardise(X), (y - parameters.offset) / parameters.spread)
    return Conditioned(parameters, known)


class Form(NamedTuple):
    """Values of a covariance function, and its derivative with respect to the squared distance."""

    value: Array
    by_square: Array


def matern(squares: Array) -> Form:
    """Compute the Matérn-3/2 covariance of squared distances."""
    root = np.sqrt(3 * squares)
    decay = np.exp(-root)
    return Form((1 + root) * decay, -1.5 * decay)


def covariance(p: Hyperparameters, here: Array, there: Array) -> Array:
    """Compute the covariance of standardised places, without noise and residual."""
    slope, *levels = p.lengths
    total: Array = (here * p.trend) @ there.T
    total *= _matern_between(here / slope, there / slope)
    for weight, length in zip(p.weights, levels, strict=True):
        level = _matern_between(here / length, there / length)
        level *= weight
        total += level
    return total


def _lower_covariance(p: Hyperparameters, places: Array) -> Array:
    """Compute the lower triangle of the covariance of places; numbers above it are not valid."""
    matrix = np.zeros((len(places), len(places)))
    for start in range(0, len(places), _BLOCK):
        end = start + _BLOCK
        matrix[start:end, :end] = covariance(p, places[start:end], places[:end])
    return matrix


def _matern_between(here: Array, there: Array) -> Array:
    """Compute the value of `matern`, in place."""
    root = _squares(here, there)
    root *= 3
    np.sqrt(root, out=root)
    # Allocating another array would cost as much as the arithmetic, so work in place.
    decay = np.negative(root)
    np.exp(decay, out=decay)
    root += 1
    root *= decay
    return root


def _squares(here: Array, there: Array) -> Array:
    """Compute squared distances by a faster formula; its rounding errors are far below noise."""
    squares: Array = -2 * here @ there.T
    squares += (here**2).sum(axis=1)[:, None]
    squares += (there**2).sum(axis=1)
    return np.maximum(squares, 0, out=squares)


def _solved(factor: Array, right: Array) -> Array:
    """Solve a lower triangular system by forward substitution, block by block."""
    solved = right.copy()
    for start in range(0, len(factor), _BLOCK):
        end = start + _BLOCK
        solved[start:end] -= factor[start:end, :start] @ solved[:start]
        solved[start:end] = np.linalg.solve(factor[start:end, start:end], solved[start:end])
    return solved


def noise_at(p: Hyperparameters, places: Array) -> Array:
    """Compute the usual variance of a repetition at standardised places."""
    noise: Array = np.exp(p.noise[0] + places @ p.noise[1:])
    return noise


def _noise_among(p: Hyperparameters, places: Array, known: Array) -> Array:
    """Compute the usual variance; beyond the known places it stays at the value of their edge."""
    return noise_at(p, np.clip(places, known.min(axis=0), known.max(axis=0)))


def cells_of(X: Array, y: Array) -> Cells:
    """Group standardised measurements with equal features into cells."""
    places, cell = np.unique(X, axis=0, return_inverse=True)
    cell = cell.reshape(-1)
    repetitions = np.bincount(cell).astype(np.float64)
    mean = np.bincount(cell, y) / repetitions
    scatter = np.bincount(cell, (y - mean[cell]) ** 2).astype(np.float64)
    return Cells(places, mean, repetitions, scatter)
