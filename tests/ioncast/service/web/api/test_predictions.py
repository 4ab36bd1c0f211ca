"""POST /v1/predictions is `ioncast predict` over HTTP, on logs that anybody may send."""

from __future__ import annotations

import io
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from resource import getpagesize
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given
from hypothesis import settings as with_settings
from hypothesis import strategies as st
from werkzeug.test import TestResponse

from ioncast.cli import cli
from ioncast.service.context import Service
from ioncast.service.settings import Settings, SystemSettings
from ioncast.service.web.app import create_app
from ioncast.service.web.sandbox.child import ChildLimits
from summario.reading.layouts import layout_of
from tests.summario.reading.test_damage import blank, flip, flip_in_header, repeat, truncate
from tests.support.examples import examples
from tests.support.log_bytes import write_modules
from tests.support.misbehaving import ids
from tests.support.traced import traced_log

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[5]
TESTBED = ROOT / "experiments" / "data" / "testbed"
LOG = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
FIXTURES = sorted((ROOT / "tests" / "summario" / "fixtures").glob("*.darshan"))


def ioncast(*args: str | Path) -> str:
    found = CliRunner().invoke(cli, list(map(str, args)), env={"COLUMNS": "300"})
    assert found.exit_code == 0, found.output
    return found.stdout


def upload(
    client: FlaskClient, content: bytes | Path, name: str = "app.darshan", **fields: Any
) -> TestResponse:
    file = io.BytesIO(content.read_bytes() if isinstance(content, Path) else content)
    form = {"system": "testbed"} | {key: str(value) for key, value in fields.items()}
    return client.post("/v1/predictions", data={**form, "log": (file, name)})


def problem(response: TestResponse, status: int) -> str:
    """The detail of a problem document: one line without any path."""
    assert response.status_code == status, response.text
    assert response.mimetype == "application/problem+json"
    assert response.json is not None
    detail = str(response.json["detail"])
    assert "\n" not in detail
    assert "/tmp" not in detail  # noqa: S108
    assert "Traceback" not in response.text
    return detail


@pytest.fixture
def measured(settings: Settings) -> Settings:
    """Settings of a database with the testbed's measurements."""
    options = ("--system", "testbed", "--tasks", 16, "--nodes", 8, "--db", settings.database)
    ioncast("bench", "import", TESTBED / "benchmarks.csv", *map(str, options))
    return settings


@pytest.fixture
def phases() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(ioncast("phases", LOG, "--format", "json"))
    return found


def test_a_log_is_predicted_as_on_the_command_line(measured: Settings, client: FlaskClient) -> None:
    response = upload(client, LOG, nodes=8)
    options = ("--system", "testbed", "--nodes", "8", "--db", measured.database or "")
    expected = json.loads(ioncast("predict", LOG, *options, "--format", "json", "--explain"))
    found = response.json
    assert found is not None
    for phase in (*expected["phases"], *found["phases"]):
        assert phase["phase"].pop("log") in {str(LOG), "app.darshan"}
    assert found == expected


def test_the_compute_nodes_come_from_the_log(
    measured: Settings, client: FlaskClient, tmp_path: Path
) -> None:
    log = traced_log(tmp_path / "a.darshan", [f"n{rank // 2}" for rank in range(16)])
    found, given = upload(client, log).json, upload(client, log, nodes=8).json
    assert found is not None
    assert given is not None
    assert (found.pop("nodes"), found.pop("nodes_source")) == (8, "log")
    assert (given.pop("nodes"), given.pop("nodes_source")) == (8, "given")
    assert found == given


def test_its_phases_are_predicted_as_the_log(
    measured: Settings, client: FlaskClient, phases: list[dict[str, Any]]
) -> None:
    asked = {"nodes": 8, "ran_with": 0, "available": 4, "tolerance": 0.2}
    by_log = upload(client, LOG, io_nodes="4,0,4,2", **asked).json
    by_phases = client.post(
        "/v1/predictions",
        json={"system": "testbed", "io_nodes": [0, 2, 4], "phases": phases, **asked},
    ).json
    assert by_log is not None
    assert by_phases is not None
    assert [point["io_nodes"] for point in by_phases["curve"]] == [0, 2, 4]
    assert by_phases["earlier_run"]["io_nodes"] == 0
    for name in ("curve", "best", "decision", "earlier_run", "explanation", "warnings"):
        assert by_phases[name] == by_log[name]


