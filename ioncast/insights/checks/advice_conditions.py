"""Advice that fits a run: by its operations, its interfaces, its libraries, and its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ioncast.insights.checks.values import Advice
from ioncast.insights.facts.values import Bools, Facts
from ioncast_base.kinds import Operation

# The conditions of advice, by their names in advice.toml.
_CONDITIONS: Mapping[str, Callable[[Facts], bool]] = {
    "reads": lambda facts: _makes(facts, "read"),
    "writes": lambda facts: _makes(facts, "write"),
    "no MPI-IO": lambda facts: "MPIIO" not in facts.layers,
    "shared files": lambda facts: bool((facts.files.processes > 1).any()),
    "files that all read": lambda facts: _are_several(
        (facts.files.processes > 1) & (facts.files.bytes_read > 0)
    ),
    "files of one process": lambda facts: (
        facts.run.processes > 1
        and _are_several((facts.files.processes == 1) & (facts.files.bytes > 0))
    ),
}
CONDITIONS = tuple(_CONDITIONS)


def _are_several(files: Bools) -> bool:
    return int(np.count_nonzero(files)) > 1


def _makes(facts: Facts, operation: Operation) -> bool:
    return any(layer.of(operation).requests.any() for layer in facts.layers.values())


def fits(advice: Advice, facts: Facts, libraries: tuple[str, ...]) -> bool:
    """Tell whether a run can follow advice."""
    if advice.only and not set(advice.only) & set(libraries):
        return False
    return all(_CONDITIONS[need](facts) for need in advice.needs)
