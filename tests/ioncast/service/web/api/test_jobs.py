"""The reasons of a job's decision over HTTP, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient

from benchdb.store.database import transaction
from ioncast.service.context import Service
from ioncast.service.running.demo_data import SYSTEM
from ioncast.service.store.outcomes import store_outcome

pytestmark = pytest.mark.both_databases

JOB = "hacc-io-4-0"


@pytest.fixture
def ask(client: FlaskClient, filled: None) -> Callable[..., dict[str, Any]]:
    def ask(job_id: str, status: int = 200, **asked: Any) -> dict[str, Any]:
        response = client.get(f"/v1/jobs/{quote(job_id, safe='')}", query_string=asked)
        assert response.status_code == status, response.text
        found: dict[str, Any] = response.get_json()
        return found

    return ask


@pytest.mark.slow
def test_a_job_has_its_decision_its_reason_and_its_outcome(
    ask: Callable[..., dict[str, Any]], client: FlaskClient
) -> None:
    found = ask(JOB)
    [item] = found["items"]
    assert (item["system"], item["job_id"], found["more"]) == (SYSTEM, JOB, False)
    decision = client.get(f"/v1/decisions/{item['decision']['id']}").get_json()
    assert item["decision"] == decision
    assert item["outcome"]["io_nodes"] == 4
    # Its bandwidth in experiments/data/testbed/applications.csv.
    assert item["outcome"]["bandwidth_mib_s"] == pytest.approx(65.824, rel=1e-4)
    assert item["application"]["program"] == "hacc_io_write_posix_fpp"
    assert item["headline"] == "4 I/O nodes"
    why, basis, predicted, measured = item["sentences"]
    assert why.startswith("3 earlier runs of the same program, user and job name, 16 processes")
    assert basis == "It rests on earlier runs of about this size."
    assert predicted.startswith("Predicted: ")
    assert measured.startswith("Measured: 65.8 MiB/s with 4 I/O nodes, ")
    assert "-L ionode:0" in found["another_number"]


@pytest.mark.slow
def test_a_job_on_another_system_is_unknown(ask: Callable[..., dict[str, Any]]) -> None:
    problem = ask(JOB, 404, system="elsewhere")
    assert problem["detail"].startswith(f"nothing is known about job '{JOB}'; a job is known")


def test_runs_of_an_id_that_came_again_are_all_there(
    ask: Callable[..., dict[str, Any]], service: Service
) -> None:
    with transaction(service.database, write=True) as connection:
        for number in range(3):
            store_outcome(
                connection,
                system=SYSTEM,
                job_id=JOB,
                io_nodes=2,
                bandwidth_mib_s=50.0 + number,
                started=f"2031-01-0{number + 1}T00:00:00Z",
            )
    found = ask(JOB)
    assert [item["time"][:10] for item in found["items"]][:3] == [
        "2031-01-03",
        "2031-01-02",
        "2031-01-01",
    ]
    # The last decision before the start is that of the first run.
    assert found["items"][0]["sentences"][-1].startswith("The job did not run with the number")
    assert ask(JOB, limit=3)["more"]
    assert len(ask(JOB, limit=3)["items"]) == 3


def test_an_implausible_bandwidth_is_told(
    ask: Callable[..., dict[str, Any]], service: Service, client: FlaskClient
) -> None:
    with transaction(service.database, write=True) as connection:
        told: dict[str, Any] = {
            "system": SYSTEM,
            "job_id": JOB,
            "io_nodes": 4,
            "bandwidth_mib_s": 584_253.0,
        }
        store_outcome(connection, started="2031-01-01T00:00:00Z", **told)
    item, before = ask(JOB)["items"]
    assert (item["implausible"], before["implausible"]) == (True, False)
    assert "Measured: 571 GiB/s with 4 I/O nodes, above" in " ".join(item["sentences"])
    assert item["sentences"][-1].startswith("The measured bandwidth is implausible: it is more")
    page = client.get("/v1/outcomes?limit=500").get_json()["items"]
    assert [each["bandwidth_mib_s"] for each in page if each["implausible"]] == [584_253.0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "job_id",
    ["0", "x" * 3000, "a/b", "../../etc/passwd", "' OR 1=1", "<b>", "\0", "%", "ioncast:x"],
)
def test_a_hostile_id_is_one_line(ask: Callable[..., dict[str, Any]], job_id: str) -> None:
    problem = ask(job_id, 404)
    assert problem["title"]
    assert "\n" not in problem["detail"]
    assert len(problem["detail"]) < 600
