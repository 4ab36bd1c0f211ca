"""Descriptions of an allocation's options, the same for the command line and the API."""

from __future__ import annotations

POOL = "Number of I/O nodes to divide, including those of fixed jobs."
WEIGHT = (
    "Weight of a job's bandwidth in the sum: its own weight (given), 1 (none), or its number of"
    " compute nodes (nodes)."
)
OBJECTIVE = (
    "The sum that is as high as possible: of bandwidths (sum), or of their shares of each job's own"
    " highest bandwidth (proportional)."
)
MINIMUM_GAIN = (
    "A job's current number is changed only for a gain of more than this share of its bandwidth."
)
