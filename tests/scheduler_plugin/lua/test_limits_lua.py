"""Slurm's limits in ioncast.lua, in two versions of Lua."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.scheduler_plugin.lua.test_job_submit_lua import RUNTIMES, Controller, fields
from tests.scheduler_plugin.standin import WHY, response

# As `ioncast slurm watch` writes them.
LIMITS = (
    "total\t7",
    "partition\tlarge\t5",
    "partition\tdebug\t1",
    "qos\tsmall\t2",
    "qos\tnone\t0",
    "account\tphysics\t3",
    "user\tphysics\tbob\t2",
    "partition-user\tbatch\tstaff\teve\t4",
    "partition-user\tlarge\tstaff\teve\t3",
)


@pytest.fixture(params=RUNTIMES)
def controller(request: pytest.FixtureRequest) -> Controller:
    return Controller(request.param)


def text(
    *lines: str, written_s: int | None = None, licence: str = "ionode", last_s: int | None = None
) -> str:
    """The file: its first and its last line have the time at which it was written."""
    written_s = int(time.time()) if written_s is None else written_s
    last_s = written_s if last_s is None else last_s
    head = f"ioncast-limits\t1\t{written_s}\t{licence}"
    return "\n".join([head, *(lines or LIMITS), f"end\t{last_s}", ""])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "limits"
    path.write_text(text())
    return path


def available(controller: Controller) -> str:
    """The number of I/O nodes that the service may choose from, by the last question."""
    target = controller.requests[-1].split(b" ")[1].decode()
    return parse_qs(urlsplit(target).query)["available"][0]


@pytest.mark.parametrize(
    ("job", "limit", "of"),
    [
        ({}, 7, "all licences"),
        ({"qos": "small"}, 2, "QOS small"),
        ({"default_qos": "small"}, 2, "QOS small"),
        ({"qos": "SMALL"}, 2, "QOS small"),
        ({"qos": "other", "default_qos": "small"}, 7, "all licences"),
        ({"partition": "large"}, 5, "partition large"),
        ({"partition": "large,debug"}, 1, "partition debug"),
        ({"account": "physics"}, 3, "account physics"),
        ({"default_account": "physics"}, 3, "account physics"),
        ({"account": "physics", "user_name": "bob"}, 2, "user bob of account physics"),
        ({"account": "physics", "user_name": "bob", "partition": "debug"}, 1, "partition debug"),
        ({"account": "Staff", "user_name": "eve", "partition": "other"}, 7, "all licences"),
        (
            {"account": "Staff", "user_name": "eve", "partition": "batch,large"},
            3,
            "user eve of account staff in partition large",
        ),
    ],
)
def test_no_job_gets_more_than_its_lowest_limit(
    controller: Controller, file: Path, job: dict[str, Any], limit: int, of: str
) -> None:
    controller.answer = response("8")
    found = controller.submit(job, limits=str(file))
    assert found["licenses"] == f"ionode:{limit}"
    assert found["environment"]["ION_COUNT"] == str(limit)
    assert available(controller) == str(limit)
    [line] = controller.lines
    assert fields(line)["why"] == f"{WHY}; Slurm's limit for {of} is {limit}"


def test_the_default_and_a_lower_decision_obey_the_limit(
    controller: Controller, file: Path
) -> None:
    assert controller.submit(limits=str(file))["licenses"] == "ionode:4"
    controller.answer = b""
    job = {"qos": "small"}
    assert controller.submit(job, limits=str(file), default=4)["licenses"] == "ionode:2"


def test_a_job_that_may_have_no_licence_gets_none_without_a_question(
    controller: Controller, file: Path
) -> None:
    found = controller.submit({"qos": "none"}, limits=str(file), default=4)
    assert "licenses" not in found
    assert controller.requests == []
    assert fields(controller.lines[-1])["why"] == "Slurm's limit for QOS none is 0"


def test_a_users_own_number_is_left_to_slurm(controller: Controller, file: Path) -> None:
    found = controller.submit({"qos": "small", "licenses": "ionode:4"}, limits=str(file))
    assert found["licenses"] == "ionode:4"


def test_limits_that_change_hold_for_the_next_job(controller: Controller, file: Path) -> None:
    submit = controller.start(limits=str(file))
    assert controller.submit_to(submit, {"qos": "small"})["licenses"] == "ionode:2"
    file.write_text(text("total\t8", "qos\tsmall\t3"))
    assert controller.submit_to(submit, {"qos": "small"})["licenses"] == "ionode:3"


SMALL = "qos\tsmall\t2"
# Made when a test runs, because a file has a time.
DAMAGED = {
    "empty": lambda now: "",
    "zeros": lambda now: "\0" * 100,
    "bytes": lambda now: "\xff\xfe\n" * 1000,
    "another licence": lambda now: text(licence="matlab"),
    "older than a day": lambda now: text(written_s=now - 90_000),
    "of the day after tomorrow": lambda now: text(written_s=now + 90_000),
    "without its end": lambda now: text()[:-5],
    "with the end of the file before": lambda now: text(last_s=now - 60),
    "too long": lambda now: text(*LIMITS, *(f"qos\tq{number}\t1" for number in range(10_000))),
    "another version": lambda now: text().replace("limits\t1", "limits\t2"),
    "no numbers": lambda now: text(SMALL.replace("2", "-1"), SMALL.replace("2", "2.5"), "total\tx"),
    "a number without an end": lambda now: text(SMALL + "9" * 400),
    "other names": lambda now: text("qos small 2", "qos\tsmaller\t2", "Qos\tsmall\t2"),
    "behind the end": lambda now: text(f"end\t{now}", SMALL, written_s=now),
}


@pytest.mark.promise("slurm-limits-file-broken")
@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_without_a_whole_file_there_is_no_limit(
    controller: Controller, file: Path, content: Callable[[int], str]
) -> None:
    file.write_text(content(int(time.time())), encoding="latin-1")
    found = controller.submit({"qos": "small"}, limits=str(file))
    assert found["licenses"] == "ionode:4"
    assert controller.errors == []


def test_without_a_file_there_is_no_limit(controller: Controller, tmp_path: Path) -> None:
    for limits in (None, str(tmp_path / "missing"), str(tmp_path), "\n"):
        assert controller.submit({"qos": "small"}, limits=limits)["licenses"] == "ionode:4"
    assert controller.errors == []


@pytest.mark.parametrize(
    "job",
    [
        {"qos": "small\t2\nqos\tother"},
        {"qos": "\xff" * 5000, "account": "\0"},
        {"qos": 5.0, "account": True},
        {"partition": "," * 3000},
        {"partition": ",".join(["debug"] * 600)},
        {"qos": "%d+", "account": "[", "partition": "(.-)"},
    ],
)
def test_no_name_of_a_user_harms_the_limits(
    controller: Controller, file: Path, job: dict[str, Any]
) -> None:
    assert controller.submit(job, limits=str(file))["licenses"] in {"ionode:4", "ionode:1"}
    assert controller.errors == []
