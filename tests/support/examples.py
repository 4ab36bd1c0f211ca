"""The number of examples for tests that make up their input.

Each test names its full number, which `make nightly` tries. `make test` tries a part of it, and
`make quick` a smaller part.
"""

from __future__ import annotations

import os

_SHARE = float(os.environ.get("IONCAST_TEST_EXAMPLES", "0.3"))
_FEWEST = 5


def examples(full: int) -> int:
    """Compute the number of examples to try in this run."""
    return max(_FEWEST, round(full * _SHARE))
