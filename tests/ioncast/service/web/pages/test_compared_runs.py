"""The page with two runs of an application side by side."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from flask.testing import FlaskClient
from sqlalchemy import delete, update

from benchdb.store.database import transaction
from experiments.applications.darshan_writer import write_log
from ioncast.cli import cli
from ioncast.service.context import Service
from ioncast.service.store.runs import runs_of
from ioncast.service.store.tables import insights
from ioncast.service.store.tables import runs as stored_runs
from ioncast_base.errors import BusyError
from tests.ioncast.service.web.pages.test_insights_on_pages import BROWSER, EVIL, page, words
from tests.ioncast.service.web.pages.test_views import figures
from tests.summario.phases.test_rules import KIB, posix

pytestmark = pytest.mark.slow

# Genuine runs of IOR.
LOGS = Path(__file__).resolve().parents[4] / "predictor/verification/fixtures/again"
FIRST, SECOND = LOGS / "mpiio-coll-block.darshan", LOGS / "mpiio-strided.darshan"
# Darshan's names of the layers.
LAYERS = {"": "run", "MPIIO": "MPI-IO"}
_TABLE = re.compile(
    r"<summary>(\w+)[^<]*(?:<span[^>]*>[^<]*</span>)?</summary>.*?<tbody>(.*?)</tbody>"
)
_ROW = re.compile(
    r'<tr><td>(.*?)</td><th scope="row">(.*?)</th><td class="num">(.*?)</td>'
    r'<td class="num">(.*?)</td></tr>'
)

Send = Callable[..., dict[str, Any]]


@pytest.fixture
def send(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Send:
    """Send a log as a run of one application, and return the answer."""
    token = authorised("scheduler")

    def send_log(log: Path, **told: Any) -> dict[str, Any]:
        data = {"system": "mn4", "user": "ana", "log": (io.BytesIO(log.read_bytes()), log.name)}
        response = client.post("/v1/traces", data=data | told, **token)
        assert response.status_code == 201, response.text
        answer: dict[str, Any] = response.json or {}
        return answer

    return send_log


def address(first: dict[str, Any], second: dict[str, Any]) -> str:
    path = f"/applications/{first['application_id']}/compare"
    return f"{path}?run={first['run_id']}&with={second['run_id']}"


def lasting(folder: Path, seconds: float) -> Path:
    """A log of a program that writes 4.88 MiB in so many seconds."""
    record = posix("/data/out", 0, seconds, requests=5000, size=KIB, seconds=seconds)
    return write_log(folder / f"{seconds}.darshan", nprocs=1, records=[record], exe="app")


def tables_of(text: str) -> dict[tuple[str, str, str], tuple[str, str]]:
    """The values of both runs by table, layer and characteristic."""
    found = {}
    for name, rows in _TABLE.findall(text.replace("\n", "")):
        layer = ""
        for of, characteristic, first, second in _ROW.findall(rows):
            layer = of or layer
            found[name.lower(), layer, html.unescape(characteristic)] = (first, second)
    return found


def characterized(*logs: Path) -> list[dict[str, Any]]:
    arguments = ["characterize", *map(str, logs), "--format", "json"]
    found = CliRunner().invoke(cli, arguments)
    assert found.exit_code == 0, found.output
    runs: list[dict[str, Any]] = json.loads(found.stdout)
    return runs


def test_the_page_marks_the_values_that_characterize_marks(client: FlaskClient, send: Send) -> None:
    _, expected = characterized(FIRST, SECOND)
    different = {
        (table["name"], LAYERS.get(row[0], row[0]), row[1])
        for table in expected["tables"]
        for row in table["rows"]
        if row[table["columns"].index("differs")]
    }
    shown = tables_of(page(client, address(send(FIRST), send(SECOND))))
    marked = {key for key, (_, second) in shown.items() if second.startswith("<mark>≠ ")}
    assert {key for key in marked if key[0] != "job"} == different
    assert len(different) > 20
    assert not any("≠" in first for first, _ in shown.values())


def test_the_largest_differences_are_those_of_characterize(client: FlaskClient, send: Send) -> None:
    found = CliRunner().invoke(cli, ["characterize", str(FIRST), str(SECOND)])
    [said] = re.findall(r"mpiio-strided beside mpiio-coll-block: (.*)", found.output)
    told = words(page(client, address(send(FIRST), send(SECOND))))
    assert " ".join(said.split("; ")) in told


def test_both_runs_stand_side_by_side_with_their_ratio(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    slow, fast = lasting(tmp_path, 4), lasting(tmp_path, 1)
    runs = send(slow, io_nodes=0, job_id="41"), send(fast, io_nodes=4, job_id="42")
    told = words(page(client, address(*runs)))
    assert "Run B was 4 times as fast as run A: 4.88 MiB/s and 1.22 MiB/s, measured." in told
    assert "Job 41 42" in told
    assert "Processes 1 1 1 ×" in told
    assert "I/O nodes direct access ≠ 4 I/O nodes" in told
    assert "Read and written 4.88 MiB 4.88 MiB 1 ×" in told
    assert "Bandwidth, measured 1.22 MiB/s ≠ 4.88 MiB/s 4 ×" in told
    assert "I/O time 4 s ≠ 1 s 0.25 ×" in told
    assert "4 times as slow as run A" in words(page(client, address(*runs[::-1])))


def test_findings_are_parted_into_those_of_one_run_and_of_both(
    client: FlaskClient, send: Send
) -> None:
    def codes(log: Path) -> dict[str, str]:
        found = CliRunner().invoke(cli, ["check", str(log), "--format", "json"])
        return {each["code"]: each["title"] for each in json.loads(found.stdout)[0]["findings"]}

    first, second = codes(FIRST), codes(SECOND)
    told = words(page(client, address(send(FIRST), send(SECOND))))
    _, only_first, only_second, both, _ = re.split(
        "Findings of run A alone|Findings of run B alone|Findings of both|Their I/O in numbers",
        told,
    )
    for part, expected in (
        (only_first, first.keys() - second.keys()),
        (only_second, second.keys() - first.keys()),
        (both, first.keys() & second.keys()),
    ):
        assert set(re.findall(r" ([A-Z]\d\d) ", part)) == expected


def test_phases_of_both_runs_have_one_time_axis(client: FlaskClient, send: Send) -> None:
    found = figures(page(client, address(send(FIRST), send(SECOND))))
    assert {hint.partition(",")[0] for hint in found["timeline"]} == {"Run A", "Run B"}
    assert {hint.partition(":")[0] for hint in found["bandwidths"]} == {"Run A", "Run B"}


def test_a_run_without_insights_is_compared_by_its_phases(
    client: FlaskClient, send: Send, service: Service
) -> None:
    runs = send(FIRST), send(SECOND)
    with transaction(service.database, write=True) as connection:
        connection.execute(delete(insights).where(insights.c.run_id == runs[1]["run_id"]))
    text = page(client, address(*runs))
    told = words(text)
    assert "There are no findings and tables of run B: it was sent to an older version" in told
    assert "send all its logs again" in told
    assert "Largest differences" not in told
    assert {"timeline", "bandwidths"} <= figures(text).keys()


def test_insights_of_an_older_version_are_not_compared(
    client: FlaskClient, send: Send, service: Service
) -> None:
    runs = send(FIRST), send(SECOND)
    older = update(insights).where(insights.c.run_id == runs[1]["run_id"]).values(version=0)
    with transaction(service.database, write=True) as connection:
        connection.execute(older)
    told = words(page(client, address(*runs)))
    assert "There are no findings and tables of run B: it was sent to an older version" in told


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("run=1&with=99", "Application 1 has no run 99"),
        ("run=99999999999999999999&with=1", "The database has no run"),
        ("run=1&with=1", "does not name two runs of application 1"),
        ("run=1", "choose them on the page of the application"),
        ("run=x&with=%00", "does not name two runs"),
    ],
)
def test_runs_that_cannot_be_compared_are_named(
    client: FlaskClient, filled: None, asked: str, said: str
) -> None:
    response = client.get(f"/applications/1/compare?{asked}", headers=BROWSER)
    assert response.status_code == 404
    assert said in words(response.text)


def test_runs_of_two_applications_are_not_compared(
    client: FlaskClient, filled: None, service: Service
) -> None:
    with transaction(service.database) as connection:
        first, second = (runs_of(connection, each)[0].id for each in (1, 2))
    response = client.get(f"/applications/1/compare?run={first}&with={second}", headers=BROWSER)
    assert response.status_code == 404
    assert f"Application 1 has no run {second}" in words(response.text)


def test_names_in_logs_cannot_break_the_page(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    runs = []
    for name, size in (("a", KIB), ("b", 2 * KIB)):
        record = posix(EVIL, 0, 1, requests=5000, size=size)
        log = write_log(tmp_path / f"{name}.darshan", nprocs=1, records=[record], exe=EVIL)
        runs.append(send(log, name=EVIL))
    text = page(client, address(*runs))
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "Two runs of" in words(text)


def test_the_page_of_an_application_offers_the_comparison(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    slow, fast = send(lasting(tmp_path, 4)), send(lasting(tmp_path, 1))
    of_slow = f"/applications/{slow['application_id']}?run={slow['run_id']}"
    links = re.findall(r'href="([^"]*/compare[^"]*)"', html.unescape(page(client, of_slow)))
    # By the button, and in the list of runs.
    assert links == [address(slow, fast)] * 2
    assert "Compare with the fastest run" in page(client, of_slow)
    of_fast = f"/applications/{fast['application_id']}?run={fast['run_id']}"
    assert "Compare with the fastest run" not in page(client, of_fast)


def test_an_implausible_bandwidth_is_flagged(
    client: FlaskClient, filled: None, service: Service
) -> None:
    with transaction(service.database, write=True) as connection:
        first, second = runs_of(connection, 1)[:2]
        high = update(stored_runs).where(stored_runs.c.id == second.id)
        connection.execute(high.values(bandwidth_mib_s=584_253.0))
    path = f"/applications/1/compare?run={first.id}&with={second.id}"
    text = page(client, path)
    assert "The bandwidth of run B is implausible: it is too high to be true" in words(text)
    [row] = re.findall(r'<th scope="row">Bandwidth, measured</th>(.*?)</tr>', text)
    assert [">implausible<" in cell for cell in row.split("</td>")[:2]] == [False, True]


def test_plausible_bandwidths_are_not_flagged(
    client: FlaskClient, filled: None, service: Service
) -> None:
    with transaction(service.database) as connection:
        first, second = runs_of(connection, 1)[:2]
    path = f"/applications/1/compare?run={first.id}&with={second.id}"
    assert "implausible" not in words(page(client, path))


def test_an_implausible_run_is_never_offered_as_the_fastest(
    client: FlaskClient, filled: None, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction(service.database, write=True) as connection:
        first, second = runs_of(connection, 1)[:2]
        like_first = update(stored_runs).where(stored_runs.c.id == second.id)
        connection.execute(like_first.values(bandwidth_mib_s=584_253.0, tasks=first.tasks))

    def busy(*_: object) -> None:
        raise BusyError("all processes are busy")

    # The answer for the scheduler is known even then.
    monkeypatch.setattr(service.children, "run", busy)
    links = re.findall(
        r'href="([^"]*)">Compare with the fastest run',
        html.unescape(page(client, f"/applications/1?run={first.id}")),
    )
    assert not any(f"with={second.id}" in link for link in links)
