"""The page of the worth of I/O nodes: the jobs of the history, replayed with pools of I/O nodes."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from flask import Response, request
from sqlalchemy import Connection

from benchdb.store.database import transaction
from ioncast.service.context import service
from ioncast.service.store.outcomes import systems_with_outcomes
from ioncast.service.store.queue_reports import newest_queue_reports
from ioncast.service.store.recorded_queues import recorded_queue
from ioncast.service.web.http.access import limit_client
from ioncast.service.web.http.uploads import place
from ioncast.service.web.pages.frame import page, pages, problem_of, wants_page
from ioncast.worth.sacct import COMMAND
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.visible_text import visible
from ioncast_base.wording import alike_first

# Each pool is replayed 51 times with three arms: so many jobs and pools take about 20 s.
MOST_JOBS, _MOST_POOLS = 1_000, 4
_REPORTED = timedelta(days=30)


@pages.get("/worth")
def worth() -> Response:
    """Show the worth of pools of I/O nodes for a system, or a form that asks for pools."""
    limit_client(service(), request)
    if service().store.folder is None:
        return page("worth.html")
    with transaction(service().database) as connection:
        systems = systems_with_outcomes(connection)
        if not systems:
            return page("worth.html", systems=systems, command=COMMAND)
        system = request.args.get("system") or systems[0]
        if system not in systems:
            what = f"the history has no jobs of {visible(system)!r}"
            raise UnknownNameError(what, remedy=f"it has those of {alike_first(system, systems)}")
        queue = recorded_queue(connection, system, MOST_JOBS)
        usual = _usual_pools(connection, system)
    pools = request.args.get("pool")
    shown: dict[str, Any] = {
        "systems": systems,
        "queue": queue,
        "most": MOST_JOBS,
        "pools": usual if pools is None else pools,
        "command": COMMAND,
    }
    if pools is None or not queue.jobs:
        return page("worth.html", **shown)
    # Without a store the service does without the libraries of these modules.
    from ioncast.show.worth import worth_shown  # noqa: PLC0415
    from ioncast.worth.replayed_machine import pool_sizes  # noqa: PLC0415

    try:
        sizes = pool_sizes(pools)
        if len(sizes) > _MOST_POOLS:
            raise InputError(f"these are {len(sizes)} numbers, more than {_MOST_POOLS}")
        found = service().store.worth(service().children, place(), queue, sizes)
    except InputError as error:
        if not wants_page():
            raise
        return page("worth.html", error.http_status, problem=problem_of(error)["detail"], **shown)
    return page("worth.html", found=worth_shown(found), **shown)


def _usual_pools(connection: Connection, system: str) -> str:
    """Half, once and twice the I/O nodes that the watch reported last; empty without a report."""
    since = datetime.now(timezone.utc) - _REPORTED
    _, report = newest_queue_reports(connection, since).get(system, (None, None))
    number = report.io_nodes if report else 0
    return ",".join(str(size) for size in (number // 2, number, 2 * number) if size)
