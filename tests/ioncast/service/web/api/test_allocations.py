"""POST /v1/allocations is `ioncast allocate` over HTTP, and knows decisions by their ids."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from benchdb.store.database import opened_database, transaction
from ioncast.service.settings import Settings
from ioncast.service.store.decisions import decision
from ioncast.service.web.app import create_app
from scheduler_plugin.allocate_command import allocate_command

JOBS: list[dict[str, Any]] = [
    {"id": "4711", "nodes": 8, "curve": {"0": 45.0, "2": 53.1, "4": 66.0}},
    {"id": 4712, "nodes": 2, "curve": {"2": 80.0, "4": 170}, "weight": 0.5},
    {"id": "4690", "nodes": 4, "current": 4, "fixed": True},
]
# As in the demonstration's history.
HACC = {
    "system": "testbed",
    "user": "demo",
    "executable": "/opt/bin/hacc_io_write_posix_fpp",
    "tasks": "16",
}


def ask(client: FlaskClient, **asked: Any) -> TestResponse:
    return client.post("/v1/allocations", json={"pool": 8, "jobs": JOBS} | asked)


def problem(response: TestResponse, status: int) -> str:
    """The detail of a problem document, in one line."""
    assert response.status_code == status, response.text
    assert response.mimetype == "application/problem+json"
    assert response.json is not None
    detail = str(response.json["detail"])
    assert "\n" not in detail
    assert "Traceback" not in response.text
    return detail


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        ({}, []),
        ({"weight": "nodes"}, ["--weight=nodes"]),
        ({"pool": 7, "objective": "proportional"}, ["--objective=proportional"]),
        ({"minimum_gain": 0.5, "pool": 5}, ["--minimum-gain=0.5"]),
    ],
)
def test_it_answers_as_the_command_prints(
    client: FlaskClient, asked: dict[str, Any], options: list[str]
) -> None:
    pool = str(asked.get("pool", 8))
    printed = CliRunner().invoke(
        allocate_command,
        ["-", "--pool", pool, "--format", "json", *options],
        input=json.dumps(JOBS).encode(),
    )
    answer = ask(client, **asked)
    assert answer.status_code == 200, answer.text
    assert answer.json == json.loads(printed.stdout)


def test_a_decision_has_its_curve_and_its_nodes(
    client: FlaskClient, filled: None, keep: Callable[[], None], settings: Settings
) -> None:
    ids = [
        client.get("/v1/decisions", query_string=HACC | {"nodes": nodes}).get_json()["decision_id"]
        for nodes in ("8", "2")
    ]
    keep()
    with opened_database(settings.database) as database, transaction(database) as connection:
        curve = {str(n): expected for n, expected, *_ in decision(connection, ids[0]).curve}
    assert len(curve) == 5
    by_id = [{"id": name, "decision_id": name} for name in ids]
    by_curve = [
        {"id": name, "nodes": nodes, "curve": curve}
        for name, nodes in zip(ids, (8, 2), strict=True)
    ]
    found, expected = (ask(client, jobs=jobs, weight="nodes").json for jobs in (by_id, by_curve))
    assert found is not None
    assert found == expected


def test_a_decision_that_is_not_stored_is_not_found(client: FlaskClient) -> None:
    said = problem(ask(client, jobs=[{"id": "a", "decision_id": "f" * 32}]), 404)
    assert said.startswith("the database has no decision 'ffff")


def test_a_decision_without_knowledge_has_no_curve(
    client: FlaskClient, filled: None, keep: Callable[[], None]
) -> None:
    asked = {"system": "testbed", "executable": "/unheard/of", "nodes": "2"}
    number = client.get("/v1/decisions", query_string=asked).get_json()["decision_id"]
    keep()
    job = {"id": "a", "decision_id": number}
    assert problem(ask(client, jobs=[job]), 422).startswith("job a: curve: it is empty")
    fixed = ask(client, jobs=[job | {"current": 2, "fixed": True}])
    assert fixed.status_code == 200, fixed.text


@pytest.mark.slow
def test_without_decisions_the_database_is_not_asked(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"database": "/nowhere/bench.sqlite"}))
    assert ask(app.test_client()).status_code == 200
    jobs = [{"id": "a", "nodes": 1, "decision_id": "b"}]
    assert ask(app.test_client(), jobs=jobs).status_code in {404, 503}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"pool": -1}, "body.pool: "),
        ({"pool": 65_537}, "body.pool: "),
        ({"weight": "mine"}, "body.weight: "),
        ({"objective": "fair"}, "body.objective: "),
        ({"minimum_gain": "NaN"}, "body.minimum_gain: "),
        ({"misspelled": 1}, "body.misspelled: "),
        ({"jobs": None}, "body.jobs: "),
        ({"jobs": [{"id": "a"}] * 2_001}, "body.jobs: "),
        ({"jobs": [{"id": "a\nb"}]}, "body.jobs.0.id"),
        ({"jobs": [JOBS[0], {"id": "a", "nodes": 0}]}, "body.jobs.1.nodes: "),
        ({"jobs": [{"id": "a", "curve": {"4": 0}}]}, "body.jobs.0.curve.4: "),
        ({"jobs": [{"id": "a", "curve": {"-4": 1}}]}, "body.jobs.0.curve"),
        ({"jobs": [{"id": "a", "curve": dict.fromkeys(range(65), 1)}]}, "body.jobs.0.curve: "),
        ({"jobs": [{"id": "a", "nodes": 1}]}, "job a: curve: it is empty"),
        ({"jobs": [{"id": "a/b", "nodes": 1}]}, "job a/b: curve: it is empty"),
        (
            {"jobs": [{"id": "a", "curve": {"4": 1}}]},
            "job a: the number of its compute nodes is unknown",
        ),
        (
            {"jobs": [{"id": "a", "nodes": 1, "curve": {"4": 1}, "decision_id": "b"}]},
            "job a: it has a curve and a decision_id; leave one out",
        ),
        ({"jobs": [*JOBS, JOBS[0]]}, "job 4711: two jobs have this id"),
        ({"pool": 3}, "pool: fixed jobs have 4 I/O nodes, more than the pool, which has 3"),
    ],
)
def test_an_unusable_value_is_named(client: FlaskClient, change: dict[str, Any], said: str) -> None:
    assert problem(ask(client, **change), 422).startswith(said)


def test_a_request_that_would_take_long_is_rejected_and_one_below_the_limit_is_answered(
    client: FlaskClient,
) -> None:
    def jobs(numbers: int) -> list[dict[str, Any]]:
        curve = {n * 32: 1.0 + n for n in range(numbers)}
        return [{"id": number, "nodes": 1, "curve": curve} for number in range(2_000)]

    assert "too many to be divided in one request" in problem(
        ask(client, jobs=jobs(5), pool=40_001), 422
    )
    answer = ask(client, jobs=jobs(5), pool=40_000)
    assert answer.status_code == 200, answer.text


def test_a_token_is_needed_when_reading_is_closed(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"reading": "closed"}))
    problem(ask(app.test_client()), 401)
