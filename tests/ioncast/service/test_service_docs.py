"""docs/service.md agrees with the service."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchdb.store.database import opened_database, transaction
from ioncast.service.decide.questions import DecisionAnswer, Question
from ioncast.service.running.demo_data import fill
from ioncast.service.settings import Settings
from ioncast.service.store.tokens import add_token
from ioncast.service.web.app import create_app
from ioncast.service.web.metrics import exposition
from tests.support.serving import PATIENCE_S, PATIENT, Served, running

PROJECT = Path(__file__).resolve().parents[3]
TEXT = (PROJECT / "docs" / "service.md").read_text(encoding="utf-8")
SHELL = re.findall(r"^```sh\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
REQUESTS = [block for block in SHELL if block.startswith("curl") and "8420/readyz" not in block]
TUTORIAL = (PROJECT / "docs" / "tutorial.md").read_text(encoding="utf-8")
[(QUESTION, DECISION)] = re.findall(r"(?s)```sh\n(curl [^`]*)```\n\n```text\n(.*?)\n```", TUTORIAL)
# A log that the demonstration does not have, so that it is stored as a new run.
LOG = PROJECT / "tests/summario/fixtures/multiphase.darshan"
PROGRAMS = PROJECT / "tests/summario/fixtures/programs"


def table(heading: str) -> dict[str, list[str]]:
    """Read the first table below a heading: rows by their first cell."""
    below = TEXT.split(f"{heading}\n", 1)[1]
    rows = re.findall(r"^\| `([^|]+)` \| (.+) \|$", below.split("\n\n#", 1)[0], re.MULTILINE)
    return {name.strip("`"): cells.split(" | ") for name, cells in rows}


def test_every_setting_is_there_with_its_value() -> None:
    rows = table("### Settings")
    assert list(rows) == [name for name in rows if name in Settings.model_fields]
    assert set(rows) == set(Settings.model_fields)
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        if isinstance(default, int | float) or name == "reading":
            assert rows[name][0] == f"`{default}`"
        elif name == "bind":
            assert rows[name][0] == f"`{default[0]}`"


def test_every_metric_is_there(tmp_path: Path) -> None:
    app = create_app(Settings(database=str(tmp_path / "x.sqlite"), state=str(tmp_path)))
    found = exposition(app.extensions["ioncast"]).decode()
    ours = set(re.findall(r"^# TYPE (ioncast_\w+)", found, re.MULTILINE))
    ours -= {name for name in ours if name.endswith("_created")}
    # Without a keeper these are missing.
    ours |= {"ioncast_keeper_timestamp_seconds", "ioncast_database_up", "ioncast_state_writable"}
    ours |= {"ioncast_token_expiry_timestamp_seconds"}
    assert set(table("### Watching it")) == ours


def test_every_parameter_of_the_question_and_field_of_the_answer_is_there() -> None:
    parameters = table("### The question")
    assert {each for row in parameters for each in row.split("`, `")} == set(Question.model_fields)
    fields = {each for row in table("### The answer") for each in row.split("`, `")}
    assert fields == set(DecisionAnswer.model_fields)
    shown = json.loads(TEXT.split("```json\n", 1)[1].split("```", 1)[0])
    assert DecisionAnswer.model_validate(shown)
    assert set(shown) == fields


def test_every_page_and_path_is_there(tmp_path: Path) -> None:
    app = create_app(Settings(database=str(tmp_path / "x.sqlite"), state=str(tmp_path)))
    rules = {re.sub(r"<[^>]+>", "ID", rule.rule) for rule in app.url_map.iter_rules()}
    assert set(table("## For users")) <= rules
    used = re.findall(r"(?:8420|localhost)(/[\w/.]*)", TEXT)
    named = {re.sub(r"(?<=^/v1/jobs/).*|(?<=^/v1/queries/).+", "ID", path) for path in used}
    assert {path.rstrip("?") for path in named} <= rules


@pytest.fixture(scope="module")
def served(
    site_store: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Served, str]]:
    """The demonstration's service with a store, and a token of a scheduler."""
    folder = tmp_path_factory.mktemp("service")
    database = folder / "demo.sqlite"
    fill(str(database))
    with opened_database(database) as engine, transaction(engine, write=True) as connection:
        token = add_token(connection, "docs", "scheduler")
    told = ("--workers", "1", "--db", str(database))
    environment = {**PATIENT, "IONCAST_STORE": str(site_store)}
    with running(folder, *told, environment=environment) as service:
        yield service, token


def pasted(block: str, served: tuple[Served, str], folder: Path) -> str:
    """The output of a request of the documents to the service."""
    service, token = served
    script = block.replace("http://127.0.0.1:8420", service.url)
    script = script.replace("/run/ioncast/decisions.sock", str(service.decisions))
    end = time.monotonic() + PATIENCE_S
    said = ""
    # The keeper prepares the answer for a run that was sent before within some seconds.
    while not said and time.monotonic() < end:
        done = subprocess.run(
            ["sh", "-euc", script.replace("curl ", "curl -sSf ", 1)],
            cwd=folder,
            env={**os.environ, "TOKEN": token},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        said = done.stdout
    return said


# Before the requests of docs/service.md, which add runs.
@pytest.mark.serving
@pytest.mark.tools
def test_the_tutorial_shows_the_decision(served: tuple[Served, str], tmp_path: Path) -> None:
    assert pasted(QUESTION, served, tmp_path) == DECISION


@pytest.mark.serving
@pytest.mark.tools
@pytest.mark.parametrize("block", REQUESTS, ids=lambda block: str(REQUESTS.index(block)))
def test_requests_can_be_pasted(served: tuple[Served, str], block: str, tmp_path: Path) -> None:
    shutil.copy(LOG, tmp_path / "app.darshan")
    for name in re.findall(r"=@(\S*id4711\S*)", block):
        # The logs of the processes of one job.
        number = name.removesuffix(".darshan").rsplit("-", 1)[1]
        shutil.copy(PROGRAMS / f"fork-workers-{number}.darshan", tmp_path / name)
    assert pasted(block, served, tmp_path)
