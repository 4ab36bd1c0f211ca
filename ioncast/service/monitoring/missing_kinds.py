"""Kinds of I/O that runs of a system have, but none of its benchmarks."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, func, select

from benchdb.store.schema import systems
from ioncast.service.store.tables import runs

_MOST = 10
_RUNS = (
    select(systems.c.name, runs.c.pattern, func.count())
    .join_from(runs, systems)
    .where(runs.c.pattern.is_not(None))
    .group_by(systems.c.name, runs.c.pattern)
)


def missing_kinds(
    connection: Connection, measured: Mapping[str, Collection[str]]
) -> list[dict[str, Any]]:
    """List the kinds of most runs without a benchmark: nothing can be predicted for them.

    Parameters
    ----------
    measured : mapping of str to collection of str
        The kinds of all benchmarks by system. Other systems are left out.

    Returns
    -------
    list of dict
        `system`, `kind` and `runs`, the number of runs that moved most bytes with this kind, at
        most ten, those of most runs first. The values are plain, for JSON.
    """
    missing = [
        {"system": system, "kind": kind, "runs": number}
        for system, kind, number in connection.execute(_RUNS)
        if system in measured and kind not in measured[system]
    ]
    return sorted(missing, key=lambda each: (-each["runs"], each["system"], each["kind"]))[:_MOST]
