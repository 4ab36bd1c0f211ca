"""The number of examples for tests that make up their input.

Each test names its full number, which `make nightly` tries. `make test` tries a part of it, and
`make quick` a smaller part.
"""

from __future__ import annotations

import os

_SHARE = float(os.environ.get("IONCAST_TEST_EXAMPLES", "0.15"))
_FEWEST = 5
# `make nightly` takes the date, so that each night tries other examples.
SEED = os.environ.get("IONCAST_TEST_SEED", "0")


def examples(full: int, *, part: float = 1.0) -> int:
    """Compute the number of examples to try in this run.

    Parameters
    ----------
    full : int
        The number in `make nightly`.
    part : float
        The part of the usual share that other runs try, for examples that take long.
    """
    share = _SHARE if _SHARE >= 1 else _SHARE * part
    return max(_FEWEST, round(full * share))
