"""Named queries over HTTP: the answers of `ioncast sql`, within limits, whatever a client sends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine

from ioncast.service.context import Service
from ioncast.service.settings import Settings
from ioncast.service.web import site_store as asked
from ioncast.service.web.site_store import SiteStore
from ioncast.warehouse import views
from ioncast_base.errors import InputError
from tests.support.command import run_ioncast

Authorised = Callable[[str], dict[str, Any]]
_PAIRS = "range(1000000) as a(x), range(1000000) as b(y)"
SITE = {
    "slow": f"-- title: Slow\nselect count(*) as n from {_PAIRS} where a.x + b.y = 3",
    "large": "-- title: Large\nselect count(distinct a.x) as n from range(30000000) as a(x)",
    "rows": "-- title: Rows\n-- rows: integer; how many\nselect * from range(:rows) as a(x)",
    "odd": "-- title: Odd\nselect 'nan'::double as n, '\\xFF'::blob as b, [1] as l,"
    " date '2026-01-02' as d",
    "writes": "-- title: Writes\ncreate table t (x int)",
    "reads": "-- title: Reads\nselect * from read_text('/etc/passwd')",
}


@pytest.fixture
def settings(location: str, database: Engine, tmp_path: Path, site_store: Path) -> Settings:
    """Settings of a service with a store, and with queries of the site."""
    folder = tmp_path / "queries"
    folder.mkdir()
    for name, text in SITE.items():
        (folder / f"{name}.sql").write_text(text, encoding="utf-8")
    limits: dict[str, Any] = {"patience_s": 60, "requests_per_minute": 100_000}
    state = str(tmp_path / "state")
    return Settings(
        database=location, state=state, store=str(site_store), queries=str(folder), **limits
    )


def problem(client: FlaskClient, path: str, status: int) -> str:
    answer = client.get(f"/v1/queries/{path}")
    assert (answer.status_code, answer.mimetype) == (status, "application/problem+json"), (
        answer.text
    )
    return str(answer.get_json()["detail"])


@pytest.mark.slow
def test_all_queries_are_listed_with_their_parameters(client: FlaskClient) -> None:
    items = {each["name"]: each for each in client.get("/v1/queries").get_json()["items"]}
    assert list(items) == sorted(items)
    assert {*SITE, "totals", "users", "file"} <= set(items)
    assert items["rows"] == {
        "name": "rows",
        "title": "Rows",
        "parameters": [
            {
                "name": "rows",
                "kind": "integer",
                "is_range": False,
                "usual": None,
                "meaning": "how many",
            }
        ],
    }
    [month] = [each for each in items["totals"]["parameters"] if each["name"] == "month"]
    assert (month["kind"], month["is_range"], month["usual"]) == ("month", True, "-")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("totals", []),
        ("users", ["by=io", "limit=1"]),
        ("by-month", ["month=2023-01-2024-12", "system=here"]),
        ("file", ["path=%"]),
        ("worst-runs", ["system=elsewhere"]),
    ],
)
def test_an_answer_is_that_of_the_command(
    client: FlaskClient, site_store: Path, name: str, words: list[str]
) -> None:
    done = run_ioncast("sql", site_store, name, *words, "--format", "json")
    given = dict(word.split("=", 1) for word in words)
    answer = client.get(f"/v1/queries/{name}", query_string=given).get_json()
    rows = json.loads(done.stdout)
    assert (answer["query"], answer["rows"], answer["truncated"]) == (name, rows, False)
    assert all(list(row) == answer["columns"] for row in rows)


def test_every_kind_of_value_can_be_sent(client: FlaskClient) -> None:
    [row] = client.get("/v1/queries/odd").get_json()["rows"]
    assert row == {"n": None, "b": "_w==", "l": [1], "d": "2026-01-02"}


@pytest.mark.parametrize(("rows", "truncated"), [(10_000, False), (10_001, True)])
def test_an_answer_has_at_most_ten_thousand_rows(
    client: FlaskClient, rows: int, truncated: bool
) -> None:
    answer = client.get(f"/v1/queries/rows?rows={rows}").get_json()
    assert (len(answer["rows"]), answer["truncated"]) == (10_000, truncated)
    assert answer["rows"][-1] == {"x": 9_999}


def test_an_unknown_query_is_told_with_similar_names(client: FlaskClient) -> None:
    said = problem(client, "user", 404)
    assert said.startswith("there is no query 'user'; there are users, ")
    assert said.endswith("GET /v1/queries lists all")


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..",
        "totals.sql",
        "TOTALS",
        "totals;",
        "x" * 5_000,
        "\0",
        "totals\n",
        "ä",
    ],
)
def test_no_name_leads_out_of_the_folder(client: FlaskClient, name: str) -> None:
    problem(client, quote(name, safe=""), 404)


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("users?limit=-1", "limit"),
        ("users?limit=1.5", "limit"),
        (f"users?limit={10**30}", "the query fails"),
        (f"users?limit={10**40}", "the query fails"),
        (f"users?limit={'9' * 5_000}", "limit"),
        ("users?limit=", "limit"),
        ("users?by=user_id;drop", "by"),
        ("users?month=2026", "month"),
        ("users?month=2026-02-2026-01", "ends before it begins"),
        ("users?limit=1&limit=2", "is given twice"),
        ("users?LIMIT=1", "no parameter 'LIMIT'"),
        ("users?text=select+1", "no parameter 'text'"),
        ("users?sql=select+1", "no parameter 'sql'"),
        ("users?name=../../etc/passwd", "no parameter 'name'"),
        ("file", "needs path"),
        ("writes", "a query is one select"),
        ("reads", "the query fails"),
    ],
)
def test_a_value_that_cannot_be_used_is_told(client: FlaskClient, query: str, told: str) -> None:
    assert told.lower() in problem(client, query, 422).lower()


@pytest.mark.parametrize(
    "value", ["' or 1=1 --", "%00", "%ff", "%F0%9F%92%A9", ":limit", "x" * 9_000]
)
def test_a_value_is_never_a_part_of_the_text(client: FlaskClient, value: str) -> None:
    answer = client.get(f"/v1/queries/users?system={value}")
    assert (answer.status_code, answer.get_json()["rows"]) == (200, [])


def test_a_query_that_takes_too_long_is_ended(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_QUERY_S", 0.3)
    answer = client.get("/v1/queries/slow")
    assert answer.status_code == 503
    assert answer.get_json()["detail"].startswith("this takes longer than 0.3 s; ask for fewer")
    assert "Retry-After" in answer.headers
    monkeypatch.undo()
    assert client.get("/v1/queries/totals").status_code == 200


def test_a_query_that_takes_too_much_memory_is_ended(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_MEMORY_MIB", 32)
    assert "this takes more than 32 MiB of memory" in problem(client, "large", 503)
    assert client.get("/v1/queries/totals").status_code == 200


def test_a_worker_answers_one_question_at_a_time(client: FlaskClient, service: Service) -> None:
    service.store._patience_s = 0.1
    with service.store._place:
        problem(client, "totals", 503)
    assert client.get("/v1/queries/totals").status_code == 200


class TestAStoreThatCannotBeRead:
    @pytest.fixture
    def settings(self, settings: Settings, site_store: Path, tmp_path: Path) -> Settings:
        """Settings of a service with a store that a test can damage."""
        shutil.copytree(site_store, tmp_path / "store")
        return settings.model_copy(update={"store": str(tmp_path / "store")})

    @pytest.mark.parametrize("fault", ["gone", "empty", "damaged", "newer"])
    def test_is_told_without_its_folder(
        self,
        client: FlaskClient,
        tmp_path: Path,
        fault: str,
        monkeypatch: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        store = tmp_path / "store"
        if fault == "damaged":
            for file in store.glob("*/jobs.parquet"):
                file.write_bytes(b"PAR1")
        elif fault == "newer":
            monkeypatch.setattr(views, "EXTRACTOR", 0)
        else:
            shutil.rmtree(store)
        if fault == "empty":
            store.mkdir()
        said = problem(client, "totals", 503)
        assert said.startswith("the store of this service cannot be read now")
        assert str(tmp_path) not in said
        assert str(store) in caplog.text


class TestWithoutAStore:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service without a store."""
        return settings.model_copy(update={"store": None})

    def test_an_answer_says_how_to_make_one(self, client: FlaskClient) -> None:
        assert client.get("/v1/queries").status_code == 200
        said = problem(client, "totals", 404)
        assert said.startswith("this service has no store; `ioncast ingest` makes one")

    @pytest.mark.slow
    def test_the_service_does_without_the_libraries(self) -> None:
        program = (
            "import sys; sys.modules['duckdb'] = sys.modules['pyarrow'] = None\n"
            "from ioncast.service.settings import Settings\n"
            "from ioncast.service.web.app import create_app\n"
            "client = create_app(Settings()).test_client()\n"
            "print(*(client.get(path).status_code for path in ('/v1/queries', '/survey')))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        assert done.stdout == "200 200\n"


@pytest.mark.parametrize("package", ["duckdb", "pyarrow"])
def test_a_service_with_a_store_needs_the_libraries_at_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setattr(
        "ioncast_base.errors.find_spec", lambda name: None if name == package else 1
    )
    words = ["--state", tmp_path / "state", "--db", tmp_path / "x.sqlite"]
    done = run_ioncast("serve", *words, environment={"IONCAST_STORE": str(tmp_path)})
    assert done.returncode == 2
    assert f"store: this needs {package}, which is not installed" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("text", [None, "select 1"])
def test_queries_that_cannot_be_read_end_the_start(tmp_path: Path, text: str | None) -> None:
    folder = tmp_path / "queries"
    if text is not None:
        folder.mkdir()
        (folder / "one.sql").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=str(folder)):
        SiteStore(Settings(queries=str(folder)))


class TestWhereReadingIsClosed:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service that answers only with tokens."""
        return settings.model_copy(update={"reading": "closed"})

    @pytest.mark.parametrize("path", ["", "/totals", "/nothing"])
    def test_a_question_needs_a_token(
        self, client: FlaskClient, authorised: Authorised, path: str
    ) -> None:
        assert client.get(f"/v1/queries{path}").status_code == 401
        token = authorised("reader")
        expected = 404 if path == "/nothing" else 200
        assert client.get(f"/v1/queries{path}", **token).status_code == expected
