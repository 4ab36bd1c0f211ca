"""The time that processes spent, as far as the log tells single processes apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ioncast.insights.facts.values import Floats, Ints, Layer
from ioncast_base.limits import LONGEST_SECONDS


@dataclass(frozen=True)
class RankSeconds:
    """Seconds of each process with records of its own, ascending, and those of reduced records."""

    rank: Ints
    seconds: Floats
    reduced_seconds: float

    @property
    def total_seconds(self) -> float:
        """The time of all processes together."""
        return float(self.seconds.sum()) + self.reduced_seconds


def rank_seconds(values: Iterable[tuple[Layer, Floats]]) -> RankSeconds:
    """Add up by process the seconds of each layer's rows."""
    rank, seconds, reduced = [np.zeros(0, np.int64)], [np.zeros(0)], 0.0
    for layer, of_rows in values:
        # Of hostile numbers the sum could be infinite.
        possible = np.clip(of_rows, 0, LONGEST_SECONDS * layer.processes)
        reduced += float(possible[layer.is_reduced].sum())
        rank.append(layer.rank[~layer.is_reduced])
        seconds.append(possible[~layer.is_reduced])
    ranks, place = np.unique(np.concatenate(rank), return_inverse=True)
    of_ranks = np.zeros(len(ranks))
    np.add.at(of_ranks, place, np.concatenate(seconds))
    return RankSeconds(ranks, of_ranks, reduced)
