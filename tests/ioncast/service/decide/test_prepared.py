from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ioncast.service.decide.answers import Entry, PreparedGroup, answer
from ioncast.service.decide.prepared import (
    LATE_S,
    KeeperHeartbeat,
    KnownToken,
    Reader,
    StoredSummary,
    Untried,
    WantedSize,
    Writer,
    prepared_file,
)
from predictor.matching.same_application import identities


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return prepared_file(tmp_path / "state")


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    made = Writer(path)
    yield made
    made.close()


@pytest.fixture
def reader(path: Path) -> Iterator[Reader]:
    made = Reader(path)
    yield made
    made.close()


def entry(number: int, *sizes: int) -> Entry:
    return tuple(
        PreparedGroup(
            tasks=tasks,
            nodes=None,
            application_id=number,
            runs="1 earlier run",
            size=f"{tasks} processes",
            is_scaled=False,
            points=(
                '"io_nodes":4,"expected_mib_s":1.5,"p10_mib_s":1.0,"p90_mib_s":2.0',
                '"io_nodes":8,"expected_mib_s":1.4,"p10_mib_s":1.0,"p90_mib_s":2.0',
            ),
            io_nodes=(4, 8),
            choices=(
                (8, 0, "0.9", f"because of {number}", False, (1 << 30, 1, "0.5", "to try it")),
                (4, 0, "0.9", "so", False, None),
            ),
            unknown=None,
            default=None,
        )
        for tasks in sizes or (16,)
    )


def put(writer: Writer, system: str = "here", /, **entries: Entry) -> None:
    with writer.transaction():
        writer.put_entries(system, entries)


def held(reader: Reader, key: str, system: str = "here") -> bytes | None:
    found = reader.entries.get((system, key))
    return None if found is None else answer(found, "it", 16, None, None).body


def body(of: Entry) -> bytes:
    return answer(of, "it", 16, None, None).body


def test_written_answers_are_read(writer: Writer, reader: Reader) -> None:
    put(writer, a=entry(1), b=entry(2, 16, 64))
    assert reader.refresh()
    assert (held(reader, "a"), held(reader, "b")) == (body(entry(1)), body(entry(2, 16, 64)))
    assert (held(reader, "c"), held(reader, "a", "there")) == (None, None)
    assert len(reader.entries) == 2


def test_nothing_is_read_where_nothing_has_changed(writer: Writer, reader: Reader) -> None:
    put(writer, a=entry(1))
    assert [reader.refresh() for _ in range(3)] == [True, False, False]
    put(writer, a=entry(2))
    assert [reader.refresh() for _ in range(2)] == [True, False]
    assert held(reader, "a") == body(entry(2))


def test_systems_have_entries_of_their_own(writer: Writer, reader: Reader) -> None:
    put(writer, a=entry(1))
    put(writer, "there", a=entry(2))
    reader.refresh()
    assert (held(reader, "a"), held(reader, "a", "there")) == (body(entry(1)), body(entry(2)))


def test_unchanged_answers_are_not_read_again(writer: Writer, reader: Reader) -> None:
    put(writer, a=entry(1), b=entry(2))
    reader.refresh()
    packed = dict(reader.entries._packed)
    put(writer, a=entry(1), b=entry(3))
    reader.refresh()
    assert reader.entries._packed["here\0a"] is packed["here\0a"]
    assert held(reader, "b") == body(entry(3))


def test_entries_that_are_alike_are_kept_once(writer: Writer, reader: Reader, path: Path) -> None:
    put(writer, a=entry(1), b=entry(1), c=entry(1))
    reader.refresh()
    assert len({id(packed) for packed in reader.entries._packed.values()}) == 1
    put(writer, a=entry(2), b=entry(2))
    assert documents(path) == 2
    put(writer, c=entry(2))
    assert documents(path) == 1
    reader.refresh()
    assert {held(reader, key) for key in "abc"} == {body(entry(2))}


