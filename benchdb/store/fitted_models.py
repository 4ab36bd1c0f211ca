"""Fitted models in the database, and whether what they were fitted on is still the same."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timezone

from sqlalchemy import Connection, bindparam, delete, func, insert, select

from benchdb.measurements.storing import require_system
from benchdb.store.schema import imports, models, systems


@dataclass(frozen=True)
class StoredModel:
    """What the predictor fitted on a system's measurements of one engine.

    Attributes
    ----------
    engine : str
        The program that measured.
    state : str
        `state_of` the measurements when it was fitted.
    fitted_at : str
        When, ISO 8601 with zone.
    document : str
        JSON that the predictor wrote.
    """

    engine: str
    state: str
    fitted_at: str
    document: str


# Statements are made once: SQLAlchemy needs longer for that than a database for an answer.
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
# Programs that write without ioncast may not know of revisions, but add imports.
_STATE = select(
    systems.c.revision,
    select(func.max(imports.c.id)).where(imports.c.system_id == systems.c.id).scalar_subquery(),
).where(systems.c.name == bindparam("system"))


def stored_model(connection: Connection, system: str, engine: str) -> StoredModel | None:
    """The model of a system and an engine, of whatever state; None if none was stored."""
    row = connection.execute(_OF_ENGINE, {"system": system, "engine": engine}).one_or_none()
    return row and StoredModel(*row[1:])


def stored_models(
    connection: Connection, system: str | None = None
) -> list[tuple[str, StoredModel]]:
    """All models, or those of a system, with their systems' names.

    Returns
    -------
    list of (str, StoredModel)
        By system and engine, in the order of their names' bytes.
    """
    query, values = (_MODELS, {}) if system is None else (_OF_SYSTEM, {"system": system})
    rows = connection.execute(query, values)
    found = [(name, StoredModel(*columns)) for name, *columns in rows]
    return sorted(found, key=lambda each: (each[0], each[1].engine))


def store_model(
    connection: Connection, system: str, engine: str, state: str, document: str
) -> None:
    """Store a model in the place of the one that the system and the engine had.

    Parameters
    ----------
    connection : Connection
        In a transaction that writes (see `benchdb.store.database.transaction`).
    system, engine : str
        Whose measurements it was fitted on.
    state : str
        Their `state_of`, from the transaction that read them.
    document : str
        The model, as the predictor writes it.

    Raises
    ------
    UnknownNameError
        When the database has no such system.
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
    """A fingerprint that changes whenever a system's measurements of an engine may have.

    Parameters
    ----------
    connection : Connection
        In the transaction that reads the measurements, where they are to be of this state.
    system, engine : str
        Whose measurements.

    Returns
    -------
    str
        A SHA-256. Other engines' measurements change it too; in another database with the
        same measurements it is another one.

    Raises
    ------
    UnknownNameError
        When the database has no such system.
    """
    row = connection.execute(_STATE, {"system": require_system(connection, system)}).one()
    return hashlib.sha256(repr((system, engine, *row)).encode()).hexdigest()
