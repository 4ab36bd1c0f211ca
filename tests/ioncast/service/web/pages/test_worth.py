"""The page of the worth of I/O nodes: the command's answer for the jobs of the history."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine

from benchdb.store.database import transaction
from experiments.shipped import TESTBED
from ioncast.service.context import Service
from ioncast.service.settings import Settings
from ioncast.service.store.queue_reports import QueueReport, store_queue_report
from ioncast.service.web import site_store as asked
from ioncast_base.times import in_utc
from ioncast_base.wording import in_digits
from tests.support.command import run_ioncast
from tests.support.history import put_outcome, put_run

BROWSER = {"Accept": "text/html"}
RAN_WITH, NODES = 4, 8


@pytest.fixture
def settings(location: str, database: Engine, tmp_path: Path, site_store: Path) -> Settings:
    """Settings of a service with a store."""
    state = str(tmp_path / "state")
    return Settings(database=location, state=state, store=str(site_store), patience_s=60)


def shown(client: FlaskClient, query: str = "", status: int = 200) -> str:
    answer = client.get(f"/worth{query}", headers=BROWSER)
    assert (answer.status_code, answer.mimetype) == (status, "text/html"), answer.text
    return answer.text


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<svg.*?</svg>|<[^>]*>", " ", text)).split())


def put_job(engine: Engine, job_id: str, start_s: float, seconds: float, **run: Any) -> None:
    """Store a job that waited a minute, with its log."""

    def moment(at_s: float) -> str:
        return in_utc(datetime.fromtimestamp(int(at_s), timezone.utc))

    stored, _ = put_run(engine, nodes=NODES, phases=[], job_id=job_id, **run)
    told = {"submitted": moment(start_s - 60), "started": moment(start_s)}
    told["ended"] = moment(start_s + seconds)
    put_outcome(engine, job_id=job_id, run_id=stored.id, io_nodes=RAN_WITH, **told)


class TestWithLogs:
    @pytest.fixture
    def queue(self, database: Engine, location: str, site_store: Path, tmp_path: Path) -> Path:
        """Jobs of the history that the store has the logs of, and the same as sacct tells them."""
        benchmarks = TESTBED / "benchmarks.csv"
        run_ioncast("bench", "import", benchmarks, "--system", "here", "--db", location)
        text = (
            "select log, job_id, program, start_us / 1e6 as start_s, run_seconds from jobs"
            " where start_us > 0 and job_id > 0"
            " qualify count(*) over (partition by job_id) = 1 order by start_us, log"
        )
        done = run_ioncast("sql", site_store, "--text", text, "--format", "json")
        lines = ["JobID|User|JobName|Submit|Start|End|NNodes"]
        for row in json.loads(done.stdout):
            start_s, seconds = int(row["start_s"]) - 5, int(row["run_seconds"]) + 60
            name, number = row["program"] or "unknown", str(row["job_id"])
            put_job(database, number, start_s, seconds, executable=name, logs=[row["log"]])
            times = f"{start_s - 60}|{start_s}|{start_s + seconds}"
            lines.append(f"{number}||{name}|{times}|{NODES}")
        (tmp_path / "queue.txt").write_text("\n".join(lines))
        return tmp_path / "queue.txt"

    @pytest.mark.slow
    def test_the_page_has_the_answer_of_the_command(
        self,
        client: FlaskClient,
        service: Service,
        queue: Path,
        location: str,
        site_store: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        done = run_ioncast(
            *("worth", "--store", site_store, "--jobs", queue, "--db", location),
            *("--system", "here", "--ran-with", str(RAN_WITH), "--pool", "4", "--format", "json"),
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        text = shown(client, "?system=here&pool=4")
        cells = [
            [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
            for row in re.findall(r"<tr>(.*?)</tr>", text, flags=re.DOTALL)
        ]
        assert [arm["arm"] for arm in found["arms"]] == ["direct", "static", "ioncast", "best"]
        for arm in found["arms"]:
            [row] = [row for row in cells if row[:2] == ["4", arm["arm"]] and len(row) == 6]
            for cell, name in ((2, "io_hours"), (3, "hours"), (5, "saved_hours")):
                value, low, high = map(in_digits, arm[name].values())
                assert row[cell] == f"{value} ({low} to {high})"
        assert f"{found['jobs']} jobs of {found['days']} days" in words(text)
        assert "each recorded with its own number of I/O nodes" in words(text)
        assert text.count("<summary>The numbers") == 3
        # A second look computes nothing.
        monkeypatch.setattr(service.children, "run_within", None)
        assert shown(client, "?pool=4") == text


class TestWithoutTheirLogs:
    @pytest.fixture(autouse=True)
    def jobs(self, database: Engine) -> None:
        put_job(database, "7", 1_795_000_000, 600)
        run, _ = put_run(database, phases=[])
        put_outcome(database, job_id="8", run_id=run.id)

    def test_the_form_has_half_once_and_twice_the_io_nodes_and_says_what_cannot_be_replayed(
        self, client: FlaskClient, database: Engine
    ) -> None:
        assert 'name="pool" type="text" value=""' in shown(client)
        with transaction(database, write=True) as connection:
            now = datetime.now(timezone.utc)
            store_queue_report(connection, QueueReport("here", 6, 2, 1, 0, None), now)
        text = shown(client)
        assert 'name="pool" type="text" value="3,6,12"' in text
        assert "1 job of the history can be replayed" in words(text)
        assert "1 job of the history cannot be replayed" in words(text)
        assert "The history has only jobs that left a log" in words(text)
        assert "<svg" not in text

    @pytest.mark.slow
    def test_jobs_without_a_benchmark_have_no_number(self, client: FlaskClient) -> None:
        assert "<svg" not in shown(client, "?pool=4", 404)

    @pytest.mark.slow
    def test_a_replay_that_takes_too_long_is_ended(
        self, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(asked, "_WORTH_S", 0)
        said = words(shown(client, "?pool=4", 503))
        assert "took more than 0 s" in said
        assert "ask for fewer pools, or ask `ioncast worth`" in said

    @pytest.mark.parametrize(
        ("query", "status", "told"),
        [
            ("?pool=x", 422, "'x' is not a list of numbers such as 4,8,16"),
            ("?pool=", 422, "'' is not a list of numbers"),
            ("?pool=0", 422, "a pool of 0 is direct access"),
            ("?pool=00,4", 422, "a pool of 0 is direct access"),
            ("?pool=1,2,3,4,5", 422, "these are 5 numbers, more than 4"),
            ("?pool=<script>", 422, "'<script>' is not a list"),
            ("?system=<script>&pool=4", 404, "no jobs of '<script>'; it has those of here"),
        ],
    )
    def test_a_choice_that_cannot_be_used_is_told(
        self, client: FlaskClient, query: str, status: int, told: str
    ) -> None:
        text = shown(client, query, status)
        assert "<script>" not in text
        assert told.lower() in words(text).lower()


def test_without_times_the_page_says_how_the_command_answers(
    client: FlaskClient, database: Engine
) -> None:
    assert "The history has no job whose submission" in words(shown(client))
    put_outcome(database, job_id="8")
    text = words(shown(client, "?pool=4"))
    assert "The history has no job of here whose submission" in text
    assert "sacct --allusers --parsable2" in text
    assert "ioncast worth --store" in text


class TestWithoutAStore:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service without a store."""
        return settings.model_copy(update={"store": None})

    def test_the_page_says_so_and_no_page_links_to_it(self, client: FlaskClient) -> None:
        text = shown(client)
        assert "This service has no store." in text
        assert 'href="/worth"' not in text


def test_pages_link_to_it(client: FlaskClient) -> None:
    assert 'href="/worth">Worth</a>' in client.get("/docs", headers=BROWSER).text
    assert 'aria-current="page">Worth</a>' in shown(client)


class TestWhereReadingIsClosed:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service that shows pages only after a login."""
        return settings.model_copy(update={"reading": "closed"})

    def test_the_page_needs_a_login(
        self, client: FlaskClient, authorised: Callable[[str], dict[str, Any]]
    ) -> None:
        answer = client.get("/worth?pool=4", headers=BROWSER)
        assert answer.status_code == 303
        headers = {**BROWSER, **authorised("reader")["headers"]}
        assert "Worth of I/O nodes" in client.get("/worth", headers=headers).text
