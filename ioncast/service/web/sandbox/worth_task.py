"""The task that replays the jobs of the history, for a process of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ioncast.service.store.recorded_queues import RecordedQueue
from ioncast.service.web.sandbox.tasks import Place, frontend
from ioncast.warehouse.engine import EngineLimits, all_rows, asking
from ioncast.warehouse.queries import query_of
from ioncast.worth.logged_io import logged_io
from ioncast.worth.valued_queue import joined
from ioncast.worth.valuing import QueueWorth, worth_of
from ioncast_base.errors import InputError
from ior_configs import IorConfig
from predictor.curve.asking import read_knowledge
from predictor.model.system_model import SystemModel

_STORE_S, _MEMORY_MIB, _MOST_ROWS = 30.0, 512, 200_000


def worth_of_history(
    place: Place, folder: Path, queue: RecordedQueue, pools: Sequence[int]
) -> QueueWorth:
    """Replay a queue with each pool, as `ioncast worth` does.

    Each job ran with its own number of I/O nodes. Logs of other months are not looked at.
    """
    limits = EngineLimits(_STORE_S, _MEMORY_MIB, threads=1, rows=_MOST_ROWS + 1)
    chosen = {"system": queue.system, "month": queue.months}
    with asking(folder, limits=limits) as engine:
        ask = all_rows(engine, _MOST_ROWS)
        jobs, phases = (
            ask(query, query.values(chosen)) for query in map(query_of, ("logged-jobs", "phases"))
        )

    def knowledge_of(wanted: Sequence[IorConfig]) -> SystemModel:
        return read_knowledge(frontend(place), queue.system, wanted)[0]

    logs = logged_io(jobs, phases, knowledge_of, queue.system, dict(queue.io_nodes))
    try:
        return worth_of(
            joined(queue.jobs, logs),
            pools,
            system=queue.system,
            curves_of=queue.system,
            ran_with=None,
        )
    except InputError as error:
        # It names an option of the command.
        error.where = None
        raise
