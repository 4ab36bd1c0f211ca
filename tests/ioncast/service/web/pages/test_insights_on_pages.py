"""The page of a run shows its findings; a dropped log shows them without being stored."""

from __future__ import annotations

import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from sqlalchemy import delete, func, select, update

from benchdb.store.database import transaction
from experiments.applications.darshan_writer import write_log
from ioncast.service.context import Service
from ioncast.service.store.tables import insights
from ioncast.service.web.http import uploads
from ioncast.service.web.results import advised
from ioncast.service.web.sandbox.insight_documents import VERSION
from ioncast_base.visible_text import visible
from ioncast_base.wording import in_digits
from tests.summario.phases.test_rules import KIB, posix
from tests.support.command import run_ioncast

pytestmark = pytest.mark.slow

# The Accept header of a browser.
BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
EVIL = (
    "/d</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'\N{RIGHT-TO-LEFT OVERRIDE}"
)

Send = Callable[..., str]


PERIODIC = Path(__file__).resolve().parents[5] / (
    "experiments/data/testbed/logs/periodic-ionodes0.darshan"
)
# The headings of the page in their order.
SECTIONS = (
    "Why is my I/O slow?",
    "For the next run",
    "Causes Most would help",
    "Other findings",
    "Which ranks read and wrote when",
    "Where the time went",
    "Why this number of I/O nodes",
    "Bandwidth by number of I/O nodes",
    "Benchmarks behind the prediction",
    "Its I/O in numbers",
)


def small_writes(folder: Path, path: str = "/data/out", *, exe: str = "app") -> Path:
    record = posix(path, 0, 1, requests=5000, size=KIB)
    return write_log(folder / "app.darshan", nprocs=1, records=[record], exe=exe)


@pytest.fixture
def send(client: FlaskClient, authorised: Callable[[str], dict[str, Any]]) -> Send:
    """Send a log, and return the address of the page of its run."""
    token = authorised("scheduler")

    def send_log(log: Path, system: str = "mn4") -> str:
        data = {"system": system, "log": (io.BytesIO(log.read_bytes()), log.name)}
        response = client.post("/v1/traces", data=data, **token)
        assert response.status_code in {200, 201}, response.text
        assert response.json is not None
        return f"/applications/{response.json['application_id']}?run={response.json['run_id']}"

    return send_log


def page(client: FlaskClient, path: str) -> str:
    response = client.get(path, headers=BROWSER)
    assert response.status_code == 200, response.text
    return response.text


