"""The plugin and the service work together with those of the version before."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from scheduler_plugin.arbiter.heartbeat import Heartbeat
from tests.scheduler_plugin.lua.exchanges import CASES, NEIGHBOURS, answer, demonstration, question
from tests.scheduler_plugin.lua.test_job_submit_lua import RUNTIMES, Controller, fields
from tests.support.serving import Served

pytestmark = pytest.mark.skipif(not NEIGHBOURS.exists(), reason="nothing was released")
RECORDED = NEIGHBOURS / "answers.json"
ANSWERS = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def result(controller: Controller, case: str, answered: bytes) -> tuple[dict[str, Any], str]:
    """A job of a case after its submission, and its line in the log."""
    settings, job = CASES[case]
    controller.answer = answered
    return controller.submit(job, **settings), controller.lines[-1]


def asked(request: bytes) -> set[str]:
    """The names of all fields of a question."""
    head, _, body = request.partition(b"\r\n\r\n")
    target = head.split(b" ")[1].decode()
    return set(json.loads(body) if body else parse_qs(urlsplit(target).query))


@pytest.fixture
def old() -> Controller:
    return Controller("lua51", NEIGHBOURS / "ioncast.lua")


@pytest.fixture(params=RUNTIMES)
def new(request: pytest.FixtureRequest) -> Controller:
    return Controller(request.param)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with demonstration(tmp_path_factory.mktemp("service")) as served:
        yield served


@pytest.mark.serving
@pytest.mark.parametrize("case", CASES)
def test_the_service_answers_the_plugin_of_the_version_before(
    service: Served, old: Controller, case: str
) -> None:
    job, line = result(old, case, answer(service, question(old, case)))
    expected_job, expected_line = result(old, case, ANSWERS[case].encode("latin-1"))
    found, expected = fields(line), fields(expected_line)
    assert found["source"] == expected["source"]
    assert (found["io_nodes"] == "none") == (expected["io_nodes"] == "none")
    assert len(found["decision"]) == len(expected["decision"])
    assert job.keys() == expected_job.keys()
    assert old.errors == []


@pytest.mark.parametrize("case", CASES)
def test_the_plugin_understands_the_service_of_the_version_before(
    new: Controller, old: Controller, case: str
) -> None:
    answered = ANSWERS[case].encode("latin-1")
    assert result(new, case, answered) == result(old, case, answered)


@pytest.mark.parametrize("case", CASES)
def test_the_plugin_asks_nothing_that_the_service_of_the_version_before_does_not_know(
    new: Controller, old: Controller, case: str
) -> None:
    # A service rejects questions with unknown fields, and then no job would get a decision.
    assert asked(question(new, case)) <= asked(question(old, case))


def test_fields_of_an_answer_that_the_plugin_does_not_know_are_ignored(new: Controller) -> None:
    answered = ANSWERS["by script"].encode("latin-1")
    more = answered.replace(b"\r\nX-Decision-Id", b"\r\nX-Decision-New: 7\r\nX-Decision-Id")
    assert more != answered
    assert result(new, "by script", more) == result(new, "by script", answered)


def test_a_decision_without_its_fields_is_still_a_number(new: Controller) -> None:
    answered = re.sub(rb"X-Decision-[^\r]*\r\n", b"", ANSWERS["by script"].encode("latin-1"))
    job, line = result(new, "by script", answered)
    assert (job["licenses"], fields(line)["source"]) == ("ionode:8", "service")


def test_no_job_is_held_while_plugin_or_arbiter_is_of_the_version_before(
    new: Controller, old: Controller, tmp_path: Path
) -> None:
    """An older arbiter does not end the holds of a newer plugin; its heartbeat is only a time."""
    heartbeat = tmp_path / "heartbeat"
    arbitrated = {"mode": "arbitrate", "heartbeat": str(heartbeat)}
    heartbeat.touch()
    Heartbeat(heartbeat, tmp_path / "lock").beat()
    assert "held=no" in held_line(old, arbitrated)
    assert "held=yes" in held_line(new, arbitrated)
    heartbeat.write_text(f"{time.time():.0f}\n")
    assert "held=yes" in held_line(old, arbitrated)
    assert "held=no" in held_line(new, arbitrated)


def held_line(controller: Controller, settings: dict[str, Any]) -> str:
    controller.submit(**settings)
    return controller.lines[-1]


def test_settings_of_the_version_before_are_valid(new: Controller) -> None:
    text = (NEIGHBOURS / "ioncast_settings.lua").read_text()
    new.module["new"](new.lua.execute(text), new.slurm(), new.library())
    assert new.errors == []
