"""When something is usual for a program: constants of all comparisons with other jobs."""

from __future__ import annotations

# Something is usual for so many other jobs, whose bytes are within this ratio.
FEWEST_JOBS, LIKE_BYTES = 5, 2.0