def words(text: str) -> str:
    """The text of a page without tags, with single blanks."""
    without = re.sub(r"<script.*?</script>|<style.*?</style>", " ", text, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", without)).split())


def drop(client: FlaskClient, log: Path, **told: str) -> str:
    data = {"log": (io.BytesIO(log.read_bytes()), log.name), "system": "testbed", **told}
    response = client.post("/predict", data=data, headers=BROWSER)
    assert response.status_code == 200, response.text
    return response.text


def test_the_page_of_a_run_tells_its_findings_files_and_advice(
    client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    text = page(client, send(small_writes(tmp_path)))
    told = words(text)
    assert "I/O and metadata take 0.25 s of 100 s run time (less than 1%)" in told
    assert "negligible Small requests P06 at most 0.25 s" in told
    assert "5,000 of 5,000 writes (100.00%) are smaller than 1 MiB." in told
    assert "/data/out : 5,000 (100.00%)" in told
    assert "Write more with each request" in told
    assert "enum { BUFFER_BYTES = 16 << 20 };" in told
    assert "Published level: HIGH. Source: Drishti (Ather 2022), Table II." in told
    assert "/data/out POSIX 1 0 bytes 4.88 MiB" in told


def test_a_run_without_insights_says_how_to_get_them(
    client: FlaskClient, send: Send, service: Service, tmp_path: Path
) -> None:
    log = small_writes(tmp_path)
    path = send(log)
    with transaction(service.database, write=True) as connection:
        connection.execute(delete(insights))
    told = words(page(client, path))
    assert "This run has no findings: it was sent to an older version" in told
    assert "send all its logs again" in told
    send(log)
    assert "Many small writes" in words(page(client, path))


def test_names_of_files_cannot_break_the_page(
    filled: None, client: FlaskClient, send: Send, tmp_path: Path
) -> None:
    log = small_writes(tmp_path, EVIL, exe=EVIL.replace(" ", "_"))
    for text in (page(client, send(log)), drop(client, log)):
        assert "<script>alert" not in text
        assert "<img src=x" not in text
        # The name ends with a character that turns the direction of the text.
        assert html.escape(visible(EVIL), quote=False) in text.replace("&#34;", '"').replace(
            "&#39;", "'"
        )


def test_a_log_that_is_dropped_shows_its_findings_and_is_not_stored(
    client: FlaskClient, service: Service, filled: None, tmp_path: Path
) -> None:
    with transaction(service.database) as connection:
        before = connection.scalar(select(func.count()).select_from(insights))
    assert "Many small writes" in words(drop(client, small_writes(tmp_path)))
    with transaction(service.database) as connection:
        assert connection.scalar(select(func.count()).select_from(insights)) == before


def test_a_log_whose_insights_fail_is_predicted_all_the_same(
    client: FlaskClient, filled: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "_INSIGHTS_S", 0)
    told = words(drop(client, small_writes(tmp_path)))
    assert "For the next run" in told
    assert "No insights were made: the work on it took more than 0 s" in told


def test_runs_of_the_demonstration_say_why_they_are_slow(client: FlaskClient, filled: None) -> None:
    for number in (1, 2, 3):
        told = words(page(client, f"/applications/{number}"))
        assert "This run has no findings" not in told
        assert re.search(r"Why is my I/O slow\? I/O and metadata take ", told)


def test_causes_are_ranked_by_the_seconds_that_the_command_prints(
    client: FlaskClient, filled: None, filled_location: str
) -> None:
    """On the testbed a file for each process is faster, and collective calls are slower."""
    words_ = ("--system", "testbed", "--db", filled_location, "--format", "json")
    record = json.loads(run_ioncast("advise", PERIODIC, *words_).stdout)
    text = drop(client, PERIODIC)
    told = words(text)
    [faster] = [one for one in record["advice"] if one["verdict"] == "faster"]
    [slower] = [one for one in record["advice"] if one["verdict"] == "slower"]
    assert (faster["keys"], slower["keys"]) == (["own_files"], ["collective"])
    name = "a file for each process"
    assert f"as far as benchmarks tell: {name}, which {faster['sentence']}." in told
    seconds = in_digits(faster["saved_seconds"]["expected"])
    # Nobody measured larger requests, so the bound counts.
    assert "1. major Many small writes P06 at most 4.63 s, 33% of the run time" in told
    assert re.search(rf"\d\. Processes share a file saves {seconds} s", told)
    [larger] = [one for one in record["advice"] if one["keys"] == ["larger"]]
    assert larger["measure"][0]["configuration"] in told
    assert re.search(r"\d\. major Many small writes in shared files P16 takes 0\.\d+ s more", told)
    assert f"Collective MPI-IO calls {slower['sentence']}." in told
    order = [told.index(name) for name in SECTIONS]
    assert order == sorted(order)


def test_an_application_is_advised_on_from_its_stored_phases(
    client: FlaskClient, filled: None, send: Send
) -> None:
    """The page of the run, which the demonstration stored, shows the causes of its log."""

    def causes(text: str) -> str:
        told = words(text)
        return told[told.index("Causes Most would help") : told.index("Other findings")]

    stored = page(client, send(PERIODIC, "testbed"))
    assert causes(stored) == causes(drop(client, PERIODIC, nodes="8", ran_with="0"))


def test_the_largest_causes_that_could_save_time_are_at_the_top(
    client: FlaskClient, filled: None
) -> None:
    text = drop(client, PERIODIC)
    at_the_top = words(text[: text.index('aria-label="Sections"')])
    assert "Many small writes at most 4.63 s, 33% of the run time" in at_the_top
    # The advice against it makes the run slower.
    assert "Many small writes in shared files" not in at_the_top


def test_a_log_has_causes_and_tables_also_without_benchmarks(client: FlaskClient) -> None:
    form = client.get("/predict", headers=BROWSER).text
    assert 'type="file"' in form
    assert 'name="system"' not in form
    told = words(drop(client, PERIODIC, system=""))
    assert "No prediction No system was chosen, whose benchmarks a prediction needs" in told
    assert "1. major Small requests P06, P16 at most 4.63 s, 33% of the run time" in told
    for section in ("Where the time went", "Phases of the run", "Its I/O in numbers"):
        assert section in told


def test_a_log_of_a_system_without_benchmarks_has_causes_and_the_reason(
    client: FlaskClient, filled: None
) -> None:
    told = words(drop(client, PERIODIC, system="nowhere"))
    assert re.search("No prediction Nothing was measured on .nowhere.", told)
    assert "1. major Small requests P06, P16 at most 4.63 s, 33% of the run time" in told


def test_findings_are_shown_also_where_nothing_was_measured(
    client: FlaskClient, filled: None, send: Send
) -> None:
    told = words(page(client, send(PERIODIC)))
    assert "No gain is known: nothing was measured on 'mn4'" in told
    assert "1. major Small requests P06, P16 at most 4.63 s, 33% of the run time" in told
    assert "1,024 of 1,024 writes (100.00%)" in told


def test_advice_that_takes_too_long_is_left_out(
    client: FlaskClient, filled: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(advised, "_ADVICE_S", 0)
    for text in (drop(client, PERIODIC), page(client, "/applications/1")):
        told = words(text)
        assert re.search(
            r"No gain is known: advice on its \d phases? takes too much time or memory\.", told
        )
        assert "For the next run" in told


def test_of_too_little_io_all_causes_are_folded(
    client: FlaskClient, filled: None, tmp_path: Path
) -> None:
    """The log has 0.25 s of I/O in 100 s."""
    told = words(drop(client, small_writes(tmp_path)))
    assert "(less than 1% of the run time) are at stake, as far as the log tells." in told
    assert re.search(r"\d causes? with next to no time at stake", told)


def test_insights_of_an_older_version_are_left_out(
    client: FlaskClient, filled: None, send: Send, service: Service
) -> None:
    path = send(PERIODIC, "testbed")
    assert "I/O and metadata take" in words(page(client, path))
    with transaction(service.database, write=True) as connection:
        connection.execute(update(insights).values(version=VERSION - 1))
    assert "This run has no findings: it was sent to an older version" in words(page(client, path))
