"""Compare predicted curves with reruns, and reruns with each other (the noise floor).

The errors are those of Inria RR-9366 (§7): |Bw - Ba| / Ba for each rerun Ba, where Bw is the
predicted mean. The noise floor has the same errors, with the application's own repetitions as the
prediction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from predictor.curve.decision import fewest_near_best

# Number of random splits of the repetitions into halves, for the noise floor.
SPLITS = 200
_SEED = 9366
# A smaller regret is a rounding error.
_NOTHING = 1e-9
_TWO = 2

Reruns = Mapping[int, Sequence[float]]


@dataclass(frozen=True)
class Expected:
    """Predicted mean and interval of a run with one number of I/O nodes, in MiB/s."""

    mean: float
    p10: float
    p90: float


@dataclass(frozen=True)
class Comparison:
    """A prediction compared with reruns; each attribute has one value for each comparison.

    Attributes
    ----------
    run_errors : dict of int to tuple of float
        |Bw - Ba| / Ba of each rerun by number of I/O nodes.
    cell_errors : dict of int to tuple of float
        The same, with Ba the mean of the reruns.
    hits : tuple of float
        1 if the predicted best number of I/O nodes is the measured best, else 0.
    regrets : tuple of float
        1 - measured mean at the predicted best / highest measured mean.
    regrets_within_tolerance : tuple of float
        The same for the fewest I/O nodes whose predicted mean is within `TOLERANCE` of the best.
    taus : tuple of float
        Kendall's tau-b of the predicted and the measured curve.
    inside : tuple of float
        1 for each rerun within its interval, else 0.
    """

    run_errors: dict[int, tuple[float, ...]] = field(default_factory=dict)
    cell_errors: dict[int, tuple[float, ...]] = field(default_factory=dict)
    hits: tuple[float, ...] = ()
    regrets: tuple[float, ...] = ()
    regrets_within_tolerance: tuple[float, ...] = ()
    taus: tuple[float, ...] = ()
    inside: tuple[float, ...] = ()


@dataclass(frozen=True)
class Errors:
    """Statistics of some errors as in the tables of RR-9366, and the number of errors."""

    count: int
    minimum: float
    mean: float
    median: float
    maximum: float


@dataclass(frozen=True)
class Scores:
    """A summary of comparisons; None where nothing could be compared."""

    runs: Errors | None
    cells: Errors | None
    hit_rate: float | None
    regret: float | None
    regret_within_tolerance: float | None
    tau: float | None
    coverage: float | None


def compare(expected: Mapping[int, Expected], reruns: Reruns) -> Comparison:
    """Compare a predicted curve with reruns.

    Parameters
    ----------
    reruns : mapping of int to sequence of float
        Measured bandwidths in MiB/s. Reruns without a prediction count only for the highest
        measured mean.

    Examples
    --------
    >>> found = compare({0: Expected(50, 40, 60), 4: Expected(90, 80, 100)}, {0: [40], 4: [120]})
    >>> found.run_errors, found.regrets, found.inside
    ({0: (0.25,), 4: (0.25,)}, (0.0,), (1.0, 0.0))
    """
    common = [n for n in sorted(expected) if n in reruns]
    if not common:
        return Comparison()
    means = {n: expected[n].mean for n in common}
    measured = mean_of_cells(reruns)
    regret, regret_within = _regrets(means, measured)
    tau = kendall_tau([means[n] for n in common], [measured[n] for n in common])
    return Comparison(
        run_errors={n: tuple(error(means[n], run) for run in reruns[n]) for n in common},
        cell_errors={n: (error(means[n], measured[n]),) for n in common},
        hits=(float(regret <= _NOTHING),),
        regrets=(regret,),
        regrets_within_tolerance=(regret_within,),
        taus=() if tau is None else (tau,),
        inside=tuple(
            float(expected[n].p10 <= run <= expected[n].p90) for n in common for run in reruns[n]
        ),
    )


def noise_floor(reruns: Reruns) -> Comparison:
    """Compare an application's repetitions with each other, as if they were predictions.

    Parameters
    ----------
    reruns : mapping of int to sequence of float
        Measured bandwidths in MiB/s by number of I/O nodes.

    Returns
    -------
    Comparison
        The mean of the other reruns of a cell predicts each rerun. All other values are means
        over 200 random splits into halves (fixed seed), where the means of each half predict
        those of the other. There is one value for each cell or for the application. Values about
        decisions exist only if each cell has two repetitions.
    """
    repeated = _repeated(reruns)
    if not repeated:
        return Comparison()
    halves = _half_means(repeated)
    cells = Comparison(
        run_errors={n: leave_one_out_errors(runs) for n, runs in repeated.items()},
        cell_errors={n: (fmean(_errors_of_halves(*means)),) for n, means in halves.items()},
    )
    return cells if len(repeated) < len(reruns) else _with_decisions(cells, halves)


def errors_of_halves(reruns: Reruns) -> dict[int, tuple[float, ...]]:
    """Compute how far random halves of the same runs are apart, as in RR-9366's Figure 3.

    Parameters
    ----------
    reruns : mapping of int to sequence of float
        Measured bandwidths in MiB/s by number of I/O nodes. Numbers with one rerun are left out.

    Returns
    -------
    dict of int to tuple of float
        Errors of each half's mean as a prediction of the other's, two for each of the `SPLITS`
        splits of `noise_floor`. Their mean is its error of the means.

    Examples
    --------
    >>> sorted(set(errors_of_halves({4: [10.0, 20.0]})[4]))
    [0.5, 1.0]
    """
    return {n: _errors_of_halves(*means) for n, means in _half_means(_repeated(reruns)).items()}


def leave_one_out_errors(runs: Sequence[float]) -> tuple[float, ...]:
    """Predict each of two or more runs by the mean of the others, and compute the errors.

    Examples
    --------
    >>> leave_one_out_errors([10.0, 20.0])
    (1.0, 0.5)
    """
    total = math.fsum(runs)
    return tuple(error((total - run) / (len(runs) - 1), run) for run in runs)


def pool(comparisons: Iterable[Comparison]) -> Comparison:
    """Combine the comparisons of several applications."""
    all_ = list(comparisons)

    def by_io_nodes(
        several: Sequence[dict[int, tuple[float, ...]]],
    ) -> dict[int, tuple[float, ...]]:
        io_nodes = sorted(set().union(*several))
        return {n: tuple(chain.from_iterable(one.get(n, ()) for one in several)) for n in io_nodes}

    def joined(several: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
        return tuple(chain.from_iterable(several))

    return Comparison(
        run_errors=by_io_nodes([one.run_errors for one in all_]),
        cell_errors=by_io_nodes([one.cell_errors for one in all_]),
        hits=joined(one.hits for one in all_),
        regrets=joined(one.regrets for one in all_),
        regrets_within_tolerance=joined(one.regrets_within_tolerance for one in all_),
        taus=joined(one.taus for one in all_),
        inside=joined(one.inside for one in all_),
    )


def scores(comparison: Comparison) -> Scores:
    """Summarise a comparison."""
    return Scores(
        runs=errors(chain.from_iterable(comparison.run_errors.values())),
        cells=errors(chain.from_iterable(comparison.cell_errors.values())),
        hit_rate=_mean(comparison.hits),
        regret=_mean(comparison.regrets),
        regret_within_tolerance=_mean(comparison.regrets_within_tolerance),
        tau=_mean(comparison.taus),
        coverage=_mean(comparison.inside),
    )


def errors(values: Iterable[float]) -> Errors | None:
    """Compute the statistics of RR-9366's tables; None if there are no values."""
    found = list(values)
    if not found:
        return None
    return Errors(len(found), min(found), fmean(found), median(found), max(found))


