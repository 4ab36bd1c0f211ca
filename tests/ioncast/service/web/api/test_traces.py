"""Logs that are sent join the history of their applications, which can be read page by page."""

from __future__ import annotations

import hashlib
import io
import json
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import select
from werkzeug.test import TestResponse

from benchdb.store.database import transaction
from experiments.applications.darshan_writer import Record, write_log
from ioncast.service.context import Service
from ioncast.service.store.decisions import DecisionRow, store_decisions
from ioncast.service.store.runs import runs_of
from ioncast.service.store.tables import runs
from predictor.curve.composing import observed_mib_s
from summario.phases.extract import extract_phases
from summario.reading.log import read_log
from tests.summario.reading.test_damage import blank, flip, flip_in_header, repeat, truncate
from tests.support.traced import traced_log

ROOT = Path(__file__).resolve().parents[5]
LOGS = ROOT / "experiments" / "data" / "testbed" / "logs"
HACC = LOGS / "hacc-io-ionodes0.darshan"
FIXTURES = sorted((ROOT / "tests" / "summario" / "fixtures").glob("*.darshan"))

Authorised = Callable[[str], dict[str, Any]]
Send = Callable[..., TestResponse]


@pytest.fixture
def send(client: FlaskClient, authorised: Authorised) -> Send:
    """Send a log with a scheduler's token."""
    token = authorised("scheduler")

    def send_log(
        log: Path | bytes, filename: str = "app.darshan", **fields: object
    ) -> TestResponse:
        content = log.read_bytes() if isinstance(log, Path) else log
        form = {"system": "mn4"} | {key: str(value) for key, value in fields.items()}
        data = {**form, "log": (io.BytesIO(content), filename)}
        return client.post("/v1/traces", data=data, **token)

    return send_log


