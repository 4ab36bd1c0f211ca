"""POST /v1/advice is `ioncast advise` over HTTP, on logs that anybody may send."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from ioncast.service.context import Service
from ioncast.service.settings import Settings
from tests.support.command import run_ioncast
from tests.support.traced import traced_log

pytestmark = pytest.mark.slow

TESTBED = Path(__file__).resolve().parents[5] / "experiments" / "data" / "testbed"
PERIODIC = TESTBED / "logs" / "periodic-ionodes0.darshan"
SYSTEM = "testbed"


@pytest.fixture
def measured(settings: Settings) -> str:
    """A database with the testbed's measurements."""
    assert settings.database is not None
    told = ("--system", SYSTEM, "--tasks", "16", "--nodes", "8", "--db", settings.database)
    assert run_ioncast("bench", "import", TESTBED / "benchmarks.csv", *told).returncode == 0
    return settings.database


def printed(location: str, log: Path, *told: str) -> dict[str, Any]:
    """The JSON of the command."""
    words = ("--system", SYSTEM, "--db", location, "--format", "json")
    answer = run_ioncast("advise", log, *words, *told)
    assert answer.returncode == 0, answer.stderr
    record: dict[str, Any] = json.loads(answer.stdout)
    return record


def send(client: FlaskClient, log: bytes | Path, **told: object) -> TestResponse:
    content = log.read_bytes() if isinstance(log, Path) else log
    fields = {"system": SYSTEM} | {name: str(value) for name, value in told.items()}
    data = {**fields, "log": (io.BytesIO(content), "my.darshan")}
    return client.post("/v1/advice", data=data)


@pytest.mark.parametrize("log", sorted((TESTBED / "logs").iterdir()), ids=lambda log: log.stem)
def test_a_log_is_advised_on_as_on_the_command_line(
    measured: str, client: FlaskClient, log: Path
) -> None:
    assert send(client, log, nodes=8).json == printed(measured, log, "--nodes", "8")


def test_all_fields_of_a_prediction_and_the_buffer_count(
    measured: str, client: FlaskClient
) -> None:
    options = (
        *("--nodes", "8", "--ran-with", "0", "--io-nodes", "0,4", "--available", "4"),
        *("--tolerance", "0.2", "--engine", "ior", "--default", "2", "--buffer", "2m"),
        *("--min-confidence", "0.2"),
    )
    fields: dict[str, object] = {
        "nodes": 8,
        "ran_with": 0,
        "io_nodes": "4,0,4",
        "available": 4,
        "tolerance": 0.2,
        "engine": "ior",
        "default": 2,
        "min_confidence": 0.2,
        "buffer_bytes": 2 << 20,
    }
    found = send(client, PERIODIC, **fields).json
    assert found == printed(measured, PERIODIC, *options)
    assert found is not None
    [larger] = [each for each in found["advice"] if each["keys"] == ["collective", "larger"]]
    assert larger["measure"][0]["configuration"].endswith("-b 2m -t 2m")


def test_the_compute_nodes_come_from_the_log(
    measured: str, client: FlaskClient, tmp_path: Path
) -> None:
    log = traced_log(tmp_path / "a.darshan", [f"n{rank // 2}" for rank in range(16)])
    found = send(client, log).json
    assert found == printed(measured, log)
    assert found is not None
    assert (found["nodes"], found["nodes_source"]) == (8, "log")


def test_the_thresholds_of_the_site_tell_what_is_tried(
    measured: str, client: FlaskClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = send(client, PERIODIC, nodes=8).json
    assert found is not None
    assert len(found["advice"]) > 1
    object.__setattr__(service.thresholds, "least_count", 1_000_000)
    found = send(client, PERIODIC, nodes=8).json
    assert found is not None
    assert [each["keys"] for each in found["advice"]] == [["own_files"]]


@pytest.mark.parametrize(
    ("told", "status", "said"),
    [
        ({"buffer_bytes": (1 << 20) - 1}, 422, "form.buffer_bytes: must be at least 1048576"),
        ({"buffer_bytes": "16m"}, 422, "form.buffer_bytes: must be a whole number"),
        ({"buffer": 16}, 422, "form.buffer: is unknown"),
        ({"nodes": 0}, 422, "form.nodes: must be at least 1"),
        ({"system": "nowhere"}, 404, "nothing was measured on 'nowhere'"),
        ({"engine": "mdtest"}, 404, "with 'mdtest'"),
    ],
)
def test_a_wrong_field_is_named(
    measured: str, client: FlaskClient, told: dict[str, object], status: int, said: str
) -> None:
    response = send(client, PERIODIC, **told)
    assert response.status_code == status
    assert response.mimetype == "application/problem+json"
    assert response.json is not None
    assert said in response.json["detail"]


@pytest.mark.parametrize("content", [b"", b"no log", PERIODIC.read_bytes()[:1000]])
def test_a_file_that_is_not_a_log_is_a_problem_with_its_name(
    measured: str, client: FlaskClient, content: bytes
) -> None:
    response = send(client, content)
    assert response.status_code == 422
    assert response.json is not None
    assert "my.darshan" in response.json["detail"]
    assert "/tmp" not in response.text  # noqa: S108


def test_advice_needs_a_log(measured: str, client: FlaskClient) -> None:
    missing = client.post("/v1/advice", data={"system": SYSTEM}, content_type="multipart/form-data")
    assert missing.status_code == 422
    assert missing.json is not None
    assert "form.log: the file is missing" in missing.json["detail"]
    assert client.post("/v1/advice", json={"system": SYSTEM}).status_code == 415
