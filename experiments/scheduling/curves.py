"""The curves of the shipped measurements."""

from __future__ import annotations

import csv

from experiments.shipped import TESTBED
from ioncast.worth.io_curves import IoCurve, io_curve

BENCHMARKS = TESTBED / "benchmarks.csv"
_TESTBED_NODES = 8


def shipped_curves() -> list[IoCurve]:
    """Curves of the shipped measurements of an emulated system."""
    repetitions: dict[str, list[tuple[int, float]]] = {}
    with BENCHMARKS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            pair = int(row["io_nodes"]), float(row["bandwidth_mib_s"])
            repetitions.setdefault(row["name"], []).append(pair)
    return [io_curve(name, _TESTBED_NODES, pairs) for name, pairs in sorted(repetitions.items())]
