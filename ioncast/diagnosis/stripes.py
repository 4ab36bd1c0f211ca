"""Whether the largest file of a run lies on too few or too many OSTs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ioncast.diagnosis.normal import Floats, Ints, medians

# Too few: less than this part of the best count, at a bandwidth that is at least the one of these
# OSTs divided by this.
OF_BEST, _WITHIN = 0.5, 1.5
# Too many: fewer stripes on each OST, or more than so many times the best count.
_STRIPES_OF_OST, TIMES_BEST = 4, 2.0
# The best count is known if so many jobs used it, and as many used another one.
_FEWEST_JOBS = 3


@dataclass(frozen=True)
class Stripes:
    """The layout of the largest file of a run beside those of other jobs.

    `best_count` is the stripe count with the highest median bandwidth, and `one_ost_mib_s` the
    highest bandwidth of an OST, both None if too few jobs tell them. `are_wrong` is None if the
    counts are not wrong as far as it is known.
    """

    count: int
    size_bytes: int
    best_count: int | None
    one_ost_mib_s: float | None
    are_wrong: Literal["too few", "too many"] | None


@dataclass(frozen=True, eq=False)
class StripedJobs:
    """Other jobs of the variant with a known stripe count, and the logarithm of their MiB/s."""

    job: Ints
    count: Floats
    log_mib_s: Floats

    def best_count(self) -> int | None:
        """Find the stripe count with the highest median bandwidth; None if one count is known."""
        pairs, pair = np.unique(np.stack((self.count, self.job)), axis=1, return_inverse=True)
        if not len(self.count):
            return None
        # Logs of one job with one count saw the same weather, so they count once.
        of_jobs = medians(self.log_mib_s, pair.ravel())
        counts, group = np.unique(pairs[0], return_inverse=True)
        is_known = np.bincount(group) >= _FEWEST_JOBS
        if np.count_nonzero(is_known) < 2:
            return None
        return int(counts[np.argmax(np.where(is_known, medians(of_jobs, group), -np.inf))])

    def one_ost_mib_s(self) -> float | None:
        """Find the highest bandwidth of an OST; None with too few jobs."""
        if len(np.unique(self.job)) < _FEWEST_JOBS:
            return None
        return float(np.max(np.exp(self.log_mib_s) / self.count))


def stripes_of(
    count: int,
    size_bytes: int,
    *,
    processes: int,
    file_bytes: int,
    bandwidth_mib_s: float,
    others: StripedJobs,
) -> Stripes:
    """Compare the layout of a file, its processes and bytes, with the layouts of other jobs.

    References
    ----------
    S. L. Harrington, "Diagnosing Parallel I/O Bottlenecks in HPC Applications", figure 4; the
    numbers are ioncast's own.
    """
    best, one_ost = others.best_count(), others.one_ost_mib_s()
    are_wrong: Literal["too few", "too many"] | None = None
    if (
        (best is not None and one_ost is not None)
        and count < min(processes, OF_BEST * best)
        and bandwidth_mib_s * _WITHIN >= count * one_ost
    ):
        are_wrong = "too few"
    elif count > 1 and (
        file_bytes < count * size_bytes * _STRIPES_OF_OST
        or (best is not None and count > TIMES_BEST * best)
    ):
        are_wrong = "too many"
    return Stripes(count, size_bytes, best, one_ost, are_wrong)