def test_metadata_that_takes_longer_than_io_is_a_warning(
    measured: Settings, client: FlaskClient, phases: list[dict[str, Any]]
) -> None:
    [phase] = phases
    assert phase["metadata_time"] < phase["time"]

    def warnings(**told: Any) -> list[str]:
        changed = {**{name: phase[name] for name in phase if name != "metadata_time"}, **told}
        sent = {"system": "testbed", "nodes": 8, "phases": [changed]}
        answer = client.post("/v1/predictions", json=sent).json
        assert answer is not None
        found: list[str] = answer["warnings"]
        return found

    # Clients of older versions do not send it.
    assert warnings() == warnings(metadata_time=None) == warnings(metadata_time=0.1)
    [said] = set(warnings(metadata_time=1000.0)) - set(warnings())
    assert said.startswith("phase 0: metadata calls")
    assert "on its 16 files take 1,000 s" in said


@pytest.mark.slow
def test_a_sites_settings_count_for_values_that_a_request_lacks(measured: Settings) -> None:
    rules = {"tolerance": 0.5, "default_io_nodes": 3, "min_confidence": 0.99}
    systems = {"testbed": SystemSettings.model_validate(rules)}
    app = create_app(measured.model_copy(update={"systems": systems}))
    client = app.test_client()
    found = upload(client, LOG, nodes=8).json
    decided = upload(client, LOG, nodes=8, min_confidence=0).json
    nothing = client.post("/v1/predictions", json={"system": "testbed", "phases": []}).json
    assert found is not None
    assert decided is not None
    assert nothing is not None
    assert (found["decision"]["source"], found["decision"]["io_nodes"]) == ("default", 3)
    assert decided["decision"]["tolerance"] == 0.5
    assert decided["decision"]["io_nodes"] < decided["best"]["io_nodes"]
    assert (nothing["decision"]["source"], nothing["decision"]["io_nodes"]) == ("default", 3)


def test_a_system_without_measurements_is_not_found(client: FlaskClient) -> None:
    assert problem(upload(client, LOG), 404) == (
        "nothing was measured on 'testbed'; send measurements first"
    )


@pytest.mark.parametrize("mutate", [truncate, flip, flip_in_header, blank, repeat])
def test_a_damaged_log_is_one_line_with_the_name_the_client_gave(
    client: FlaskClient, mutate: Callable[[bytearray, int, random.Random], None]
) -> None:
    chance = random.Random(mutate.__name__)
    for _ in range(8):
        data = bytearray(chance.choice(FIXTURES).read_bytes())
        mutate(data, int(chance.random() * len(data)), chance)
        response = upload(client, bytes(data), "../../etc/my log.darshan")
        if response.status_code == 404:
            # The damage does not matter, so the log is read; nothing was measured on the system.
            continue
        assert problem(response, 422).startswith("my log.darshan: ")


@pytest.mark.parametrize("content", [b"", b"hello", bytes(5000), b"\x7fELF" + bytes(100)])
def test_a_file_that_is_not_a_log_is_named(client: FlaskClient, content: bytes) -> None:
    said = problem(upload(client, content, "x.darshan"), 422)
    assert said.startswith("x.darshan: ")
    assert "not a Darshan log" in said


