"""Names of phases and lists of names, for sentences about a prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from ioncast_base.wording import listed

# Most names in a list.
_MOST = 6


def phases_named(indices: Iterable[int]) -> str:
    """Name phases by their numbers; three or more consecutive ones as a range."""
    ordered = sorted(indices)
    runs = [
        [index for _, index in run]
        for _, run in groupby(enumerate(ordered), lambda pair: pair[1] - pair[0])
    ]
    names = [
        name
        for run in runs
        for name in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else map(str, run))
    ]
    return f"phase{'s' if len(ordered) > 1 else ''} {shortened(names)}"


def shortened(names: Sequence[str]) -> str:
    """List names as in a sentence: a, b and c."""
    shown = list(names)
    if len(shown) > _MOST:
        shown = [*shown[: _MOST - 1], f"{len(shown) - _MOST + 1} more"]
    return listed(shown)
