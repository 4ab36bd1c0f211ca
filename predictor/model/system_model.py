"""The model of a system: what its measurements say of patterns that they hold few or none of.

A model is what was learned (a Gaussian process's hyperparameters) and how far it was found to be
trusted. What it predicts from are the measurements as they are now, so it is small, and new
measurements count at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.cells import bimodal
from benchdb.measurements.curves import Curve
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from predictor.matching.configurations import Match
from predictor.matching.nearest import SIZES, Catalogue, catalogue_of_curves, find
from predictor.model.features import FEATURES, pattern, with_io_nodes
from predictor.model.gaussian import Conditioned, Hyperparameters, Posterior, condition

Array = NDArray[np.float64]

# How far direct access and I/O nodes are off together where a size was never measured: the
# correlation over FORGE's request sizes, each left out (with any two I/O nodes it is 0.9).
_DIRECT_AND_FORWARDED = 0.6


@dataclass(frozen=True)
class Scores:
    """How well the measured patterns are predicted when each is left out.

    Attributes
    ----------
    cell_error : float
        Mean of |predicted - mean of the cell| / mean of the cell.
    regret : float
        Mean over patterns of what is lost with the number of I/O nodes predicted best.
    patterns : int
        How many were left out.
    """

    cell_error: float
    regret: float
    patterns: int


@dataclass(frozen=True, eq=False)
class Model:
    """What was learned from one engine's measurements on a system.

    Attributes
    ----------
    features : tuple of str
        Of `features.FEATURES`, those that differed.
    usual : tuple of float
        What stands for a size (`features.SIZES`) that is not known: the median.
    parameters : Hyperparameters
        Of the process, over `features`.
    widening : mapping of str to float
        By size: variance of the logarithm of bandwidth per squared power of two between a
        pattern and the nearest size that was measured.
    tails : tuple of float
        How far off runs are, in standard deviations, each as likely; most but for some as a
        normal distribution says.
    known_factor, new_factor : float
        By how much standard deviations are scaled so that p10 to p90 hold four fifths of the
        runs: of measured patterns, and of those that were left out.
    scores : Scores or None
        None where too little was measured to leave anything out.
    measurements, configurations : int
        What it was learned from.
    """

    features: tuple[str, ...]
    usual: tuple[float, ...]
    parameters: Hyperparameters
    widening: Mapping[str, float]
    tails: tuple[float, ...]
    known_factor: float
    new_factor: float
    scores: Scores | None
    measurements: int
    configurations: int

    def places(self, patterns: Array, io_nodes: Sequence[int] | NDArray[np.int64]) -> Array:
        """What the process is asked at, shape (n, n_features) (see `features.with_io_nodes`)."""
        known = patterns.copy()
        sizes = known[:, : len(SIZES)]
        np.copyto(sizes, self.usual, where=np.isnan(sizes))
        columns = [FEATURES.index(name) for name in self.features]
        return with_io_nodes(known, io_nodes)[:, columns]


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What predictions on a system rest on.

    Attributes
    ----------
    curves : tuple of Curve
        What one engine measured on it, or at least the nearest to what is asked for.
    model : Model or None
        What was learned from them; without, a measured curve stands for what is nearest to it,
        as in Inria RR-9366.
    """

    curves: tuple[Curve, ...]
    model: Model | None = None

    def __post_init__(self) -> None:
        """Refuse what must not be mixed."""
        engines = sorted({curve.engine for curve in self.curves})
        if len(engines) > 1:
            raise InputError(
                f"the curves are of several engines: {', '.join(engines)}",
                remedy="predict from one engine's curves",
            )

    def match(self, wanted: IorConfig) -> Match:
        """Find the benchmark of a configuration, or the nearest of its kind.

        With a model, a configuration beyond the sizes that were measured of its kind rests on
        the model alone, and its match is of kind "model".
        """
        found = find(wanted, self._catalogue)
        if self.model is None or found.kind != "interpolated":
            return found
        beyond = self._catalogue.beyond(wanted)
        return replace(found, kind="model", beyond=beyond) if beyond else found

    def io_nodes(self, matches: Iterable[Match]) -> list[int]:
        """The numbers of I/O nodes that benchmarks of the matches' kinds were measured with."""
        wanted = {match.wanted.kind: match.wanted for match in matches}
        return sorted(
            {
                n
                for each in wanted.values()
                for curve in self._catalogue.of_kind(each)
                for n in curve.bandwidths_mib_s
            }
        )

    @cached_property
    def range_of_io_nodes(self) -> range:
        """From the fewest I/O nodes that anything was measured with to the most.

        Beyond, a curve is a guess, and no reason to give I/O nodes.
        """
        measured = {n for curve in self.curves for n in curve.bandwidths_mib_s}
        return range(min(measured), max(measured) + 1) if measured else range(0)

    def reaches(self, io_nodes: int) -> bool:
        """Whether the model can tell anything of a number of I/O nodes.

        Direct access tells next to nothing of I/O nodes, nor they of it, unless the model was
        learned from both.
        """
        learned = self.model is not None and "direct access" in self.model.features
        direct = io_nodes == 0
        return learned or any(
            (n == 0) == direct for curve in self.curves for n in curve.bandwidths_mib_s
        )

    def expect(self, matches: Sequence[Match], io_nodes: Sequence[int]) -> Posterior:
        """Expect the runs of some configurations.

        Parameters
        ----------
        matches : sequence of Match
            What to run, and the benchmarks nearest to it; each must have one.
        io_nodes : sequence of int
            With which numbers of I/O nodes, at least one.

        Returns
        -------
        Posterior
            Of the natural logarithms of MiB/s, of all matches together: each with all
            `io_nodes`, which vary faster.

        Raises
        ------
        AssertionError
            Without a model.
        """
        assert self.model is not None  # noqa: S101
        rows = np.array([_row(found) for found in matches])
        places = self.model.places(
            np.repeat(rows, len(io_nodes), axis=0), [*io_nodes] * len(matches)
        )
        posterior = self._process.posterior(places)
        measured = [n in found.repetitions for found in matches for n in io_nodes]
        factor = np.where(measured, self.model.known_factor, self.model.new_factor)
        beyond = self._beyond(matches, rows, io_nodes)
        return Posterior(
            mean=posterior.mean,
            covariance=np.outer(factor, factor) * (posterior.covariance + beyond),
            noise=factor**2 * posterior.noise,
        )

    def _beyond(self, matches: Sequence[Match], rows: Array, io_nodes: Sequence[int]) -> Array:
        """Covariance for being far from every size that was measured.

        What is far in the same size is off together.
        """
        assert self.model is not None  # noqa: S101
        kinds = [found.wanted.kind for found in matches]
        rates = np.sqrt([self.model.widening[name] for name in SIZES])
        steps = rates * [
            gaps(row, self._catalogue.sizes(found.wanted))
            for row, found in zip(rows, matches, strict=True)
        ]
        alike = np.array([[one == other for other in kinds] for one in kinds])
        direct = np.equal(io_nodes, 0)
        together = np.where(direct[:, None] == direct, 1.0, _DIRECT_AND_FORWARDED)
        return np.kron((steps @ steps.T) * alike, together)

    @cached_property
    def _process(self) -> Conditioned:
        assert self.model is not None  # noqa: S101
        rows, io_nodes, logarithms = measurements(self.curves)
        process: Conditioned = condition(
            self.model.parameters, self.model.places(rows, io_nodes), logarithms
        )
        return process

    @cached_property
    def _catalogue(self) -> Catalogue[Curve]:
        return catalogue_of_curves(self.curves)


