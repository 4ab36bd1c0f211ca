"""`/readyz`, answers and pages say so until all answers are prepared."""

from __future__ import annotations

import html
from collections.abc import Callable

import pytest
from flask.testing import FlaskClient

from ioncast.service.context import Service

HACC = {"system": "testbed", "user": "demo", "executable": "/opt/bin/hacc_io_write_posix_fpp"}
BROWSER = {"Accept": "text/html"}


def page(client: FlaskClient, path: str) -> str:
    return html.unescape(client.get(path, headers=BROWSER).text)


def readiness(client: FlaskClient) -> tuple[int, bool, str | None]:
    answer = client.get("/readyz")
    return answer.status_code, answer.json["ready"], answer.json["reason"]


@pytest.mark.parametrize("has_runs", [False, True])
def test_a_service_is_ready_when_all_answers_are_prepared(
    has_runs: bool,
    request: pytest.FixtureRequest,
    service: Service,
    client: FlaskClient,
    keep: Callable[[], None],
) -> None:
    if has_runs:
        request.getfixturevalue("filled_location")
    said = "answers are still being prepared from the earlier runs"
    assert readiness(client) == (503, False, said)
    for path in ("/", "/applications", "/jobs", "/benchmarks", "/validation", "/predict"):
        assert said in page(client, path)
    assert said in client.get("/v1/decisions", query_string=HACC).json["why"]
    keep()
    assert service.prepared.keeper_state(0.0) == "ok"
    assert readiness(client) == (200, True, None)
    assert "Not ready" not in page(client, "/")
    source = client.get("/v1/decisions", query_string=HACC).json["source"]
    assert source == ("history" if has_runs else "default")
