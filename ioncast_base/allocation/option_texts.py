"""Descriptions of an allocation's options, the same for the command line and the API."""

from __future__ import annotations

POOL = "Number of I/O nodes to divide, including those of fixed jobs."
POLICY = (
    "mckp: the highest sum of bandwidths, or of shares (objective). best: each job gets its own"
    " best, in the given order. static: in proportion to compute nodes. equal: the same for each"
    " job."
)
WEIGHT = (
    "Weight of a job's bandwidth in the sum: its own weight (given), 1 (none), or its number of"
    " compute nodes (nodes)."
)
EVERYONE = (
    "With mckp, no job waits for the sum: if all can have their smallest number, they get at least"
    " that, otherwise as many as possible."
)
OBJECTIVE = (
    "With mckp, the sum that is as high as possible: of bandwidths (sum), or of their shares of"
    " each job's own highest bandwidth (proportional)."
)
FLOOR = "With mckp, every job gets at least this share of its bandwidth with static."
MINIMUM_GAIN = (
    "With mckp, a job's current number is changed only for a gain of more than this share of its"
    " bandwidth."
)
MACHINE_NODES = (
    "Compute nodes of the machine, for static. The default, and the least value, is the sum over"
    " all jobs."
)
