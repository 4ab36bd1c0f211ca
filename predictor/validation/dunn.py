"""Dunn's test between a benchmark's repetitions and an application's reruns, as in RR-9366."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from predictor.curve.composing import MIB

ADJUSTMENT = "holm"
_TWO = 2


def dunn(
    benchmark: Mapping[int, Sequence[float]], reruns: Mapping[int, Sequence[float]]
) -> dict[int, float]:
    """Test whether benchmark and application differ, by number of I/O nodes.

    The test ranks only the runs with the same number of I/O nodes together. Their two groups make
    Dunn's test the same as the Kruskal-Wallis test that comes before it. The p-values, for numbers
    of I/O nodes with at least two repetitions of both, are adjusted after Holm. A small one says
    that the two distributions differ.
    """
    tested = [
        n for n, runs in sorted(reruns.items()) if min(len(runs), len(benchmark.get(n, ()))) >= _TWO
    ]
    p_values = adjusted_after_holm([_of_two_groups(benchmark[n], reruns[n]) for n in tested])
    return dict(zip(tested, p_values, strict=True))


def adjusted_after_holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of several tests: the smallest times their number, and so on (1979).

    Examples
    --------
    >>> adjusted_after_holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    order = np.argsort(p_values)
    times = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(np.asarray(p_values)[order] * times))
    return adjusted.tolist()


def _of_two_groups(one: Sequence[float], other: Sequence[float]) -> float:
    if len({*one, *other}) < _TWO:
        return 1.0
    # The import takes a second, for which no other command should wait.
    from scipy.stats import kruskal  # noqa: PLC0415

    return float(kruskal(one, other).pvalue)


def composed_repetitions(
    work: Sequence[tuple[int, Mapping[int, Sequence[float]]]],
) -> dict[int, tuple[float, ...]]:
    """Combine the repetitions of the benchmarks of several parts, one after the other.

    `work` has the bytes of each part, and its benchmark's MiB/s by number of I/O nodes. The r-th
    result is all bytes over the sum of the times of each part's r-th repetition, as long as every
    part has one.

    Examples
    --------
    >>> composed_repetitions([(1 << 20, {0: [50.0, 40.0]}), (1 << 20, {0: [100.0]})])
    {0: (66.66666666666667,)}
    """
    if not work:
        return {}
    total_mib = sum(moved for moved, _ in work) / MIB
    common = set.intersection(*(set(cells) for _, cells in work))
    return {
        n: tuple(
            total_mib
            / sum(moved / MIB / value for (moved, _), value in zip(work, values, strict=True))
            for values in zip(*(cells[n] for _, cells in work), strict=False)
        )
        for n in sorted(common)
    }
