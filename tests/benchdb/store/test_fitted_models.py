"""Models are stored by system and engine, and are out of date once the measurements change."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import Engine, select

from benchdb.measurements.exports import csv_lines, export_rows
from benchdb.measurements.importers import ResultFile, read_export
from benchdb.measurements.restore import restore
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from benchdb.store.fitted_models import (
    StoredModel,
    state_of,
    store_model,
    stored_model,
    stored_models,
)
from benchdb.store.schema import imports, measurements
from ioncast_base.errors import InputError, UnknownNameError
from ioncast_base.times import instant
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

CONFIG = IorConfig(write=True, tasks=16, nodes=8)
RUN = Measurement(CONFIG, 0, 50.0)
_contents = itertools.count()


def put(
    engine: Engine,
    *rows: Measurement,
    system: str = "here",
    content: bytes | None = None,
    replacing: bool = False,
) -> bool:
    with transaction(engine, write=True) as connection:
        return store(
            connection,
            system=system,
            file="file.csv",
            content=f"file {next(_contents)}".encode() if content is None else content,
            file_format="test",
            rows=rows,
            replace=replacing,
        )


def export(engine: Engine) -> str:
    with transaction(engine) as connection:
        return "".join(csv_lines(export_rows(connection)))


def put_back(engine: Engine, text: str, *, replacing: bool = False) -> None:
    with transaction(engine, write=True) as connection:
        found = read_export(ResultFile("export.csv", text))
        restore(connection, found, file="export.csv", replace=replacing)


def state(engine: Engine, system: str = "here", of: str = "ior") -> str:
    with transaction(engine) as connection:
        return state_of(connection, system, of)


def keep(engine: Engine, document: str, *, system: str = "here", of: str = "ior") -> None:
    with transaction(engine, write=True) as connection:
        store_model(connection, system, of, state_of(connection, system, of), document)


def kept(engine: Engine, system: str = "here", of: str = "ior") -> StoredModel | None:
    with transaction(engine) as connection:
        return stored_model(connection, system, of)


def all_kept(engine: Engine, system: str | None = None) -> list[tuple[str, StoredModel]]:
    with transaction(engine) as connection:
        return stored_models(connection, system)


@pytest.fixture
def filled(database: Engine) -> Engine:
    put(database, RUN, Measurement(CONFIG, 2, 60.0), Measurement(CONFIG, 0, 40.0, engine="fio"))
    put(database, RUN, system="there")
    return database


def test_a_model_comes_back_as_it_was_stored(filled: Engine) -> None:
    document = json.dumps({"größe": [1 / 3] * 200_000}, ensure_ascii=False)
    keep(filled, document)
    model = kept(filled)
    assert model is not None
    assert (model.engine, model.state, model.document) == ("ior", state(filled), document)
    fitted = instant(model.fitted_at)
    assert fitted is not None
    assert abs(datetime.now(timezone.utc) - fitted) < timedelta(minutes=1)


def test_each_system_and_engine_has_a_model_of_its_own(filled: Engine) -> None:
    keep(filled, "1")
    keep(filled, "2", of="fio")
    keep(filled, "3", system="there")
    found = [(name, model.engine, model.document) for name, model in all_kept(filled)]
    assert found == [("here", "fio", "2"), ("here", "ior", "1"), ("there", "ior", "3")]
    assert all_kept(filled, "there") == all_kept(filled)[2:]
    assert all_kept(filled, "nowhere") == []
    assert kept(filled, "there") == all_kept(filled)[2][1]
    assert kept(filled, "there", "fio") is None
    assert kept(filled, "nowhere") is None


def test_a_new_model_replaces_the_old_one(filled: Engine) -> None:
    keep(filled, "old")
    put(filled, RUN)
    keep(filled, "new")
    [(_, model)] = all_kept(filled)
    assert (model.document, model.state) == ("new", state(filled))


def test_a_missing_system_has_no_state_and_no_model(filled: Engine) -> None:
    with pytest.raises(UnknownNameError):
        state(filled, "nowhere")
    with pytest.raises(UnknownNameError), transaction(filled, write=True) as connection:
        store_model(connection, "nowhere", "ior", "state", "{}")
    assert all_kept(filled) == []


def edited(text: str) -> str:
    """An export in which somebody corrected a number."""
    assert text.count(",60.0,") == 1
    return text.replace(",60.0,", ",66.0,")


def in_part(text: str) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if ",60.0," not in line)


def by_another_program(engine: Engine) -> None:
    """Add a measurement as a program does that does not know about revisions."""
    with transaction(engine, write=True) as connection:
        [old] = connection.execute(select(measurements).where(measurements.c.id == 1)).mappings()
        values = {"sha256": "0" * 64, "file": "f", "format": "f", "imported_at": "2026-11-21"}
        values |= {"system_id": old["system_id"]}
        key = connection.scalar(imports.insert().values(values).returning(imports.c.id))
        row = {name: value for name, value in old.items() if name != "id"}
        connection.execute(
            measurements.insert().values(row | {"import_id": key, "repetition": 100})
        )


CHANGES: dict[str, Callable[[Engine], object]] = {
    "another file": lambda engine: put(engine, RUN),
    "a run that is set apart": lambda engine: put(engine, replace(RUN, used=False)),
    "an edited export": lambda e: put_back(e, edited(export(e)), replacing=True),
    "a part of an export": lambda e: put_back(e, in_part(export(e)), replacing=True),
    "an export that numbers otherwise": lambda e: put_back(
        e, export(e).replace(",2,0,60.0,", ",2,7,60.0,"), replacing=True
    ),
    "another program": by_another_program,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_of_the_measurements_changes_the_state(
    filled: Engine, change: Callable[[Engine], object]
) -> None:
    keep(filled, "{}")
    before, content = kept(filled), export(filled)
    assert before is not None
    assert before.state == state(filled)
    change(filled)
    assert export(filled) != content
    assert kept(filled) == before
    assert before.state != state(filled)


def test_other_engines_and_systems_have_other_states(filled: Engine) -> None:
    states = {state(filled, *of) for of in (("here", "ior"), ("here", "fio"), ("there", "ior"))}
    assert len(states) == 3


def refused(engine: Engine) -> None:
    put(engine, RUN, content=b"known")
    with pytest.raises(InputError):
        put(engine, RUN, RUN, content=b"known")


NO_CHANGES: dict[str, Callable[[Engine], object]] = {
    "nothing": lambda _: None,
    "another system's file": lambda engine: put(engine, RUN, system="there"),
    "the same file": lambda engine: put(engine, RUN, content=b"known"),
    "the same file to replace it": lambda e: put(e, RUN, content=b"known", replacing=True),
    "the file with other measurements": refused,
    "its own export": lambda engine: put_back(engine, export(engine)),
    "its own export to replace it": lambda e: put_back(e, export(e), replacing=True),
    "another model": lambda engine: keep(engine, "{}"),
}


@pytest.mark.parametrize("harmless", NO_CHANGES.values(), ids=NO_CHANGES)
def test_the_state_stays_without_a_change_of_the_systems_measurements(
    filled: Engine, harmless: Callable[[Engine], object]
) -> None:
    put(filled, RUN, content=b"known")
    before = state(filled)
    harmless(filled)
    assert state(filled) == before


def test_a_state_never_returns(filled: Engine) -> None:
    """Even if the database reuses ids and a file has the same hash and time of import."""
    seen = [state(filled)]
    for rows in ([RUN], [RUN, RUN], [RUN], [RUN, RUN]):
        put(filled, *rows, content=b"the file", replacing=True)
        seen.append(state(filled))
    first = export(filled)
    for text in (edited(first), first, edited(first)):
        put_back(filled, text, replacing=True)
        seen.append(state(filled))
    assert len(set(seen)) == len(seen) == 8


def test_imports_do_not_show_an_edited_export(filled: Engine) -> None:
    """Therefore systems have revisions. SQLite even reuses the id of the import."""
    hidden = {"id"} if filled.dialect.name == "postgresql" else set()
    query = select(*(column for column in imports.c if column.name not in hidden))

    def found() -> set[tuple[object, ...]]:
        with transaction(filled) as connection:
            return {tuple(row) for row in connection.execute(query)}

    put(filled, Measurement(CONFIG, 4, 60.5), system="alone")
    before = found(), state(filled, "alone")
    put_back(filled, export(filled).replace(",60.5,", ",66.5,"), replacing=True)
    assert found() == before[0]
    assert state(filled, "alone") != before[1]


def test_exports_have_no_models_and_leave_stored_models_unchanged(filled: Engine) -> None:
    text = export(filled)
    keep(filled, "{}")
    before = all_kept(filled)
    assert export(filled) == text
    put_back(filled, text)
    put_back(filled, edited(text), replacing=True)
    assert all_kept(filled) == before
    assert export(filled) == edited(text)
