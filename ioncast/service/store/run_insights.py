"""Insights into runs in the database: their characterisation and the results of their checks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, select

from ioncast.service.store.runs import digest_of_logs
from ioncast.service.store.tables import insights, runs
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
_SHA256_OF_RUN = select(runs.c.sha256).where(runs.c.id == bindparam("run"))
_FORGET = delete(insights).where(insights.c.run_id == bindparam("run"))


@dataclass(frozen=True)
class NewInsights:
    """Insights to be stored: JSON objects, each of at most `MOST_DOCUMENT_BYTES`.

    `version` is that of the program parts that made them.
    """

    version: int
    characterisation: str
    checks: str

    def __post_init__(self) -> None:
        for name in ("characterisation", "checks"):
            if (size := len(getattr(self, name).encode())) > MOST_DOCUMENT_BYTES:
                raise InputError(f"{name}: {size} bytes, more than {MOST_DOCUMENT_BYTES}")


@dataclass(frozen=True)
class Insights:
    """Stored insights into a run, with the documents as `NewInsights` had them."""

    version: int
    made_at: str
    characterisation: dict[str, Any]
    checks: dict[str, Any]


def store_insights(
    connection: Connection, run_id: int, logs: Iterable[str], new: NewInsights
) -> bool:
    """Store insights into a run, in the place of older ones, unless the run has other logs, too."""
    sha256 = digest_of_logs(logs)
    if connection.scalar(_SHA256_OF_RUN, {"run": run_id}) != sha256:
        return False
    connection.execute(_FORGET, {"run": run_id})
    values = {"run_id": run_id, "sha256": sha256, "made_at": now(), **vars(new)}
    connection.execute(insert(insights).values(values))
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
