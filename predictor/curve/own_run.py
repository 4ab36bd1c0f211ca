"""The bandwidth of the run in a log, beside those that are expected of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ioncast_base.wording import bandwidth, in_words
from predictor.curve.composing import Composition, observed_mib_s
from predictor.model.plausible import is_implausible
from summario.phases.values import Phase

# With 1,000 draws, shares closer to 0 or 1 are not reliable.
_SURE = 0.99


@dataclass(frozen=True)
class SlowerShare:
    """The share of the expected runs with a number of I/O nodes that are slower than a run."""

    io_nodes: int
    slower: float


@dataclass(frozen=True)
class OwnRun:
    """The bandwidth of the log's own run, beside the prediction that it did not correct.

    `bandwidth_mib_s` are the bytes of the phases that have a benchmark, over the time of these
    phases. `expected` is for the run's number of I/O nodes; if it is not known, for each predicted
    number.
    """

    bandwidth_mib_s: float
    expected: tuple[SlowerShare, ...]
    p90_mib_s: float

    @property
    def is_impossible(self) -> bool:
        """Whether the bandwidth is implausible with every number of I/O nodes."""
        return is_implausible(self.bandwidth_mib_s, self.p90_mib_s)

    @property
    def is_contradiction(self) -> bool:
        """Whether fewer than one of 100 expected runs are as fast, or as slow, with each number."""
        return all(not 1 - _SURE <= share.slower <= _SURE for share in self.expected)

    @property
    def in_words(self) -> str:
        """The bandwidth and the share of expected runs that are slower, as a clause."""
        shares = sorted(self.expected, key=lambda share: share.slower)
        low, high = (_percent(share.slower) for share in (shares[0], shares[-1]))
        got = f"the run in the log got {bandwidth(self.bandwidth_mib_s)}, faster than"
        if len(shares) == 1:
            return f"{got} {low} of the runs expected with {in_words(shares[0].io_nodes)}"
        if low == high:
            return f"{got} {low} of the runs expected with each number of I/O nodes"
        ends = f"{in_words(shares[0].io_nodes)}) to {high} ({in_words(shares[-1].io_nodes)}"
        return f"{got} {low} ({ends}) of the expected runs"


def own_run(
    phases: Iterable[Phase], expected: Composition | None, ran_with: int | None
) -> OwnRun | None:
    """Compare the run of some phases with the bandwidths that are expected of it."""
    if expected is None:
        return None
    try:
        got_mib_s = observed_mib_s([*phases])
    except ValueError:
        return None
    slower = (expected.runs_mib_s < got_mib_s).mean(axis=0)
    shares = [SlowerShare(n, float(slower[i])) for i, n in enumerate(expected.io_nodes)]
    own = [share for share in shares if share.io_nodes == ran_with] or shares
    p90_mib_s = float(np.percentile(expected.runs_mib_s, 90, axis=0).max())
    return OwnRun(got_mib_s, tuple(own), p90_mib_s)


def own_run_record(own: OwnRun | None) -> dict[str, Any] | None:
    """The comparison as plain values for JSON."""
    if own is None:
        return None
    return {
        "bandwidth_mib_s": own.bandwidth_mib_s,
        "expected": [asdict(share) for share in own.expected],
        "is_contradiction": own.is_contradiction,
        "is_impossible": own.is_impossible,
        "in_words": own.in_words,
    }


def _percent(share: float) -> str:
    if share > _SURE:
        return f"over {_SURE:.0%}"
    return f"under {1 - _SURE:.0%}" if share < 1 - _SURE else f"{share:.0%}"
