"""Fit a model to measured curves, and calibrate its intervals on measurements held back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from benchdb.measurements.curves import Curve
from predictor.matching.nearest import SIZES
from predictor.model.features import (
    BEFORE_CHANGE,
    FEATURES,
    FLAGS,
    FLAGS_OF_CONFIGURATION,
    LARGE_REQUESTS,
    STRIDED_MPI_IO,
    with_io_nodes,
)
from predictor.model.gaussian import Conditioned, Hyperparameters, Posterior, condition
from predictor.model.likelihood import most_likely
from predictor.model.priors import Prior, learned, weak
from predictor.model.regimes import large_requests
from predictor.model.system_model import SMALLEST_GAP, HeldBackErrors, Model, measurements, widened

Array = NDArray[np.float64]
Labels = NDArray[np.intp]

# The share of runs between p10 and p90, and half the width of that interval in standard deviations
# of a normal distribution.
_INTERVAL, _HALF_WIDTH = 0.8, 1.2816
# The variance of logarithms that sizes need which were not measured: between measured ones, and
# smaller or larger than all. Each counts as so many sizes that are left out.
_USUAL_WIDENING = dict.fromkeys(SIZES, (0.02, 0.04)) | {"request size": (0.06, 0.12)}
_AS_MANY_SIZES = 3
# In powers of two: sizes this near are left out together.
_NEAR = 0.5
# More configurations than these tell as much about a system as another system does.
_FEW_PATTERNS = 60
# Another system's experience counts if the errors of configurations that are left out fall below
# this share: on small systems a smaller gain is chance.
_LESS_WRONG = 0.9
# With fewer configurations, none is left out.
_FEWEST_GROUPS = 3
# With fewer groups, the share of runs in an interval is unknown.
_FEWEST_CALIBRATING = 4
# A number of I/O nodes with this many configurations counts as much as all numbers together.
_AS_MANY_AS_ALL = 20.0
# With fewer numbers of I/O nodes none can be left out between or beyond others; then an interval is
# this much wider, as on the shipped systems.
_FEWEST_NUMBERS, _UNTESTED_FACTOR = 3, 1.5
# A coarse clock may make all runs equal, but the next run may still differ.
_SMALLEST_FACTOR = 0.5
# Number of quantiles of deviations, and the fewest cells from which they are computed.
_TAILS, _FEWEST_FOR_TAILS = 50, 40
_SEED = 9366
# A configuration that moves a smaller share of the mean bytes has no say in the median error.
_SMALL = 0.01


def fit_model(curves: Sequence[Curve]) -> Model:
    """Fit a model to the curves that one engine measured on a system.

    Intervals are calibrated by conformal prediction, on runs that are held back: half of the
    repetitions for measured configurations, whole configurations for others, and all
    configurations of one size for sizes beyond the measured ones.

    Parameters
    ----------
    curves : sequence of Curve
        At least one curve of today; at most some hundred, because the time grows with the cube of
        their number. Those from before a change of the system (`Curve.before_change`) are left out
        if configurations of today, held back, are predicted better without them.
    """
    whole, error = _fitted(curves)
    today = [curve for curve in curves if not curve.before_change]
    if len(today) == len(curves) or len(today) < _FEWEST_CALIBRATING:
        return whole
    alone, error_alone = _fitted(today)
    return alone if error_alone < error else whole


def _fitted(curves: Sequence[Curve]) -> tuple[Model, float]:
    """Fit a model, and compute its error on configurations of today that are held back.

    The error is the mean absolute one of the logarithm of bandwidth. Measurements from before a
    change are not held back.
    """
    rows, io_nodes, logarithms = measurements(curves)
    usual = usual_sizes(rows)
    rows = np.where(np.isnan(rows), [*usual, *(0.0 for _ in FLAGS)], rows)
    large = large_requests(rows, io_nodes, logarithms, smallest_gap=SMALLEST_GAP)
    everything = with_io_nodes(rows, io_nodes, large_requests=large)
    differing = differing_features(everything)
    names = [name for name, differs in zip(FEATURES, differing, strict=True) if differs]
    names_without_jump = [name for name in names if name != LARGE_REQUESTS]
    places = everything[:, [FEATURES.index(name) for name in names_without_jump]]
    held = _held(partial(weak, names=names_without_jump), places, everything, logarithms)
    patterns = held.labels(*SIZES, *FLAGS_OF_CONFIGURATION)
    tested = patterns.max() + 1 >= _FEWEST_GROUPS
    if tested and patterns.max() < _FEW_PATTERNS:
        prior = partial(learned, names=names_without_jump)
        other = _held(prior, places, everything, logarithms)
        if other.error(patterns) < _LESS_WRONG * held.error(patterns):
            held = other
    process = held.process
    jump = None
    if large is not None:
        prior = partial(weak, names=names)
        jump = _held(prior, everything[:, differing], everything, logarithms)
    widening = {
        name: (jump if jump and name == "request size" else held).widening(name) for name in SIZES
    }
    left_out = process.leave_out(patterns)
    beyond = sum(widened(widening[name], *held.gaps(name, patterns)) for name in SIZES)
    new = held.deviations(left_out, np.asarray(beyond))
    of_runs = patterns[held.of_run]
    new_factors = _calibrated_factors(new, held.io_nodes[held.of_run], of_runs)
    left = new / [new_factors[n] for n in held.io_nodes[held.of_run]]
    common = _calibrated_factor(left, groups=len(np.unique(of_runs)))
    of_processes = _calibrated_factors(left / common, held.processes[held.of_run], of_runs)
    is_today = held.cells[:, FEATURES.index(BEFORE_CHANGE)] == 0
    known, known_cells = _known_deviations(process.parameters, places, logarithms)
    known_factor = _calibrated_factor(known, groups=known_cells)
    fitted = Model(
        features=tuple(names_without_jump),
        usual=usual,
        large_requests=large,
        parameters=process.parameters,
        with_jump=None if jump is None else jump.process.parameters,
        widening=widening,
        tails=_tails(known / known_factor, groups=known_cells),
        known_factor=known_factor,
        new_factors=new_factors,
        factors_of_processes=of_processes,
        unmeasured_factor=_unmeasured_factor(held, patterns),
        scores=_scores(held, left_out, patterns, is_today),
        measurements=int(is_today[held.of_run].sum()),
        configurations=sum(not curve.before_change for curve in curves),
        factor_before_change=_factor_before_change(held, patterns, is_today),
        earlier_measurements=int((~is_today)[held.of_run].sum()),
    )
    return fitted, held.error(2 * patterns + is_today, is_today)


def differing_features(everything: Array) -> NDArray[np.bool_]:
    """Tell which of `FEATURES` differ in an array of shape (n, len(FEATURES)), at least one."""
    least = [SMALLEST_GAP if name in SIZES else 0.0 for name in FEATURES]
    differing: NDArray[np.bool_] = np.ptp(everything, axis=0) > least
    # If all MPI-IO is strided, the flag says no more than that it is MPI-IO.
    strided = FEATURES.index(STRIDED_MPI_IO)
    with_mpi_io = everything[:, FEATURES.index("MPI-IO")] == 1
    differing[strided] &= np.unique(everything[with_mpi_io, strided]).size > 1
    # A Gaussian process needs at least one feature, even if all are equal.
    differing[0] |= not differing.any()
    return differing


def usual_sizes(rows: Array) -> tuple[float, ...]:
    """Compute the median of each of `SIZES` in patterns (see `pattern`).

    It is 0 if the size is unknown everywhere and so never differs.
    """
    sizes = rows[:, : len(SIZES)]
    return tuple(
        float(np.median(column[~np.isnan(column)])) if (~np.isnan(column)).any() else 0.0
        for column in sizes.T
    )


def _calibrated_factor(deviations: Array, groups: int) -> float:
    """Compute the factor of standard deviations with which the interval holds its share of runs.

    `groups` is the number of independent groups of the runs that were held back. A new group is one
    more, so the quantile is a little higher (split conformal prediction).
    """
    if groups < _FEWEST_CALIBRATING:
        return 1.0
    quantile = float(np.quantile(deviations, _INTERVAL * (1 + 1 / groups)))
    return max(quantile / _HALF_WIDTH, _SMALLEST_FACTOR)


def _calibrated_factors(deviations: Array, labels: Labels, patterns: Labels) -> dict[int, float]:
    """Compute the factors of configurations that were not measured, by a label of each run.

    The factor of a label with few configurations is drawn towards that of all.
    """
    common = _calibrated_factor(deviations, groups=len(np.unique(patterns)))
    factors = {}
    for label in np.unique(labels):
        own = labels == label
        count = len(np.unique(patterns[own]))
        weight = count / (count + _AS_MANY_AS_ALL)
        factor = _calibrated_factor(deviations[own], groups=count)
        factors[int(label)] = common * (factor / common) ** weight
    return factors


def _unmeasured_factor(held: _Held, patterns: Labels) -> float:
    """Compute the factor of numbers of I/O nodes that were not measured with any configuration.

    Each number is left out, but not direct access, which tells almost nothing about I/O nodes.
    """
    numbers = held.io_nodes
    if len(np.unique(numbers[numbers > 0])) < _FEWEST_NUMBERS:
        return _UNTESTED_FACTOR
    found = held.process.leave_out(np.unique(numbers, return_inverse=True)[1].reshape(-1))
    deviations = held.deviations(found, np.zeros(len(numbers)))
    forwarded = numbers[held.of_run] > 0
    return max(_calibrated_factor(deviations[forwarded], groups=int(patterns.max()) + 1), 1.0)


def _factor_before_change(held: _Held, patterns: Labels, is_today: NDArray[np.bool_]) -> float:
    """Compute the factor of configurations that were measured only before a change.

    Of configurations that were measured before and since, the runs since are left out.
    """
    both = is_today & np.isin(patterns, patterns[~is_today])
    if not both.any():
        return 1.0
    found = held.process.leave_out(2 * patterns + is_today)
    runs = both[held.of_run]
    deviations = held.deviations(found, np.zeros(len(patterns)))[runs]
    return _calibrated_factor(deviations, groups=len(np.unique(patterns[both])))


def _tails(deviations: Array, groups: int) -> tuple[float, ...]:
    """Compute equally likely absolute deviations; of few cells, those of a normal distribution."""
    likely = (np.arange(_TAILS) + 0.5) / _TAILS
    if groups < _FEWEST_FOR_TAILS:
        return tuple(NormalDist().inv_cdf((1 + share) / 2) for share in likely)
    return tuple(np.quantile(deviations, likely).tolist())


def _known_deviations(
    parameters: Hyperparameters, places: Array, logarithms: Array
) -> tuple[Array, int]:
    """Predict half of each cell's runs from the other half: standard deviations off, and cells."""
    _, cell = np.unique(places, axis=0, return_inverse=True)
    order = np.random.default_rng(_SEED).permutation(len(cell))
    # Every second run in the order of cells: half of each cell, give or take one.
    by_cell = order[np.argsort(cell.reshape(-1)[order], kind="stable")]
    half = np.zeros(len(cell), dtype=bool)
    half[by_cell[::2]] = True
    known = {row.tobytes() for row in places[half]}
    held_back = [i for i in np.nonzero(~half)[0] if places[i].tobytes() in known]
    if not held_back:
        return np.empty(0), 0
    informed = condition(parameters, places[half], logarithms[half])
    asked, of_run = np.unique(places[held_back], axis=0, return_inverse=True)
    found = informed.posterior(asked)
    spread = np.sqrt(np.diag(found.covariance) + found.noise)
    of_run = of_run.reshape(-1)
    deviations = np.abs(logarithms[held_back] - found.mean[of_run]) / spread[of_run]
    return deviations, len(asked)