def measurements(curves: Iterable[Curve]) -> tuple[Array, NDArray[np.int64], Array]:
    """What a process is fitted to.

    Cells with two modes are left out, where there are others: neither their mean nor their
    scatter says anything of their neighbours.

    Returns
    -------
    patterns : array of shape (n, len(SIZES) + len(FLAGS))
        See `features.pattern`.
    io_nodes : array of shape (n,)
        Numbers of I/O nodes.
    logarithms : array of shape (n,)
        Natural logarithms of bandwidth in MiB/s.
    """
    cells = [
        (row, n, values)
        for curve in curves
        for row in (pattern(curve.config, stonewalled=curve.stonewalled),)
        for n, values in curve.bandwidths_mib_s.items()
    ]
    cells = [cell for cell in cells if not bimodal(cell[2])] or cells
    counts = [len(values) for _, _, values in cells]
    return (
        np.repeat([row for row, _, _ in cells], counts, axis=0),
        np.repeat([n for _, n, _ in cells], counts),
        np.log([value for _, _, values in cells for value in values]),
    )


def gaps(row: Array, measured: Array) -> Array:
    """Powers of two from each size to the nearest that was measured; 0 of what is not known.

    Parameters
    ----------
    row : array
        See `features.pattern`.
    measured : array of shape (n, len(SIZES))
        Sizes of what was measured of its kind.
    """
    distances: Array = np.fmin.reduce(np.abs(measured - row[: len(SIZES)]), axis=0)
    return np.nan_to_num(distances)


def _row(found: Match) -> Array:
    """What is wanted as numbers; what a log cannot tell is as in the benchmark."""
    assert found.curve is not None  # noqa: S101
    if found.kind == "exact":
        return pattern(found.curve.config, stonewalled=found.curve.stonewalled)
    benchmark = found.curve.config
    return pattern(replace(found.wanted, odirect=benchmark.odirect, fsync=benchmark.fsync))
