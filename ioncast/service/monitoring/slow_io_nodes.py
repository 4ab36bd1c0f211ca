"""Slow I/O nodes of the last weeks, by the outcomes of jobs with named I/O nodes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from sqlalchemy import Connection

from benchdb.store.system_changes import SystemChange
from ioncast.diagnosis.slow_io_nodes import SlowIoNode, slow_io_nodes
from ioncast.service.monitoring.decision_errors import COUNTED
from ioncast.service.store.outcomes import named_outcomes

# The name of the summary.
SLOW_IO_NODES = "slow I/O nodes"
# Jobs get a slow I/O node last, so that hardly any new ones tell that it was mended. After this
# time the old ones no longer count, and it is used as before.
WINDOW = timedelta(days=30)


def newest_slow_io_nodes(
    connection: Connection, noted: Mapping[str, SystemChange], at: datetime
) -> list[SlowIoNode]:
    """Name the slow I/O nodes by the newest outcomes of each system, since its last change.

    Parameters
    ----------
    noted : mapping of str to SystemChange
        The last change of each system that is noted.
    """
    named = named_outcomes(connection, COUNTED, at - WINDOW)
    return slow_io_nodes(
        [
            outcome
            for ran_at, outcome in named
            if outcome.system not in noted or noted[outcome.system].is_followed_by(ran_at)
        ]
    )
