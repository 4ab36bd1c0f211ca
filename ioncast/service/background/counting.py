"""Counts the missing, stale and doubtful cells of a system, page by page."""

from __future__ import annotations

from dataclasses import astuple, replace
from datetime import datetime
from operator import add

from sqlalchemy import Connection, bindparam, select

from benchdb.measurements.coverage import CoverageSummary, coverage, summarise
from benchdb.store.schema import measurements, systems

_PAGE = 500
_IDS = (
    select(measurements.c.configuration_id)
    .join_from(measurements, systems)
    .where(
        systems.c.name == bindparam("system"),
        measurements.c.configuration_id > bindparam("after"),
    )
    .order_by(measurements.c.configuration_id)
    .distinct()
    .limit(_PAGE)
)


class Count:
    """Makes the `CoverageSummary` of a system in many short transactions."""

    def __init__(self, system: str, now: datetime, stale_after_s: float) -> None:
        self._system = system
        self._now = now
        self._stale_after_s = stale_after_s
        self._after = -1
        self._io_nodes: set[int] = set()
        self._measured = 0
        self._sum = CoverageSummary(0, 0, 0, 0, 0, 0, 0)

    def read_page(self, connection: Connection) -> bool:
        """Count the cells of the next configurations; False if none was left."""
        ids = list(connection.scalars(_IDS, {"system": self._system, "after": self._after}))
        if not ids:
            return False
        rows = coverage(
            connection,
            self._system,
            now=self._now,
            stale_after_s=self._stale_after_s,
            ids=ids,
        )
        self._after = ids[-1]
        found = summarise(rows)
        cells = [cell for row in rows for cell in row.cells]
        self._io_nodes |= {cell.io_nodes for cell in cells}
        self._measured += len(cells) - found.missing
        # The numbers of I/O nodes and of missing cells are those of all pages together.
        self._sum = CoverageSummary(*map(add, astuple(self._sum), astuple(found)))
        return True

    def summary(self) -> CoverageSummary:
        """Return the counts.

        A cell is missing if any other configuration has its number of I/O nodes.
        """
        every = self._sum.configurations * len(self._io_nodes)
        return replace(self._sum, io_nodes=len(self._io_nodes), missing=every - self._measured)
