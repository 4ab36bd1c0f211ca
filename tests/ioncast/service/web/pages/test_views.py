"""The pages without a browser: their content for the demonstration's data, and access."""

from __future__ import annotations

import contextlib
import csv
import gzip
import hashlib
import html
import io
import json
import re
import shlex
import shutil
import time
from base64 import urlsafe_b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path
from statistics import fmean
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from click.testing import CliRunner
from flask import Flask
from flask.testing import FlaskClient
from itsdangerous import URLSafeTimedSerializer
from werkzeug.test import TestResponse

from benchdb.measurements.listing import configurations_after
from benchdb.measurements.storing import count
from benchdb.store.database import opened_database, transaction
from experiments.applications.darshan_writer import Record, write_log
from ioncast.cli import cli
from ioncast.service.background.process import Keeper
from ioncast.service.context import Service
from ioncast.service.monitoring.gain import gains
from ioncast.service.running.demo_data import NODES, SYSTEM
from ioncast.service.settings import Settings
from ioncast.service.store.applications import applications
from ioncast.service.store.credentials import digest
from ioncast.service.store.decisions import DecisionRow, decisions, store_decisions
from ioncast.service.store.outcomes import joined_outcomes, store_outcome
from ioncast.service.store.runs import NewRun, StoredRun, runs_of, store_run
from ioncast.service.store.tokens import add_token, revoke_token
from ioncast.service.web.app import create_app
from ioncast.service.web.pages.views import pages
from ioncast_base.pages.rendering import STYLE
from ioncast_base.wording import bandwidth, in_digits, in_words
from summario.reading.log import read_log
from tests.support.traced import traced_log

pytestmark = pytest.mark.slow

TESTBED = Path(__file__).resolve().parents[5] / "experiments" / "data" / "testbed"
LOG = TESTBED / "logs" / "hacc-io-ionodes0.darshan"
# The Accept header of a browser.
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
LISTS = (
    *("/", "/applications", "/jobs", "/survey", "/worth", "/benchmarks", "/validation", "/predict"),
    *("/docs", "/login"),
)
# A job of the demonstration: its row is in applications.csv.
JOB = "hacc-io-4-0"
COMPARED = "/applications/1/compare?run=1&with=2"
PAGES = (
    *(*LISTS, "/applications/1", COMPARED, "/benchmarks/1", f"/jobs/{JOB}"),
    *("/queries", "/queries/users"),
)

# Pages that do not depend on the database.


@pytest.fixture(scope="session")
def filled_location(demo_on_sqlite: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(shutil.copy(demo_on_sqlite, tmp_path_factory.mktemp("pages")))


@pytest.fixture(scope="session")
def filled(
    filled_location: str, site_store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlaskClient]:
    """The pages of the demonstration, and of a store."""
    state = str(tmp_path_factory.mktemp("state"))
    limits: dict[str, Any] = {"requests_per_minute": 100_000, "patience_s": 60, "upload_s": 600}
    settings = Settings(database=filled_location, state=state, store=str(site_store), **limits)
    with contextlib.closing(Keeper(settings)) as keeper:
        keeper.round(time.time(), time.time())
        # The keeper's thread must not outlive the database.
        while keeper.is_behind:
            keeper.round(time.time(), time.time())
    app = create_app(settings)
    service: Service = app.extensions["ioncast"]
    service.prepared.refresh()
    yield app.test_client()
    service.prepared.close()
    service.database.dispose()


def page(client: FlaskClient, path: str, status: int = 200, **told: Any) -> str:
    response = client.get(path, headers=BROWSER, **told)
    assert response.status_code == status, response.text
    assert response.mimetype == "text/html"
    return response.text


def all_pages(client: FlaskClient, path: str | None, link: str) -> Iterator[str]:
    """All pages of a list, found by their links."""
    while path:
        text = html.unescape(page(client, path))
        yield text
        path = next(iter(re.findall(rf'href="([^"]*)">{link}', text)), None)


def words(text: str) -> str:
    """The text of a page without tags, with single blanks."""
    without = re.sub(r"<script.*?</script>|<style.*?</style>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", without)).split())


def figure_of(text: str, name: str) -> str:
    """The HTML of a figure of a page by id."""
    [found] = re.findall(
        rf'<figure aria-labelledby="{name}-title">(.*?)</figure>', text, flags=re.DOTALL
    )
    return str(found)


def figures(text: str) -> dict[str, list[str]]:
    """The hints of all points and bars of a page's figures by id."""
    found = re.findall(
        r'<figure aria-labelledby="([\w-]+)-title">(.*?)</figure>', text, flags=re.DOTALL
    )
    return {
        name: re.findall(r"<title>(.*?)</title>", html.unescape(drawn), re.DOTALL)
        for name, drawn in found
        if 'class="area' in drawn
    }


def decided_by_history(hints: list[str]) -> int:
    """Add up the decisions from the history in a figure."""
    found = [re.match(r"([\d,]+) decisions? from history", hint) for hint in hints]
    return sum(int(match[1]) for match in found if match)