def answer(response: TestResponse, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.json is not None
    found: dict[str, Any] = response.json
    return found


def test_a_log_joins_the_history_of_its_application(send: Send, service: Service) -> None:
    told = {"user": "ada", "name": "night", "job_id": "4711", "nodes": 8, "io_nodes": 0}
    found = answer(send(HACC, **told), 201)
    log = read_log(HACC)
    phases = extract_phases(log)
    assert (found["executable"], found["user"]) == ("hacc_io_write_posix_fpp", "ada")
    assert (found["tasks"], found["phases"]) == (16, len(phases))
    assert found["bandwidth_mib_s"] == pytest.approx(observed_mib_s(phases))
    with transaction(service.database) as connection:
        [run] = runs_of(connection, found["application_id"])
    assert run.id == found["run_id"]
    assert (run.job_id, run.name, run.nodes, run.io_nodes) == ("4711", "night", 8, 0)
    assert run.started == "2026-11-21T04:11:27.658657+00:00"
    assert sum(phase["bytes"] for phase in run.phases) == sum(phase.bytes for phase in phases)
    assert {phase["log"] for phase in run.phases} == {"app.darshan"}


def test_a_log_of_a_system_without_measurements_has_a_warning(filled: None, send: Send) -> None:
    [told] = answer(send(HACC, system="tesbed"), 201)["warnings"]
    assert told == (
        "nothing was measured on 'tesbed', so nothing is decided;"
        " systems with measurements: testbed"
    )
    assert answer(send(FIXTURES[0], system="testbed"), 201)["warnings"] == []


def test_a_log_without_phases_tells_the_calls_that_it_counts(send: Send, tmp_path: Path) -> None:
    opened = Record("POSIX", "/data/in", 0, {"POSIX_OPENS": 3})
    log = write_log(tmp_path / "opened.darshan", nprocs=1, records=[opened])
    found = answer(send(log), 201)
    assert (found["phases"], found["bytes"], found["bandwidth_mib_s"]) == (0, 0, None)
    assert found["warnings"][0] == (
        "no I/O phases: Darshan counted 3 opens of 1 file in POSIX, but no reads or writes"
    )


def test_a_known_log_only_adds_values_that_were_unknown(send: Send) -> None:
    first = answer(send(HACC), 201)
    assert answer(send(HACC, "another-name.darshan", io_nodes=4)) == first
    assert send(HACC, io_nodes=8).status_code == 409


def test_the_log_tells_the_compute_nodes(send: Send, service: Service, tmp_path: Path) -> None:
    log = traced_log(tmp_path / "a.darshan", ["n1", "n1", "n2"])
    found = answer(send(log), 201)
    assert found["nodes"] == 2
    assert not any("compute node" in warning for warning in found["warnings"])
    with transaction(service.database) as connection:
        [run] = runs_of(connection, found["application_id"])
    assert run.nodes == 2


def test_a_given_number_of_compute_nodes_replaces_that_of_the_log(
    send: Send, tmp_path: Path
) -> None:
    """As when a user sends a log first, and then the watch with Slurm's number."""
    log = traced_log(tmp_path / "a.darshan", ["n1", "n1", "n2"])
    assert answer(send(log), 201)["nodes"] == 2
    found = answer(send(log, nodes=4))
    assert found["nodes"] == 4
    assert (
        "4 compute nodes are given, but the log names 2; the given number is used"
        in (found["warnings"])
    )
    assert answer(send(log))["nodes"] == 4
    assert send(log, nodes=3).status_code == 409


def test_a_lower_bound_of_compute_nodes_is_not_stored(send: Send, tmp_path: Path) -> None:
    found = answer(send(traced_log(tmp_path / "a.darshan", ["n1", "n2"], nprocs=3)), 201)
    assert found["nodes"] is None
    assert "the job had at least 2; give the number" in " ".join(found["warnings"])


def test_a_user_who_is_not_named_is_the_number_in_the_log(send: Send) -> None:
    assert answer(send(HACC), 201)["user"] == f"uid:{read_log(HACC).job.uid}"


def test_the_same_log_of_another_system_is_another_run(send: Send) -> None:
    one, other = answer(send(HACC), 201), answer(send(HACC, system="sdumont"), 201)
    assert one["application_id"] != other["application_id"]


@pytest.mark.slow
def test_many_logs_at_once_are_stored_once_each_or_told_to_come_again(send: Send) -> None:
    def send_until_stored(log: Path) -> int:
        while (response := send(log)).status_code == 503:
            assert response.headers["Retry-After"]
            time.sleep(0.1)
        return response.status_code

    with ThreadPoolExecutor(6) as pool:
        statuses = list(pool.map(send_until_stored, [*LOGS.glob("*.darshan")] * 2))
    assert sorted(statuses) == [200] * 9 + [201] * 9


def test_a_token_that_may_not_write_stores_nothing(
    client: FlaskClient, authorised: Authorised
) -> None:
    form = {"system": "mn4", "log": (io.BytesIO(HACC.read_bytes()), "app.darshan")}
    assert client.post("/v1/traces", data=dict(form)).status_code == 401
    form["log"] = (io.BytesIO(HACC.read_bytes()), "app.darshan")
    assert client.post("/v1/traces", data=form, **authorised("reader")).status_code == 403
    assert answer(client.get("/v1/applications"))["items"] == []


@pytest.mark.slow
@pytest.mark.parametrize("mutate", [truncate, flip, flip_in_header, blank, repeat])
def test_nothing_is_stored_from_a_damaged_log(
    client: FlaskClient, send: Send, mutate: Callable[[bytearray, int, random.Random], None]
) -> None:
    chance = random.Random(mutate.__name__)
    stored = 0
    for _ in range(10):
        data = bytearray(chance.choice(FIXTURES).read_bytes())
        mutate(data, int(chance.random() * len(data)), chance)
        response = send(bytes(data), "damaged.darshan")
        if response.status_code in {200, 201}:
            stored += response.status_code == 201
            continue
        detail = answer(response, 422)["detail"]
        assert detail.startswith("damaged.darshan: ")
        assert "\n" not in detail
        assert "/tmp" not in response.text  # noqa: S108
    runs = sum(item["runs"] for item in answer(client.get("/v1/applications"))["items"])
    assert runs == stored


@pytest.mark.slow
def test_logs_of_all_kinds_are_stored(send: Send) -> None:
    for log in FIXTURES:
        found = answer(send(log), 201)
        assert found["executable"] == read_log(log).job.executable.split()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("system", "x" * 201),
        ("user", "x" * 101),
        ("user", "a\0b"),
        ("job_id", "x" * 101),
        ("nodes", "0"),
        ("nodes", "1e3"),
        ("io_nodes", "-1"),
        ("io_nodes", str(2**31)),
        ("misspelled", "1"),
    ],
)
def test_an_unusable_field_is_named(send: Send, field: str, value: str) -> None:
    assert answer(send(HACC, **{field: value}), 422)["detail"].startswith(f"form.{field}: ")


