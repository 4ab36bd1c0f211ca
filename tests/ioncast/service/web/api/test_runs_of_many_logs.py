"""Several logs in one request are one run: those of a job's processes."""

from __future__ import annotations

import hashlib
import io
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import func, select
from werkzeug.datastructures import FileStorage
from werkzeug.test import TestResponse, encode_multipart

from benchdb.store.database import transaction
from experiments.applications.darshan_writer import write_log
from ioncast.service.context import Service
from ioncast.service.store.runs import runs_of
from ioncast.service.store.tables import run_logs, runs
from ioncast.service.web.http.uploads import MOST_LOGS
from summario.phases.extract import extract_run
from summario.phases.tables import to_record
from summario.reading.log import read_log
from summario.runs.logs_of_run import run_of
from tests.summario.phases.test_rules import posix

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[5]
ONE_JOB = ROOT / "tests" / "summario" / "fixtures" / "programs"
FORKED = sorted(ONE_JOB.glob("fork-workers-*.darshan"))
SPAWNED = sorted(ONE_JOB.glob("spawn-workers-*.darshan"))

Send = Callable[..., TestResponse]


@pytest.fixture
def send(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Send:
    """Send logs in one request, with a scheduler's token."""
    token = authorised("scheduler")

    def send_logs(logs: Sequence[Path], path: str = "/v1/traces", **fields: object) -> TestResponse:
        data: dict[str, Any] = {"system": "mn4"} | {k: str(v) for k, v in fields.items()}
        data["log"] = [FileStorage(io.BytesIO(log.read_bytes()), log.name) for log in logs]
        # The client itself would not close the file of a large body.
        boundary, body = encode_multipart(data)
        content_type = f"multipart/form-data; boundary={boundary}"
        return client.post(path, data=body, content_type=content_type, **token)

    return send_logs


def answer(response: TestResponse, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json or {}
    return found


def detail(response: TestResponse, status: int = 422) -> str:
    assert response.content_type == "application/problem+json"
    said = answer(response, status)["detail"]
    assert "\n" not in said
    assert "/tmp" not in said  # noqa: S108
    return str(said)


def test_the_logs_of_a_runs_processes_are_one_run(send: Send, service: Service) -> None:
    found = answer(send(SPAWNED[::-1]), 201)
    # The program of the parent and of the workers; it was started as python3 with options.
    assert found["executable"].endswith("/bin/python3")
    assert (found["tasks"], found["user"]) == (5, "uid:0")
    with transaction(service.database) as connection:
        [run] = runs_of(connection, found["application_id"])
    expected = extract_run(run_of(map(read_log, SPAWNED))).phases
    name = f"{SPAWNED[0].name} and 4 more logs"
    assert list(run.phases) == [to_record(phase) | {"log": name} for phase in expected]
    assert sum(phase["bytes"] for phase in run.phases) == found["bytes"] == 3_008_061
    assert run.started == "2026-11-23T07:25:21.435295+00:00"


def test_logs_of_different_runs_are_one_clear_line(client: FlaskClient, send: Send) -> None:
    response = send([SPAWNED[0], *FORKED])
    assert answer(response, 422)["type"] == "urn:ioncast:not-one-run"
    assert answer(response, 422)["runs"] == [[0], [1, 2, 3, 4]]
    said = detail(send([*FORKED, SPAWNED[0]]))
    assert said == (
        f"{SPAWNED[0].name}: not a log of the run of {FORKED[0].name}: their job ids are 4711 and"
        " 4713; send the logs of each run by themselves"
    )
    assert answer(client.get("/v1/applications"))["items"] == []


def test_steps_of_a_job_are_different_runs(send: Send, tmp_path: Path) -> None:
    logs = [
        write_log(tmp_path / f"{n}.darshan", nprocs=1, start=(100 * n, 0), end=(100 * n + 50, 0))
        for n in (1, 2)
    ]
    assert "they do not overlap in time" in detail(send(logs))


def test_a_damaged_log_among_them_is_named(send: Send, tmp_path: Path) -> None:
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(FORKED[1].read_bytes()[:1000])
    response = send([FORKED[0], bad])
    assert detail(response).startswith("bad.darshan: ")
    assert [error["where"] for error in answer(response, 422)["errors"]] == ["form.log.1"]
    worse = tmp_path / "worse.darshan"
    worse.write_bytes(b"no log")
    errors = answer(send([FORKED[0], worse, FORKED[2], bad]), 422)["errors"]
    assert [error["where"] for error in errors] == ["form.log.1", "form.log.3"]
    assert errors[0]["what"].startswith("not a Darshan log")
    assert errors[1]["what"] != errors[0]["what"]
    record = posix("/a", 0, 1, requests=-1)
    write_log(bad, nprocs=1, records=[record], jobid=4711, uid=0, start=(1795417262, 550_000_000))
    assert detail(send([FORKED[0], bad])).startswith("bad.darshan: a POSIX record has")


def test_the_same_logs_in_another_order_and_a_part_of_them_are_recognised(
    send: Send, service: Service
) -> None:
    first = answer(send(FORKED), 201)
    assert answer(send(FORKED[::-1]))["run_id"] == first["run_id"]
    for part in ([FORKED[2]], FORKED[:3], [*FORKED, FORKED[0]]):
        found = answer(send(part))
        assert found["run_id"] == first["run_id"]
        assert (found["tasks"], found["bytes"]) == (first["tasks"], first["bytes"])
    with transaction(service.database) as connection:
        assert connection.scalar(select(func.count(runs.c.id))) == 1
        [digest] = connection.scalars(select(runs.c.sha256))
        stored = set(connection.scalars(select(run_logs.c.sha256)))
    digests = sorted(hashlib.sha256(log.read_bytes()).hexdigest() for log in FORKED)
    assert stored == set(digests)
    assert digest == hashlib.sha256("\n".join(digests).encode()).hexdigest()


def test_more_logs_of_a_stored_run_become_a_part_of_it(send: Send, service: Service) -> None:
    first = answer(send(FORKED[:2], io_nodes=4), 201)
    grown = answer(send(FORKED, name="night"), 201)
    assert grown["run_id"] == first["run_id"]
    assert (first["tasks"], grown["tasks"]) == (2, 4)
    assert grown["bytes"] == first["bytes"] + 2_000_000
    with transaction(service.database) as connection:
        [run] = runs_of(connection, grown["application_id"])
    assert (run.io_nodes, run.name, run.tasks) == (4, "night", 4)
    assert answer(send(FORKED))["run_id"] == first["run_id"]


def test_logs_of_two_stored_runs_are_a_conflict(send: Send) -> None:
    one, _ = answer(send(FORKED[:1]), 201), answer(send(FORKED[1:2]), 201)
    said = detail(send(FORKED), 409)
    assert said.startswith(f"run {one['run_id']}: the logs belong to 2 stored runs with other logs")
    answer(send(SPAWNED[:3]), 201)
    assert "1 stored run with other logs" in detail(send(SPAWNED[2:]), 409)


def test_a_copy_of_a_log_counts_once(send: Send, tmp_path: Path) -> None:
    copy = Path(shutil.copy(FORKED[1], tmp_path / "copy.darshan"))
    found = answer(send([*FORKED, copy]), 201)
    assert (found["tasks"], found["bytes"]) == (4, 3_001_002)
    assert found["warnings"][0] == "copy.darshan: a copy is not counted"


def test_the_program_is_the_one_that_moved_most_bytes(send: Send, tmp_path: Path) -> None:
    launcher = write_log(tmp_path / "a.darshan", nprocs=1, exe="mpiexec -n 4 /opt/app")
    record = posix("/a", 0, 1)
    started = (1_700_000_001, 0)
    app = write_log(
        tmp_path / "b.darshan", nprocs=4, records=[record], exe="/opt/app -x", start=started
    )
    found = answer(send([launcher, app]), 201)
    assert (found["executable"], found["tasks"]) == ("/opt/app", 5)


def test_tasks_are_those_of_the_scheduler_if_it_tells_them(send: Send) -> None:
    assert answer(send(FORKED, tasks=1), 201)["tasks"] == 1
    assert answer(send(FORKED, tasks=7))["tasks"] == 1
    assert detail(send(FORKED, tasks=0)).startswith("form.tasks: ")


def test_the_outcome_of_a_run_comes_from_all_its_logs(send: Send) -> None:
    found = answer(send(FORKED, "/v1/outcomes", job_id=4711, io_nodes=4), 201)
    trace = answer(send(FORKED, job_id=4711))
    assert found["run_id"] == trace["run_id"]
    assert found["bandwidth_mib_s"] == pytest.approx(trace["bandwidth_mib_s"])


def test_a_prediction_uses_all_logs(filled: None, client: FlaskClient) -> None:
    def predicted(logs: Sequence[Path]) -> TestResponse:
        sent = [(io.BytesIO(log.read_bytes()), log.name) for log in logs]
        return client.post("/v1/predictions", data={"system": "testbed", "log": sent})

    parts = [part for phase in answer(predicted(FORKED))["phases"] for part in phase["parts"]]
    assert sum(part["bytes"] for part in parts) == 3_001_002
    assert "their job ids are 4711 and 4713" in detail(predicted([FORKED[0], SPAWNED[0]]))


def test_a_request_has_at_most_so_many_logs(client: FlaskClient, send: Send) -> None:
    said = detail(send([FORKED[3]] * (MOST_LOGS + 1)))
    assert said == f"form.log: {MOST_LOGS + 1} files, more than {MOST_LOGS}"
    answer(send([FORKED[3]] * MOST_LOGS), 201)


def test_other_files_come_alone(
    client: FlaskClient, authorised: Callable[[str], dict[str, Any]]
) -> None:
    files = [(io.BytesIO(b"a"), "a.csv"), (io.BytesIO(b"b"), "b.csv")]
    sent = {"system": "mn4", "file": files}
    response = client.post("/v1/measurements", data=sent, **authorised("admin"))
    assert detail(response) == "form.file: 2 files, more than 1"


def test_uploads_leave_no_files(
    send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "uploads"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    answer(send(FORKED), 201)
    detail(send([FORKED[0], SPAWNED[0]]))
    assert list(folder.iterdir()) == []
