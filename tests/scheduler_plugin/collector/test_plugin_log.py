"""The plugin's lines in slurmctld's log, counted by the watch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from scheduler_plugin.collector import plugin_log
from scheduler_plugin.collector.plugin_log import PluginLog

# As slurmctld 22.05 writes them.
LINE = (
    '[2026-11-23T20:22:27.763] lua: ioncast: mode=on partition="batch" user="{user}" job="hacc"'
    ' io_nodes=4 source={source} ms=1.3 decision=04a9-_b{more} why="3 earlier runs"\n'
)
ERROR = "[2026-11-23T20:22:27.763] error: lua: ioncast: a job stays as it is: no memory\n"
OTHER = "[2026-11-23T20:22:27.763] sched: Allocate JobId=7 NodeList=n1 #CPUs=2\n"


def line(source: str = "history", user: str = "ann", more: str = "") -> str:
    return LINE.format(source=source, user=user, more=more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "slurmctld.log"
    found.write_text(line() + OTHER)
    return found


@pytest.fixture
def log(path: Path) -> Iterator[PluginLog]:
    found = PluginLog(str(path))
    found.read()
    yield found
    found.close()


def add(path: Path, text: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def numbers(log: PluginLog) -> dict[str, float]:
    """All numbers that are not 0, without the buckets of times."""
    log.read()
    return {
        " ".join([sample.name, *sample.labels.values()]): sample.value
        for metric in log.metrics()
        for sample in metric.samples
        if sample.value and "_bucket" not in sample.name and "_sum" not in sample.name
    }


def test_lines_are_counted_from_now_on(path: Path, log: PluginLog) -> None:
    assert numbers(log) == {}
    add(path, line() + OTHER + line("fallback") + ERROR + line(more=" held=yes"))
    assert numbers(log) == {
        "ioncast_plugin_submissions_total history": 2,
        "ioncast_plugin_submissions_total fallback": 1,
        "ioncast_plugin_seconds_count": 3,
        "ioncast_plugin_held_total": 1,
        "ioncast_plugin_errors_total": 1,
    }
    seconds = {
        sample.labels["le"]: sample.value
        for metric in log.metrics()
        for sample in metric.samples
        if sample.name == "ioncast_plugin_seconds_bucket"
    }
    assert (seconds["0.001"], seconds["0.0025"], seconds["+Inf"]) == (0, 3, 3)


def test_the_plugin_is_paused_until_it_asks_again(path: Path, log: PluginLog) -> None:
    add(path, line("fallback", more=" held=no paused=yes"))
    assert numbers(log)["ioncast_plugin_paused"] == 1
    add(path, line())
    assert "ioncast_plugin_paused" not in numbers(log)


def test_the_lines_are_those_that_the_plugin_writes(path: Path, log: PluginLog) -> None:
    """The form in ioncast.lua, filled in."""
    plugin = (Path(plugin_log.__file__).parents[1] / "lua" / "ioncast.lua").read_text()
    [parts] = re.findall(r"^local LINE = (.*?)\n\n", plugin, re.MULTILINE | re.DOTALL)
    form = "".join(re.findall("'([^']*)'", parts))
    values = (
        "on",
        "batch",
        "ann",
        "hacc",
        "none",
        "fallback",
        0.04,
        "none",
        "",
        " paused=yes",
        "-",
    )
    add(path, f"[2026] lua: ioncast: {form % values}\n")
    assert numbers(log)["ioncast_plugin_paused"] == 1


def test_half_a_line_waits_for_its_end(path: Path, log: PluginLog) -> None:
    add(path, line()[:100])
    assert numbers(log) == {}
    add(path, line()[100:])
    assert numbers(log)["ioncast_plugin_submissions_total history"] == 1


def test_no_line_is_lost_when_the_log_is_rotated(path: Path, log: PluginLog) -> None:
    add(path, line())
    path.rename(path.with_suffix(".1"))
    path.write_text(line("model"))
    add(path.with_suffix(".1"), line())
    assert numbers(log) == {
        "ioncast_plugin_submissions_total history": 2,
        "ioncast_plugin_submissions_total model": 1,
        "ioncast_plugin_seconds_count": 3,
    }
    # logrotate's copytruncate.
    path.write_text("")
    assert numbers(log)["ioncast_plugin_seconds_count"] == 3
    add(path, line("user"))
    assert numbers(log)["ioncast_plugin_submissions_total user"] == 1


def test_texts_of_users_are_not_taken_for_fields(path: Path, log: PluginLog) -> None:
    add(path, b"\xff\x00 ioncast: mode=on\n" + line(user="x source=user ms=1.0").encode())
    assert numbers(log) == {
        "ioncast_plugin_submissions_total history": 1,
        "ioncast_plugin_seconds_count": 1,
    }


def test_a_log_of_any_size_is_read_in_parts(
    path: Path, log: PluginLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_log, "_MOST_BYTES", 1000)
    add(path, b"x" * 5000 + b"\n" + line().encode())
    for _ in range(10):
        found = numbers(log)
    assert found["ioncast_plugin_submissions_total history"] == 1


def test_a_log_that_cannot_be_read_is_an_error_and_is_found_again(
    path: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "later.log"
    log = PluginLog(str(missing))
    with pytest.raises(InputError, match="slurmctld's log cannot be read: No such file"):
        log.read()
    os.mkfifo(missing)
    with pytest.raises(InputError, match="this is not a file"):
        log.read()
    missing.unlink()
    missing.touch()
    log.read()
    add(missing, line())
    assert numbers(log)["ioncast_plugin_submissions_total history"] == 1
    log.close()
