"""Outcomes of jobs join the decisions that the jobs followed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import update
from werkzeug.test import TestResponse

from benchdb.store.database import transaction
from experiments.applications.darshan_writer import write_log
from ioncast.service.context import Service
from ioncast.service.store.decisions import DecisionRow, store_decisions
from ioncast.service.store.outcomes import store_outcome
from ioncast.service.store.runs import runs_of
from ioncast.service.store.tables import outcomes, runs
from ioncast_base.times import in_utc
from predictor.curve.composing import observed_mib_s
from summario.phases.extract import extract_phases
from summario.reading.log import read_log

ROOT = Path(__file__).resolve().parents[5]
LOGS = ROOT / "experiments" / "data" / "testbed" / "logs"
WITH_4 = LOGS / "hacc-io-ionodes4.darshan"
OUTCOME = {"system": "mn4", "job_id": "17", "io_nodes": 4, "bandwidth_mib_s": 70.5}
DECISION = DecisionRow(
    id="d1",
    asked_at="2026-11-21T10:00:00Z",
    system="mn4",
    user="ada",
    executable="hacc_io",
    name=None,
    job_id="17",
    nodes=8,
    tasks=16,
    available=None,
    io_nodes=4,
    source="history",
    expected_mib_s=60.0,
    confidence=0.9,
    application_id=None,
    why="runs",
    curve=((0, 40.0, 30.0, 50.0), (4, 60.0, 50.0, 70.0)),
)

Report = Callable[..., TestResponse]


@pytest.fixture
def report(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Report:
    """Report an outcome with a scheduler's token, as JSON or with a log."""
    token = authorised("scheduler")

    def send(log: Path | None = None, **fields: object) -> TestResponse:
        if log is None:
            return client.post("/v1/outcomes", json=OUTCOME | fields, **token)
        form = {"system": "mn4", "job_id": "17", "io_nodes": "4"}
        form |= {key: str(value) for key, value in fields.items()}
        data = {**form, "log": (io.BytesIO(log.read_bytes()), "rerun.darshan")}
        return client.post("/v1/outcomes", data=data, **token)

    return send


