"""Fitted models in the database, with the state of the measurements that they were fitted to."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime, timezone

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from benchdb.store.schema import imports, models, systems
from benchdb.store.systems import require_system


@dataclass(frozen=True)
class StoredModel:
    """A model that the predictor fitted to a system's measurements of one engine.

    `state` is the `state_of` these measurements. `document` is JSON that only the predictor reads.
    """

    engine: str
    state: str
    fitted_at: str
    document: str


# Statements are built once, because SQLAlchemy needs longer to build one than a database to
# answer it.
_MODELS = select(
    systems.c.name,
    models.c.engine,
    models.c.state,
    models.c.fitted_at,
    models.c.document,
).where(systems.c.id == models.c.system_id)
_OF_SYSTEM = _MODELS.where(systems.c.name == bindparam("system"))
_OF_ENGINE = _OF_SYSTEM.where(models.c.engine == bindparam("engine"))
_SYSTEM_ID = select(systems.c.id).where(systems.c.name == bindparam("system"))
_FORGET = delete(models).where(
    models.c.system_id == bindparam("of_system"), models.c.engine == bindparam("of_engine")
)
_STORE = insert(models)
# Another program that writes measurements may not change the revision, but it adds an import.
_STATE = select(
    systems.c.revision,
    select(func.max(imports.c.id)).where(imports.c.system_id == systems.c.id).scalar_subquery(),
).where(systems.c.name == bindparam("system"))


def stored_model(connection: Connection, system: str, engine: str) -> StoredModel | None:
    """The stored model of a system and an engine, even if it is out of date; None without one."""
    row = connection.execute(_OF_ENGINE, {"system": system, "engine": engine}).one_or_none()
    return row and StoredModel(*row[1:])


def stored_models(
    connection: Connection, system: str | None = None
) -> list[tuple[str, StoredModel]]:
    """All models, or the models of one system, with the names of their systems."""
    query, values = (_MODELS, {}) if system is None else (_OF_SYSTEM, {"system": system})
    rows = connection.execute(query, values)
    found = [(name, StoredModel(*columns)) for name, *columns in rows]
    return sorted(found, key=lambda each: (each[0], each[1].engine))


def store_model(
    connection: Connection, system: str, engine: str, state: str, document: str
) -> None:
    """Store a model; it replaces the model that the system and the engine had.

    `state` is the `state_of` the measurements, from the transaction that read them.
    """
    name = require_system(connection, system)
    system_id = connection.execute(_SYSTEM_ID, {"system": name}).scalar_one()
    connection.execute(_FORGET, {"of_system": system_id, "of_engine": engine})
    values = {
        "system_id": system_id,
        "engine": engine,
        "state": state,
        "fitted_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "document": document,
    }
    connection.execute(_STORE, values)


def state_of(connection: Connection, system: str, engine: str) -> str:
    """A SHA-256 that changes whenever a system's measurements of an engine may have changed.

    Measurements read in the same transaction have this state. Measurements of other engines change
    it too, and two databases with the same measurements have different digests.
    """
    row = connection.execute(_STATE, {"system": require_system(connection, system)}).one()
    return hashlib.sha256(json.dumps([system, engine, *row]).encode()).hexdigest()
