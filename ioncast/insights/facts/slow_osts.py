"""OSTs whose files are slower than the others, by the correlation over files."""

from __future__ import annotations

from dataclasses import dataclass
from math import atanh, erfc, sqrt

import numpy as np

from ioncast.insights.facts.values import Floats, Ints

# A correlation of fewer files says little.
FEWEST_FILES = 5
# Of a perfect correlation the transformation is infinite.
_STRONGEST = 1 - 1e-12


@dataclass(frozen=True)
class SlowOst:
    """An OST on which files are slow.

    `correlation` is Pearson's r of the files' bandwidths and their shares on this OST,
    `probability` that of such a correlation, or a stronger one, by chance on any of the OSTs.
    """

    ost: int
    correlation: float
    probability: float
    files: Ints


def slow_osts(
    bandwidth: Floats,
    file: Ints,
    ost: Ints,
    part: Floats,
    *,
    most_correlation: float,
    most_probability: float,
) -> list[SlowOst]:
    """Find the OSTs with a negative correlation, the strongest first.

    Each file has a `bandwidth`, in any unit; the files may be those of several runs. Each piece has
    the index of its `file`, its `ost` and its `part` of the file (0 to 1). An OST is slow if r, and
    the probability by chance times the number of OSTs (Bonferroni), are below their limits. It has
    at least `FEWEST_FILES` files, and as many lie elsewhere.

    References
    ----------
    G. Lockwood, pytokio, darshan_bad_ost: the correlation. The correction for the number of OSTs
    and the smallest number of files are ioncast's own.
    """
    osts, place = np.unique(ost, return_inverse=True)
    count = len(bandwidth)
    on = np.bincount(place, minlength=len(osts))
    enough = (on >= FEWEST_FILES) & (count - on >= FEWEST_FILES)
    if not enough.any() or not np.ptp(bandwidth):
        return []
    mean, deviation = bandwidth.mean(), bandwidth.std()
    # The share of a file that is not on an OST is 0, so sums over the pieces are enough.
    sums, squares, products = (
        np.bincount(place, weights, minlength=len(osts)) / count
        for weights in (part, part**2, part * bandwidth[file])
    )
    spread = np.sqrt(np.maximum(squares - sums**2, 0))
    r = (products - sums * mean) / np.where(spread > 0, spread * deviation, np.inf)
    found = [
        SlowOst(int(osts[row]), float(r[row]), chance, file[place == row])
        for row in np.flatnonzero(enough & (r < most_correlation)).tolist()
        if (chance := min(_probability(float(r[row]), count) * int(enough.sum()), 1.0))
        < most_probability
    ]
    return sorted(found, key=lambda each: each.correlation)


def _probability(r: float, count: int) -> float:
    """The probability of a correlation or a stronger one by chance, by Fisher's transformation."""
    return erfc(atanh(min(abs(r), _STRONGEST)) * sqrt((count - 3) / 2))
