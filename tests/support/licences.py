"""Texts of licences with Slurm's numbers; plugin, hooks and arbiter must read the same numbers.

The numbers were measured with `sbatch -L` of Slurm 22.05 and 8 `ionode`, except for the last two.
"""

from __future__ import annotations

COUNTED = [
    ("ionode: \t2", 2),
    ("ionode:+2", 2),
    ("ionode:", 0),
    ("ionode:-0", 0),
    ("ionode:4294967297", 1),
    ("ionode:4294967296", 0),
    ("ionode:2147483647,ionode:2147483647,ionode:3", 1),
    ("ionode:-4294967288", 8),
    ("ionode: -4294967295", 1),
    ("ionode:-9223372036854775807", 1),
    ("ionode:-18446744073709551615", 0),
    ("ionode:-9223372036854775809", 0),
    ("ionode:" + "0" * 4000 + "3", 3),
]
