"""Kept results: found by their secret alone, until they expire or are deleted."""

from __future__ import annotations

import hashlib
import json
import threading
from datetime import datetime, timedelta, timezone

import pytest
from sqlalchemy import Engine, func, select

from benchdb.store.database import transaction
from ioncast.service.store.expiring import KEPT_RESULTS
from ioncast.service.store.kept_results import (
    MOST_DOCUMENT_BYTES,
    KeptResult,
    forget_result,
    keep_result,
    kept_result,
)
from ioncast.service.store.tables import kept_results
from ioncast_base.errors import ConflictError, InputError

pytestmark = pytest.mark.both_databases

NOW = datetime(2026, 11, 23, 12, tzinfo=timezone.utc)
SECOND = timedelta(seconds=1)
DAYS = 30
DAY = timedelta(days=1)
LATER = NOW + timedelta(days=DAYS)


def keep(
    engine: Engine,
    secret: str,
    document: str = "{}",
    *,
    now: datetime = NOW,
    room_bytes: int = 1 << 20,
) -> bool:
    with transaction(engine, write=True) as connection:
        return keep_result(connection, secret, document, now=now, days=DAYS, room_bytes=room_bytes)


def read(engine: Engine, secret: str, now: datetime = NOW) -> KeptResult | None:
    with transaction(engine) as connection:
        return kept_result(connection, secret, now)


def forget(engine: Engine, secret: str, now: datetime = NOW) -> bool:
    with transaction(engine, write=True) as connection:
        return forget_result(connection, secret, now, barred_for=DAY)


def number(engine: Engine) -> int:
    with transaction(engine) as connection:
        return connection.execute(select(func.count()).select_from(kept_results)).scalar_one()


def test_a_result_comes_back_as_it_was_kept(database: Engine) -> None:
    document = json.dumps({"name": "größe \0 \ud800 </script>"})
    assert keep(database, "secret", document)
    found = read(database, "secret")
    assert found == KeptResult(document, "2026-12-23T12:00:00.000000+00:00")


@pytest.mark.parametrize("secret", ["", "another", "secret ", "SECRET", "\0", "\ud800", "'; --"])
def test_only_the_secret_finds_a_result(database: Engine, secret: str) -> None:
    keep(database, "secret")
    assert read(database, secret) is None
    assert not forget(database, secret)
    assert read(database, "secret") is not None


def test_the_database_does_not_have_the_secret(database: Engine) -> None:
    keep(database, "secret")
    with transaction(database) as connection:
        [row] = connection.execute(select(kept_results)).mappings()
    assert row["sha256"] == hashlib.sha256(b"secret").hexdigest()
    assert "secret" not in [str(value) for value in row.values()]


def test_a_result_is_kept_once_however_often_it_is_sent(database: Engine) -> None:
    # The second one would have no room.
    assert [keep(database, "secret", room_bytes=3) for _ in range(2)] == [True, True]
    assert keep(database, "secret", now=NOW + SECOND)
    assert number(database) == 1
    found = read(database, "secret")
    assert found is not None
    assert found.expires_at.startswith("2026-12-23T12:00:00")


def test_an_expired_result_is_not_found_even_before_it_is_deleted(database: Engine) -> None:
    keep(database, "secret")
    assert read(database, "secret", LATER - SECOND) is not None
    assert read(database, "secret", LATER) is None
    assert not forget(database, "secret", LATER)


def test_a_deleted_result_is_gone_and_cannot_be_kept_again(database: Engine) -> None:
    keep(database, "secret")
    keep(database, "another")
    assert forget(database, "secret")
    assert read(database, "secret") is None
    assert not forget(database, "secret")
    assert read(database, "another") is not None
    with pytest.raises(ConflictError, match="was deleted"):
        keep(database, "secret", now=NOW + DAY - SECOND)
    with transaction(database) as connection:
        query = select(kept_results.c.document, kept_results.c.bytes).order_by("id")
        assert [tuple(row) for row in connection.execute(query)] == [("", 0), ("{}", 2)]
    # The seal of its page has ended meanwhile.
    assert keep(database, "secret", now=NOW + DAY)
    assert number(database) == 2


def test_a_deleted_result_is_known_until_it_would_have_expired(database: Engine) -> None:
    keep(database, "secret")
    assert forget(database, "secret", LATER - SECOND)
    with transaction(database) as connection:
        assert KEPT_RESULTS.count(connection, LATER) == (0, 0)
        assert KEPT_RESULTS.count(connection, LATER + SECOND) == (1, 1)


@pytest.mark.promise("service-wrong-clock")
def test_a_full_room_takes_no_more_and_loses_nothing(database: Engine) -> None:
    ten_bytes = '"12345678"'
    assert keep(database, "first", ten_bytes, room_bytes=29)
    assert keep(database, "second", ten_bytes, room_bytes=29)
    assert not keep(database, "third", ten_bytes, room_bytes=29)
    assert keep(database, "third", ten_bytes[1:], room_bytes=29)
    assert not keep(database, "fourth", "", room_bytes=28)
    assert number(database) == 3
    # Expired results need no room, but perhaps only the clock is wrong.
    assert keep(database, "fourth", ten_bytes, room_bytes=10, now=LATER)
    assert number(database) == 4
    assert read(database, "first") is not None


def test_a_document_is_counted_in_bytes(database: Engine) -> None:
    assert not keep(database, "secret", "ß" * 6, room_bytes=11)
    assert keep(database, "secret", "ß" * 6, room_bytes=12)


def test_a_document_that_is_too_large_is_rejected(database: Engine) -> None:
    everything = 1 << 30
    assert keep(database, "largest", "x" * MOST_DOCUMENT_BYTES, room_bytes=everything)
    with pytest.raises(InputError, match=f"{MOST_DOCUMENT_BYTES + 1} bytes, more than"):
        keep(database, "larger", "x" * (MOST_DOCUMENT_BYTES + 1), room_bytes=everything)


def test_many_at_once_take_no_more_than_the_room(database: Engine) -> None:
    kept: list[bool] = []
    together = threading.Barrier(8)

    def run(secret: str) -> None:
        together.wait()
        kept.append(keep(database, secret, "x" * 100, room_bytes=500))

    threads = [threading.Thread(target=run, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(kept) == [False] * 3 + [True] * 5
    assert number(database) == 5


def test_one_that_is_sent_by_many_at_once_is_kept_once(database: Engine) -> None:
    kept: list[bool] = []
    together = threading.Barrier(8)

    def run() -> None:
        together.wait()
        kept.append(keep(database, "secret"))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept == [True] * 8
    assert number(database) == 1
