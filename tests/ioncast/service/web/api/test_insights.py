"""Insights are stored with the run of a log, and an upload never fails because of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from sqlalchemy import delete, select, update
from werkzeug.datastructures import FileStorage
from werkzeug.test import TestResponse, encode_multipart

from benchdb.store.database import transaction
from experiments.applications.darshan_writer import write_log
from ioncast.cli import cli
from ioncast.insights.checks.values import MOST_FILES
from ioncast.service.context import Service
from ioncast.service.settings import Settings
from ioncast.service.store.run_insights import MOST_DOCUMENT_BYTES
from ioncast.service.store.tables import insights
from ioncast.service.web.http import uploads
from ioncast.service.web.sandbox import insight_documents
from tests.summario.phases.test_rules import KIB, posix

FIXTURES = Path(__file__).resolve().parents[4] / "summario" / "fixtures"
FORKED = sorted((FIXTURES / "programs").glob("fork-workers-*.darshan"))
# 5,000 writes of 1 KiB into the file of each process.
MANY = 5000

Send = Callable[..., TestResponse]


@pytest.fixture
def send(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Send:
    """Send logs in one request, with a scheduler's token."""
    token = authorised("scheduler")

    def send_logs(*logs: Path, path: str = "/v1/traces", **fields: object) -> TestResponse:
        data: dict[str, Any] = {"system": "mn4"} | {k: str(v) for k, v in fields.items()}
        data["log"] = [FileStorage(io.BytesIO(log.read_bytes()), log.name) for log in logs]
        boundary, body = encode_multipart(data)
        content_type = f"multipart/form-data; boundary={boundary}"
        return client.post(path, data=body, content_type=content_type, **token)

    return send_logs