@dataclass(frozen=True, eq=False)
class _Held:
    """The runs that a Gaussian process was fitted to, to hold some of them back.

    Attributes
    ----------
    cells : array of shape (n_cells, len(FEATURES))
        The process's cells, with all features.
    of_run : array of shape (n_runs,)
        The cell of each run.
    logarithms : array of shape (n_runs,)
        Natural logarithm of each run's MiB/s.
    """

    process: Conditioned
    cells: Array
    of_run: Labels
    logarithms: Array

    def labels(self, *names: str) -> Labels:
        """Give cells with equal values of some features the same number, counted from 0."""
        columns = self.cells[:, [FEATURES.index(name) for name in names]]
        return np.unique(columns, axis=0, return_inverse=True)[1].reshape(-1)

    @property
    def io_nodes(self) -> NDArray[np.int64]:
        """The number of I/O nodes of each cell; 0 is direct access."""
        direct = self.cells[:, FEATURES.index("direct access")] == 1
        numbers = np.rint(2 ** self.cells[:, FEATURES.index("I/O nodes")])
        return np.where(direct, 0, numbers).astype(np.int64)

    @property
    def processes(self) -> NDArray[np.int64]:
        """The number of processes of each cell."""
        return np.rint(2 ** self.cells[:, SIZES.index("processes")]).astype(np.int64)

    def gaps(self, size: str, groups: Labels) -> tuple[Array, NDArray[np.bool_]]:
        """Powers of two between each cell's size and the nearest one of its kind in other groups.

        0 if no other group has a cell of its kind. And whether others are smaller and larger.
        """
        values = self.cells[:, FEATURES.index(size)]
        kinds = self.labels(*FLAGS_OF_CONFIGURATION)
        others = (kinds[:, None] == kinds) & (groups[:, None] != groups)
        apart = values[:, None] - values
        gaps = np.where(others, np.abs(apart), np.inf).min(axis=1)
        is_inside = (others & (apart > 0)).any(axis=1) & (others & (apart < 0)).any(axis=1)
        return np.where(np.isfinite(gaps), gaps, 0.0), is_inside

    def error(self, patterns: Labels, counted: NDArray[np.bool_] | None = None) -> float:
        """Compute the mean error of the logarithm of bandwidth of configurations left out.

        By default all cells count.
        """
        means = np.bincount(self.of_run, self.logarithms) / np.bincount(self.of_run)
        errors = np.abs(means - self.process.leave_out(patterns).mean)
        cells = slice(None) if counted is None else counted
        of_pattern = np.unique(patterns[cells], return_inverse=True)[1].reshape(-1)
        return float(np.mean(np.bincount(of_pattern, errors[cells]) / np.bincount(of_pattern)))

    def deviations(self, found: Posterior, beyond: Array) -> Array:
        """Deviation of each run from its prediction, in standard deviations."""
        spread = np.sqrt(np.diag(found.covariance) + beyond + found.noise)
        return np.abs(self.logarithms - found.mean[self.of_run]) / spread[self.of_run]

    def widening(self, size: str) -> tuple[float, float]:
        """Compute the variance that sizes need which were not measured, between others and not.

        Each value of the size is left out, with all configurations near it.
        """
        near = np.rint(self.cells[:, FEATURES.index(size)] / _NEAR)
        groups = np.unique(near, return_inverse=True)[1].reshape(-1)
        found = self.process.leave_out(groups)
        gaps, is_inside = (gap[self.of_run] for gap in self.gaps(size, groups))
        squared = (self.logarithms - found.mean[self.of_run]) ** 2
        lacking = squared - (np.diag(found.covariance) + found.noise)[self.of_run]
        between, outside = (
            [
                float(lacking[runs].mean())
                for group in range(groups.max() + 1)
                if (
                    runs := (groups[self.of_run] == group)
                    & (gaps >= SMALLEST_GAP)
                    & (is_inside == side)
                ).any()
            ]
            for side in (True, False)
        )
        usual = _USUAL_WIDENING[size]
        return (
            _with_usual(between, usual[0]),
            _with_usual(outside, usual[1]),
        )


