"""Names of I/O nodes in outcomes, and the slow ones: over HTTP, on pages and in the metrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pytest
from flask.testing import FlaskClient
from sqlalchemy import update

from benchdb.store.database import transaction
from benchdb.store.system_changes import note_change
from ioncast.diagnosis.slow_io_nodes import NamedOutcome
from ioncast.service.background import summary_step
from ioncast.service.context import Service
from ioncast.service.monitoring.slow_io_nodes import WINDOW
from ioncast.service.store.outcomes import store_outcome
from ioncast.service.store.runs import NewRun, store_run
from ioncast.service.store.tables import outcomes
from ioncast_base.times import in_utc
from summario.phases.tables import to_record
from tests.ioncast.diagnosis.test_slow_io_nodes import series
from tests.support.history import PHASE, new_sha256

pytestmark = pytest.mark.both_databases

HTML = {"Accept": "text/html"}
Keep = Callable[[], None]
Report = Callable[..., Any]


@pytest.fixture
def report(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Report:
    token = authorised("scheduler")

    def report(**changed: Any) -> Any:
        told = {"system": "here", "job_id": "17", "io_nodes": 2, "bandwidth_mib_s": 70.5, **changed}
        return client.post("/v1/outcomes", json=told, **token)

    return report


def put(service: Service, jobs: list[NamedOutcome]) -> None:
    """Store runs and outcomes of jobs."""
    with transaction(service.database, write=True) as connection:
        for job in jobs:
            new = NewRun(
                system=job.system,
                executable=f"/opt/{job.variant}",
                user="ada",
                logs=[new_sha256()],
                tasks=job.processes,
                nodes=job.nodes,
                phases=[to_record(PHASE)],
            )
            run, _ = store_run(connection, new)
            store_outcome(
                connection,
                system=job.system,
                job_id=job.job_id,
                run_id=run.id,
                io_nodes=job.io_nodes,
                bandwidth_mib_s=job.bandwidth_mib_s,
                io_node_names=",".join(job.names),
            )


def slow(client: FlaskClient, **asked: str) -> list[tuple[str, str]]:
    found = client.get("/v1/slow-io-nodes", query_string=asked).get_json()
    return [(each["system"], each["name"]) for each in found["items"]]


def test_an_outcome_has_the_names_of_its_io_nodes_and_so_has_the_job(
    report: Report, client: FlaskClient
) -> None:
    assert report().get_json()["io_node_names"] is None
    assert report(io_node_names="io3,io5").get_json()["io_node_names"] == "io3,io5"
    assert report(io_node_names="io3,io5").status_code == 200
    assert report().get_json()["io_node_names"] == "io3,io5"
    conflict = report(io_node_names="io3,io6")
    assert conflict.status_code == 409
    assert "stored with io_node_names io3,io5, not io3,io6" in conflict.get_json()["detail"]
    [item] = client.get("/v1/jobs/17").get_json()["items"]
    assert item["outcome"]["io_node_names"] == "io3,io5"
    assert "Its I/O nodes: io3 and io5." in item["sentences"]
    assert "Its I/O nodes: io3 and io5." in client.get("/jobs/17", headers=HTML).text


def test_wrong_names_are_rejected(report: Report, client: FlaskClient) -> None:
    for names in (
        *("<b>,io1", "io1, io2", "io1,,io2", "io1,io1", "i" * 65, "io1\n", "größe", ","),
        "i" * 100_000,
        # More than the job had.
        "io1,io2,io3",
    ):
        assert report(io_node_names=names).status_code in {400, 422}, names
    many = ",".join(f"io{number}" for number in range(257))
    assert report(io_node_names=many, io_nodes=257).status_code == 422
    assert client.get("/v1/outcomes").get_json()["items"] == []


@pytest.mark.slow
def test_a_slow_io_node_is_named_everywhere(
    service: Service, client: FlaskClient, keep: Keep
) -> None:
    assert client.get("/v1/slow-io-nodes").get_json() == {"at": None, "items": []}
    jobs = series(np.random.default_rng(1), 60, slow="io5")
    put(service, jobs)
    keep()
    found = client.get("/v1/slow-io-nodes").get_json()
    [item] = found["items"]
    on_it = sum("io5" in each.names for each in jobs)
    assert (item["system"], item["name"]) == ("here", "io5")
    assert (item["jobs"], item["elsewhere"]) == (on_it, 60 - on_it)
    assert item["ratio"] == pytest.approx(4, rel=0.25)
    assert slow(client, system="here") == [("here", "io5")]
    assert slow(client, system="there") == []
    page = " ".join(client.get("/", headers=HTML).text.split())
    assert "Jobs are slow on 1 I/O node." in page
    assert f"io5 of here: {on_it} jobs got " in page
    line = 'ioncast_slow_io_node_ratio{io_node="io5",system="here"} '
    assert line in client.get("/metrics").text


@pytest.mark.slow
def test_old_outcomes_and_those_before_a_change_of_the_machine_do_not_count(
    service: Service, client: FlaskClient, keep: Keep, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_step, "_BETWEEN_SUMMARIES_S", 0.0)
    here = series(np.random.default_rng(2), 60, slow="io1")
    there = [replace(each, id=each.id + 100, system="there") for each in here]
    put(service, [*here, *there])
    keep()
    assert slow(client) == [("here", "io1"), ("there", "io1")]
    with transaction(service.database, write=True) as connection:
        note_change(connection, "here", since=in_utc(now()), why="new links")
    next_second()
    keep()
    assert slow(client) == [("there", "io1")]
    long_ago = in_utc(now() - WINDOW - timedelta(hours=1))
    with transaction(service.database, write=True) as connection:
        connection.execute(update(outcomes).values(reported_at=long_ago))
    put(service, series(np.random.default_rng(3), 1))
    next_second()
    keep()
    assert slow(client) == []


def next_second() -> None:
    """Wait for the next second: readers take two summaries of one second for the same."""
    time.sleep(1 - time.time() % 1)


def now() -> datetime:
    return datetime.now(timezone.utc)
