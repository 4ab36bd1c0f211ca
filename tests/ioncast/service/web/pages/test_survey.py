"""The page of the survey: what `ioncast survey` counts, computed once, by choice of jobs."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine

from ioncast.service.context import Service
from ioncast.service.settings import Settings
from ioncast.service.web import site_store as asked
from tests.support.command import run_ioncast

BROWSER = {"Accept": "text/html"}
MONTHS = ("2023-11", "2026-11")


@pytest.fixture
def settings(location: str, database: Engine, tmp_path: Path, site_store: Path) -> Settings:
    """Settings of a service with a store."""
    state = str(tmp_path / "state")
    return Settings(database=location, state=state, store=str(site_store), patience_s=60)


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The surveys that were computed."""
    made: list[Any] = []
    survey_of = asked.survey_of

    def compute(*given: Any, **chosen: Any) -> Any:
        made.append(chosen)
        return survey_of(*given, **chosen)

    monkeypatch.setattr(asked, "survey_of", compute)
    return made


def shown(client: FlaskClient, query: str = "", status: int = 200) -> str:
    answer = client.get(f"/survey{query}", headers=BROWSER)
    assert (answer.status_code, answer.mimetype) == (status, "text/html"), answer.text
    return answer.text


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", []),
        ("?system=here&from=&to=", ["--system", "here"]),
        ("?from=2026-11", ["--month", "2026-11"]),
        ("?to=2023-11", ["--month", "2023-11"]),
        ("?from=2023-11&to=2026-11", ["--month", "2023-11-2026-11"]),
    ],
)
def test_the_page_has_the_numbers_of_the_command(
    client: FlaskClient, site_store: Path, query: str, options: list[str]
) -> None:
    done = run_ioncast("survey", "--store", site_store, *options, "--format", "json")
    [totals] = json.loads(done.stdout)["totals"]
    text = words(shown(client, query))
    assert f"Logs {totals['logs']:,} of {totals['jobs']:,} job" in text
    assert f"Users {totals['users']:,} with {totals['programs']:,} program" in text


@pytest.mark.slow
def test_the_form_has_the_systems_and_months_of_the_store_and_the_choice(
    client: FlaskClient,
) -> None:
    text = shown(client, "?from=2026-11")
    lists = re.findall(r'<select id="(\w+)".*?</select>', text, flags=re.DOTALL)
    assert lists == ["system", "from", "to"]
    assert "<option>here</option>" in text
    assert [text.count(f">{month}</option>") for month in MONTHS] == [2, 2]
    assert re.findall(r"<option selected>([^<]*)", text) == ["2026-11"]


@pytest.mark.slow
def test_a_second_look_computes_nothing(client: FlaskClient, computed: list[Any]) -> None:
    first = shown(client)
    assert shown(client, "?system=&from=&to=") == first
    assert len(computed) == 1
    shown(client, "?system=here")
    assert len(computed) == 2


@pytest.mark.slow
def test_only_the_last_surveys_are_kept(
    client: FlaskClient, service: Service, computed: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_KEPT_SURVEYS", 2)
    for query in ("", "?system=here", "?from=2026-11", "?from=2026-11", ""):
        shown(client, query)
    assert len(computed) == 4
    assert len(service.store._kept) == 2


@pytest.mark.parametrize(
    ("query", "status", "told"),
    [
        ("?system=nowhere", 404, "no jobs of 'nowhere'; it has those of here"),
        ("?system=<script>", 404, "no jobs of '<script>'"),
        ("?from=2024-01", 404, "no jobs of '2024-01'; it has those of 2023-11 and 2026-11"),
        ("?to=' or 1=1", 404, "it has those of 2023-11 and 2026-11"),
        ("?from=2026-11&to=2023-11", 422, "ends before it begins"),
    ],
)
def test_a_choice_that_the_store_lacks_is_told_and_computes_nothing(
    client: FlaskClient, computed: list[Any], query: str, status: int, told: str
) -> None:
    text = shown(client, query, status)
    assert "<script>" not in text
    assert told in words(text)
    assert not computed or status == 422


@pytest.mark.slow
def test_a_survey_that_takes_too_long_is_told(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_SURVEY_S", 0.001)
    assert "This takes longer than 0.001 s" in words(shown(client, status=503))
    monkeypatch.undo()
    shown(client)


class TestAStoreThatGrows:
    @pytest.fixture
    def settings(self, settings: Settings, site_store: Path, tmp_path: Path) -> Settings:
        """Settings of a service with a store of its own."""
        shutil.copytree(site_store, tmp_path / "store")
        return settings.model_copy(update={"store": str(tmp_path / "store")})

    @pytest.mark.slow
    def test_is_surveyed_again(
        self, client: FlaskClient, tmp_path: Path, computed: list[Any]
    ) -> None:
        shown(client)
        logs = Path(__file__).resolve().parents[5] / "experiments" / "data" / "testbed" / "logs"
        log = next(iter(sorted(logs.glob("*.darshan"))))
        done = run_ioncast("ingest", log, "--system", "new", "--store", tmp_path / "store")
        assert done.returncode == 0, done.stderr
        assert "<option>new</option>" in shown(client)
        assert len(computed) == 2


class TestWithoutAStore:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service without a store."""
        return settings.model_copy(update={"store": None})

    def test_the_page_says_how_to_make_one(self, client: FlaskClient) -> None:
        text = shown(client)
        assert "This service has no store." in text
        assert "ioncast ingest" in text

    def test_no_page_links_to_the_survey(self, client: FlaskClient) -> None:
        assert 'href="/survey"' not in client.get("/docs", headers=BROWSER).text


@pytest.mark.slow
def test_every_page_links_to_the_survey(client: FlaskClient) -> None:
    assert 'href="/survey">Survey</a>' in client.get("/docs", headers=BROWSER).text
    assert 'aria-current="page">Survey</a>' in shown(client)


class TestWhereReadingIsClosed:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service that shows pages only after a login."""
        return settings.model_copy(update={"reading": "closed"})

    @pytest.mark.slow
    def test_the_page_needs_a_login(
        self, client: FlaskClient, authorised: Callable[[str], dict[str, Any]]
    ) -> None:
        answer = client.get("/survey?system=here", headers=BROWSER)
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith("/login?next=")
        headers = {**BROWSER, **authorised("reader")["headers"]}
        assert "I/O survey" in client.get("/survey", headers=headers).text