def answer(response: TestResponse, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.json is not None
    found: dict[str, Any] = response.json
    return found


def test_an_outcome_joins_its_decision(
    report: Report, client: FlaskClient, service: Service
) -> None:
    with transaction(service.database, write=True) as connection:
        store_decisions(connection, [DECISION])
    answer(report(decision_id="d1"), 201)
    [found] = answer(client.get("/v1/outcomes?system=mn4"))["items"]
    assert (found["job_id"], found["io_nodes"], found["bandwidth_mib_s"]) == ("17", 4, 70.5)
    assert (found["decided"], found["decided_io_nodes"], found["source"]) == ("d1", 4, "history")
    assert found["expected_mib_s"] == 60.0


def test_the_expected_bandwidth_is_that_of_the_jobs_io_nodes(
    report: Report, client: FlaskClient, service: Service
) -> None:
    with transaction(service.database, write=True) as connection:
        store_decisions(connection, [DECISION, replace(DECISION, id="d2", job_id="18")])
    answer(report(decision_id="d1", io_nodes=0), 201)
    answer(report(decision_id="d2", job_id="18", io_nodes=8), 201)
    found = answer(client.get("/v1/outcomes"))["items"]
    assert [each["expected_mib_s"] for each in found] == [40.0, None]


def test_the_same_outcome_again_changes_nothing(report: Report) -> None:
    first = answer(report(), 201)
    assert answer(report()) == first
    assert answer(report(decision_id="later")) == first | {"decision_id": "later"}


@pytest.mark.parametrize("change", [{"io_nodes": 8}, {"bandwidth_mib_s": 71.0}])
def test_another_outcome_of_the_same_job_is_a_conflict(
    report: Report, change: dict[str, object]
) -> None:
    answer(report(), 201)
    said = answer(report(**change), 409)
    assert said["title"] == "Conflict"
    assert next(iter(change)) in said["detail"]


def test_each_run_of_a_job_that_was_put_back_into_the_queue_is_stored(
    report: Report, client: FlaskClient
) -> None:
    starts = ["2026-11-21T10:00:05Z", "2026-11-21T12:10:00+02:00"]
    told = dict(zip(starts, [70.5, 35.25], strict=True))
    first, second = (
        answer(report(started=start, bandwidth_mib_s=told[start]), 201) for start in starts
    )
    assert first["id"] != second["id"]
    assert first["started"] == "2026-11-21T10:00:05.000000+00:00"
    assert second["started"] == "2026-11-21T10:10:00.000000+00:00"
    for start in starts:
        answer(report(started=start, bandwidth_mib_s=told[start]))
        said = answer(report(started=start, bandwidth_mib_s=1.0), 409)
        assert "another run of a job needs its own start (`started`)" in said["detail"]
    # A client that does not know of starts reports the job's newest run again.
    assert answer(report(bandwidth_mib_s=35.25)) == second
    listed = answer(client.get("/v1/outcomes?system=mn4"))["items"]
    assert [(each["job_id"], each["bandwidth_mib_s"]) for each in listed] == [
        ("17", 70.5),
        ("17", 35.25),
    ]
    assert [each["started"] for each in listed] == [first["started"], second["started"]]


def test_without_a_start_the_log_tells_which_run_of_the_job_it_is(
    report: Report, client: FlaskClient
) -> None:
    first = answer(report(WITH_4), 201)
    other = answer(report(LOGS / "hacc-io-ionodes0.darshan", io_nodes=0), 201)
    for outcome, log in ((first, WITH_4), (other, LOGS / "hacc-io-ionodes0.darshan")):
        start = datetime.fromtimestamp(int(read_log(log).job.start_seconds), timezone.utc)
        assert outcome["started"] == in_utc(start)
    [application] = answer(client.get("/v1/applications"))["items"]
    assert application["runs"] == 2


def test_the_schedulers_start_counts_more_than_the_logs(
    report: Report, client: FlaskClient
) -> None:
    """Slurm's start is that of the job, some time before the program's."""
    before = in_utc(
        datetime.fromtimestamp(int(read_log(WITH_4).job.start_seconds) - 9, timezone.utc)
    )
    found = answer(report(WITH_4, started=before), 201)
    assert found["started"] == before
    assert answer(report(WITH_4)) == found
    # A log is of one run of the job, and a run has one outcome, also if it has several steps.
    answer(report(WITH_4, started="2026-11-21T10:00:05Z"), 409)
    answer(report(LOGS / "hacc-io-ionodes0.darshan", started=before, io_nodes=0), 409)
    [application] = answer(client.get("/v1/applications"))["items"]
    assert application["runs"] == 1


def test_with_its_log_the_run_joins_the_history(
    report: Report, client: FlaskClient, service: Service
) -> None:
    found = answer(report(WITH_4, user="ada", name="night", nodes=8), 201)
    assert found["bandwidth_mib_s"] == pytest.approx(
        observed_mib_s(extract_phases(read_log(WITH_4)))
    )
    [application] = answer(client.get("/v1/applications"))["items"]
    with transaction(service.database) as connection:
        [run] = runs_of(connection, application["id"])
    assert run.id == found["run_id"]
    assert (run.job_id, run.name, run.nodes, run.io_nodes) == ("17", "night", 8, 4)
    [joined] = answer(client.get(f"/v1/outcomes?application={application['id']}"))["items"]
    assert joined["application_id"] == application["id"]
    assert joined["pattern"] == "write POSIX contiguous unique"


@pytest.mark.slow
def test_the_same_log_changes_nothing_and_a_contradicting_log_stores_nothing(
    report: Report, client: FlaskClient
) -> None:
    first = answer(report(WITH_4), 201)
    assert answer(report(WITH_4)) == first
    answer(report(WITH_4, io_nodes=8), 409)
    answer(report(WITH_4, bandwidth_mib_s=1.5), 409)
    [application] = answer(client.get("/v1/applications"))["items"]
    assert application["runs"] == 1


def test_a_log_that_an_older_version_stored_keeps_its_bandwidth(
    report: Report, service: Service
) -> None:
    """Older versions computed the bandwidth of a log from I/O time."""
    answer(report(WITH_4), 201)
    with transaction(service.database, write=True) as connection:
        for table in (runs, outcomes):
            connection.execute(update(table).values(bandwidth_mib_s=76.5))
    assert answer(report(WITH_4))["bandwidth_mib_s"] == 76.5


def test_a_bandwidth_in_the_form_counts_more_than_the_log(report: Report) -> None:
    assert answer(report(WITH_4, bandwidth_mib_s=12.5), 201)["bandwidth_mib_s"] == 12.5


def test_the_bandwidth_of_a_log_without_io_is_unknown(report: Report, tmp_path: Path) -> None:
    log = tmp_path / "idle.darshan"
    write_log(log, nprocs=4)
    said = answer(report(log), 422)["detail"]
    assert said == (
        "rerun.darshan: the log has no I/O time, so its bandwidth is unknown; send bandwidth_mib_s"
    )
    answer(report(log, bandwidth_mib_s=1.5), 201)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("system", ""),
        ("job_id", ""),
        ("job_id", "a\0b"),
        ("io_nodes", -1),
        ("io_nodes", "four"),
        ("bandwidth_mib_s", 0),
        ("bandwidth_mib_s", "NaN"),
        ("bandwidth_mib_s", 1e16),
        ("decision_id", "x" * 33),
        ("started", "2026-11-21 10:00:05"),
        ("started", "2026-11-21T10:00:05"),
        ("started", "2026-13-21T10:00:05Z"),
        ("started", "0001-01-01T00:00:00+12:00"),
        ("started", 1795255205),
        ("user", "ada"),
    ],
)
def test_an_unusable_field_is_named(report: Report, field: str, value: object) -> None:
    assert answer(report(**{field: value}), 422)["detail"].startswith(f"body.{field}: ")


