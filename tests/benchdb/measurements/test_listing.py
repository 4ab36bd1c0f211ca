"""Pages list the whole content of the database, each row once."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import datetime, timezone

import pytest
from sqlalchemy import Connection, Engine

from benchdb.measurements.coverage import coverage
from benchdb.measurements.listing import (
    configuration_of,
    configurations_after,
    measured_ids,
    measurements_after,
    systems_after,
)
from benchdb.measurements.storing import Measurement, store
from benchdb.store.database import transaction
from ioncast_base.errors import UnknownNameError
from ior_configs import IorConfig

pytestmark = pytest.mark.both_databases

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
CONFIG = IorConfig(write=True, tasks=16, nodes=8, block_size=4 << 20, transfer_size=1 << 20)
CONFIGS = [replace(CONFIG, tasks=16 * n) for n in range(1, 8)]
_contents = itertools.count()


def put(engine: Engine, *rows: Measurement, system: str = "here") -> None:
    with transaction(engine, write=True) as connection:
        store(
            connection,
            system=system,
            file="file.csv",
            content=str(next(_contents)).encode(),
            file_format="test",
            rows=rows,
        )


def fill(engine: Engine) -> None:
    """Store configurations of two systems, measured by two engines."""
    for system, configs in (("here", CONFIGS), ("there", CONFIGS[2:5])):
        rows = [
            Measurement(config, n, 10.0 + n, engine=engine_name)
            for config in configs
            for n in (8, 0, 2)
            for engine_name in ("ior", "fio")
        ]
        put(engine, *rows, rows[0], system=system)


def pages_of(connection: Connection, system: str, limit: int) -> list[int]:
    found: list[int] = []
    while page := measured_ids(connection, system, found[-1] if found else 0, limit):
        assert len(page) <= limit
        found += page
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_list_all_configurations_of_a_system(database: Engine, limit: int) -> None:
    fill(database)
    with transaction(database) as connection:
        here, there = (pages_of(connection, system, limit) for system in ("here", "there"))
        ids = [row.id for row in configurations_after(connection)]
    assert here == ids == sorted(ids)
    assert len(here) == 7
    assert there == here[2:5]


@pytest.mark.parametrize("limit", [1, 4, 13, 500])
def test_pages_list_all_measurements_in_the_order_of_cells(database: Engine, limit: int) -> None:
    fill(database)
    found, after = [], None
    with transaction(database) as connection:
        while page := measurements_after(connection, "there", after=after, limit=limit):
            found += page
            after = page[-1].id
    assert len({row.id for row in found}) == len(found) == 3 * 3 * 2 + 1
    cells = [
        (row.configuration_id, row.measurement.io_nodes, row.measurement.engine, row.repetition)
        for row in found
    ]
    assert cells == sorted(cells)
    assert {row.measurement.config for row in found} == set(CONFIGS[2:5])


def test_a_configuration_lists_its_measurements_by_system_and_engine(database: Engine) -> None:
    put(database, Measurement(CONFIG, 4, 1.0), Measurement(CONFIG, 0, 1.0))
    put(
        database, Measurement(CONFIG, 4, 2.0, engine="fio"), Measurement(CONFIG, 8, 2.0, used=False)
    )
    put(database, Measurement(CONFIG, 4, 3.0), system="there")
    with transaction(database) as connection:
        [everywhere] = configurations_after(connection)
        [there] = configurations_after(connection, system="there")
    assert [
        (one.system, one.engine, one.io_nodes, one.repetitions, one.set_apart)
        for one in everywhere.measured
    ] == [
        ("here", "fio", (4,), 1, 0),
        ("here", "ior", (0, 4), 2, 1),
        ("there", "ior", (4,), 1, 0),
    ]
    assert there.measured == everywhere.measured[2:]
    assert there.config == CONFIG


def test_a_configuration_is_new_once(database: Engine) -> None:
    with transaction(database, write=True) as connection:
        first, new = configuration_of(connection, CONFIG)
        second, again = configuration_of(connection, replace(CONFIG, repetitions=5))
    assert (new, again) == (True, False)
    assert first == second


def test_a_page_after_a_deleted_measurement_is_an_error(database: Engine) -> None:
    fill(database)
    with transaction(database) as connection, pytest.raises(UnknownNameError, match="any more"):
        measurements_after(connection, "here", after=4711)


@pytest.mark.parametrize("ask", [measured_ids, measurements_after])
def test_a_missing_system_is_an_error(database: Engine, ask: object) -> None:
    with transaction(database) as connection, pytest.raises(UnknownNameError):
        ask(connection, "nowhere")  # type: ignore[operator]


def test_systems_are_in_the_order_of_their_bytes_in_any_database(database: Engine) -> None:
    names = ["b", "Zeta", "a", "é", "aa"]
    for name in names:
        put(database, Measurement(CONFIG, 0, 1.0), system=name)
    with transaction(database) as connection:
        pages = [
            [one.name for one in systems_after(connection, after, 2)] for after in ("", "a", "b")
        ]
    assert pages == [["Zeta", "a"], ["aa", "b"], ["é"]]


def test_coverage_of_some_configurations_is_part_of_the_whole_coverage(database: Engine) -> None:
    fill(database)
    with transaction(database) as connection:
        times = {"now": NOW, "stale_after_s": 1e9}
        everything = coverage(connection, "here", **times)
        ids = measured_ids(connection, "here")[1:4]
        some = coverage(connection, "here", **times, ids=ids)
        none = coverage(connection, "here", **times, ids=[])
    assert some == [row for row in everything if row.id in ids]
    assert len(some) == 6
    assert none == []