def answer(response: TestResponse, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    found: dict[str, Any] = response.json or {}
    return found


def stored(client: FlaskClient, sent: dict[str, Any]) -> dict[str, Any] | None:
    """The insights of a run that was sent."""
    path = f"/v1/applications/{sent['application_id']}/runs/{sent['run_id']}"
    found: dict[str, Any] | None = answer(client.get(path))["insights"]
    return found


def small_writes(folder: Path, *, files: int = 1, prefix: str = "/data/out") -> Path:
    records = [posix(f"{prefix}.{n}", 0, 1, requests=MANY, size=KIB, rank=n) for n in range(files)]
    return write_log(folder / "app.darshan", nprocs=files, records=records)


def printed(*command: str | Path) -> dict[str, Any]:
    """The object that a command prints for the logs of one run."""
    done = CliRunner().invoke(cli, [*map(str, command), "--join", "job", "--format", "json"])
    assert done.exit_code == 0, done.output
    [found] = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def same_but_for(found: dict[str, Any], expected: dict[str, Any], *names: str) -> bool:
    """Whether two records agree apart from some fields."""
    return all(found[name] == expected[name] for name in expected if name not in names)


def codes(found: dict[str, Any] | None) -> list[str]:
    assert found is not None
    return [finding["code"] for finding in found["checks"]["findings"]]


def test_a_run_is_answered_with_its_findings_and_its_tables(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    log = small_writes(tmp_path, files=2)
    sent = answer(send(log), 201)
    found = stored(client, sent)
    assert found is not None
    assert found["version"] == insight_documents.VERSION
    assert found["checks"]["log"] == found["characterisation"]["log"] == "app.darshan"
    expected = printed("check", log)
    assert same_but_for(found["checks"], expected, "log")
    tables = printed("characterize", log)
    assert same_but_for(found["characterisation"], tables, "log", "files")
    [small] = [each for each in expected["findings"] if each["code"] == "P06"]
    assert "10,000 of 10,000 writes" in small["sentence"]
    assert small["advice"][0]["snippets"]
    paths = {file["path"] for file in found["characterisation"]["files"]}
    assert paths == {"/data/out.0", "/data/out.1"}


def test_lists_of_runs_have_no_insights(client: FlaskClient, send: Send, tmp_path: Path) -> None:
    number = answer(send(small_writes(tmp_path)), 201)["application_id"]
    [listed] = answer(client.get(f"/v1/applications/{number}/runs"))["items"]
    [newest] = answer(client.get(f"/v1/applications/{number}"))["newest_runs"]["items"]
    assert "insights" not in listed
    assert "insights" not in newest


def test_texts_of_advice_are_not_stored_with_each_run(
    send: Send, service: Service, tmp_path: Path
) -> None:
    answer(send(small_writes(tmp_path)), 201)
    with transaction(service.database) as connection:
        [document] = connection.scalars(select(insights.c.checks))
    assert '"snippets"' not in document


def test_a_known_log_fills_in_insights_that_a_run_lacks(
    client: FlaskClient, send: Send, service: Service, tmp_path: Path
) -> None:
    log = small_writes(tmp_path)
    sent = answer(send(log), 201)
    with transaction(service.database, write=True) as connection:
        connection.execute(delete(insights))
    assert stored(client, sent) is None
    answer(send(log), 200)
    assert "P06" in codes(stored(client, sent))


def test_a_known_log_renews_insights_of_an_older_version(
    client: FlaskClient, send: Send, service: Service, tmp_path: Path
) -> None:
    log = small_writes(tmp_path)
    sent = answer(send(log), 201)
    with transaction(service.database, write=True) as connection:
        connection.execute(update(insights).values(version=0))
    answer(send(log), 200)
    found = stored(client, sent)
    assert found is not None
    assert found["version"] == insight_documents.VERSION


def test_the_insights_of_a_run_are_those_of_all_its_logs(client: FlaskClient, send: Send) -> None:
    sent = answer(send(*FORKED[:2]), 201)
    some = stored(client, sent)
    answer(send(*FORKED), 201)
    grown = stored(client, sent)
    assert some is not None
    assert grown is not None
    assert some["checks"]["processes"] == 2
    assert grown["checks"]["processes"] == len(FORKED)
    assert grown["checks"]["findings"] == printed("check", *FORKED)["findings"]
    # One log of the run alone changes nothing.
    answer(send(FORKED[0]), 200)
    assert stored(client, sent) == grown


def test_the_log_of_an_outcome_gives_insights_too(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    log = small_writes(tmp_path)
    told = answer(send(log, path="/v1/outcomes", job_id=1, io_nodes=4), 201)
    sent = answer(send(log, job_id=1), 200)
    assert sent["run_id"] == told["run_id"]
    assert "P06" in codes(stored(client, sent))


def test_the_number_of_compute_nodes_counts(client: FlaskClient, send: Send) -> None:
    log = FIXTURES / "mpiio-coll-contig-cb4.darshan"
    sent = answer(send(log, nodes=2), 201)
    found = stored(client, sent)
    assert found is not None
    assert found["checks"]["findings"] == printed("check", log, "--nodes", "2")["findings"]
    # The history knows the number when the log is sent again.
    answer(send(log), 200)
    again = stored(client, sent)
    assert again is not None
    assert again["checks"]["findings"] == found["checks"]["findings"]
    assert again["checks"]["findings"] != printed("check", log)["findings"]


@pytest.mark.parametrize("path", ["/v1/traces", "/v1/outcomes"])
def test_a_run_whose_insights_fail_is_stored_without_them(
    client: FlaskClient, send: Send, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    log = small_writes(tmp_path)
    with monkeypatch.context() as patched:
        # The process that makes them is stopped at once.
        patched.setattr(uploads, "_INSIGHTS_S", 0)
        told = {"job_id": 1, "io_nodes": 4}
        answer(send(log, path=path, **told), 201)
        sent = answer(send(log), 200)
    [warning] = [each for each in sent["warnings"] if "insights" in each]
    assert warning.startswith("no insights were made: the work on it took more than 0 s")
    assert stored(client, sent) is None
    answer(send(log), 200)
    assert stored(client, sent) is not None


def test_insights_that_fail_later_do_not_replace_stored_ones(
    client: FlaskClient, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = answer(send(*FORKED[:2]), 201)
    first = stored(client, sent)
    monkeypatch.setattr(uploads, "_INSIGHTS_S", 0)
    answer(send(*FORKED[:2]), 200)
    assert stored(client, sent) == first
    # The stored ones are not those of the grown run.
    answer(send(*FORKED), 201)
    assert stored(client, sent) is None


def test_a_log_of_thousands_of_files_with_long_names_does_not_fill_the_database(
    client: FlaskClient, send: Send, service: Service, tmp_path: Path
) -> None:
    files = 3000
    log = small_writes(tmp_path, files=files, prefix="/" + 4000 * "x")
    sent = answer(send(log), 201)
    found = stored(client, sent)
    assert found is not None
    shown = found["characterisation"]
    assert shown["file_count"] == files
    # Those with most bytes, and those with most time.
    assert MOST_FILES <= len(shown["files"]) <= 2 * MOST_FILES
    with transaction(service.database) as connection:
        [row] = connection.execute(select(insights.c.characterisation, insights.c.checks))
    assert all(len(document) <= MOST_DOCUMENT_BYTES for document in row)


@pytest.mark.parametrize("number", [0, 17, 2**31, 2**70])
def test_a_missing_run_is_not_found(client: FlaskClient, send: Send, number: int) -> None:
    sent = answer(send(FORKED[0]), 201)
    here = f"/v1/applications/{sent['application_id']}"
    response = client.get(f"{here}/runs/{number}")
    assert answer(response, 404)["title"] == "Not found"
    response = client.get(f"/v1/applications/{number}/runs/{sent['run_id']}")
    assert response.status_code == (200 if number == sent["application_id"] else 404)


class TestThresholdsOfTheSite:
    @pytest.fixture
    def settings(self, settings: Settings, tmp_path: Path) -> Settings:
        file = tmp_path / "checks.toml"
        file.write_text(f"least_count = {MANY}\n", encoding="utf-8")
        return settings.model_copy(update={"checks": str(file)})

    def test_decide_on_findings(self, client: FlaskClient, send: Send, tmp_path: Path) -> None:
        sent = answer(send(small_writes(tmp_path)), 201)
        assert "P06" not in codes(stored(client, sent))