def test_a_token_that_may_not_write_cannot_report(
    client: FlaskClient, authorised: Callable[[str], dict[str, Any]]
) -> None:
    assert client.post("/v1/outcomes", json=OUTCOME).status_code == 401
    assert client.post("/v1/outcomes", json=OUTCOME, **authorised("reader")).status_code == 403
    assert answer(client.get("/v1/outcomes"))["items"] == []


def test_outcomes_are_listed_in_pages(report: Report, client: FlaskClient) -> None:
    for number in range(5):
        answer(report(job_id=str(number), system=f"s{number % 2}"), 201)
    following, jobs = "/v1/outcomes?system=s0&limit=2", []
    while following is not None:
        page = answer(client.get(following))
        jobs.append([each["job_id"] for each in page["items"]])
        following = page["next"]
    assert jobs == [["0", "2"], ["4"]]


@pytest.fixture
def counted(
    service: Service, keep: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], None]:
    """Count outcomes at once; the keeper counts them every minute."""
    monkeypatch.setattr("ioncast.service.background.summary_step._BETWEEN_SUMMARIES_S", 0.0)
    service.prepared.summaries.clear()
    return keep


def test_errors_so_far_come_from_decisions_with_outcomes(
    report: Report, client: FlaskClient, service: Service, counted: Callable[[], None]
) -> None:
    with transaction(service.database, write=True) as connection:
        store_decisions(connection, [DECISION])
    answer(report(decision_id="d1", bandwidth_mib_s=48.0), 201)
    counted()
    found = answer(client.get("/v1/validation?system=mn4"))
    [system] = found["systems"]
    # |60 - 48| / 48
    assert system["errors"]["mean"] == pytest.approx(0.25)
    assert (system["decisions"], system["coverage"]) == (1, 0)
    assert [(each["decision_id"], each["error"]) for each in found["worst"]] == [("d1", 0.25)]
    assert {each["drifted"] for each in found["drift"]} == {False}
    assert answer(client.get("/v1/validation?system=another"))["systems"] == []


def test_months_have_the_means_of_their_outcomes(
    report: Report, client: FlaskClient, service: Service, counted: Callable[[], None]
) -> None:
    stored = answer(report(decision_id="d1", bandwidth_mib_s=48.0), 201)
    with transaction(service.database, write=True) as connection:
        store_decisions(connection, [DECISION])
    counted()
    month = stored["reported_at"][:7]
    assert answer(client.get("/v1/validation?system=mn4"))["months"] == [
        {"system": "mn4", "month": month, "outcomes": 1, "error": 0.25, "coverage": 0.0}
    ]
    assert answer(client.get("/v1/validation?system=another"))["months"] == []
    shown = client.get("/validation", headers={"Accept": "text/html"}).text
    assert f'{month}</th><td class="num">1</td><td class="num">25.0%</td>' in shown


