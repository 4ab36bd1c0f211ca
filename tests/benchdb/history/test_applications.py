"""Applications are listed, searched and paged."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from benchdb.history.applications import application, applications, program_of
from benchdb.store.database import transaction
from ioncast_base.errors import UnknownNameError
from tests.support.history import put_run

pytestmark = pytest.mark.both_databases


def listed(engine: Engine, **wanted: Any) -> list[str]:
    with transaction(engine) as connection:
        return [each.application.executable for each in applications(connection, **wanted)]


def test_applications_are_listed_with_their_runs(database: Engine) -> None:
    put_run(database, started="2024-01-01")
    put_run(database, started="2025-01-01T00:00:00+01:00")
    put_run(database, "/opt/other", started="2020-01-01")
    with transaction(database) as connection:
        first, second = applications(connection)
        assert application(connection, first.application.id) == first
    assert (first.application.executable, first.runs) == ("/opt/app", 2)
    assert first.newest == "2024-12-31T23:00:00.000000+00:00"
    assert (second.application.executable, second.runs) == ("/opt/other", 1)


def test_applications_are_paged_by_their_ids(database: Engine) -> None:
    names = [f"/opt/{letter}" for letter in "edcba"]
    for name in names:
        put_run(database, name)
    assert listed(database) == names
    assert listed(database, limit=2) == names[:2]
    assert listed(database, limit=2, after=2) == names[2:4]
    assert listed(database, after=5) == []
    assert listed(database, after=2**70) == []


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("HACC", ["/opt/Hacc_IO"]),
        ("opt", ["/opt/Hacc_IO", "/opt/100%"]),
        ("BOB", ["/home/b"]),
        ("_", ["/opt/Hacc_IO"]),
        ("%", ["/opt/100%"]),
        ("\\", []),
        ("nothing", []),
        ("\0", []),
        ("", ["/opt/Hacc_IO", "/opt/100%", "/home/b"]),
    ],
)
def test_applications_are_searched_by_executable_and_user(
    database: Engine, search: str, expected: list[str]
) -> None:
    put_run(database, "/opt/Hacc_IO")
    put_run(database, "/opt/100%")
    put_run(database, "/home/b", user="Bob")
    assert listed(database, search=search) == expected


def test_applications_of_one_system_are_listed_alone(database: Engine) -> None:
    put_run(database)
    put_run(database, "/opt/there", system="there")
    assert listed(database, system="there") == ["/opt/there"]
    assert listed(database, system="there", search="app") == []
    assert listed(database, system="nowhere") == []


@pytest.mark.parametrize("key", [0, 3, -1, 2**31, 2**70])
def test_a_missing_application_is_unknown(database: Engine, key: int) -> None:
    put_run(database)
    put_run(database, "/opt/other")
    with transaction(database) as connection, pytest.raises(UnknownNameError):
        application(connection, key)


@pytest.mark.parametrize(
    ("executable", "program"),
    [("/opt/bin/app", "app"), ("app", "app"), ("./app", "app"), ("/opt/app/", "app"), ("/", "")],
)
def test_a_program_is_the_executable_without_its_folder(executable: str, program: str) -> None:
    assert program_of(executable) == program
