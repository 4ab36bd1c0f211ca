"""The pages of the named queries: the answers of the API, with a form of all parameters."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import Engine

from ioncast.service.settings import Settings
from ioncast.service.web import site_store as asked

BROWSER = {"Accept": "text/html"}
SITE = {
    "odd": "-- title: <b>Odd</b>\n-- name: text = x; a text\n-- endpoint: text = -; a text\n"
    "select :name as \"<i>\", 'nan'::double as n, '\\xFF'::blob as b, [1] as l, null as u,"
    " :endpoint as e",
    "unknown": "-- title: A\nselect null as a, 1 as b union all select 2.5, null"
    " order by 1 nulls first",
    "rows": "-- title: Rows\n-- rows: integer; how many\nselect * from range(:rows) as a(x)",
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


def shown(client: FlaskClient, address: str, status: int = 200) -> str:
    answer = client.get(address, headers=BROWSER)
    assert (answer.status_code, answer.mimetype) == (status, "text/html"), answer.text
    return answer.text


def table(text: str) -> list[list[str]]:
    """The columns' names, and the cells of each row."""
    return [
        [html.unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in re.findall(r"<tr>(.*?)</tr>", text, flags=re.DOTALL)
    ]


def told(text: str) -> str:
    [found] = re.findall(r'role="alert"><p>(.*?)</p>', text)
    return html.unescape(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked_for",
    ["users?by=io&limit=1", "by-month?month=2023-01-2024-12", "reads-writes", "file?path=%25"],
)
def test_the_page_has_the_answer_of_the_api(client: FlaskClient, asked_for: str) -> None:
    answer = client.get(f"/v1/queries/{asked_for}").get_json()
    text = shown(client, f"/queries/{asked_for}")
    columns, *rows = table(text)
    assert columns == answer["columns"]
    assert len(rows) == len(answer["rows"]) > 0
    for cells, row in zip(rows, answer["rows"], strict=True):
        for cell, value in zip(cells, row.values(), strict=True):
            if isinstance(value, float):
                assert float(cell.replace(",", "")) == pytest.approx(value, rel=0.01)
            else:
                assert cell == ("–" if value is None else str(value))
    [link] = re.findall(r'href="(/v1/queries/[^"]*)"', text)
    assert client.get(html.unescape(link)).get_json() == answer


@pytest.mark.slow
def test_the_form_has_all_parameters_with_the_values_of_the_address(client: FlaskClient) -> None:
    items = {each["name"]: each for each in client.get("/v1/queries").get_json()["items"]}
    for name in ("users", "file", "latency-max", "energy"):
        [form] = re.findall("<form method.*?</form>", shown(client, f"/queries/{name}"), re.DOTALL)
        names = [parameter["name"] for parameter in items[name]["parameters"]]
        assert re.findall(r'<(?:input|select) [^>]*name="(\w+)"', form) == names
    text = shown(client, "/queries/users?by=io&limit=7&month=&system=a%22b")
    assert re.findall(r"<option selected>(\w+)", text) == ["io"]
    values = dict(re.findall(r'<input [^>]*name="(\w+)" type="text" value="([^"]*)"', text))
    assert values == {"limit": "7", "month": "", "system": "a&#34;b"}


@pytest.mark.slow
def test_columns_of_numbers_are_aligned_beside_unknown_ones(client: FlaskClient) -> None:
    text = shown(client, "/queries/unknown")
    assert (
        re.findall(r"<t[hd]( [^>]*)?>", text)
        == [' scope="col" class="num"'] * 2 + [' class="num"'] * 4
    )


def test_the_list_has_all_queries_and_the_survey_links_to_it(client: FlaskClient) -> None:
    names = [each["name"] for each in client.get("/v1/queries").get_json()["items"]]
    assert re.findall(r'href="/queries/([^"]+)"', shown(client, "/queries")) == names
    assert 'href="/queries"' in shown(client, "/survey")


def test_a_query_is_asked_when_the_address_has_what_it_needs(client: FlaskClient) -> None:
    assert "<table" not in shown(client, "/queries/rows")
    assert table(shown(client, "/queries/rows?rows=2")) == [["x"], ["0"], ["1"]]
    assert "There are no rows." in shown(client, "/queries/rows?rows=0")


def test_an_answer_is_as_long_as_that_of_the_api(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "MOST_ROWS", 3)
    text = shown(client, "/queries/rows?rows=4")
    assert "There are more than these 3 rows." in text
    assert len(table(text)) == 4


def test_odd_names_and_values_are_shown_as_text(client: FlaskClient) -> None:
    text = shown(client, "/queries/odd?name=%3Cscript%3E&endpoint=1")
    assert "<script>" not in text
    assert "<b>" not in text
    columns, row = table(text)
    assert (columns[0], row) == ("<i>", ["<script>", "nan", "b'\\xff'", "[1]", "–", "1"])


@pytest.mark.parametrize(
    "asked_for",
    [
        *("users?limit=-1", "users?limit=%0A1.5", "users?by=user_id;drop", "users?month=2026"),
        *("users?text=select+1", "users?limit=" + "9" * 5_000, "file?path=", "rows?rows=x"),
    ],
)
def test_a_value_that_cannot_be_used_is_told_in_one_line_as_by_the_api(
    client: FlaskClient, asked_for: str
) -> None:
    said = told(shown(client, f"/queries/{asked_for}", 422))
    assert "\n" not in said
    if asked_for != "file?path=":
        detail = client.get(f"/v1/queries/{asked_for}").get_json()["detail"]
        assert said.rstrip(".").lower() == detail.rstrip(".").lower()


@pytest.mark.parametrize(
    ("asked_for", "status"),
    [("user", 404), ("..%2Fetc", 404), ("totals.sql", 404), ("users?limit=1&limit=2", 422)],
)
def test_other_errors_are_pages(client: FlaskClient, asked_for: str, status: int) -> None:
    shown(client, f"/queries/{asked_for}", status)


def test_a_program_gets_errors_as_problem_documents(client: FlaskClient) -> None:
    answer = client.get("/queries/rows?rows=x", headers={"Accept": "application/json"})
    assert (answer.status_code, answer.mimetype) == (422, "application/problem+json")


def test_an_answer_that_takes_too_long_is_told(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asked, "_QUERY_S", 0.0001)
    assert "This takes longer than" in shown(client, "/queries/users", 503)


class TestWithoutAStore:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service without a store."""
        return settings.model_copy(update={"store": None})

    def test_the_list_leads_to_the_page_that_says_how_to_make_one(
        self, client: FlaskClient
    ) -> None:
        answer = client.get("/queries", headers=BROWSER)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/survey")

    @pytest.mark.parametrize("asked_for", ["users", "rows?rows=1"])
    def test_a_query_is_told_that_there_is_none(self, client: FlaskClient, asked_for: str) -> None:
        assert "service has no store" in shown(client, f"/queries/{asked_for}", 404)


class TestWhereReadingIsClosed:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        """Settings of a service that shows pages only after a login."""
        return settings.model_copy(update={"reading": "closed"})

    @pytest.mark.parametrize("path", ["", "/users?limit=1", "/nothing"])
    def test_a_page_needs_a_login(
        self, client: FlaskClient, authorised: Callable[[str], dict[str, Any]], path: str
    ) -> None:
        answer = client.get(f"/queries{path}", headers=BROWSER)
        assert answer.status_code == 303
        assert answer.headers["Location"].startswith("/login?next=")
        headers = {**BROWSER, **authorised("reader")["headers"]}
        expected = 404 if path == "/nothing" else 200
        assert client.get(f"/queries{path}", headers=headers).status_code == expected