def rows_of(name: str) -> list[dict[str, str]]:
    with (TESTBED / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def application_of(client: FlaskClient, program: str) -> tuple[int, StoredRun]:
    """An application's id, and its newest run."""
    service: Service = client.application.extensions["ioncast"]
    with transaction(service.database) as connection:
        [found] = applications(connection, search=program)
        return found.application.id, runs_of(connection, found.application.id)[0]


def ioncast(*args: str | Path) -> Any:
    found = CliRunner().invoke(cli, list(map(str, args)), env={"COLUMNS": "300"})
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


def send(
    client: FlaskClient, content: bytes, name: str = "app.darshan", **told: str
) -> TestResponse:
    data = {"log": (io.BytesIO(content), name), "system": SYSTEM, **told}
    return client.post("/predict", data=data, headers=BROWSER)


class TestEveryPage:
    @pytest.mark.parametrize("path", PAGES)
    def test_has_a_title_a_heading_landmarks_and_a_way_past_the_menu(
        self, filled: FlaskClient, path: str
    ) -> None:
        text = page(filled, path)
        assert '<html lang="en">' in text
        assert re.search(r"<title>[^<]+ · ioncast</title>", text)
        assert len(re.findall("<h1[ >]", text)) == 1
        for landmark in ("header", "nav", "main", "footer"):
            assert f"<{landmark} " in text
        assert text.index('<a class="skip" href="#content">') < text.index("<header")
        assert '<main id="content"' in text

    @pytest.mark.parametrize("path", PAGES)
    def test_has_no_script_of_its_own_and_loads_nothing_from_elsewhere(
        self, filled: FlaskClient, path: str
    ) -> None:
        text = page(filled, path)
        for attributes in re.findall(r"<script\b([^>]*)>", text):
            assert 'type="application/json"' in attributes or 'src="/' in attributes
        assert not re.search(r"<[^>]*\son\w+\s*=", text)
        assert not re.search(r"javascript:", text)
        loaded = re.findall(r"<(?:script|link|img)\b[^>]*?(?:src|href)=\"([^\"]*)\"", text)
        assert loaded
        assert all(address.startswith("/assets/") for address in loaded)

    @pytest.mark.parametrize("path", PAGES)
    def test_names_each_element_once(self, filled: FlaskClient, path: str) -> None:
        names = Counter(re.findall(r'\bid="([^"]*)"', page(filled, path)))
        assert {name for name, times in names.items() if times > 1} == set()
        referred = re.findall(
            r'\b(?:for|aria-labelledby|aria-describedby|popovertarget)="([^"]*)"',
            page(filled, path),
        )
        assert set(referred) <= set(names)

    @pytest.mark.parametrize("path", PAGES)
    def test_gives_each_table_a_caption_and_each_figure_words(
        self, filled: FlaskClient, path: str
    ) -> None:
        text = page(filled, path)
        for table in re.findall(r"<table.*?</table>", text, flags=re.DOTALL):
            assert re.search(r"<caption[^>]*>\s*\w", table)
            assert '<th scope="col"' in table
        for figure in re.findall(r"<figure.*?</figure>", text, flags=re.DOTALL):
            assert re.search(r"<figcaption[^>]*>\s*\w", figure)
            assert "<table" in figure

    @pytest.mark.parametrize("path", PAGES)
    def test_links_only_to_pages_that_exist(self, filled: FlaskClient, path: str) -> None:
        links = set(re.findall(r'<a [^>]*href="(/[^"#]*)', page(filled, path)))
        assert links
        for link in links:
            assert filled.get(html.unescape(link), headers=BROWSER).status_code == 200, link

    def test_uses_colours_that_the_style_sheet_has_for_both_schemes(
        self, filled: FlaskClient
    ) -> None:
        style = filled.get("/assets/style.css", buffered=True).text
        light, dark = (
            set(re.findall(r"(--[\w-]+):", block))
            for block in re.findall(r":root \{(.*?)\}", style, flags=re.DOTALL)[:2]
        )
        used = {
            name for path in PAGES for name in re.findall(r"var\((--[\w-]+)\)", page(filled, path))
        }
        assert used
        assert used <= dark <= light

    def test_marks_its_place_in_the_menu(self, filled: FlaskClient) -> None:
        for path, name in (("/", "Overview"), ("/validation", "Validation")):
            assert re.search(rf'aria-current="page">{name}</a>', page(filled, path))
        assert re.search(r'aria-current="true">Applications</a>', page(filled, "/applications/1"))

    def test_is_tested_here(self, filled: FlaskClient) -> None:
        views = {
            rule.rule
            for rule in filled.application.url_map.iter_rules()
            if rule.endpoint.startswith(f"{pages.name}.") and "GET" in (rule.methods or ())
        }
        tested = {
            re.sub(rf"/(1|{JOB}|users)(?=/|$)", "/<>", path.partition("?")[0]) for path in PAGES
        }
        # The address of a kept result is random: test_kept.py.
        assert {re.sub("<.*>", "<>", view) for view in views} == tested | {"/kept/<>"}


class TestOverview:
    def test_counts_the_decisions_of_the_last_days_by_source(self, filled: FlaskClient) -> None:
        figure = figures(page(filled, "/"))["decisions"]
        # The decisions of all reruns are spread over 14 days; the page shows three of them.
        expected = 3 / 14 * len(rows_of("applications.csv"))
        assert decided_by_history(figure) == pytest.approx(expected, abs=1)

    @pytest.mark.parametrize(("query", "days"), [("1", 1), ("7", 7), ("5", 3), ("x", 3)])
    def test_counts_decisions_in_the_chosen_time_range(
        self, filled: FlaskClient, query: str, days: int
    ) -> None:
        text = page(filled, f"/?days={query}")
        expected = days / 14 * len(rows_of("applications.csv"))
        assert decided_by_history(figures(text)["decisions"]) == pytest.approx(expected, abs=1)
        [chosen] = re.findall(r'aria-current="true">(\d+ days?)</a>', text)
        assert chosen == f"{days} day{'s' if days > 1 else ''}"

    def test_tells_the_last_signs_of_plugin_and_collector(self, filled: FlaskClient) -> None:
        service: Service = filled.application.extensions["ioncast"]
        with transaction(service.database) as connection:
            [newest] = decisions(connection, limit=1)
            logs = [
                run.stored_at
                for each in applications(connection)
                for run in runs_of(connection, each.application.id)
            ]
            reported = [each.outcome.reported_at for each in joined_outcomes(connection)]
        text = page(filled, "/")
        signs = text[text.index('id="signs-title"') :].partition("</dl>")[0]
        times = [newest.asked_at, max(logs), max(reported)]
        assert re.findall(r'datetime="([^"]*)"', signs) == times

    def test_tells_the_gain_over_the_default(self, filled: FlaskClient) -> None:
        service: Service = filled.application.extensions["ioncast"]
        with transaction(service.database) as connection:
            rows = joined_outcomes(connection)
        [gain] = gains(rows, lambda _: None)
        told = words(page(filled, "/"))
        said = (
            f"testbed {gain.ratio - 1:+.0%} {gain.p10 - 1:+.0%} to {gain.p90 - 1:+.0%}"
            f" direct access {gain.jobs} , {gain.measured} measured 3"
        )
        assert said.replace(" ,", ",") in told.replace(" ,", ",")

    def test_shows_the_errors_of_predictions(self, filled: FlaskClient) -> None:
        service: Service = filled.application.extensions["ioncast"]
        with transaction(service.database) as connection:
            found = joined_outcomes(connection)
        errors, inside = [], []
        for each in found:
            assert each.decision is not None
            got = each.outcome.bandwidth_mib_s
            [(expected, p10, p90)] = [
                point for n, *point in each.decision.curve if n == each.outcome.io_nodes
            ]
            errors.append(abs(expected - got) / got)
            inside.append(p10 <= got <= p90)
        told = words(page(filled, "/"))
        assert f"Mean error so far {fmean(errors):.0%} of {len(found)} outcomes" in told
        assert f"Inside the interval {fmean(inside):.0%}" in told

    def test_counts_all_outcomes_of_each_system(
        self, client: FlaskClient, settings: Settings, keep: Callable[[], None]
    ) -> None:
        store_outcomes(settings, "here", [150.0])
        store_outcomes(settings, "there", [200.0, 90.0, 100.0])
        assert "Mean error so far – of 0 outcomes" in words(page(client, "/"))
        keep()
        told = words(page(client, "/"))
        # The expected bandwidth is 100, its interval 80 to 120.
        assert f"Mean error so far {fmean([1 / 3, 1 / 2, 1 / 9, 0]):.0%} of 4 outcomes" in told
        assert "Inside the interval 50%" in told

    def test_links_the_latest_decisions_to_their_applications(self, filled: FlaskClient) -> None:
        text = page(filled, "/")
        latest = text[text.index('id="latest"') :]
        assert set(re.findall(r'href="(/applications/\d+)"', latest)) <= {
            f"/applications/{number}" for number in (1, 2, 3)
        }
        assert "3 earlier runs of the same program, user and job name" in words(latest)

    def test_shows_what_the_keeper_counted_of_each_system(
        self, client: FlaskClient, settings: Settings, keep: Callable[[], None]
    ) -> None:
        import_benchmarks(settings, TESTBED / "benchmarks.csv", "here", "16", "8")
        assert "here not counted yet" in words(page(client, "/"))
        keep()
        commands = {row["command"] for row in rows_of("benchmarks.csv")}
        assert f"here {len(commands)} 0 0 0 A cell" in words(page(client, "/"))


class TestAnEmptyDatabase:
    @pytest.mark.parametrize(
        ("path", "told"),
        [
            ("/", "ioncast bench import results/*.json --system mysite --io-nodes 4"),
            ("/", "ioncast serve --demo"),
            ("/", "/v1/outcomes"),
            ("/applications", "/v1/traces"),
            ("/benchmarks", "ioncast bench import results/*.json --system mysite --io-nodes 4"),
            ("/validation", "/v1/outcomes"),
            ("/predict", "ioncast bench import results/*.json --system mysite --io-nodes 4"),
        ],
    )
    def test_says_what_to_do(self, client: FlaskClient, path: str, told: str) -> None:
        assert told in words(page(client, path))


class TestApplications:
    def test_lists_known_applications(self, filled: FlaskClient) -> None:
        told = words(page(filled, "/applications"))
        for program in ("hacc_io_write_posix_fpp", "ior", "phaseapp"):
            assert f"{program} demo testbed 3 " in told

    def test_tells_bandwidth_share_of_io_and_largest_cause_of_each_newest_run(
        self, filled: FlaskClient
    ) -> None:
        text = page(filled, "/applications")
        for program in ("hacc_io", "ior", "phaseapp"):
            number, run = application_of(filled, program)
            [log] = [log for log in (TESTBED / "logs").iterdir() if str(job_of(log)) == run.job_id]
            [checked] = ioncast("check", log, "--format", "json")
            row = text[text.index(f'href="/applications/{number}"') :].partition("</tr>")[0]
            told = words(row)
            assert run.bandwidth_mib_s is not None
            share = f"{checked['verdict']['io_share_of_run']:.0%}"
            assert f" s {in_digits(run.bandwidth_mib_s)} {share} " in told
            harmful = [each for each in checked["causes"] if each["importance"] == "major"]
            seconds = max((each["seconds_at_stake"] for each in harmful), default=None)
            assert (f"at most {in_digits(seconds)} s" in told) if seconds else "at most" not in told
            answer = filled.get(
                "/v1/decisions",
                query_string={
                    "system": SYSTEM,
                    "user": run.application.user,
                    "name": run.name,
                    "executable": run.application.executable,
                    "tasks": run.tasks,
                    "nodes": run.nodes,
                },
            ).json
            assert answer is not None
            assert told.endswith(in_words(answer["io_nodes"]))
            assert f"Decision: {in_words(answer['io_nodes'])}." in row

    @pytest.mark.parametrize(
        ("search", "programs"),
        [
            ("HACC", {"hacc_io_write_posix_fpp"}),
            ("demo", {"hacc_io_write_posix_fpp", "ior", "phaseapp"}),
            ("100%", set()),
        ],
    )
    def test_finds_parts_of_names_of_programs_and_users(
        self, filled: FlaskClient, search: str, programs: set[str]
    ) -> None:
        response = filled.get("/applications", query_string={"search": search}, headers=BROWSER)
        found = set(re.findall(r'href="/applications/\d+">([^<]*)</a>', response.text))
        assert found == programs
        assert programs or "No application found." in words(response.text)

    def test_shows_many_in_pages(self, client: FlaskClient, settings: Settings) -> None:
        names = [f"app{number:03}" for number in range(120)]
        store_runs(settings, names)
        texts = all_pages(client, "/applications", "Next page")
        found = [
            name
            for text in texts
            for name in re.findall(r'href="/applications/\d+">(.*?)</a>', text)
        ]
        assert found == names[::-1]

    def listed(self, text: str) -> list[str]:
        return re.findall(r'href="/applications/\d+">([^<]*)</a>', text)

    def links(self, text: str) -> dict[str, str]:
        [nav] = re.findall(r'<nav class="pages".*?</nav>', text, flags=re.DOTALL)
        found = re.findall(r'href="([^"]*)">([^<]*)</a>', nav)
        return {name: html.unescape(address) for address, name in found}

    def test_has_pages_both_ways_with_totals(self, client: FlaskClient, settings: Settings) -> None:
        store_runs(settings, [f"app{number:03}" for number in range(120)])
        first = page(client, "/applications?system=here&sort=program")
        assert "Applications 1 to 50 of 120." in words(first)
        assert list(self.links(first)) == ["Next page", "Last page"]
        last = page(client, self.links(first)["Last page"])
        assert "Applications 101 to 120 of 120." in words(last)
        assert self.listed(last) == [f"app{number:03}" for number in range(100, 120)]
        assert list(self.links(last)) == ["First page", "Previous page"]
        middle = page(client, self.links(last)["Previous page"])
        assert "Applications 51 to 100 of 120." in words(middle)
        assert self.listed(page(client, self.links(middle)["Previous page"])) == self.listed(first)
        beyond = page(client, "/applications?offset=1000000000000")
        assert "The list ends before this page." in words(beyond)
        assert "Applications 101 to 120 of" in words(
            page(client, self.links(beyond)["Previous page"])
        )

    def test_is_sorted_by_each_heading_both_ways(
        self, client: FlaskClient, settings: Settings
    ) -> None:
        store_runs(settings, ["b", "a", "c", "c"])
        text = page(client, "/applications")
        assert self.listed(text) == ["c", "a", "b"]
        for name, expected, state in (
            ("Program", ["a", "b", "c"], "ascending"),
            ("Program", ["c", "b", "a"], "descending"),
            ("Runs", ["c", "a", "b"], "descending"),
            ("Newest run", ["c", "a", "b"], "descending"),
            ("Newest run", ["b", "a", "c"], "ascending"),
        ):
            [address] = re.findall(rf'<th scope="col"[^>]*><a href="([^"]*)">{name}<', text)
            text = page(client, html.unescape(address))
            assert self.listed(text) == expected
            assert re.findall(r'aria-sort="(\w+)"', text) == [state]

    def test_is_filtered_by_user_and_system_and_keeps_its_order(
        self, client: FlaskClient, settings: Settings
    ) -> None:
        store_runs(settings, ["app"])
        store_runs(settings, ["of-bob"], first=1, user="bob")
        store_runs(settings, ["elsewhere"], first=2, system="there")
        assert self.listed(page(client, "/applications?user=bob")) == ["of-bob"]
        assert self.listed(page(client, "/applications?system=there")) == ["elsewhere"]
        assert self.listed(page(client, "/applications?user=bob&system=there")) == []
        assert self.listed(page(client, "/applications?user=bo")) == []
        text = page(client, "/applications?user=ada&sort=user&order=desc")
        assert '<input type="hidden" name="sort" value="user">' in text
        assert "user=ada" in text[text.index("<thead>") : text.index("</thead>")]

    @pytest.mark.parametrize(
        "query",
        ["sort=phases", "order=up", "offset=-1", "offset=x", "user=%00", "sort=newest;drop", "x=1"],
    )
    def test_odd_wishes_do_no_harm(self, filled: FlaskClient, query: str) -> None:
        page(filled, f"/applications?{query}")


class TestAnApplication:
    def test_shows_what_the_command_predicts_from_its_newest_run(
        self, filled: FlaskClient, filled_location: str
    ) -> None:
        number, run = application_of(filled, "hacc_io")
        [log] = [log for log in (TESTBED / "logs").iterdir() if str(job_of(log)) == run.job_id]
        args = ("--system", SYSTEM, "--nodes", NODES, "--ran-with", run.io_nodes)
        expected = ioncast(
            *("predict", log, *args, "--format", "json", "--explain", "--db", filled_location)
        )
        text = page(filled, f"/applications/{number}")
        points = {str(point["io_nodes"]): point["bandwidth_mib_s"] for point in expected["curve"]}
        table = text[text.index("benchmarks alone</th>") :]
        rows = re.findall(r'<tr>\s*<th scope="row" class="num">(\d+)</th>(.*?)</tr>', table, re.S)
        alone = {n: re.findall(r'<td class="num">(.*?)</td>', row)[2] for n, row in rows[:5]}
        assert alone == {name: in_digits(point["mean"]) for name, point in points.items()}
        told = words(text)
        # The page predicts from the stored phases, so only the command sees the host name in the
        # log: the platform's compute nodes are on one machine.
        in_log = "8 compute nodes are given, but the log names 1; the given number is used"
        for sentence in (*expected["explanation"], *expected["warnings"]):
            assert sentence[1:] in told or sentence == in_log

    def test_draws_the_answer_to_the_scheduler_with_its_decision(self, filled: FlaskClient) -> None:
        number, run = application_of(filled, "hacc_io")
        question = {"system": SYSTEM, "user": run.application.user, "name": run.name}
        question |= {"executable": run.application.executable, "tasks": run.tasks}
        answer = filled.get("/v1/decisions", query_string=question | {"nodes": run.nodes}).json
        assert answer is not None
        text = page(filled, f"/applications/{number}")
        points = [answer, *answer["alternatives"]]
        drawn = [hint for hint in figures(text)["curve"] if "predicted mean" in hint]
        assert sorted(drawn) == sorted(
            f"{in_words(point['io_nodes'])}: {bandwidth(point['expected_mib_s'])}, predicted mean"
            for point in points
        )
        told = words(text)
        for point in points:
            band = f"{in_digits(point['p10_mib_s'])} to {in_digits(point['p90_mib_s'])}"
            assert f" {in_digits(point['expected_mib_s'])} {band} " in told
        assert f"For the next run {in_words(answer['io_nodes'])}" in told

    def test_shows_its_runs_and_outcomes_as_points(self, filled: FlaskClient) -> None:
        number, _ = application_of(filled, "hacc_io")
        drawn = figures(page(filled, f"/applications/{number}"))["curve"]
        service: Service = filled.application.extensions["ioncast"]
        with transaction(service.database) as connection:
            runs = runs_of(connection, number)
        measured = [
            (int(row["io_nodes"]), float(row["bandwidth_mib_s"]))
            for row in rows_of("applications.csv")
            if row["name"] == "hacc-io"
        ] + [(run.io_nodes or 0, run.bandwidth_mib_s) for run in runs]
        assert sorted(hint for hint in drawn if hint.endswith("MiB/s")) == sorted(
            f"{in_words(n)}: {bandwidth(value)}" for n, value in measured
        )

    def test_draws_each_phase_on_the_time_line_by_its_kind(self, filled: FlaskClient) -> None:
        number, run = application_of(filled, "phaseapp")
        text = page(filled, f"/applications/{number}")
        assert "Metadata time s" in text
        hints = figures(text)["phases"]
        assert len(hints) == len(run.phases) == 3
        for phase, hint in zip(run.phases, hints, strict=True):
            kind = " ".join(phase[name] for name in ("type", "api", "spatiality", "files"))
            assert f"{kind}\n{phase['start']:.2f} to {phase['end']:.2f} s" in hint
            assert f"in {phase['requests']} requests" in hint
        colours = re.findall(r'<g class="bars" fill="([^"]+)"', figure_of(text, "phases"))
        assert len(set(colours)) == 3

    def test_says_which_benchmark_stands_for_each_phase(self, filled: FlaskClient) -> None:
        number, _ = application_of(filled, "phaseapp")
        text = page(filled, f"/applications/{number}")
        matched = text[text.index('id="matched"') :]
        commands = {row["name"]: row["command"] for row in rows_of("benchmarks.csv")}
        lines = re.findall(r'<span class="ior">(.*?)</span>', matched)
        assert len(lines) == 3
        for name in ("r-shared-contig-1m", "w-fpp-contig-1m", "w-shared-strided-64k"):
            assert any(same_run(commands[name], line) for line in lines)
        links = re.findall(r'href="(/benchmarks/\d+\?system=testbed)"', matched)
        assert len(set(links)) == 3

    def test_shows_another_run_when_it_is_chosen(self, filled: FlaskClient) -> None:
        number, newest = application_of(filled, "ior")
        service: Service = filled.application.extensions["ioncast"]
        with transaction(service.database) as connection:
            oldest = runs_of(connection, number)[-1]
        assert oldest.id != newest.id
        told = words(page(filled, f"/applications/{number}?run={oldest.id}"))
        assert re.search(rf"The chosen run: [^.]*, job {oldest.job_id} ", told)

    @pytest.mark.parametrize("path", ["/applications/4711", "/applications/1?run=4711"])
    def test_that_does_not_exist_is_an_error_page(self, filled: FlaskClient, path: str) -> None:
        assert "Not found" in words(page(filled, path, 404))

    def test_without_a_possible_prediction_is_shown_all_the_same(
        self, client: FlaskClient, settings: Settings
    ) -> None:
        store_runs(settings, ["app"])
        text = page(client, "/applications/1")
        assert "No prediction is possible now." in words(text)
        assert "Nothing was measured on 'here'" in words(text)
        assert set(figures(text)) == {"phases", "got"}

    def test_is_not_compared_with_runs_of_another_size(
        self, client: FlaskClient, settings: Settings
    ) -> None:
        store_runs(settings, ["app", "app"], tasks=8, first=10)
        store_runs(settings, ["app"], tasks=4, started="2026-11-21T04:15:02Z")
        drawn = figures(page(client, "/applications/1"))["got"]
        assert len(drawn) == 2

    @pytest.mark.slow
    def test_is_shown_without_a_prediction_when_too_many_are_made(
        self, client: FlaskClient, settings: Settings, service: Service
    ) -> None:
        store_runs(settings, ["app"])
        for _ in range(settings.uploads_at_once):
            service.children._places.acquire()
        assert "No prediction is possible now." in words(page(client, "/applications/1"))

    def test_has_runs_in_pages(self, client: FlaskClient, settings: Settings) -> None:
        store_runs(settings, ["app"] * 45)
        texts = list(all_pages(client, "/applications/1", "Older runs"))
        found = [int(run) for text in texts for run in re.findall(r"/1\?run=(\d+)", text)]
        assert sorted(found) == list(range(1, 46))

    def test_cannot_break_the_page_with_its_names(
        self, client: FlaskClient, settings: Settings
    ) -> None:
        evil = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"
        store_runs(settings, [evil], name=evil, job_id="<b>'\"")
        for path in ("/applications/1", "/applications", f"/applications?search={evil}"):
            text = page(client, path)
            assert "<script>alert" not in text
            assert "<img src=x" not in text
            assert "&lt;img src=x onerror=alert(1)&gt;" in text


class TestJobs:
    def test_a_form_leads_to_the_page_of_a_job(self, filled: FlaskClient) -> None:
        assert '<input id="job" name="job"' in page(filled, "/jobs")
        response = filled.get("/jobs?job=+a/b&system=testbed", headers=BROWSER)
        assert (response.status_code, response.location) == (303, "/jobs/a/b?system=testbed")

    def test_a_job_has_its_decision_reason_and_outcome(self, filled: FlaskClient) -> None:
        told = words(page(filled, f"/jobs/{JOB}"))
        assert f"Job {JOB}" in told
        assert "4 I/O nodes hacc_io_write_posix_fpp of demo history 3 earlier runs of the" in told
        assert "Measured: 65.8 MiB/s with 4 I/O nodes, inside the predicted interval" in told
        assert "-L ionode:0 asks for direct access" in told

    def test_a_job_is_linked_where_it_is_named(self, filled: FlaskClient) -> None:
        for path in ("/", "/applications/1", "/validation"):
            assert re.search(r'<a href="/jobs/[^"]*\?system=testbed">', page(filled, path)), path

    @pytest.mark.parametrize("job_id", ["4711", "<b>x</b>", "a/b/c", "%00", "x" * 3000])
    def test_an_unknown_job_is_an_error_page(self, filled: FlaskClient, job_id: str) -> None:
        text = page(filled, f"/jobs/{quote(job_id)}", 404)
        assert "Nothing is known about job" in words(text)
        assert "AdminComment=ioncast:ID" in words(text)
        assert "<b>x</b>" not in text

    def test_an_id_that_came_again_has_all_its_runs(
        self, client: FlaskClient, settings: Settings
    ) -> None:
        store_outcomes(settings, "here", [95.0])
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            told: dict[str, Any] = {"system": "here", "job_id": "here 0", "io_nodes": 2}
            store_outcome(c, bandwidth_mib_s=5e6, started="2031-01-01T00:00:00Z", **told)
        text = words(page(client, "/jobs/here%200"))
        assert "2 entries, newest first" in text
        assert text.index("2031-01-01") < text.index("Measured: 95 MiB/s")
        assert "implausible" in text[: text.index("Measured: 95 MiB/s")]
        assert "implausible" not in text[text.index("Measured: 95 MiB/s") :]
        assert "Nothing is known" in words(page(client, "/jobs/here%200?system=there", 404))


class TestBenchmarks:
    def rows(self, text: str) -> dict[str, list[str]]:
        """The cells of each configuration by its command."""
        commands = {row["command"] for row in rows_of("benchmarks.csv")}
        found = {}
        for row in re.findall(r"<tr>\s*<th scope=\"row\".*?</tr>", text, flags=re.DOTALL):
            head, *cells = re.findall(r"<t[hd].*?</t[hd]>", row, flags=re.DOTALL)
            [command] = [each for each in commands if same_run(each, words(head))]
            found[command] = cells
        return found

    def test_show_the_mean_and_the_number_of_repetitions_of_every_cell(
        self, filled: FlaskClient
    ) -> None:
        measured: dict[tuple[str, str], list[float]] = defaultdict(list)
        for row in rows_of("benchmarks.csv"):
            measured[row["command"], row["io_nodes"]].append(float(row["bandwidth_mib_s"]))
        found = {}
        for command, (_, _, *cells) in self.rows(
            page(filled, f"/benchmarks?system={SYSTEM}")
        ).items():
            for n, cell in zip((0, 1, 2, 4, 8), cells, strict=True):
                found[command, str(n)] = tuple(words(cell).split()[:2])
        assert found == {
            key: (in_digits(fmean(values)), f"×{len(values)}") for key, values in measured.items()
        }

    def test_show_the_best_number_and_a_curve_of_each_pattern(self, filled: FlaskClient) -> None:
        measured: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for row in rows_of("benchmarks.csv"):
            cells = measured[row["command"]]
            cells[int(row["io_nodes"])].append(float(row["bandwidth_mib_s"]))
        for command, (best, curve, *_) in self.rows(
            page(filled, f"/benchmarks?system={SYSTEM}")
        ).items():
            means = {n: fmean(values) for n, values in measured[command].items()}
            number = max(means, key=lambda n: means[n])
            assert words(best) == f"{in_words(number)} {in_digits(means[number])} MiB/s"
            [said] = re.findall(r'<svg class="area" role="img" aria-label="([^"]*)"', curve)
            told = ", ".join(f"{in_digits(means[n])} MiB/s" for n in sorted(means))
            assert said == f"With 0, 1, 2, 4, 8 I/O nodes: {told}. Best: {in_words(number)}."
            places = [float(y) for y in re.findall(r' y="([\d.]+)%" class="mark"', curve)]
            # A point that is twice as high is twice as far above the floor; the best has two marks.
            assert [1 - y / 100 for y in places[:-1]] == [
                pytest.approx(means[n] / means[number], abs=0.01) for n in sorted(means)
            ]

    def test_open_a_system_that_has_some(self, client: FlaskClient, settings: Settings) -> None:
        store_runs(settings, ["app"])
        assert "Nothing was measured on here yet" in words(page(client, "/benchmarks"))
        import_benchmarks(settings, TESTBED / "benchmarks.csv", "there", "16", "8")
        assert "Benchmarks of there Measurements" in words(page(client, "/benchmarks"))
        told = words(page(client, "/benchmarks?system=here"))
        assert "Nothing was measured on here yet" in told

    def test_lead_to_a_page_with_every_repetition_and_the_line_to_repeat_it(
        self, filled: FlaskClient
    ) -> None:
        for number, command in commands_by_id(filled).items():
            text = page(filled, f"/benchmarks/{number}?system={SYSTEM}")
            measured = [
                f"{in_words(int(row['io_nodes']))}: {bandwidth(float(row['bandwidth_mib_s']))}"
                for row in rows_of("benchmarks.csv")
                if same_run(row["command"], command)
            ]
            drawn = [hint.rpartition(",")[0] for hint in figures(text)["repetitions"]]
            assert sorted(drawn) == sorted(measured)
            assert command in html.unescape(text)

    def test_that_do_not_exist_are_an_error_page(self, filled: FlaskClient) -> None:
        for path in ("/benchmarks/4711", "/benchmarks/1?system=nowhere", "/benchmarks?system=no"):
            assert "Not found" in words(page(filled, path, 404))

    def test_are_shown_in_pages(self, client: FlaskClient, settings: Settings) -> None:
        lines = [
            f"benchmark,b,4,0,write,1048576,1,{100 + number},2026-11-21T04:14:48Z,1,"
            f"ior -a POSIX -w -b {number + 1}m -t 1m -e"
            for number in range(60)
        ]
        header = (TESTBED / "benchmarks.csv").read_text(encoding="utf-8").splitlines()[0]
        file = Path(settings.state).with_name("many.csv")
        file.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
        import_benchmarks(settings, file, "here", "4", "2")
        texts = all_pages(client, "/benchmarks", "Next page")
        found = [number for text in texts for number in re.findall(r'"/benchmarks/(\d+)\?', text)]
        assert sorted(map(int, found)) == list(range(1, 61))


class TestValidation:
    def test_draws_the_error_of_every_outcome(self, filled: FlaskClient) -> None:
        text = page(filled, "/validation")
        reruns = rows_of("applications.csv")
        drawn = figures(text)
        assert len(drawn["by-number"]) == len(drawn["by-application"]) == len(reruns)
        for name, column in (("by-number", "io_nodes"), ("by-application", "name")):
            # The points of a row have the same height.
            points = Counter(re.findall(r' y="([\d.]+%)" class="mark"', figure_of(text, name)))
            jobs = Counter(row[column] for row in reruns)
            assert sorted(points.values()) == sorted(jobs.values())
        rows = re.findall(r"<text[^>]*>(direct access|\d+ I/O nodes?)</text>", text)
        assert rows == [in_words(n) for n in sorted({int(row["io_nodes"]) for row in reruns})]

    def test_draws_the_regret_of_every_decision(self, filled: FlaskClient) -> None:
        service: Service = filled.application.extensions["ioncast"]
        with transaction(service.database) as connection:
            found = joined_outcomes(connection)
        got: dict[tuple[object, object], dict[int, list[float]]] = {}
        for each in found:
            of_number = got.setdefault((each.application, each.tasks), {})
            of_number.setdefault(each.outcome.io_nodes, []).append(each.outcome.bandwidth_mib_s)
        regrets = []
        for each in found:
            assert each.decision is not None
            most = each.decision.available or 0
            means = {
                n: fmean(of) for n, of in got[each.application, each.tasks].items() if n <= most
            }
            if len(means) > 1:
                regrets.append(1 - means[each.decision.io_nodes or 0] / max(means.values()))
        drawn = figures(page(filled, "/validation"))["regrets"]
        assert sorted(drawn) == sorted(f"{regret:.1%}" for regret in regrets)

    def test_shows_one_system_at_a_time(
        self, client: FlaskClient, settings: Settings, keep: Callable[[], None]
    ) -> None:
        import_benchmarks(settings, TESTBED / "benchmarks.csv", "a new one", "16", "8")
        store_outcomes(settings, "here", [150.0])
        store_outcomes(settings, "there", [200.0, 90.0])
        keep()
        # By default the first system with outcomes.
        for path, system, number in (
            ("/validation", "here", 1),
            ("/validation?system=there", "there", 2),
        ):
            text = page(client, path)
            assert f"Validation on {system} Expected" in words(text)
            assert f"Outcomes {number} {number} with an expected bandwidth" in words(text)
            assert len(figures(text)["by-number"]) == number
            for other in ("here", "there"):
                assert f'href="/validation?system={other}"' in text
        assert "No outcome of a decision is known yet" in words(
            page(client, "/validation?system=a+new+one")
        )
        assert "Not found" in words(page(client, "/validation?system=nowhere", 404))

    def test_tells_the_runs_of_a_job_apart(
        self, client: FlaskClient, settings: Settings, keep: Callable[[], None]
    ) -> None:
        store_outcomes(settings, "here", [150.0])
        starts = ("2026-11-21T11:00:00Z", "2026-11-21T12:30:00Z")
        told: dict[str, Any] = {"system": "here", "job_id": "17", "decision_id": "here 0"}
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            for start in starts:
                store_outcome(c, started=start, io_nodes=2, bandwidth_mib_s=90.0, **told)
        keep()
        text = words(page(client, "/validation?system=here"))
        assert "17 2026-11-21 11:00" in text
        assert "17 2026-11-21 12:30" in text

    def test_links_the_worst_to_their_applications(self, filled: FlaskClient) -> None:
        text = page(filled, "/validation")
        worst = text[text.index('id="worst"') : text.index('id="months"')]
        assert len(re.findall(r'href="/applications/\d+"', worst)) == 10
        errors = [int(error) for error in re.findall(r'<td class="num">(\d+)%</td>', worst)]
        assert errors == sorted(errors, reverse=True)


class TestALogThatIsSent:
    def test_is_answered_with_the_prediction_of_the_command(
        self, filled: FlaskClient, filled_location: str
    ) -> None:
        expected = ioncast(
            *("predict", LOG, "--system", SYSTEM, "--nodes", "8", "--ran-with", "0"),
            *("--available", "2", "--format", "json", "--explain", "--db", filled_location),
        )
        response = send(
            filled, LOG.read_bytes(), "my.darshan", nodes="8", ran_with="0", available="2"
        )
        assert response.status_code == 200
        assert "<h1>my.darshan</h1>" in response.text
        curve = "\n".join(figures(response.text)["curve"])
        for point in expected["curve"]:
            assert f": {bandwidth(point['bandwidth_mib_s']['mean'])}, " in curve
        told = words(response.text)
        for sentence in expected["explanation"]:
            assert sentence in told
        assert expected["decision"]["io_nodes"] == 2
        assert "For the next run 2 I/O nodes" in told

    def test_tells_where_the_number_of_compute_nodes_comes_from(
        self, filled: FlaskClient, tmp_path: Path
    ) -> None:
        log = traced_log(tmp_path / "a.darshan", ["n1", "n1", "n2"]).read_bytes()
        in_log = "predicted for testbed on 2 compute nodes (from the host names in the log)."
        assert in_log in words(send(filled, log).text)
        given = "predicted for testbed on 3 compute nodes."
        assert given in words(send(filled, log, nodes="3").text)

    def test_without_phases_is_answered_with_the_calls_that_it_counts(
        self, filled: FlaskClient, tmp_path: Path
    ) -> None:
        mapped = Record("POSIX", "/data/in", 0, {"POSIX_OPENS": 3, "POSIX_MMAPS": 2})
        log = write_log(tmp_path / "mapped.darshan", nprocs=1, records=[mapped])
        response = send(filled, log.read_bytes())
        assert response.status_code == 200
        told = words(response.text)
        assert "No I/O phases: Darshan counted 3 opens and 2 mmaps of 1 file in POSIX" in told
        assert "copy_file_range or sendfile do not show in a Darshan log" in told

    def test_is_not_stored(self, filled: FlaskClient) -> None:
        def stored() -> tuple[int, int, int]:
            service: Service = filled.application.extensions["ioncast"]
            with transaction(service.database) as connection:
                found = applications(connection)
                runs = sum(each.runs for each in found)
                return len(found), runs, count(connection)

        before = stored()
        assert send(filled, LOG.read_bytes()).status_code == 200
        assert stored() == before

    @pytest.mark.parametrize(
        "content",
        [b"", b"no log", LOG.read_bytes()[:1000], gzip.compress(b"no log")],
        ids=["empty", "text", "cut off", "compressed"],
    )
    def test_that_is_not_a_log_is_answered_with_a_readable_line(
        self, filled: FlaskClient, content: bytes
    ) -> None:
        response = send(filled, content, "../evil.darshan")
        assert response.status_code == 422
        assert response.mimetype == "text/html"
        told = words(response.text)
        [line] = re.findall(r"The upload failed\. (.*?) Drop a Darshan log here", told)
        assert "evil" in line
        assert "/" not in line
        assert "Traceback" not in response.text

    @pytest.mark.parametrize(
        ("told", "status", "line"),
        [
            ({"nodes": "many"}, 422, "Compute nodes: must be a whole number"),
            ({"nodes": "0"}, 422, "Compute nodes: must be at least 1"),
            ({"ran_with": "-1"}, 422, "I/O nodes of this run: must be at least 0"),
        ],
    )
    def test_with_a_wrong_field_is_answered_with_the_fields_name(
        self, filled: FlaskClient, told: dict[str, str], status: int, line: str
    ) -> None:
        response = send(filled, LOG.read_bytes(), **told)
        assert response.status_code == status
        assert line in words(response.text)

    def test_keeps_the_values_of_the_form_after_a_failure(self, filled: FlaskClient) -> None:
        response = send(filled, b"no log", nodes="8", available="3")
        assert re.search(r'name="nodes"[^>]*value="8"', response.text)
        assert re.search(r'name="available"[^>]*value="3"', response.text)

    def test_must_be_in_the_form(self, filled: FlaskClient) -> None:
        response = filled.post("/predict", data={"system": SYSTEM}, headers=BROWSER)
        assert response.status_code == 422
        assert "Choose a Darshan log first." in words(response.text)

    def test_is_rejected_with_a_problem_document_for_programs(self, filled: FlaskClient) -> None:
        data = {"log": (io.BytesIO(b"no log"), "a.darshan"), "system": SYSTEM}
        response = filled.post("/predict", data=data)
        assert (response.status_code, response.mimetype) == (422, "application/problem+json")

    def test_is_rejected_when_it_is_too_large(self, settings: Settings) -> None:
        with application(settings, max_upload_mib=1) as app:
            response = app.test_client().post(
                "/predict",
                data=bytes(2 << 20),
                content_type="multipart/form-data; boundary=x",
                headers=BROWSER,
            )
        assert response.status_code == 413
        assert response.mimetype == "text/html"


class TestTheInterface:
    def test_describes_every_operation(self, filled: FlaskClient) -> None:
        text = page(filled, "/docs")
        document = filled.get("/openapi.json").json
        assert document is not None
        told = words(text)
        for path, operations in document["paths"].items():
            for method, operation in operations.items():
                assert f"{method.upper()} {path}" in told
                assert f'id="{operation["operationId"]}"' in text
                for parameter in operation["parameters"]:
                    assert f"<code>{parameter['name']}</code>" in text

    def test_describes_each_field(self, filled: FlaskClient) -> None:
        table = r"<caption[^>]*>Fields of GET /v1/decisions<.*?</table>"
        [asked] = re.findall(table, page(filled, "/docs"), flags=re.DOTALL)
        *_, body = asked.split("<tbody>")
        meanings = [words(row).split(" query ", 1)[1] for row in body.split("</tr>")[:-1]]
        assert len(meanings) == 9
        assert all(len(meaning.split()) > 1 for meaning in meanings), meanings

    def test_has_examples_that_work(self, filled: FlaskClient) -> None:
        examples = re.findall(
            r'aria-label="Example of GET [^"]*"><code>(.*?)</code>',
            page(filled, "/docs"),
            flags=re.DOTALL,
        )
        assert examples
        for example in examples:
            command, *options = shlex.split(html.unescape(example).replace("\\\n", ""))
            assert command == "curl"
            address = urlsplit(options[-1])
            response = filled.get(f"{address.path}?{address.query}")
            # Prepared answers and the names in the examples do not exist.
            assert response.status_code in {200, 404, 503}, (example, response.text)


class TestErrors:
    def test_are_pages_for_people_and_problem_documents_for_programs(
        self, filled: FlaskClient
    ) -> None:
        for path in ("/nothing", "/applications/4711"):
            assert "To the overview" in words(page(filled, path, 404))
            for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
                response = filled.get(path, headers=headers)
                assert response.status_code == 404
                assert response.mimetype == "application/problem+json"

    def test_of_the_interface_are_problem_documents_for_browsers_too(
        self, filled: FlaskClient
    ) -> None:
        response = filled.get("/v1/nothing", headers=BROWSER)
        assert (response.status_code, response.mimetype) == (404, "application/problem+json")

    @pytest.mark.parametrize("path", ["/", "/applications", "/benchmarks", "/validation"])
    def test_of_the_database_are_a_page(
        self, client: FlaskClient, settings: Settings, path: str
    ) -> None:
        Path(str(settings.database)).unlink()
        response = client.get(path, headers=BROWSER)
        assert response.status_code == 503
        assert "Retry-After" in response.headers
        told = words(response.text)
        assert "Database unavailable" in told
        assert "Schedulers still get answers" in told
        assert str(settings.database) not in response.text

    @pytest.mark.slow
    @pytest.mark.usefixtures("stopped_clock")
    def test_of_too_many_predictions_say_when_to_come_back(self, settings: Settings) -> None:
        store_runs(settings, ["app"])
        with application(settings, requests_per_minute=1) as app:
            client = app.test_client()
            page(client, "/applications/1")
            response = client.get("/applications/1", headers=BROWSER)
        assert response.status_code == 429
        assert int(response.headers["Retry-After"]) <= 60
        assert response.mimetype == "text/html"


class TestWhereReadingIsClosed:
    @pytest.fixture
    def settings(self, settings: Settings) -> Settings:
        return settings.model_copy(update={"reading": "closed"})

    @pytest.fixture
    def token(self, settings: Settings, keep: Callable[[], None]) -> str:
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            found = add_token(c, "somebody", "reader")
        keep()
        return found

    def log_in(self, client: FlaskClient, token: str, following: str = "/") -> TestResponse:
        data = {"token": token, "next": following}
        return client.post("/login", data=data, headers=BROWSER)

    @pytest.mark.parametrize("path", sorted({*PAGES, "/benchmarks?system=a&after=3"} - {"/login"}))
    def test_every_page_leads_to_the_login(self, client: FlaskClient, path: str) -> None:
        response = client.get(path, headers=BROWSER)
        assert response.status_code == 303
        assert urlsplit(response.location).path == "/login"
        followed = client.get(response.location, headers=BROWSER)
        [following] = re.findall(r'name="next" value="([^"]*)"', followed.text)
        assert html.unescape(following) == path

    def test_programs_are_told_that_a_token_is_needed(self, client: FlaskClient) -> None:
        response = client.get("/")
        assert (response.status_code, response.mimetype) == (401, "application/problem+json")

    def test_a_log_is_not_read(self, client: FlaskClient) -> None:
        response = send(client, LOG.read_bytes())
        assert response.status_code == 303
        assert urlsplit(response.location).path == "/login"

    def test_a_token_opens_the_pages_until_the_logout(
        self, client: FlaskClient, token: str
    ) -> None:
        entered = self.log_in(client, token, "/applications?search=a")
        assert (entered.status_code, entered.location) == (303, "/applications?search=a")
        [cookie] = entered.headers.getlist("Set-Cookie")
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Secure" not in cookie
        assert "Log out" in page(client, "/")
        left = client.post("/logout", headers=BROWSER)
        assert urlsplit(left.location).path == "/login"
        assert client.get("/", headers=BROWSER).status_code == 303

    def test_the_cookie_does_not_hold_the_token(self, client: FlaskClient, token: str) -> None:
        self.log_in(client, token)
        cookie = client.get_cookie("ioncast_session")
        assert cookie is not None
        assert not {token, digest(token)} & {cookie.value, digest(cookie.value)}
        headers = {"Authorization": f"Bearer {cookie.value}"}
        assert client.get("/v1/systems", headers=headers).status_code == 401

    def test_a_copied_cookie_is_worth_nothing_after_its_token_is_revoked(
        self,
        client: FlaskClient,
        token: str,
        app: Flask,
        settings: Settings,
        keep: Callable[[], None],
    ) -> None:
        self.log_in(client, token)
        cookie = client.get_cookie("ioncast_session")
        assert cookie is not None
        thief = app.test_client()
        thief.set_cookie("ioncast_session", cookie.value)
        client.post("/logout", headers=BROWSER)
        assert client.get_cookie("ioncast_session") is None
        assert thief.get("/", headers=BROWSER).status_code == 200
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            revoke_token(c, "somebody")
        keep()
        assert thief.get("/", headers=BROWSER).status_code == 303

    def test_other_workers_and_the_service_after_a_restart_know_the_session(
        self, client: FlaskClient, token: str, settings: Settings
    ) -> None:
        self.log_in(client, token)
        cookie = client.get_cookie("ioncast_session")
        assert cookie is not None
        with application(settings) as app:
            app.extensions["ioncast"].prepared.refresh()
            other = app.test_client()
            other.set_cookie("ioncast_session", cookie.value)
            assert other.get("/", headers=BROWSER).status_code == 200

    def test_a_session_ends_after_30_days_also_of_a_browser_that_came_every_day(
        self, client: FlaskClient, token: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        began_s = time.time()
        monkeypatch.setattr("time.time", lambda: began_s)
        entered = self.log_in(client, token)
        expires = parsedate_to_datetime(entered.headers["Set-Cookie"].split("xpires=")[1][:29])
        assert abs(expires.timestamp() - (began_s + 30 * 24 * 3600)) < 60
        cookie = client.get_cookie("ioncast_session")
        assert cookie is not None
        for days, status in ((1, 200), (29.9, 200), (30.1, 303)):
            monkeypatch.setattr("time.time", lambda days=days: began_s + days * 24 * 3600)
            client.set_cookie("ioncast_session", cookie.value)
            response = client.get("/", headers=BROWSER)
            assert (response.status_code, "Set-Cookie" in response.headers) == (status, False)

    def test_a_session_that_seems_old_while_the_clock_is_wrong_goes_on_afterwards(
        self, client: FlaskClient, token: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.log_in(client, token)
        ahead_s = time.time() + 1200 * 86_400
        with monkeypatch.context() as patched:
            patched.setattr("time.time", lambda: ahead_s)
            assert client.get("/", headers=BROWSER).status_code == 303
        assert client.get("/", headers=BROWSER).status_code == 200

    def test_a_cookie_that_this_service_did_not_sign_opens_nothing(
        self, client: FlaskClient, token: str, settings: Settings
    ) -> None:
        self.log_in(client, token)
        cookie = client.get_cookie("ioncast_session")
        assert cookie is not None
        content, signed_at, signature = cookie.value.rsplit(".", 2)
        admin = urlsafe_b64encode(b'{"token_sha256":"%b"}' % digest("admin").encode()).decode()
        key = Path(settings.state) / "results.key"
        forged = [
            f"{admin.rstrip('=')}.{signed_at}.{signature}",
            f"{content}.{signed_at}.{signature[:-2]}",
            f"{content}.{signed_at}",
            # The salt of results that the same key seals.
            URLSafeTimedSerializer(
                key.read_bytes(),
                salt="ioncast kept result",
                signer_kwargs={"key_derivation": "hmac", "digest_method": hashlib.sha256},
            ).dumps({"token_sha256": digest(token)}),
        ]
        for made_up in forged:
            assert made_up != cookie.value
            client.set_cookie("ioncast_session", made_up)
            assert client.get("/", headers=BROWSER).status_code == 303, made_up
        client.set_cookie("ioncast_session", cookie.value)
        assert client.get("/", headers=BROWSER).status_code == 200
        key.unlink()
        assert client.get("/", headers=BROWSER).status_code == 303

    def test_without_the_key_only_logins_fail(
        self, client: FlaskClient, token: str, settings: Settings
    ) -> None:
        client.set_cookie("ioncast_session", "old")
        (Path(settings.state) / "results.key").mkdir()
        assert client.get("/", headers=BROWSER).status_code == 303
        response = self.log_in(client, token)
        assert (response.status_code, "Set-Cookie" in response.headers) == (503, False)
        assert "a session cannot begin" not in response.text

    @pytest.mark.usefixtures("stopped_clock")
    def test_a_client_that_logs_in_too_often_has_to_wait(
        self, settings: Settings, token: str
    ) -> None:
        with application(settings, requests_per_minute=2) as app:
            app.extensions["ioncast"].prepared.refresh()
            client = app.test_client()
            statuses = [self.log_in(client, token).status_code for _ in range(3)]
        assert statuses == [303, 303, 429]

    @pytest.mark.parametrize("path", ["/login", "/logout"])
    def test_no_other_site_logs_somebody_in_or_out(
        self, client: FlaskClient, token: str, path: str
    ) -> None:
        foreign = BROWSER | {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
        response = client.post(path, data={"token": token}, headers=foreign)
        assert response.status_code == 403
        assert "Set-Cookie" not in response.headers

    @pytest.mark.parametrize("cookie", ["../../etc/passwd", "x" * 4000, "", "%00"])
    def test_a_made_up_session_opens_nothing(
        self, client: FlaskClient, token: str, cookie: str
    ) -> None:
        client.set_cookie("ioncast_session", cookie)
        assert client.get("/", headers=BROWSER).status_code == 303

    def test_the_cookie_is_only_for_https_if_the_page_is(
        self, client: FlaskClient, token: str
    ) -> None:
        data = {"token": token}
        response = client.post("/login", data=data, headers=BROWSER, base_url="https://here")
        assert "Secure" in response.headers["Set-Cookie"]

    def test_a_revoked_token_leads_to_the_login_again(
        self, client: FlaskClient, token: str, settings: Settings, keep: Callable[[], None]
    ) -> None:
        self.log_in(client, token)
        with opened_database(settings.database) as database, transaction(database, write=True) as c:
            revoke_token(c, "somebody")
        keep()
        response = client.get("/", headers=BROWSER)
        assert response.status_code == 303
        assert "Log out" not in page(client, response.location)

    @pytest.mark.parametrize("token", ["", "ion_nothing", "\ud800"])
    def test_a_wrong_token_is_a_readable_line(
        self, client: FlaskClient, keep: Callable[[], None], token: str
    ) -> None:
        keep()
        response = client.post(
            "/login",
            data={"token": token.encode("utf-8", "surrogatepass")},
            headers=BROWSER,
        )
        assert response.status_code == 401
        assert "The token is unknown or was revoked;" in words(response.text)
        assert "Set-Cookie" not in response.headers

    @pytest.mark.usefixtures("stopped_clock")
    def test_guessing_tokens_is_slowed_down(
        self, settings: Settings, keep: Callable[[], None]
    ) -> None:
        keep()
        with application(settings, requests_per_minute=30) as app:
            app.extensions["ioncast"].prepared.refresh()
            client = app.test_client()
            statuses = [self.log_in(client, f"ion_{n}").status_code for n in range(5)]
        assert statuses == [401, 401, 401, 429, 429]

    @pytest.mark.parametrize(
        "elsewhere", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\nb", "x"]
    )
    def test_the_login_leads_nowhere_else(
        self, client: FlaskClient, token: str, elsewhere: str
    ) -> None:
        assert self.log_in(client, token, elsewhere).location == "/"

    def test_style_and_scripts_are_for_everybody(self, client: FlaskClient) -> None:
        assert client.get("/assets/style.css", buffered=True).status_code == 200


def test_an_old_cookie_does_no_harm_when_reading_is_open(client: FlaskClient) -> None:
    client.set_cookie("ioncast_session", "old")
    assert "Log out" in page(client, "/applications?search=a")
    client.post("/logout", headers=BROWSER)
    assert "Log out" not in page(client, "/applications?search=a")


class TestAssets:
    @pytest.fixture
    def address(self, filled: FlaskClient) -> str:
        [found] = re.findall(r'href="(/assets/style.css[^"]*)"', page(filled, "/"))
        return found

    def test_the_style_is_sent_and_kept(self, filled: FlaskClient, address: str) -> None:
        style = filled.get(address, buffered=True)
        assert (style.data, style.mimetype) == (STYLE.read_bytes(), "text/css")
        assert "immutable" in style.headers["Cache-Control"]
        assert "max-age=31536000" in style.headers["Cache-Control"]

    def test_a_file_that_the_browser_has_is_not_sent_again(
        self, filled: FlaskClient, address: str
    ) -> None:
        tag = filled.get(address, buffered=True).headers["ETag"]
        again = filled.get(address, headers={"If-None-Match": tag}, buffered=True)
        assert (again.status_code, again.data) == (304, b"")

    def test_an_old_address_is_not_kept(self, filled: FlaskClient) -> None:
        response = filled.get("/assets/style.css?v=old", buffered=True)
        assert response.headers["Cache-Control"] == "no-cache"

    @pytest.mark.parametrize("name", ["nothing.css", "../app.py", "..%2fapp.py", "base.html"])
    def test_nothing_else_is_sent(self, filled: FlaskClient, name: str) -> None:
        assert filled.get(f"/assets/{name}").status_code == 404


def import_benchmarks(settings: Settings, file: Path, system: str, tasks: str, nodes: str) -> None:
    args = ["bench", "import", str(file), "--system", system, "--tasks", tasks, "--nodes", nodes]
    done = CliRunner().invoke(cli, [*args, "--db", str(settings.database)])
    assert done.exit_code == 0, done.output


def store_runs(
    settings: Settings, executables: list[str], *, tasks: int = 4, first: int = 0, **told: Any
) -> None:
    """Store runs of one phase each; the time of a phase is the number of its run."""
    phase = {
        "job": 1,
        "start": 0.0,
        "end": 2.0,
        "type": "write",
        "rank": "all",
        "bytes": 1 << 24,
        "time": 1.5,
        "api": "POSIX",
        "requests": 16,
        "spatiality": "contiguous",
        "files": "unique",
        "n_files": 4,
        "mode_processes": 1,
        "processes": 4,
        "nprocs": 4,
        "parts": [{"request_bytes": 1 << 20, "requests": 16, "bytes": 1 << 24}],
        "partial": False,
        "log": "",
    }
    with opened_database(settings.database) as database, transaction(database, write=True) as c:
        for number, executable in enumerate(executables, start=first):
            values: dict[str, Any] = {
                "system": "here",
                "executable": executable,
                "user": "ada",
                "logs": [f"{number:064x}"],
                "tasks": tasks,
                "io_nodes": 2,
                "bandwidth_mib_s": 10.0,
                "phases": [phase],
            }
            store_run(c, NewRun(**(values | told)))


def store_outcomes(settings: Settings, system: str, bandwidths_mib_s: list[float]) -> None:
    """Store outcomes of decisions that expected 100 MiB/s, with an interval of 80 to 120."""
    with opened_database(settings.database) as database, transaction(database, write=True) as c:
        for number, bandwidth_mib_s in enumerate(bandwidths_mib_s):
            job_id = f"{system} {number}"
            decision = DecisionRow(
                id=job_id,
                asked_at="2026-11-21T10:00:00Z",
                system=system,
                user="ada",
                executable="app",
                name=None,
                job_id=job_id,
                nodes=2,
                tasks=4,
                available=None,
                io_nodes=2,
                source="model",
                expected_mib_s=100.0,
                confidence=0.9,
                application_id=None,
                why="as its benchmarks",
                curve=((2, 100.0, 80.0, 120.0),),
            )
            store_decisions(c, [decision])
            store_outcome(
                c,
                system=system,
                job_id=job_id,
                io_nodes=2,
                bandwidth_mib_s=bandwidth_mib_s,
                decision_id=job_id,
            )


class application:  # noqa: N801 - reads as what it gives
    """A service with other settings, for a while."""

    def __init__(self, settings: Settings, **changed: Any) -> None:
        self.app = create_app(settings.model_copy(update=changed))

    def __enter__(self) -> Flask:
        return self.app

    def __exit__(self, *_: object) -> None:
        service: Service = self.app.extensions["ioncast"]
        service.prepared.close()
        service.database.dispose()


def job_of(log: Path) -> int:
    return read_log(log).job.id


def same_run(command: str, shown: str) -> bool:
    """Whether two IOR command lines have the same options, in any order."""

    def options(line: str) -> set[str]:
        found = set(re.findall(r"-[a-zA-Z](?: (?!-)\S+)?", re.sub(r"^.*?(?=-a )", "", line)))
        # Option -k keeps the file and does not change the measurement.
        return found - {"-k"}

    return options(command) == options(re.sub(r"\d+ processes on.*", "", shown).strip())


def commands_by_id(client: FlaskClient) -> dict[int, str]:
    service: Service = client.application.extensions["ioncast"]
    with transaction(service.database) as connection:
        found = configurations_after(connection, system=SYSTEM)
    return {each.id: each.config.command_line(launcher=True) for each in found}
