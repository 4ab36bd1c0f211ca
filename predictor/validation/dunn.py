"""Dunn's test between a benchmark's repetitions and an application's reruns, as in RR-9366."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ioncast_base.errors import InputError
from predictor.composition.composing import MIB

ADJUSTMENT = "holm"
_TWO = 2


def dunn(
    benchmark: Mapping[int, Sequence[float]], reruns: Mapping[int, Sequence[float]]
) -> dict[int, float]:
    """Test whether benchmark and application differ, by number of I/O nodes.

    Parameters
    ----------
    benchmark, reruns : mapping of int to sequence of float
        Bandwidths in MiB/s.

    Returns
    -------
    dict of int to float
        P-values for numbers of I/O nodes with at least two repetitions of both. A small p-value
        says that the two distributions differ. The p-values are adjusted after Holm over all
        pairs of groups: a group is the benchmark or the application with one number of I/O nodes.

    Raises
    ------
    InputError
        When scikit-posthocs is not installed.
    """
    io_nodes = [
        n for n, runs in sorted(reruns.items()) if min(len(runs), len(benchmark.get(n, ()))) >= _TWO
    ]
    # The library is optional, because it brings pandas and only `ioncast validate` needs it.
    try:
        from scikit_posthocs import posthoc_dunn  # noqa: PLC0415
    except ImportError as error:
        raise InputError(
            "Dunn's test needs scikit-posthocs, which is not installed",
            remedy="pip install 'ioncast[validation]'",
        ) from error
    if not io_nodes:
        return {}
    groups = [list(cells[n]) for n in io_nodes for cells in (benchmark, reruns)]
    if len({value for group in groups for value in group}) < _TWO:
        return dict.fromkeys(io_nodes, 1.0)
    table = posthoc_dunn(groups, p_adjust=ADJUSTMENT).to_numpy()
    return {n: float(table[2 * i, 2 * i + 1]) for i, n in enumerate(io_nodes)}


def composed_repetitions(
    work: Sequence[tuple[int, Mapping[int, Sequence[float]]]],
) -> dict[int, tuple[float, ...]]:
    """Combine the repetitions of the benchmarks of several parts, one after the other.

    Parameters
    ----------
    work : sequence of (int, mapping)
        For each part its bytes, and its benchmark's MiB/s by number of I/O nodes.

    Returns
    -------
    dict of int to tuple of float
        MiB/s by number of I/O nodes. The r-th value is all bytes over the sum of the times of
        each part's r-th repetition, as long as every part has one.

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