def documents(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        [count] = connection.execute("SELECT COUNT(*) FROM documents").fetchone()
    return int(count)


def test_a_round_that_fails_leaves_no_trace(writer: Writer, reader: Reader) -> None:
    put(writer, a=entry(1))
    with pytest.raises(ZeroDivisionError), writer.transaction():
        writer.put_entries("here", {"a": entry(2)})
        raise ZeroDivisionError
    reader.refresh()
    assert held(reader, "a") == body(entry(1))
    put(writer, a=entry(3))
    reader.refresh()
    assert held(reader, "a") == body(entry(3))


def test_tokens_summaries_and_the_heartbeat_are_read(writer: Writer, reader: Reader) -> None:
    with writer.transaction():
        writer.put_tokens(
            {"ab": KnownToken("ada", "admin", None), "cd": KnownToken("bob", "reader", 7.5)}
        )
        writer.put_summary("drift", [{"a": None}], "2026-11-21T12:00:00+00:00")
        writer.beat(12.5, database_ok=False, state_ok=True)
    reader.refresh()
    assert reader.tokens == {"ab": ("ada", "admin", None), "cd": ("bob", "reader", 7.5)}
    assert reader.summaries == {"drift": StoredSummary([{"a": None}], "2026-11-21T12:00:00+00:00")}
    assert reader.heartbeat == KeeperHeartbeat(12.5, False, True)
    with writer.transaction():
        writer.put_tokens({"cd": KnownToken("bob", "scheduler", None)})
        writer.put_summary("drift", [], "2026-11-21T12:01:00+00:00")
        writer.beat(13.5, database_ok=True, state_ok=False)
    reader.refresh()
    assert reader.tokens == {"cd": ("bob", "scheduler", None)}
    assert reader.summaries["drift"].value == []
    assert reader.heartbeat == KeeperHeartbeat(13.5, True, False)


def test_numbers_to_try_are_read_the_largest_gains_first(writer: Writer) -> None:
    small, large = Untried(4, 0, 0.02, 0.03), Untried(8, 1, 0.0, 0.2)
    with writer.transaction():
        writer.put_untried(1, "here", small)
        writer.put_untried(2, "there", large)
        writer.put_untried(3, "there", small)
    assert writer.new_untried() == [(2, "there", large), (1, "here", small), (3, "there", small)]
    assert writer.new_untried() is None
    with writer.transaction():
        writer.put_untried(2, "there", None)
        writer.put_untried(3, "there", large)
    assert writer.new_untried() == [(3, "there", large), (1, "here", small)]


def test_the_keeper_is_judged_by_its_heartbeat(writer: Writer, reader: Reader) -> None:
    assert (reader.keeper_state(0.0), reader.database_state) == ("unseen", "unknown")
    with writer.transaction():
        writer.beat(1000.0, database_ok=False, state_ok=True)
    reader.refresh()
    assert reader.keeper_state(1000.0 + LATE_S) == "ok"
    assert reader.keeper_state(1001.0 + LATE_S) == "late"
    assert reader.database_state == "unavailable"
    with writer.transaction():
        writer.beat(1001.0 + LATE_S, database_ok=True, state_ok=True)
    reader.refresh()
    assert (reader.keeper_state(1001.0 + LATE_S), reader.database_state) == ("ok", "ok")


def test_answers_are_ready_when_the_keeper_has_prepared_all(writer: Writer, reader: Reader) -> None:
    preparing = "answers are still being prepared from the earlier runs"
    assert reader.not_ready == preparing
    put(writer, a=entry(1))
    reader.refresh()
    assert reader.not_ready == preparing
    with writer.transaction():
        writer.beat(12.5, database_ok=False, state_ok=True)
    reader.refresh()
    assert reader.not_ready == "the database is unavailable, so answers cannot be prepared"
    with writer.transaction():
        writer.beat(13.5, database_ok=True, state_ok=True)
    reader.refresh()
    assert reader.not_ready == preparing
    with writer.transaction():
        writer.put_progress({"runs": "7"})
    reader.refresh()
    assert reader.not_ready is None
    # Answers that were prepared once stay good without the database.
    with writer.transaction():
        writer.beat(14.5, database_ok=False, state_ok=True)
    reader.refresh()
    assert reader.not_ready is None


def test_the_keeper_goes_on_from_what_it_left(writer: Writer, path: Path) -> None:
    sizes = [WantedSize(2, 64, None), WantedSize(1, 16, 4), WantedSize(2, 32, 2)]
    with writer.transaction():
        writer.put_wanted(sizes)
        writer.put_progress({"runs": "7"})
    again = Writer(path)
    assert (again.wanted(), again.progress()) == (sizes, {"runs": "7"})
    again.close()


def test_hashes_of_tokens_are_for_nobody_else(writer: Writer, path: Path) -> None:
    with writer.transaction():
        writer.put_tokens({"ab": KnownToken("ada", "admin", None)})
    for each in path.parent.iterdir():
        assert stat.S_IMODE(each.stat().st_mode) & 0o077 == 0, each.name


def test_a_worker_may_come_before_the_keeper(path: Path, reader: Reader) -> None:
    assert not reader.refresh()
    assert (len(reader.entries), reader.heartbeat) == (0, None)
    writer = Writer(path)
    put(writer, a=entry(1))
    assert reader.refresh()
    assert held(reader, "a") == body(entry(1))
    writer.close()


def test_a_worker_needs_no_keeper(path: Path) -> None:
    """After the keeper has ended, SQLite's -wal and -shm files are gone."""
    writer = Writer(path)
    put(writer, a=entry(1))
    writer.close()
    reader = Reader(path)
    assert reader.refresh()
    assert held(reader, "a") == body(entry(1))
    reader.close()


def test_a_keeper_that_was_killed_loses_nothing_that_was_written(path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_write_and_die, args=(path,))
    process.start()
    process.join()
    assert process.exitcode == 9
    reader = Reader(path)
    reader.refresh()
    assert held(reader, "a") == body(entry(1))
    reader.close()


def _write_and_die(path: Path) -> None:
    writer = Writer(path)
    put(writer, a=entry(1))
    with writer.transaction():
        writer.put_entries("here", {"a": entry(2)})
        os._exit(9)


@pytest.mark.parametrize("kind", ["text", "other version", "damaged"])
def test_a_file_that_cannot_be_used_is_made_anew(path: Path, kind: str, reader: Reader) -> None:
    path.parent.mkdir()
    if kind == "text":
        path.write_text("no database at all, but long enough to be taken for one" * 100)
    else:
        first = Writer(path)
        put(first, **{f"key{number}": entry(number) for number in range(200)})
        first.close()
    if kind == "other version":
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA user_version = 999")
        connection.close()
    if kind == "damaged":
        content = bytearray(path.read_bytes())
        content[4096 : 4096 * 8] = bytes(4096 * 7)
        path.write_bytes(content)
    reader.refresh()
    second = Writer(path)
    assert second.progress() == {}
    put(second, a=entry(1))
    assert reader.refresh()
    assert (len(reader.entries), held(reader, "a")) == (1, body(entry(1)))
    second.close()


def test_a_worker_keeps_what_it_has_when_the_file_goes(
    writer: Writer, reader: Reader, path: Path
) -> None:
    put(writer, a=entry(1), b=entry(2))
    reader.refresh()
    for each in path.parent.iterdir():
        each.unlink()
    assert not reader.refresh()
    assert held(reader, "a") == body(entry(1))
    writer.renew()
    put(writer, a=entry(3))
    assert reader.refresh()
    assert (held(reader, "a"), held(reader, "b")) == (body(entry(3)), None)


@pytest.mark.slow
def test_ten_thousand_applications_fit_into_25_mb(writer: Writer, reader: Reader) -> None:
    """Each application has seven identities and answers of a usual length."""
    points = tuple(
        f'"io_nodes":{n},"expected_mib_s":1234.56,"p10_mib_s":1000.25,"p90_mib_s":2345.67'
        for n in (0, 1, 2, 4, 8)
    )
    why = (
        "4 I/O nodes give 1200 MiB/s, 97% of the best available (1234 MiB/s with 2 I/O nodes);"
        " 8 would give 17% more, but "
    )
    with writer.transaction():
        for number in range(10_000):
            group = entry(number)[0]._replace(
                points=points,
                io_nodes=(0, 1, 2, 4, 8),
                choices=[(n, i, "0.912345", why, True) for i, n in enumerate((0, 1, 2, 4, 8))],
            )
            found = identities(f"/apps/project{number}/bin/app{number}", f"user{number}", "night")
            writer.put_entries("mn4", {identity.key: (group,) for identity in found})
    tracemalloc.start()
    reader.refresh()
    [taken, _] = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(reader.entries) == 70_000
    assert taken < 25e6