def test_texts_are_stored_as_they_were_sent(client: FlaskClient, send: Send) -> None:
    answer(send(HACC, user="1e5", name=" Ünïcode 'x' "), 201)
    [found] = answer(client.get("/v1/applications"))["items"]
    assert found["user"] == "1e5"
    [run] = answer(client.get(f"/v1/applications/{found['id']}"))["newest_runs"]["items"]
    assert run["name"] == " Ünïcode 'x' "


def everything(client: FlaskClient, place: str) -> list[dict[str, Any]]:
    """All items of a list, page after page."""
    items: list[dict[str, Any]] = []
    following: str | None = place
    while following is not None:
        page = answer(client.get(following))
        items += page["items"]
        following = page["next"]
    return items


def test_applications_are_listed_in_pages(client: FlaskClient, send: Send) -> None:
    for index, user in enumerate("abcde"):
        answer(send(HACC, system=f"s{index % 2}", user=user), 201) if index < 2 else None
        answer(send(FIXTURES[index], system="s0", user=user), 201)
    whole = answer(client.get("/v1/applications"))
    assert whole["next"] is None
    assert everything(client, "/v1/applications?limit=2") == whole["items"]
    of_one = everything(client, "/v1/applications?system=s1&limit=1")
    assert [(item["system"], item["user"], item["runs"]) for item in of_one] == [("s1", "b", 1)]
    assert (whole["total"], whole["previous"]) == (len(whole["items"]), None)
    second = answer(client.get(answer(client.get("/v1/applications?limit=2"))["next"]))
    assert (second["items"], second["total"]) == (whole["items"][2:4], whole["total"])
    first = answer(client.get(second["previous"]))
    assert (first["items"], first["previous"]) == (whole["items"][:2], None)
    found = everything(client, "/v1/applications?search=hacc_io_write&limit=1")
    assert {item["program"] for item in found} == {"hacc_io_write_posix_fpp"}


def test_applications_are_listed_in_the_order_that_is_asked_for(
    client: FlaskClient, send: Send
) -> None:
    for log in FIXTURES[:4]:
        answer(send(log, user=f"user{FIXTURES.index(log) % 2}"), 201)

    def column(name: str, **asked: str) -> list[Any]:
        found = answer(client.get("/v1/applications", query_string=asked))
        return [item[name] for item in found["items"]]

    assert column("newest") == sorted(column("newest"), reverse=True)
    for name in ("newest", "runs", "program", "user"):
        for order in ("asc", "desc"):
            found = column(name, sort=name, order=order)
            assert found == sorted(found, reverse=order == "desc")
    assert set(column("user", user="user1")) == {"user1"}
    for wrong in ("sort=name", "order=up", "offset=-1", "after=1"):
        answer(client.get(f"/v1/applications?{wrong}"), 422)


