"""The service as it runs at a site: processes are killed, the database goes and comes back."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from benchdb.decisions import decision
from benchdb.store import opened_database, transaction
from benchdb.tokens import add_token
from ioncast_errors import UnknownNameError
from tests.support.postgresql import programs, running_server
from tests.support.serving import Asking, Served, running, start, stop, wait_for

DECIDE = "/v1/decisions?system=testbed&user=ada&executable=/opt/app&tasks=16"
# What job_submit may take at most is 50 ms; on a machine that runs other tests it may be late.
DEADLINE_S = 2.0


@pytest.fixture
def served(location: str, tmp_path: Path) -> Iterator[Served]:
    with opened_database(location):
        pass
    with running(tmp_path, "--db", location, "--workers", "2") as service:
        yield service


def token_of(location: str, role: str) -> dict[str, str]:
    with opened_database(location) as database, transaction(database, write=True) as connection:
        token = add_token(connection, f"a {role}", role)
    return {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}


def are_stored(location: str, numbers: Sequence[str]) -> bool:
    with opened_database(location) as database, transaction(database) as connection:
        try:
            return [decision(connection, number).id for number in numbers] == list(numbers)
        except UnknownNameError:
            return False


def test_every_decision_gets_into_the_database(served: Served, location: str) -> None:
    numbers = [served.ask(DECIDE).json["decision_id"] for _ in range(50)]
    wait_for(lambda: are_stored(location, numbers), "stored decisions")


def test_a_killed_worker_is_replaced_and_no_decision_is_lost(served: Served, location: str) -> None:
    with Asking(served, DECIDE) as asking:
        time.sleep(0.5)
        victim, *_ = served.workers()
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: len(set(served.workers()) - {victim}) == 2, "another worker")
        served.wait_until_ready()
        time.sleep(0.5)
    # Only who was being answered by the killed one can have noticed.
    assert len(asking.refused) <= 4, asking.refused
    wait_for(lambda: are_stored(location, asking.numbers), "stored decisions")


def test_a_killed_keeper_is_replaced(served: Served, location: str) -> None:
    victim = served.keeper()
    os.kill(victim, signal.SIGKILL)
    number = served.ask(DECIDE).json["decision_id"]
    wait_for(lambda: are_stored(location, [number]), "stored decision")
    assert served.keeper() != victim


def test_a_killed_service_leaves_nothing_and_starts_again_with_what_it_knew(
    served: Served, location: str, tmp_path: Path
) -> None:
    numbers = [served.ask(DECIDE).json["decision_id"] for _ in range(20)]
    others = served.processes()
    served.process.kill()
    served.process.wait()
    again = start(tmp_path, "--db", location, port=served.port)
    try:
        wait_for(lambda: not any(map(_lives, others)), "end of the killed one's processes")
        again.wait_until_ready()
        wait_for(lambda: are_stored(location, numbers), "decisions")
    finally:
        stop(again)


def _lives(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    return False


def test_a_stopped_service_ends_all_its_processes(served: Served) -> None:
    everything = served.processes()
    stop(served)
    assert served.process.returncode == 0
    assert not any(map(_lives, everything))


def system_of(served: Served, headers: dict[str, str], name: str) -> int:
    body = f'{{"name": "{name}"}}'.encode()
    return served.ask("/v1/systems", method="POST", body=body, headers=headers).status


@contextlib.contextmanager
def locked(location: str) -> Iterator[None]:
    """Let another program hold the lock that every writer needs."""
    if "://" not in location:
        with contextlib.closing(sqlite3.connect(location, isolation_level=None)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            yield
        return
    engine = create_engine(location.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("LOCK TABLE systems, decisions, tokens, runs, outcomes"))
        yield
    engine.dispose()


def test_decisions_do_not_wait_for_a_locked_database(location: str, tmp_path: Path) -> None:
    headers = token_of(location, "admin")
    environment = {"IONCAST_PATIENCE_S": "1"}
    with running(tmp_path, "--db", location, environment=environment) as served:
        wait_for(lambda: system_of(served, headers, "one") in {200, 201}, "a token that counts")
        with locked(location):
            with Asking(served, DECIDE, threads=2) as asking:
                began = time.monotonic()
                answer = served.ask(
                    "/v1/systems", method="POST", body=b'{"name": "two"}', headers=headers
                )
                waited_s = time.monotonic() - began
                assert answer.status == 503
                assert answer.headers["Content-Type"] == "application/problem+json"
                assert int(answer.headers["Retry-After"]) > 0
                assert 0.9 < waited_s < 10
            assert asking.numbers
            assert not asking.refused
            assert asking.slowest_s < DEADLINE_S
        assert system_of(served, headers, "two") == 201
        wait_for(lambda: are_stored(location, asking.numbers), "decisions")


def test_a_database_that_goes_and_comes_back_loses_nothing(tmp_path: Path) -> None:
    location = str(tmp_path / "bench.sqlite")
    headers = token_of(location, "admin")
    with running(tmp_path, "--db", location) as served:
        wait_for(lambda: system_of(served, headers, "one") in {200, 201}, "a token that counts")
        Path(location).rename(tmp_path / "away.sqlite")
        numbers = [served.ask(DECIDE).json["decision_id"] for _ in range(20)]
        assert system_of(served, headers, "two") == 503
        wait_for(lambda: served.ask("/readyz").json["database"] == "unavailable", "notice of it")
        assert not Path(location).exists()
        (tmp_path / "away.sqlite").rename(location)
        assert system_of(served, headers, "two") == 201
        wait_for(lambda: are_stored(location, numbers), "decisions")


def test_a_database_server_that_fails_and_starts_again_loses_nothing(tmp_path: Path) -> None:
    if programs() is None:
        pytest.skip("no PostgreSQL server is installed")
    with running_server() as server, server.database("bench") as location:
        headers = token_of(location, "admin")
        with running(tmp_path, "--db", location) as served:
            wait_for(lambda: system_of(served, headers, "one") in {200, 201}, "a token that counts")
            server.stop()
            with Asking(served, DECIDE, threads=2) as asking:
                assert system_of(served, headers, "two") == 503
                wait_for(
                    lambda: served.ask("/readyz").json["database"] == "unavailable", "notice of it"
                )
            server.start()
            assert not asking.refused
            assert asking.slowest_s < DEADLINE_S
            assert system_of(served, headers, "two") == 201
            wait_for(lambda: are_stored(location, asking.numbers), "decisions")


def test_a_service_starts_without_its_database(tmp_path: Path) -> None:
    location = tmp_path / "bench.sqlite"
    location.write_text("this is no database")
    service = start(tmp_path, "--db", str(location))
    try:
        wait_for(lambda: service.ask(DECIDE, timeout_s=2).status == 200, "decision")
        wait_for(lambda: service.ask("/readyz").json["database"] == "unavailable", "notice")
        assert service.ask("/v1/systems").status == 503
        number = service.ask(DECIDE).json["decision_id"]
        location.unlink()
        with opened_database(location):
            pass
        wait_for(lambda: are_stored(str(location), [number]), "stored decision")
    finally:
        stop(service)


def test_a_read_only_database_keeps_decisions_waiting(tmp_path: Path) -> None:
    location = str(tmp_path / "bench.sqlite")
    headers = token_of(location, "admin")
    # Root may write to any file, so the database itself refuses.
    read_only = f"sqlite:///file:{location}?uri=true&mode=ro"
    service = start(tmp_path, "--db", read_only)
    try:
        wait_for(lambda: service.ask(DECIDE, timeout_s=2).status == 200, "decision")
        number = service.ask(DECIDE).json["decision_id"]
        assert service.ask("/v1/systems").status == 200
        wait_for(lambda: system_of(service, headers, "one") == 503, "token that counts")
    finally:
        stop(service)
    with running(tmp_path, "--db", location):
        wait_for(lambda: are_stored(location, [number]), "stored decision")


def test_a_state_folder_is_of_one_service_only(served: Served, tmp_path: Path) -> None:
    other = start(tmp_path, "--db", str(tmp_path / "other.sqlite"))
    assert other.process.wait(30) == 2
    assert "another service uses this state folder" in other.log.read_text()
    assert served.ask(DECIDE).status == 200


def test_a_port_that_is_taken_is_one_line_before_anything_starts(
    served: Served, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = start(folder, "--db", str(folder / "other.sqlite"), port=served.port)
    assert other.process.wait(30) == 2
    [line] = other.log.read_text().splitlines()
    assert line.startswith(f"ioncast: 127.0.0.1:{served.port}: the service cannot listen there")
    assert not (folder / "other.sqlite").exists()


def test_a_demonstration_that_is_ended_while_it_is_made_leaves_nothing(tmp_path: Path) -> None:
    folder, rest = tmp_path / "served", tmp_path / "tmp"
    folder.mkdir()
    rest.mkdir()
    service = start(folder, "--demo", environment={"TMPDIR": str(rest)})
    wait_for(lambda: "importing" in service.log.read_text(), "beginning")
    service.process.terminate()
    assert service.process.wait(30) == 128 + signal.SIGTERM
    assert list(rest.iterdir()) == []
