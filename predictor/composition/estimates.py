"""Bandwidth of one configuration as a distribution: what is doubted, and how runs differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import harmonic_mean

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.cells import modes
from predictor.model.gaussian import Posterior

Array = NDArray[np.float64]

DRAWS = 1000
# An application is not its benchmark: the standard deviation of the logarithm of their ratio
# where every part was measured, over the applications of experiments/data/testbed.
_UNLIKE_BENCHMARK = 0.06


@dataclass(frozen=True, eq=False)
class Estimate:
    """What is expected of a configuration with some numbers of I/O nodes.

    Draws are natural logarithms of ratios to what is typical.

    Attributes
    ----------
    typical_mib_s : array of shape (n,)
        Bandwidth that a run has typically.
    doubt : array of shape (DRAWS, n)
        How far off that may be; the same for everything that rests on it.
    run : array of shape (DRAWS, n)
        How runs differ beside, in all that they do.
    mode : array of int, shape (DRAWS, n)
        Which way through the system a run takes; all its phases take the same.
    noise : tuple of n tuples of arrays
        How phases differ beside, for each mode: values to draw from.
    is_mean : array of bool, shape (n,)
        Whether typical is the harmonic mean of runs, as which times add up, and not the
        geometric one.
    """

    typical_mib_s: Array
    doubt: Array
    run: Array
    mode: NDArray[np.intp]
    noise: tuple[tuple[Array, ...], ...]
    is_mean: NDArray[np.bool_]

    def draw(self, point: int, random: np.random.Generator) -> Array:
        """Noise of one phase of each run, shape (DRAWS,); every value as often as it is likely."""
        drawn = [random.permutation(np.resize(values, DRAWS)) for values in self.noise[point]]
        return drawn[0] if len(drawn) == 1 else np.choose(self.mode[:, point], drawn)

    def scaled(self, factors: Array) -> Estimate:
        """With other typical bandwidths; `factors` has one for each number of I/O nodes."""
        return replace(self, typical_mib_s=self.typical_mib_s * factors)


def as_measured(
    repetitions: Mapping[int, Sequence[float]],
    io_nodes: Sequence[int],
    random: np.random.Generator,
) -> Estimate:
    """Take a measured curve for what it is: typical is the harmonic mean, as times add up.

    Parameters
    ----------
    repetitions : mapping of int to sequence of float
        MiB/s by number of I/O nodes.
    io_nodes : sequence of int
        Which of them.
    random : Generator
        To draw modes.
    """
    cells = [_as_measured(repetitions[n], random) for n in io_nodes]
    typical, mode, noise = zip(*cells, strict=True)
    return Estimate(
        typical_mib_s=np.array(typical),
        doubt=np.zeros((DRAWS, len(io_nodes))),
        run=np.zeros((DRAWS, len(io_nodes))),
        mode=np.column_stack(mode),
        noise=noise,
        is_mean=np.ones(len(io_nodes), dtype=bool),
    )


def as_expected(
    expected: Posterior,
    tails: Sequence[float],
    repetitions: Sequence[Mapping[int, Sequence[float]]],
    io_nodes: Sequence[int],
    random: np.random.Generator,
) -> list[Estimate]:
    """Take what a model expects, but measured cells of two modes as they were measured.

    Typical is the geometric mean: it is wrong by least, of runs and of their means (see
    `benchmarks/accuracy.py`). What a model doubts of several configurations goes together, and
    so does what makes an application unlike its benchmarks.

    Parameters
    ----------
    expected : Posterior
        See `Knowledge.expect`.
    tails : sequence of float
        See `Model`.
    repetitions : sequence of mapping of int to sequence of float
        For each configuration, MiB/s by number of I/O nodes, as far as it was measured.
    io_nodes : sequence of int
        Numbers of I/O nodes.
    random : Generator
        To draw doubt and modes.

    Returns
    -------
    list of Estimate
        For each configuration.
    """
    count, points = len(repetitions), len(io_nodes)
    normal = random.standard_normal((DRAWS, count * points))
    doubts = (normal @ _root(expected.covariance).T).reshape(DRAWS, count, points)
    # One run cannot tell this from noise, so it is no doubt that one could take away.
    unlike = random.normal(0, _UNLIKE_BENCHMARK, (DRAWS, points))
    typicals = np.exp(expected.mean).reshape(count, points)
    variances = expected.noise.reshape(count, points)
    sides = np.concatenate([np.negative(tails), tails])
    estimates = []
    for i, cells in enumerate(repetitions):
        mode = np.zeros((DRAWS, points), dtype=np.intp)
        is_mean = np.zeros(points, dtype=bool)
        noise: list[tuple[Array, ...]] = [(np.sqrt(variance) * sides,) for variance in variances[i]]
        for j, n in enumerate(io_nodes):
            if len(modes(cells.get(n, ()))) > 1:
                typicals[i, j], mode[:, j], noise[j] = _as_measured(cells[n], random)
                doubts[:, i, j] = 0
                is_mean[j] = True
        estimates.append(Estimate(typicals[i], doubts[:, i], unlike, mode, tuple(noise), is_mean))
    return estimates


def _as_measured(
    values: Sequence[float], random: np.random.Generator
) -> tuple[float, NDArray[np.intp], tuple[Array, ...]]:
    """What is typical, which mode each draw has, and the repetitions of each mode."""
    typical = harmonic_mean(values)
    found = modes(values)
    shares = [len(mode) / len(values) for mode in found]
    drawn = random.choice(len(found), DRAWS, p=shares)
    return typical, drawn, tuple(np.log(np.array(mode) / typical) for mode in found)


def _root(covariance: Array) -> Array:
    """A square root of a matrix that may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0))
    return root