def test_an_application_shows_its_newest_runs_and_decisions(
    client: FlaskClient, send: Send, service: Service
) -> None:
    numbers = [answer(send(log), 201) for log in sorted(LOGS.glob("hacc*"))]
    [application] = {found["application_id"] for found in numbers}
    rows = [
        DecisionRow(
            id=f"d{i:02}",
            asked_at=f"2026-11-21T10:00:{i:02}Z",
            system="mn4",
            user=None,
            executable=None,
            name=None,
            job_id=str(i),
            nodes=None,
            tasks=16,
            available=None,
            io_nodes=4,
            source="history",
            expected_mib_s=60.0,
            confidence=0.9,
            application_id=application,
            why="runs",
            curve=((0, 40.0, 30.0, 50.0), (4, 60.0, 50.0, 70.0)),
        )
        for i in range(25)
    ]
    with transaction(service.database, write=True) as connection:
        store_decisions(connection, rows)
    found = answer(client.get(f"/v1/applications/{application}"))
    started = [run["started"] for run in found["newest_runs"]["items"]]
    assert started == sorted(started, reverse=True)
    assert len(started) == found["runs"] == 3
    decided = found["newest_decisions"]
    assert [row["id"] for row in decided["items"]] == [f"d{i:02}" for i in range(24, 4, -1)]
    rest = everything(client, decided["next"])
    assert [row["id"] for row in rest] == [f"d{i:02}" for i in range(4, -1, -1)]
    assert rest[0]["curve"] == [[0, 40.0, 30.0, 50.0], [4, 60.0, 50.0, 70.0]]
    one_by_one = everything(client, f"/v1/applications/{application}/runs?limit=1")
    assert [run["started"] for run in one_by_one] == started
    assert answer(client.get(found["outcomes"]))["items"] == []


@pytest.mark.parametrize("place", ["", "/runs", "/decisions"])
@pytest.mark.parametrize("number", [0, 17, 2**31, 2**70])
def test_a_missing_application_is_not_found(client: FlaskClient, place: str, number: int) -> None:
    response = client.get(f"/v1/applications/{number}{place}")
    assert answer(response, 404)["title"] == "Not found"


def test_a_page_after_a_missing_item_is_not_found(client: FlaskClient, send: Send) -> None:
    number = answer(send(HACC), 201)["application_id"]
    answer(client.get(f"/v1/applications/{number}/runs?after=999"), 404)
    answer(client.get(f"/v1/applications/{number}/decisions?after=nothing"), 404)


def test_the_hash_of_a_log_is_that_of_its_content(send: Send, service: Service) -> None:
    answer(send(HACC), 201)
    with transaction(service.database) as connection:
        [found] = connection.scalars(select(runs.c.sha256))
        [phases] = connection.scalars(select(runs.c.phases))
    assert found == hashlib.sha256(HACC.read_bytes()).hexdigest()
    assert json.loads(phases)


def test_the_log_tells_which_token_wrote_what(
    send: Send,
    client: FlaskClient,
    authorised: Authorised,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "ioncast.writes")
    told = answer(send(HACC), 201)
    answer(send(HACC), 200)
    outcome = {"system": "mn4", "job_id": "7", "io_nodes": 4, "bandwidth_mib_s": 50.0}
    row = {
        "command": "ior -a POSIX -w -t 1m -b 4m",
        "tasks": 4,
        "io_nodes": 2,
        "bandwidth_mib_s": 5.0,
    }
    measured = {"system": "mn4", "measurements": [row]}
    admin = authorised("admin")
    for status in (201, 200):
        answer(client.post("/v1/outcomes", json=outcome, **admin), status)
        answer(client.post("/v1/measurements", json=measured, **admin), status)
    place = f"/v1/applications/{told['application_id']}/runs/{told['run_id']}"
    assert client.delete(place, **admin).status_code == 204
    assert [record.message for record in caplog.records if record.name == "ioncast.writes"] == [
        f"token a scheduler on mn4: run {told['run_id']}",
        "token a admin on mn4: outcome 1",
        "token a admin on mn4: measurements measurements",
        f"token a admin on mn4: deletion run {told['run_id']}",
    ]


def test_an_admin_deletes_a_run_with_its_outcome(
    send: Send,
    client: FlaskClient,
    authorised: Authorised,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    told = answer(send(HACC, user="ada"), 201)
    place = f"/v1/applications/{told['application_id']}/runs/{told['run_id']}"
    assert client.delete(place).status_code == 401
    assert client.delete(place, **authorised("reader")).status_code == 403
    admin = authorised("admin")
    other = f"/v1/applications/{told['application_id'] + 1}/runs/{told['run_id']}"
    assert client.delete(other, **admin).status_code == 404
    response = client.delete(place, **admin)
    assert (response.status_code, response.data) == (204, b"")
    assert f"token a admin on mn4: deletion run {told['run_id']}" in caplog.text
    assert client.get(place).status_code == 404
    assert client.delete(place, **admin).status_code == 404
    assert answer(client.get("/v1/applications"))["items"] == []
