"""The traced requests of a run with several logs, as one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ioncast_base.limits import MOST_BYTES
from summario.reading.operations import COLUMNS, Operations, stack
from summario.runs.logs_of_run import Run, warned

_TOO_MANY = "the traces are left out: their requests have an impossible number of bytes together"


def stacked(run: Run, tables: Sequence[Operations]) -> Operations:
    """Stack the requests of a run's logs: times since the run's start, ranks of the run."""
    if len(tables) == 1:
        return tables[0]
    if sum(float(table.length.sum()) for table in tables) > MOST_BYTES:
        nothing = np.zeros(0, np.int64)
        tables = [replace(table.take(nothing), warnings=(_TOO_MANY,)) for table in tables]
    first_rank = np.cumsum(run.processes) - run.processes
    hosts: dict[str, int] = {}
    in_run = [
        replace(
            table,
            rank=table.rank + first_rank[index],
            start_seconds=table.start_seconds + run.delays_seconds[index],
            end_seconds=table.end_seconds + run.delays_seconds[index],
            host=_renumbered(table, hosts),
        )
        for index, table in enumerate(tables)
    ]
    return Operations(
        **stack([{name: getattr(table, name) for name in COLUMNS} for table in in_run]),
        hosts=tuple(hosts),
        warnings=warned([log.path for log in run.logs], [table.warnings for table in tables]),
    )


def _renumbered(table: Operations, hosts: dict[str, int]) -> NDArray[np.int32]:
    numbers = np.array([hosts.setdefault(name, len(hosts)) for name in table.hosts], np.int32)
    return numbers[table.host]