def error(predicted: float, measured: float) -> float:
    """Compute the relative error: |predicted - measured| / measured."""
    return abs(predicted - measured) / measured


def mean_of_cells(reruns: Reruns) -> dict[int, float]:
    """Compute the measured curve: the mean of the reruns by number of I/O nodes."""
    return {n: fmean(runs) for n, runs in reruns.items()}


def kendall_tau(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    """Compute Kendall's tau-b of two curves; None if a curve is flat or has only one point."""
    return next(_kendall_taus(np.array([predicted]), np.array([measured])), None)


def _kendall_taus(one: NDArray[np.float64], other: NDArray[np.float64]) -> Iterator[float]:
    """Compute tau-b of each row with the same row of the other array, without those of flat rows.

    SciPy's function takes a millisecond for each pair of rows, mostly for its p-value.
    """
    first, second = np.triu_indices(one.shape[1], 1)
    ups, other_ups = (np.sign(rows[:, second] - rows[:, first]) for rows in (one, other))
    untied = np.count_nonzero(ups, axis=1) * np.count_nonzero(other_ups, axis=1)
    agreeing = (ups * other_ups).sum(axis=1)[untied > 0]
    yield from (agreeing / np.sqrt(untied[untied > 0])).tolist()


def _regrets(predicted: Mapping[int, float], measured: Mapping[int, float]) -> tuple[float, float]:
    """Compute the regret of the predicted best, and of the fewest I/O nodes within tolerance."""
    highest = max(measured.values())
    exact, within = fewest_near_best(predicted, 0), fewest_near_best(predicted)
    return 1 - measured[exact] / highest, 1 - measured[within] / highest


def _repeated(reruns: Reruns) -> dict[int, Sequence[float]]:
    return {n: runs for n, runs in sorted(reruns.items()) if len(runs) >= _TWO}


def _half_means(repeated: Reruns) -> dict[int, NDArray[np.float64]]:
    """Compute the means of both halves of random splits of each cell, shape (2, splits)."""
    random = np.random.default_rng(_SEED)
    means = {}
    for n, runs in repeated.items():
        shuffled = random.permuted(np.tile(np.asarray(runs, float), (SPLITS, 1)), axis=1)
        half = len(runs) // 2
        means[n] = np.stack([shuffled[:, :half].mean(axis=1), shuffled[:, half:].mean(axis=1)])
    return means


def _errors_of_halves(one: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, ...]:
    """Compute the errors of each half's mean against the other's, over all splits."""
    apart = np.abs(one - other)
    return tuple(np.concatenate([apart / one, apart / other]).tolist())


def _with_decisions(cells: Comparison, halves: Mapping[int, NDArray[np.float64]]) -> Comparison:
    """Add values about decisions: one half decides, the other judges, over all splits."""
    sides = [np.stack(side, axis=1) for side in zip(*halves.values(), strict=True)]
    one, other = (
        [dict(zip(halves, means, strict=True)) for means in side.tolist()] for side in sides
    )
    regrets = [_regrets(*pair) for pair in zip(one + other, other + one, strict=True)]
    taus = list(_kendall_taus(*sides))
    return replace(
        cells,
        hits=(fmean(float(regret <= _NOTHING) for regret, _ in regrets),),
        regrets=(fmean(regret for regret, _ in regrets),),
        regrets_within_tolerance=(fmean(regret for _, regret in regrets),),
        taus=(fmean(taus),) if taus else (),
    )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
