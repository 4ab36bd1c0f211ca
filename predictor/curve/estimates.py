"""The bandwidth of one configuration as a distribution: doubt, modes and noise of runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import harmonic_mean

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.cells import modes
from predictor.matching.file_times import FileTime
from predictor.model.gaussian import Posterior
from predictor.model.posterior import root
from predictor.model.substitution_error import together

Array = NDArray[np.float64]

DRAWS = 1000
_SEED = 9366
# Doubts about rates of files are others than those about bandwidths.
_SEED_OF_RATES = 800
# An application differs from its benchmarks even if all parts were measured: the standard deviation
# of the logarithm of their ratio, over the applications of experiments/data/testbed.
_UNLIKE_BENCHMARK = 0.06


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimated bandwidth of a configuration with n numbers of I/O nodes.

    Draws are natural logarithms of the ratio to the typical bandwidth.

    Attributes
    ----------
    doubt : array of shape (DRAWS, n)
        Draws of the error of the typical bandwidth; the same for all parts with this estimate.
    run, mode : array of shape (DRAWS, n)
        Draws of the difference between runs, and of the mode of a run; the same for all its phases.
    noise : tuple of n tuples of arrays
        For each mode, values to draw the difference between phases from.
    is_mean : array of bool, shape (n,)
        Whether the typical bandwidth is the harmonic mean, with which times add up, instead of the
        geometric mean.
    """

    typical_mib_s: Array
    doubt: Array
    run: Array
    mode: NDArray[np.intp]
    noise: tuple[tuple[Array, ...], ...]
    is_mean: NDArray[np.bool_]

    def draw(self, point: int, random: np.random.Generator) -> Array:
        """Draw the noise of one phase of each run, shape (DRAWS,); each value equally often."""
        drawn = [random.permutation(np.resize(values, DRAWS)) for values in self.noise[point]]
        return drawn[0] if len(drawn) == 1 else np.choose(self.mode[:, point], drawn)

    def doubted(self, variance: float, io_nodes: Sequence[int]) -> Estimate:
        """Add a doubt about the logarithm of bandwidth; for all estimates it is drawn together."""
        if not variance:
            return self
        normal = np.random.default_rng(_SEED).standard_normal(self.doubt.shape)
        drawn = normal @ root(variance * together(io_nodes))
        return replace(self, doubt=self.doubt + drawn)

    def scaled(self, factors: Array) -> Estimate:
        """Multiply the typical bandwidths by `factors`, one for each number of I/O nodes."""
        return replace(self, typical_mib_s=self.typical_mib_s * factors)


def as_measured(
    repetitions: Mapping[int, Sequence[float]],
    io_nodes: Sequence[int],
    random: np.random.Generator,
) -> Estimate:
    """Estimate from a measured curve alone, without a model.

    The typical bandwidth is the harmonic mean of the repetitions, because times add up.
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
    """Estimate configurations from a model; measured cells with two modes stay as measured.

    The typical bandwidth is the geometric mean, because it has the smallest error against runs
    and against their means (see `benchmarks/accuracy.py`). The doubts about several
    configurations are correlated. The difference between an application and its benchmarks is
    drawn once for all of them.
    """
    count, points = len(repetitions), len(io_nodes)
    normal = random.standard_normal((DRAWS, count * points))
    # The symmetric root is the same on every processor; eigenvectors may differ in their signs.
    doubts = (normal @ root(expected.covariance)).reshape(DRAWS, count, points)
    # An earlier run cannot tell this difference from noise, so it counts as noise, not as doubt.
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


def with_files(estimate: Estimate, file_time: FileTime | None, io_nodes: Sequence[int]) -> Estimate:
    """Add the time of metadata calls to the time that bytes take, with its doubt and scatter."""
    if file_time is None:
        return estimate
    bytes_s = (1 - file_time.covered) / estimate.typical_mib_s
    files_s = file_time.files / file_time.files_per_s(io_nodes) / file_time.mib
    share = files_s / (bytes_s + files_s)
    random = np.random.default_rng(_SEED_OF_RATES)
    common = random.normal(0, file_time.doubt, (DRAWS, 1)) if file_time.doubt else 0.0
    own = random.normal(0, file_time.scatter, (2, DRAWS, len(io_nodes)))

    def together_with(draws: Array, of_rates: Array) -> Array:
        return -np.log((1 - share) * np.exp(-draws) + share * np.exp(-of_rates))

    return replace(
        estimate,
        typical_mib_s=1 / (bytes_s + files_s),
        doubt=together_with(estimate.doubt, common + own[0] / np.sqrt(file_time.runs(io_nodes))),
        run=together_with(estimate.run, own[1]),
        noise=tuple(
            tuple((1 - part) * values for values in modes)
            for part, modes in zip(share, estimate.noise, strict=True)
        ),
    )


def _as_measured(
    values: Sequence[float], random: np.random.Generator
) -> tuple[float, NDArray[np.intp], tuple[Array, ...]]:
    """Compute the typical bandwidth, the mode of each draw, and the noise of each mode."""
    typical = harmonic_mean(values)
    found = modes(values)
    shares = [len(mode) / len(values) for mode in found]
    drawn = random.choice(len(found), DRAWS, p=shares)
    return typical, drawn, tuple(np.log(np.array(mode) / typical) for mode in found)
