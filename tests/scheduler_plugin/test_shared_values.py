"""Values that several programs must agree on, although they cannot import them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter

from ioncast.service.decide import scripts
from ioncast.service.decide.questions import DecisionAnswer, Question
from ioncast.service.settings import Settings as ServiceSettings
from ioncast.service.web.http import fields, lists
from scheduler_plugin.arbiter.heartbeat import HOLD_S
from scheduler_plugin.collector.limits_file import LONGEST_BYTES
from scheduler_plugin.marks import mark_of
from scheduler_plugin.service_client import LARGEST_PAGE, LOG_TIMEOUT_S, LONGEST_NAME, LONGEST_USER
from scheduler_plugin.settings import LONGEST_PERIOD_S, LicenceSettings

ROOM = Path(__file__).resolve().parents[2] / "scheduler_plugin"
PLUGIN = (ROOM / "lua" / "ioncast.lua").read_text()


def in_plugin(name: str) -> int:
    """A number at the top of ioncast.lua."""
    [(number, factor)] = re.findall(
        rf"^local {name} = (\d+)(?: \* (\d+))?$", PLUGIN, flags=re.MULTILINE
    )
    return int(number) * int(factor or 1)


def longest(annotation: Any) -> int:
    """The longest text that a field of the service accepts."""
    return int(TypeAdapter(annotation).json_schema()["maxLength"])


def test_texts_are_cut_to_what_the_service_accepts() -> None:
    assert in_plugin("LONGEST_NAME") == LONGEST_NAME == longest(fields.JobName)
    assert in_plugin("LONGEST_USER") == LONGEST_USER == longest(fields.UserName)
    [executable, _] = Question.model_json_schema()["properties"]["executable"]["anyOf"]
    assert in_plugin("LONGEST_EXECUTABLE") == executable["maxLength"]


def test_a_job_script_is_cut_to_what_the_service_reads_of_it() -> None:
    assert in_plugin("LONGEST_SCRIPT") == scripts._MOST_READ


def test_a_page_is_as_large_as_the_service_gives() -> None:
    limit = lists.PageQuery.model_json_schema()["properties"]["limit"]
    assert limit["maximum"] == LARGEST_PAGE


def test_the_watch_waits_longer_than_the_service_reads_a_log() -> None:
    assert ServiceSettings().upload_s < LOG_TIMEOUT_S


def test_the_plugin_believes_the_sources_that_the_service_has() -> None:
    [names] = re.findall(r"^local SOURCES = \{ (.*) \}$", PLUGIN, flags=re.MULTILINE)
    sources = get_args(DecisionAnswer.model_fields["source"].annotation)
    assert set(re.findall(r"(\w+) = true", names)) == set(sources)


def test_every_id_that_the_plugin_accepts_is_read_from_its_mark() -> None:
    longest_id = "a_-9" * (in_plugin("LONGEST_ID") // 4)
    for held, expected in (("", None), (":held until:9", 9)):
        assert mark_of(f"ioncast:{longest_id}{held}") == (longest_id, expected)


def test_a_job_is_held_as_long_as_the_arbiter_says() -> None:
    assert in_plugin("LONGEST_HOLD_S") == HOLD_S


def test_a_heartbeat_is_fresh_for_two_of_the_longest_periods() -> None:
    assert in_plugin("HEARTBEAT_S") >= 2 * LONGEST_PERIOD_S


@pytest.mark.parametrize(
    ("file", "line"),
    [
        (
            "lua/ioncast.lua",
            'licence = setting(is_licence, "must be a name without separators", "{}"),',
        ),
        ("lua/ioncast_settings.lua", '-- licence = "{}",'),
        ("hooks/hooks.conf", "LICENCE={}"),
        ("hooks/io_nodes.sh", "LICENCE={}"),
    ],
)
def test_all_have_the_same_default_licence(file: str, line: str) -> None:
    lines = [each.strip() for each in (ROOM / file).read_text().splitlines()]
    assert line.format(LicenceSettings().name) in lines


def test_the_plugin_reads_all_limits_that_the_watch_writes() -> None:
    assert in_plugin("LONGEST_LIMITS") == LONGEST_BYTES
