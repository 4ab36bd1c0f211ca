"""The model of a system, and the knowledge that predictions use: the model and measured curves.

A model holds the hyperparameters of a Gaussian process and the calibration of its intervals. It
holds no measurements: each prediction reads the present ones, so the model is small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.cells import bimodal
from benchdb.measurements.curves import Curve
from benchdb.measurements.file_rates import FileRate
from benchdb.measurements.storing import pattern_of
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from predictor.matching.configurations import Difference, Match
from predictor.matching.nearest import SIZES, Catalogue, catalogue_of_curves, find, group_of
from predictor.model.features import (
    BEFORE_CHANGE,
    FEATURES,
    FLAGS_OF,
    LARGE_REQUESTS,
    pattern,
    with_io_nodes,
)
from predictor.model.gaussian import Conditioned, Hyperparameters, Posterior, condition
from predictor.model.substitution_error import Taught, doubt_about, taught, together

Array = NDArray[np.float64]

# A lower fidelity tells no more than that the bandwidth is unknown.
_LOWEST_FIDELITY = 0.1
# In powers of two: sizes nearer to a measured one are not quite unmeasured.
SMALLEST_GAP = 0.3
# The changes of cells scatter by 0.3, and the level of a system by 0.5: as many unchanged cells.
_AS_MANY_CHANGES = 0.36


@dataclass(frozen=True)
class HeldBackErrors:
    """Errors of a model on configurations that are held back, one after the other.

    Attributes
    ----------
    regret : float
        Mean over configurations of the share of bandwidth that is lost with the number of I/O
        nodes predicted best.
    small_patterns : int
        Number of small configurations: they move less than 1 % of the mean bytes of all. A run of
        a few requests measures the start of a program, so its error can be thousands of percent.
    """

    cell_error: float
    median_error: float
    regret: float
    patterns: int
    small_patterns: int


@dataclass(frozen=True, eq=False)
class Model:
    """A model that is fitted to one engine's measurements on a system.

    Attributes
    ----------
    features : tuple of str
        The `FEATURES` that differ between the measurements.
    usual : tuple of float
        The median of each of `SIZES`, which stands for an unknown one.
    large_requests : float or None
        Base-2 logarithm of the size in bytes above which requests are large; None if no size
        separates two regimes.
    parameters : Hyperparameters
        Hyperparameters of the Gaussian process over `features`.
    with_jump : Hyperparameters or None
        Those over `features` and over whether requests are large, for request sizes that were not
        measured; None without `large_requests`.
    widening : mapping of str to (float, float)
        By size: the additional variance of the logarithm of bandwidth of configurations whose size
        was not measured, between measured ones, and smaller or larger than all.
    known_factor : float
        Factor of standard deviations so that p10 to p90 hold four of five runs, for measured
        configurations.
    factors_of_processes : mapping of int to float
        By which these factors are larger for the number of processes of a configuration.
    factor_before_change : float
        Factor for configurations that were measured, but not since the system's newest change.
    scores : HeldBackErrors or None
        Errors on held-back configurations; None if too few were measured.
    measurements, configurations : int
        The numbers of those that it was fitted to, without earlier ones.
    earlier_measurements : int
        The number of those from before the system's newest change.
    """

    features: tuple[str, ...]
    usual: tuple[float, ...]
    large_requests: float | None
    parameters: Hyperparameters
    with_jump: Hyperparameters | None
    widening: Mapping[str, tuple[float, float]]
    tails: tuple[float, ...]
    known_factor: float
    new_factors: Mapping[int, float]
    factors_of_processes: Mapping[int, float]
    unmeasured_factor: float
    scores: HeldBackErrors | None
    measurements: int
    configurations: int
    factor_before_change: float = 1.0
    earlier_measurements: int = 0

    @property
    def knows_change(self) -> bool:
        """Whether it learned how much curves from before a change tell about today."""
        return BEFORE_CHANGE in self.features

    def factor(self, found: Match, io_nodes: int) -> float:
        """Find the factor of standard deviations of a match with a number of I/O nodes."""
        if io_nodes in found.repetitions:
            return self.known_factor
        if found.is_of_earlier and found.curve and io_nodes in found.curve.bandwidths_mib_s:
            return self.factor_before_change
        of_processes = self.factors_of_processes.get(found.wanted.tasks or 0, 1.0)
        return self.new_factors.get(io_nodes, self.unmeasured_factor) * of_processes

    def places(
        self,
        patterns: Array,
        io_nodes: Sequence[int] | NDArray[np.int64],
        *,
        with_jump: bool = False,
    ) -> Array:
        """Make the inputs of the Gaussian process, shape (n, n_features); see `with_io_nodes`."""
        known = patterns.copy()
        sizes = known[:, : len(SIZES)]
        np.copyto(sizes, self.usual, where=np.isnan(sizes))
        names = (*self.features, LARGE_REQUESTS) if with_jump else self.features
        cells = with_io_nodes(known, io_nodes, large_requests=self.large_requests)
        return cells[:, [FEATURES.index(name) for name in names]]


@dataclass(frozen=True, eq=False)
class SystemModel:
    """The measured curves and the model of a system, which predictions use.

    Attributes
    ----------
    curves : tuple of Curve
        The curves of one engine on the system: all, or those near to the wanted configurations.
    model : Model or None
        The model that is fitted to them. Without a model, the nearest curve stands for a
        configuration, as in Inria RR-9366.
    fidelities : mapping of str to float
        How far the run of a configuration agreed with a phase, from 0 to 1, by its pattern.
    file_rates : tuple of FileRate
        The rates of operations on files of the system.
    earlier : tuple of Curve
        Curves of the engine from before the system's newest change, which only the model uses.

    Raises
    ------
    InputError
        If the curves are of several engines.
    ValueError
        If there are earlier curves, but no model that learned how they differ.
    """

    curves: tuple[Curve, ...]
    model: Model | None = None
    fidelities: Mapping[str, float] = field(default_factory=dict)
    file_rates: tuple[FileRate, ...] = ()
    earlier: tuple[Curve, ...] = ()

    def __post_init__(self) -> None:
        """Check that all curves are of one engine, and that the model knows earlier ones."""
        if self.earlier and (self.model is None or not self.model.knows_change):
            raise ValueError("the model knows no curves from before a change")
        engines = sorted({curve.engine for curve in (*self.curves, *self.earlier)})
        if len(engines) > 1:
            raise InputError(
                f"the curves are of several engines: {', '.join(engines)}",
                remedy="predict from one engine's curves",
            )

    def match(self, wanted: IorConfig) -> Match:
        """Find the benchmark of a configuration, or the nearest of its kind.

        If there is a model and the configuration lies beyond all measured sizes of its kind, the
        match is of kind "model". A benchmark from before a change of the system never matches
        exactly, and it stands in only if it is nearer than all newer ones.
        """
        found = find(wanted, self._catalogue)
        if found.kind != "exact" and self.earlier:
            older = find(wanted, self._earlier_catalogue)
            if older.curve and (found.curve is None or _farness(older) < _farness(found)):
                found = replace(older, kind="interpolated")
        if self.fidelities:
            found = replace(found, fidelity=self.fidelities.get(pattern_of(wanted)))
        if self.model is None or found.kind != "interpolated":
            return found
        beyond = self._whole_catalogue.beyond(wanted)
        return replace(found, kind="model", beyond=beyond) if beyond else found

    def request_sizes(self, wanted: IorConfig) -> list[int]:
        """The request sizes of the curves of a configuration's kind, in bytes, ascending."""
        return self._whole_catalogue.request_sizes(wanted)

    def io_nodes(self, matches: Iterable[Match]) -> list[int]:
        """List the numbers of I/O nodes that were measured for the kinds of some matches.

        A number that nothing was measured with since a change of the system may no longer exist.
        """
        groups = {group_of(match.wanted): match.wanted for match in matches}
        return sorted(
            {
                n
                for wanted in groups.values()
                for curve in self._whole_catalogue.group(wanted)
                for n in curve.bandwidths_mib_s
                if not curve.before_change or n in self.measured_io_nodes
            }
        )

    def unlearned(self, found: Match) -> tuple[Difference, ...]:
        """List the differences of a match whose effect the model did not learn.

        It learned an effect if benchmarks on the system have the wanted value, of whatever kind (an
        order counts only for the same api), and others do not.
        """
        return tuple(
            difference
            for difference in found.differences
            if not self._learned(found.wanted, difference)
        )

    def _learned(self, wanted: IorConfig, difference: Difference) -> bool:
        if self.model is None or None in (difference.wanted, difference.measured):
            return False
        if difference.name == "order" and difference.wanted != wanted.order:
            # IOR cannot make requests in this order (see `Match.for_phase`).
            return False
        differing = set(FLAGS_OF[difference.name]) & set(self.model.features)
        return bool(differing) and taught(wanted, difference.name) in self._taught

    def doubt(self, found: Match) -> float:
        """Compute the variance of the logarithm of bandwidth because a benchmark does other I/O.

        A fidelity says by which factor the bandwidth may differ.
        """
        fidelity = 1.0 if found.fidelity is None else max(found.fidelity, _LOWEST_FIDELITY)
        return doubt_about(self.unlearned(found)) + math.log(fidelity) ** 2

    @cached_property
    def _taught(self) -> frozenset[Taught]:
        configs = [curve.config for curve in (*self.curves, *self.earlier)]
        learned = [name for name, flags in FLAGS_OF.items() if flags]
        return frozenset(taught(config, name) for config in configs for name in learned)

    @cached_property
    def range_of_io_nodes(self) -> range:
        """From the fewest to the most I/O nodes that were measured with any configuration.

        Direct access stands apart: it tells almost nothing about 1 I/O node.
        """
        forwarded = [n for n in self.measured_io_nodes if n]
        return range(forwarded[0], forwarded[-1] + 1) if forwarded else range(0)

    def decides_on(self, io_nodes: int) -> bool:
        """Whether a decision may choose a number of I/O nodes; else its bandwidth is a guess."""
        if io_nodes == 0:
            return 0 in self.measured_io_nodes
        return io_nodes in self.range_of_io_nodes

    @cached_property
    def measured_io_nodes(self) -> list[int]:
        """The numbers of I/O nodes that were measured with any configuration, ascending."""
        return sorted({n for curve in self.curves for n in curve.bandwidths_mib_s})

    def reaches(self, io_nodes: int) -> bool:
        """Whether the model can predict a number of I/O nodes.

        Measurements of direct access tell almost nothing about I/O nodes, and the reverse. So
        one predicts the other only if the model was fitted to both.
        """
        learned = self.model is not None and "direct access" in self.model.features
        direct = io_nodes == 0
        return learned or any(
            (n == 0) == direct for curve in self.curves for n in curve.bandwidths_mib_s
        )

    def expect(self, matches: Sequence[Match], io_nodes: Sequence[int]) -> Posterior:
        """Predict the runs of some configurations with the model.

        With unmeasured numbers of I/O nodes between measured ones, the mean is that of the model
        and of the interpolation; the doubt is that of the model.

        Returns
        -------
        Posterior
            The natural logarithms of MiB/s for the first match with all `io_nodes`, then for the
            second, and so on.
        """
        rows = np.array([self._row(found) for found in matches])
        steps, are_new = self._unmeasured(matches, rows)
        posterior = self._posterior(rows, io_nodes, are_new)
        factor = np.array([self._fitted.factor(found, n) for found in matches for n in io_nodes])
        beyond = _of_cells(steps @ steps.T, matches, io_nodes)
        return Posterior(
            mean=self._halfway(posterior.mean, rows, io_nodes, are_new),
            covariance=np.outer(factor, factor) * posterior.covariance + beyond,
            noise=factor**2 * posterior.noise,
        )

    def _posterior(
        self, rows: Array, io_nodes: Sequence[int], are_new: NDArray[np.bool_]
    ) -> Posterior:
        """Predict all cells; those of new request sizes by the process that knows a jump."""
        cells = np.repeat(rows, len(io_nodes), axis=0), [*io_nodes] * len(rows)
        found: Posterior = self._process.posterior(self._fitted.places(*cells))
        if not are_new.any() or self._process_with_jump is None:
            return found
        other = self._process_with_jump.posterior(self._fitted.places(*cells, with_jump=True))
        new = np.repeat(are_new, len(io_nodes))
        return Posterior(
            mean=np.where(new, other.mean, found.mean),
            covariance=np.outer(new, new) * other.covariance
            + np.outer(~new, ~new) * found.covariance,
            noise=np.where(new, other.noise, found.noise),
        )

    def _halfway(
        self, mean: Array, rows: Array, io_nodes: Sequence[int], are_new: NDArray[np.bool_]
    ) -> Array:
        """Move means with unmeasured I/O nodes halfway to the line between measured neighbours.

        The line is straight in the logarithms of bandwidth and of I/O nodes. Without 4 I/O nodes on
        MareNostrum 4 (FORGE), the regret of the model alone is 0.049, of both 0.017.
        """
        known = [n for n in self.measured_io_nodes if n]
        between = [n in self.range_of_io_nodes and n not in known for n in io_nodes]
        if not any(between):
            return mean
        curves = self._posterior(rows, known, are_new).mean.reshape(len(rows), len(known))
        logarithms = np.log2(np.maximum(io_nodes, 1))
        lines = [np.interp(logarithms, np.log2(known), curve) for curve in curves]
        return np.where(between * len(rows), (mean + np.concatenate(lines)) / 2, mean)

    def _row(self, found: Match) -> Array:
        """Turn the wanted configuration into numbers.

        O_DIRECT is that of its benchmark, and so are properties whose effect was not learned.
        """
        assert found.curve is not None  # noqa: S101
        if found.kind == "exact":
            return pattern(found.curve.config, stonewalled=found.curve.stonewalled)
        benchmark = found.curve.config
        row, theirs = pattern(replace(found.wanted, odirect=benchmark.odirect)), pattern(benchmark)
        for one in self.unlearned(found):
            columns = [FEATURES.index(name) for name in FLAGS_OF[one.name]]
            row[columns] = theirs[columns]
        return row

    def _unmeasured(self, matches: Sequence[Match], rows: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Find the standard deviations of sizes that were not measured, and new request sizes.

        Configurations that are far in the same size have correlated errors.
        """
        found = [
            gaps(row, self._whole_catalogue.sizes(match.wanted))
            for row, match in zip(rows, matches, strict=True)
        ]
        steps = [
            [
                widened(self._fitted.widening[name], gap, is_inside)
                for name, gap, is_inside in zip(SIZES, *of_row, strict=True)
            ]
            for of_row in found
        ]
        request_size = SIZES.index("request size")
        return np.sqrt(steps), np.array([apart[request_size] >= SMALLEST_GAP for apart, _ in found])

    @property
    def _fitted(self) -> Model:
        assert self.model is not None  # noqa: S101
        return self.model

    @cached_property
    def _process(self) -> Conditioned:
        return self._conditioned(self._fitted.parameters)

    def _conditioned(self, parameters: Hyperparameters, *, with_jump: bool = False) -> Conditioned:
        rows, io_nodes, logarithms = measurements((*self.curves, *self.earlier))
        process: Conditioned = condition(
            parameters, self._fitted.places(rows, io_nodes, with_jump=with_jump), logarithms
        )
        return process

    @cached_property
    def _process_with_jump(self) -> Conditioned | None:
        """The process for request sizes that were not measured, if it is another one."""
        parameters = self._fitted.with_jump
        return None if parameters is None else self._conditioned(parameters, with_jump=True)

    @cached_property
    def _catalogue(self) -> Catalogue[Curve]:
        return catalogue_of_curves(self.curves)

    @cached_property
    def _earlier_catalogue(self) -> Catalogue[Curve]:
        return catalogue_of_curves(self.earlier)

    @cached_property
    def _whole_catalogue(self) -> Catalogue[Curve]:
        """The catalogue of all that the model knows."""
        if not self.earlier:
            return self._catalogue
        return catalogue_of_curves((*self.curves, *self.earlier))


def measurements(curves: Iterable[Curve]) -> tuple[Array, NDArray[np.int64], Array]:
    """List measurements as arrays, to fit a Gaussian process to.

    Cells with two modes are left out if there are others, because their mean and scatter tell
    nothing about neighbouring cells. Those from before a change of the system are moved by the mean
    change of the cells that were measured again (see `offsets_of_change`).

    Returns
    -------
    patterns : array of shape (n, len(SIZES) + len(FLAGS))
        The configuration of each measurement, see `pattern`.
    io_nodes : array of shape (n,)
        Numbers of I/O nodes.
    logarithms : array of shape (n,)
        Natural logarithms of bandwidth in MiB/s.
    """
    known = list(curves)
    offsets = offsets_of_change(known)
    cells = [
        (row, n, values, offsets[n == 0] if curve.before_change else 0.0)
        for curve in known
        for row in (
            pattern(
                curve.config,
                stonewalled=curve.stonewalled,
                before_change=curve.before_change,
            ),
        )
        for n, values in curve.bandwidths_mib_s.items()
    ]
    cells = [cell for cell in cells if not bimodal(cell[2])] or cells
    counts = [len(values) for _, _, values, _ in cells]
    return (
        np.repeat([row for row, _, _, _ in cells], counts, axis=0),
        np.repeat([n for _, n, _, _ in cells], counts),
        np.log([value for _, _, values, _ in cells for value in values])
        + np.repeat([offset for _, _, _, offset in cells], counts),
    )


def offsets_of_change(curves: Iterable[Curve]) -> dict[bool, float]:
    """Compute how the logarithm of bandwidth changed, with direct access (True) and I/O nodes.

    Only cells that were measured before and since tell it; without any the offsets are 0. The model
    learns the differences between cells: alone, it would expect no change far from them.
    """
    means: dict[bool, dict[tuple[IorConfig, int], float]] = {False: {}, True: {}}
    for curve in curves:
        for n, values in curve.bandwidths_mib_s.items():
            means[curve.before_change][curve.config, n] = float(np.log(values).mean())
    changes = [
        (n == 0, means[False][config, n] - old)
        for (config, n), old in means[True].items()
        if (config, n) in means[False]
    ]
    common = _shrunk([change for _, change in changes])
    return {
        is_direct: common + _shrunk([one - common for own, one in changes if own == is_direct])
        for is_direct in (False, True)
    }


def _shrunk(changes: Sequence[float]) -> float:
    return sum(changes) / (len(changes) + _AS_MANY_CHANGES)


def _farness(found: Match) -> tuple[int, float]:
    """Rank a match that has a benchmark: the nearest one has the lowest rank."""
    assert found.distance is not None  # noqa: S101
    return len(found.differences), found.distance


def widened(variances: tuple[float, float], gaps: Array, is_inside: NDArray[np.bool_]) -> Array:
    """Compute the variance of sizes that were not measured, by their gaps to measured ones.

    Parameters
    ----------
    gaps, is_inside : array
        From `gaps`.
    """
    share = np.minimum(gaps / SMALLEST_GAP, 1.0)
    found: Array = np.where(is_inside, *variances) * share**2
    return found


def gaps(row: Array, measured: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Compute the powers of two between each size and the nearest measured one; 0 if unknown.

    And tell whether smaller and larger ones were measured.

    Parameters
    ----------
    row : array
        A configuration, see `pattern`.
    measured : array of shape (n, len(SIZES))
        The measured sizes of its kind.
    """
    apart = row[: len(SIZES)] - measured
    distances: Array = np.fmin.reduce(np.abs(apart), axis=0)
    is_between = np.any(apart > 0, axis=0) & np.any(apart < 0, axis=0)
    return np.nan_to_num(distances), np.asarray(is_between)


def _of_cells(covariance: Array, matches: Sequence[Match], io_nodes: Sequence[int]) -> Array:
    """Spread a covariance of configurations over their cells; other kinds are independent."""
    groups = [group_of(found.wanted) for found in matches]
    alike = np.array([[group == other for other in groups] for group in groups])
    return np.kron(covariance * alike, together(io_nodes))
