"""Applications are listed, searched and paged."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from benchdb.store.database import transaction
from ioncast.service.store.applications import (
    application,
    applications,
    count_applications,
    ids_of_applications,
)
from ioncast_base.errors import UnknownNameError
from tests.support.history import new_sha256, put_run

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


def test_the_newest_run_follows_what_is_stored_of_runs(database: Engine) -> None:
    """A run without a start is as new as its storing; later its start may become known."""
    log, more = new_sha256(), new_sha256()

    def newest(**told: Any) -> tuple[int, str]:
        put_run(database, **told)
        with transaction(database) as connection:
            [found] = applications(connection)
        return found.runs, found.newest[:10]

    assert newest(started="2020-01-01") == (1, "2020-01-01")
    assert newest(started="2019-01-01") == (2, "2020-01-01")
    assert newest(logs=[log])[1] > "2025"
    assert newest(logs=[log], started="2021-01-01") == (3, "2021-01-01")
    assert newest(logs=[log, more], started="2018-01-01") == (3, "2020-01-01")


def fill_list(database: Engine) -> None:
    """Store four applications of three users with different numbers of runs."""
    put_run(database, "/b/delta", user="ada", started="2024-01-04")
    put_run(database, "/a/beta", user="cyd", started="2024-01-01")
    put_run(database, "/a/beta", user="cyd", started="2024-01-03")
    put_run(database, "/d/alpha", user="bob", started="2024-01-02")
    put_run(database, "/c/beta", user="bob", started="2024-01-02", system="there")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, ["/b/delta", "/a/beta", "/c/beta", "/d/alpha"]),
        ({"order": "asc"}, ["/d/alpha", "/c/beta", "/a/beta", "/b/delta"]),
        ({"sort": "runs"}, ["/a/beta", "/c/beta", "/d/alpha", "/b/delta"]),
        ({"sort": "runs", "order": "asc"}, ["/b/delta", "/d/alpha", "/c/beta", "/a/beta"]),
        ({"sort": "program"}, ["/d/alpha", "/a/beta", "/c/beta", "/b/delta"]),
        ({"sort": "user"}, ["/b/delta", "/d/alpha", "/c/beta", "/a/beta"]),
        ({"sort": "user", "order": "desc"}, ["/a/beta", "/c/beta", "/d/alpha", "/b/delta"]),
        ({"user": "bob"}, ["/c/beta", "/d/alpha"]),
        ({"user": "bob", "system": "there"}, ["/c/beta"]),
        ({"user": "bo"}, []),
        ({"user": "\0"}, []),
        ({"sort": "program", "system": "here", "search": "a"}, ["/d/alpha", "/a/beta", "/b/delta"]),
    ],
)
def test_applications_are_sorted_and_filtered(
    database: Engine, told: dict[str, Any], expected: list[str]
) -> None:
    fill_list(database)
    assert listed(database, **told) == expected
    for place in range(len(expected) + 1):
        assert listed(database, **told, offset=place, limit=2) == expected[place : place + 2]
    filters = {name: told[name] for name in ("system", "user", "search") if name in told}
    with transaction(database) as connection:
        assert count_applications(connection, **filters) == len(expected)


def test_a_page_beyond_the_end_is_empty(database: Engine) -> None:
    put_run(database)
    assert listed(database, offset=1) == []
    assert listed(database, offset=2**70) == []


def test_ids_of_a_system_are_listed_from_any_of_them_on(database: Engine) -> None:
    fill_list(database)
    with transaction(database) as connection:
        ids = ids_of_applications(connection, "here")
        assert len(ids) == 3
        assert ids_of_applications(connection, "here", after=ids[0], limit=1) == ids[1:2]
        assert ids_of_applications(connection, "nowhere") == []


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
    assert sorted(listed(database, search=search)) == sorted(expected)


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