def test_the_interface_and_the_page_count_the_same_last_outcomes(
    client: FlaskClient,
    service: Service,
    counted: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("background.summary_step", "web.pages.views"):
        monkeypatch.setattr(f"ioncast.service.{module}.COUNTED", 10)
    jobs = [str(number) for number in range(15)]
    with transaction(service.database, write=True) as connection:
        store_decisions(connection, [replace(DECISION, id=f"d{job}", job_id=job) for job in jobs])
        for job in jobs:
            # The first five reach half of the expected bandwidth, the last ten all of it.
            bandwidth_mib_s = 30.0 if int(job) < 5 else 60.0
            told: dict[str, Any] = {"system": "mn4", "job_id": job, "io_nodes": 4}
            store_outcome(connection, bandwidth_mib_s=bandwidth_mib_s, **told)
    counted()
    found = answer(client.get("/v1/validation"))
    [system] = found["systems"]
    assert (system["decisions"], system["errors"]["maximum"]) == (10, 0.0)
    assert {each["count"] for each in found["drift"]} == {10}
    shown = client.get("/validation", headers={"Accept": "text/html"}).text
    assert "the last 10 outcomes of a system" in shown
    assert '<dd class="value">10</dd><dd class="note">10 with an expected bandwidth</dd>' in shown


def test_outcomes_of_a_quiet_system_count_beside_those_of_a_busy_one(
    client: FlaskClient,
    service: Service,
    counted: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (
        "ioncast.service.monitoring.decision_errors",
        "ioncast.service.background.summary_step",
        "ioncast.service.web.pages.views",
    ):
        monkeypatch.setattr(f"{module}.COUNTED", 10)
    jobs = [*(("quiet", f"q{n}") for n in range(3)), *(("busy", f"b{n}") for n in range(15))]
    with transaction(service.database, write=True) as connection:
        for system, job in jobs:
            told: dict[str, Any] = {"system": system, "job_id": job}
            store_decisions(connection, [replace(DECISION, id=job, **told)])
            # The first five of the busy system reach half of the expected bandwidth.
            bandwidth_mib_s = 30.0 if job in {f"b{n}" for n in range(5)} else 60.0
            store_outcome(connection, bandwidth_mib_s=bandwidth_mib_s, io_nodes=4, **told)
    counted()
    found = answer(client.get("/v1/validation"))
    numbers = {each["name"]: each["decisions"] for each in found["systems"]}
    assert numbers == {"busy": 10, "quiet": 3}
    assert {each["errors"]["maximum"] for each in found["systems"]} == {0.0}
    assert {(each["system"], each["count"]) for each in found["drift"]} == set(numbers.items())
    for system, number in numbers.items():
        shown = client.get(f"/validation?system={system}", headers={"Accept": "text/html"}).text
        assert "the last 10 outcomes of a system" in shown
        expected = (
            f'<dd class="value">{number}</dd><dd class="note">{number} with an expected bandw'
        )
        assert expected in shown


def test_lists_without_pages_say_how_long_they_can_be(client: FlaskClient) -> None:
    schemas = answer(client.get("/openapi.json"))["components"]["schemas"]
    described = schemas["ValidationAnswer"]["properties"]
    lists = {name: each for name, each in described.items() if each.get("type") == "array"}
    assert lists.keys() == {"systems", "sources", "worst", "drift", "months", "shifts"}
    assert all("at most" in each["description"] for each in lists.values())
    assert "1,000 outcomes" in described["at"]["description"]


def test_before_outcomes_were_counted_there_are_no_errors(
    client: FlaskClient, service: Service
) -> None:
    assert answer(client.get("/v1/validation"), 503)["title"] == "Busy"


def test_errors_of_applications_are_listed_in_pages(
    report: Report, client: FlaskClient, service: Service, counted: Callable[[], None]
) -> None:
    logs = sorted(LOGS.glob("*-ionodes4.darshan"))
    for number, log in enumerate(logs):
        decided = replace(DECISION, id=f"d{number}", job_id=str(number))
        with transaction(service.database, write=True) as connection:
            store_decisions(connection, [decided])
        answer(report(log, job_id=number, decision_id=f"d{number}"), 201)
    counted()
    whole = answer(client.get("/v1/validation"))["applications"]
    assert len(whole["items"]) == len(logs) == 3
    assert whole["next"] is None
    page = answer(client.get("/v1/validation/applications?limit=2"))
    assert page["items"] == whole["items"][:2]
    assert answer(client.get(page["next"]))["items"] == whole["items"][2:]
