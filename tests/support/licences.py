"""Texts of licences with Slurm's numbers; plugin, hooks and arbiter must read the same numbers.

The numbers were measured with `sbatch -L` of Slurm 22.05 and 8 `ionode`, except for the last one.
Slurm keeps the low 32 bits of the counts in `LEFT_ALONE`, which no pool has.
"""

from __future__ import annotations

COUNTED = [
    ("ionode: \t2", 2),
    ("ionode:+2", 2),
    ("ionode:", 0),
    ("ionode:-0", 0),
    ("ionode:" + "0" * 4000 + "3", 3),
]
LEFT_ALONE = [
    "ionode:4294967297",
    "ionode:4294967296",
    "ionode:2147483647,ionode:2147483647,ionode:3",
    "ionode:-4294967288",
    "ionode: -4294967295",
    "ionode:-18446744073709551615",
    "ionode:" + "9" * 5000,
]
