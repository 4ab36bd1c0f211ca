"""Insights into runs in the database: their characterisation and the results of their checks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from pydantic import Field
from sqlalchemy import Connection, and_, bindparam, delete, insert, select

from ioncast.service.store.applications import note_new_times
from ioncast.service.store.runs import NEWEST_RUN, digest_of_logs
from ioncast.service.store.tables import applications, insights, runs
from ioncast_base.errors import InputError
from ioncast_base.times import now

# A page reads both documents of a run as a whole.
MOST_DOCUMENT_BYTES = 512 << 10

# Insights whose logs are no longer all logs of the run do not count.
_OF_RUN = (
    select(insights)
    .join(runs, insights.c.run_id == runs.c.id)
    .where(runs.c.id == bindparam("run"), insights.c.sha256 == runs.c.sha256)
)
_NEWEST_RUNS = (
    select(
        *(runs.c.application_id, runs.c.name, runs.c.tasks, runs.c.nodes, runs.c.bandwidth_mib_s),
        *(insights.c.version, insights.c.checks),
    )
    .join_from(applications, runs, runs.c.id == NEWEST_RUN)
    .outerjoin(insights, and_(insights.c.run_id == runs.c.id, insights.c.sha256 == runs.c.sha256))
    .where(applications.c.id.in_(bindparam("ids", expanding=True)))
)
_RUN = select(runs.c.sha256, runs.c.application_id).where(runs.c.id == bindparam("run"))
_FORGET = (
    delete(insights)
    .where(insights.c.run_id == bindparam("run"))
    .returning(insights.c.io_seconds, insights.c.stake_seconds)
)


@dataclass(frozen=True)
class NewInsights:
    """Insights to be stored: JSON objects, each of at most `MOST_DOCUMENT_BYTES`.

    `version` is that of the program parts that made them. The slowest process spent `io_seconds` in
    I/O and metadata, of which `stake_seconds` are at stake.
    """

    version: int
    characterisation: str
    checks: str
    io_seconds: float
    stake_seconds: float

    def __post_init__(self) -> None:
        for name in ("characterisation", "checks"):
            if (size := len(getattr(self, name).encode())) > MOST_DOCUMENT_BYTES:
                raise InputError(f"{name}: {size} bytes, more than {MOST_DOCUMENT_BYTES}")


@dataclass(frozen=True)
class Insights:
    """The I/O of a run, and its findings."""

    made_at: Annotated[str, Field(description="The time when the log was sent.")]
    version: Annotated[int, Field(description="The version of the checks.")]
    characterisation: Annotated[
        dict[str, Any],
        Field(
            description="An object of `ioncast characterize --format json`; `files` are those with"
            " most bytes."
        ),
    ]
    checks: Annotated[
        dict[str, Any],
        Field(
            description="An object of `ioncast check --format json`; `hints` say what advice to"
            " try."
        ),
    ]


class NewestRun(NamedTuple):
    """The newest run of an application, without its phases; `version` and `checks` if stored."""

    name: str | None
    tasks: int
    nodes: int | None
    bandwidth_mib_s: float | None
    version: int | None
    checks: dict[str, Any] | None


def newest_runs(connection: Connection, application_ids: Sequence[int]) -> dict[int, NewestRun]:
    """Read the newest run of each application with the results of its checks."""
    rows = connection.execute(_NEWEST_RUNS, {"ids": list(application_ids)}).mappings()
    return {
        row["application_id"]: NewestRun(
            *(row["name"], row["tasks"], row["nodes"], row["bandwidth_mib_s"], row["version"]),
            None if row["checks"] is None else json.loads(row["checks"]),
        )
        for row in rows
    }


def store_insights(
    connection: Connection, run_id: int, logs: Iterable[str], new: NewInsights
) -> bool:
    """Store insights into a run, in the place of older ones, unless the run has other logs, too."""
    sha256 = digest_of_logs(logs)
    run = connection.execute(_RUN, {"run": run_id}).one_or_none()
    if run is None or run.sha256 != sha256:
        return False
    older = connection.execute(_FORGET, {"run": run_id}).one_or_none() or (0.0, 0.0)
    values = {"run_id": run_id, "sha256": sha256, "made_at": now(), **vars(new)}
    connection.execute(insert(insights).values(values))
    more = new.io_seconds - older[0], new.stake_seconds - older[1]
    note_new_times(connection, run.application_id, *more)
    return True


def insights_of(connection: Connection, run_id: int) -> Insights | None:
    """Read the insights into a run; None if none were made from all its logs."""
    row = connection.execute(_OF_RUN, {"run": run_id}).mappings().one_or_none()
    if row is None:
        return None
    return Insights(
        version=row["version"],
        made_at=row["made_at"],
        characterisation=json.loads(row["characterisation"]),
        checks=json.loads(row["checks"]),
    )
