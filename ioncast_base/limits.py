"""Limits of the numbers that ioncast takes, computes and stores; `quantities` has their types."""

from __future__ import annotations

# Processes, compute nodes, I/O nodes that a run had: the database stores them in 32 bits.
LARGEST_COUNT = 2**31 - 1
# The database's keys, in 32 bits as well.
LARGEST_ID = 2**31 - 1
# IOR, fio and Darshan count bytes, and some other numbers, in 63 bits.
LARGEST_BYTES = 2**63 - 1
# No run takes longer, or moves more bytes.
LONGEST_SECONDS = 1e9
MOST_BYTES = 1 << 60
# More I/O nodes than any machine has. Farther from all measurements, a predicted bandwidth means
# nothing, so no more are predicted or decided.
MOST_PREDICTED_IO_NODES = 10_000
# No system is slower or faster. Beyond, squares and sums of bandwidths would lose digits or become
# infinite.
SLOWEST_MIB_S, FASTEST_MIB_S = 1e-9, 1e15
BANDWIDTHS = "from 1e-9 to 1e15 MiB/s"