@pytest.mark.usefixtures("measured")
def test_a_log_that_costs_too_much_is_stopped(
    client: FlaskClient, service: Service, tmp_path: Path
) -> None:
    # 70,000 records take 50 MB, more than the limit lets the process allocate.
    _, server = service.children.run(ids)
    pages = int(Path(f"/proc/{server}/statm").read_text().split()[0])
    layout = layout_of("POSIX", 4)
    assert layout is not None
    words = np.zeros((70_000, layout.words), np.int64)
    words[:, 0] = np.arange(1, len(words) + 1)
    words[:, layout.columns["POSIX_WRITES"]] = 1
    words[:, layout.columns["POSIX_BYTES_WRITTEN"]] = 1 << 20
    log = write_modules(tmp_path / "a.darshan", {"POSIX": (4, words.tobytes())}, nprocs=1)
    service.children.limits = ChildLimits(memory_bytes=pages * getpagesize() + (16 << 20))
    assert "memory" in problem(upload(client, log), 422)
    service.children.limits = ChildLimits()
    assert "memory" not in upload(client, log).text


def test_uploads_beyond_the_limit_are_told_to_come_again(
    client: FlaskClient, service: Service
) -> None:
    places = service.children._queue
    while places.acquire(blocking=False):
        pass
    response = upload(client, LOG)
    assert problem(response, 503)
    assert int(response.headers["Retry-After"]) > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"system": ""}, "body.system"),
        ({"system": "a\0b"}, "body.system"),
        ({"nodes": 0}, "body.nodes"),
        ({"nodes": 2**31}, "body.nodes"),
        ({"io_nodes": []}, "body.io_nodes"),
        ({"io_nodes": [10_001]}, "body.io_nodes.0"),
        ({"io_nodes": list(range(65))}, "body.io_nodes"),
        ({"tolerance": 1}, "body.tolerance"),
        ({"tolerance": "NaN"}, "body.tolerance"),
        ({"available": -1}, "body.available"),
        ({"misspelled": 1}, "body.misspelled"),
        ({"phases": None}, "body.phases"),
    ],
)
def test_an_unusable_value_is_named(
    client: FlaskClient, phases: list[dict[str, Any]], change: dict[str, Any], said: str
) -> None:
    request = {"system": "testbed", "phases": phases} | change
    response = client.post("/v1/predictions", json=request)
    assert problem(response, 422).startswith(f"{said}: ")
    assert response.json is not None
    assert [each["where"] for each in response.json["errors"]] == [said]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bytes": 1}, "phases.0: not a phase: the bytes of the parts do not add up"),
        ({"type": "append"}, "body.phases.0.type: "),
        ({"time": 1e400}, "body.phases.0.time: "),
        ({"bytes": -1}, "body.phases.0.bytes: "),
        ({"bytes": 2**70}, "body.phases.0.bytes: "),
        ({"parts": [{"requests": 1, "bytes": 1}] * 65}, "body.phases.0.parts: "),
    ],
)
def test_an_unusable_phase_is_named(
    client: FlaskClient,
    phases: list[dict[str, Any]],
    change: dict[str, Any],
    said: str,
) -> None:
    request = {"system": "testbed", "phases": [phases[0] | change, phases[0]]}
    assert said in problem(client.post("/v1/predictions", json=request), 422)


@pytest.mark.slow
def test_phases_of_two_jobs_are_rejected(
    measured: Settings, client: FlaskClient, phases: list[dict[str, Any]]
) -> None:
    request = {"system": "testbed", "phases": [phases[0] | {"job": "another"}, phases[0]]}
    said = problem(client.post("/v1/predictions", json=request), 422)
    assert said == "the phases are of 2 jobs; predict one job at a time"


def test_more_phases_than_any_run_has_are_rejected(
    client: FlaskClient, phases: list[dict[str, Any]]
) -> None:
    request = {"system": "testbed", "phases": phases * 10_001}
    assert "body.phases: " in problem(client.post("/v1/predictions", json=request), 422)