def _with_usual(found: Sequence[float], usual: float) -> float:
    """The mean of variances that were found, and of the usual one, which counts as several."""
    count = len(found) + _AS_MANY_SIZES
    return max(0.0, (sum(found) + _AS_MANY_SIZES * usual) / count)


def _held(
    prior: Callable[[Hyperparameters], Prior], places: Array, everything: Array, logarithms: Array
) -> _Held:
    process = condition(most_likely(places, logarithms, prior=prior), places, logarithms)
    standardised = process.parameters.standardise(places)
    _, first, of_run = np.unique(standardised, axis=0, return_index=True, return_inverse=True)
    return _Held(process, everything[first], of_run.reshape(-1), logarithms)


def _scores(
    held: _Held, left_out: Posterior, of_cells: Labels, is_today: NDArray[np.bool_]
) -> HeldBackErrors | None:
    """Compute the errors of configurations that were measured since the newest change."""
    of_today, patterns = np.unique(of_cells[is_today], return_inverse=True)
    patterns = patterns.reshape(-1)
    if len(of_today) < _FEWEST_GROUPS:
        return None
    count = len(held.cells)
    runs = np.exp(held.logarithms)
    means = np.bincount(held.of_run, runs, count) / np.bincount(held.of_run, minlength=count)
    measured, predicted = means[is_today], np.exp(left_out.mean)[is_today]
    errors = np.abs(predicted - measured) / measured
    per_pattern = np.bincount(patterns, errors) / np.bincount(patterns)
    sizes = [SIZES.index(name) for name in ("processes", "bytes per process")]
    first = np.unique(patterns, return_index=True)[1]
    moved_bytes = 2 ** held.cells[is_today][first][:, sizes].sum(axis=1)
    small = moved_bytes < _SMALL * moved_bytes.mean()
    regrets = []
    for pattern in range(patterns.max() + 1):
        [cells] = np.nonzero(patterns == pattern)
        chosen = cells[predicted[cells].argmax()]
        regrets.append(1 - measured[chosen] / measured[cells].max())
    return HeldBackErrors(
        cell_error=float(np.mean(errors)),
        median_error=float(np.median(per_pattern[~small])),
        regret=float(np.mean(regrets)),
        patterns=len(regrets),
        small_patterns=int(small.sum()),
    )