def test_json_that_is_too_large_is_not_read(client: FlaskClient) -> None:
    request = b'{"system": "' + b"x" * (17 << 20) + b'"}'
    response = client.post("/v1/predictions", data=request, content_type="application/json")
    problem(response, 413)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        b'"phases": [' + b",".join([b"{}"] * 100_000) + b"]",
        b",".join(b'"%d": 1' % number for number in range(200_000)),
    ],
)
def test_a_request_with_only_wrong_values_keeps_no_worker_busy(
    client: FlaskClient, wrong: bytes
) -> None:
    request = b'{"system": "testbed", ' + wrong + b"}"
    sent = {"data": request, "content_type": "application/json"}
    client.post("/v1/predictions", **sent)
    tracemalloc.start()
    try:
        response = client.post("/v1/predictions", **sent)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Checked in this process, each would need at least 24 times its own bytes, and a second.
    assert most_bytes < 8 * len(request)
    problem(response, 422)
    assert response.json is not None
    assert len(response.json["errors"]) <= 20


@pytest.mark.parametrize("io_nodes", ["0,", "a", "-1", "1 2", "99999", "0," * 64 + "0"])
def test_numbers_of_io_nodes_in_a_form_are_a_list(client: FlaskClient, io_nodes: str) -> None:
    assert problem(upload(client, LOG, io_nodes=io_nodes), 422).startswith("form.io_nodes: ")


def test_a_form_without_its_file_and_another_media_type_are_rejected(client: FlaskClient) -> None:
    form = {"data": {"system": "testbed"}, "content_type": "multipart/form-data"}
    assert "form.log" in problem(client.post("/v1/predictions", **form), 422)
    problem(client.post("/v1/predictions", data=b"<a/>", content_type="text/xml"), 415)
    problem(client.post("/v1/predictions", data=b"{", content_type="application/json"), 422)


def test_a_prediction_needs_a_token_when_reading_is_closed(settings: Settings) -> None:
    app = create_app(settings.model_copy(update={"reading": "closed"}))
    problem(upload(app.test_client(), LOG), 401)


def test_an_upload_leaves_no_file(
    client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "there"))
    (tmp_path / "there").mkdir()
    upload(client, LOG)
    upload(client, b"damaged")
    assert list((tmp_path / "there").iterdir()) == []


_counts = st.sampled_from([0, 1, 2, 7, 8, 2**20, 2**31, 2**40, 2**62, 2**63 - 1])
_times = st.sampled_from([-1.0, 0.0, 1e-300, 0.5, 3.0, 1e18, 1e300])


@st.composite
def odd_phases(draw: st.DrawFn) -> dict[str, Any]:
    parts = draw(
        st.lists(
            st.fixed_dictionaries(
                {"requests": _counts.filter(bool), "bytes": _counts.filter(bool)}
            ),
            max_size=3,
        )
    )
    return {
        "job": draw(st.sampled_from([1, "a"])),
        "start": draw(_times),
        "end": draw(_times),
        "type": draw(st.sampled_from(["read", "write"])),
        "rank": draw(st.one_of(_counts, st.just("all"))),
        "bytes": min(sum(part["bytes"] for part in parts), 2**63 - 1),
        "time": draw(_times),
        "api": draw(st.sampled_from(["POSIX", "MPIIO", "STDIO"])),
        "requests": draw(_counts),
        "spatiality": draw(
            st.sampled_from(["contiguous", "sequential", "random", "collective", "unknown"])
        ),
        "files": draw(st.sampled_from(["shared", "unique"])),
        "n_files": draw(_counts),
        "mode_processes": draw(_counts),
        "processes": draw(st.one_of(_counts, st.none())),
        "nprocs": draw(st.one_of(_counts, st.none())),
        "parts": parts,
    }


@pytest.mark.slow
@with_settings(
    max_examples=examples(60),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    found=st.lists(odd_phases(), max_size=3),
    nodes=st.one_of(st.none(), _counts.filter(lambda n: 0 < n < 2**31)),
    ran_with=st.one_of(st.none(), st.sampled_from([0, 1, 4, 10_000])),
)
def test_phases_that_no_run_has_are_predicted_or_rejected(
    measured: Settings, app: Flask, found: list[Any], nodes: int | None, ran_with: int | None
) -> None:
    request = {"system": "testbed", "nodes": nodes, "ran_with": ran_with, "phases": found}
    response = app.test_client().post("/v1/predictions", json=request)
    assert response.status_code in {200, 422}, response.text
