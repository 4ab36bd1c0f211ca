"""Campaigns as a site runs them: IOPS and fio do the work, on this machine's disk."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchdb.exports import export_rows
from benchdb.store import open_database, transaction

CAMPAIGN = """
name = "small"
description = "Two patterns, quickly."
repetitions = 3
seed = 7

[[grid]]
api = "POSIX"
operation = "write"
layout = "contiguous"
file_access = ["unique", "shared"]
transfer_size = "64k"
bytes_per_process = "1m"
"""
RUNS = 12

PLATFORM = """
system = "here"
io_nodes = [0, 2]
nodes = 1
processes_per_node = 2
test_directory = "{scratch}"
free_space_limit = "{limit}"
launch = "mpiexec -n {{tasks}}"

[io_nodes_switch]
environment = {{ ION_COUNT = "{{io_nodes}}" }}
before = '''{before}'''
after = '''echo off "$ION_COUNT" >> {root}/switched'''
"""
SWITCH_ON = 'echo on "$ION_COUNT" >> {root}/switched'


@pytest.fixture(autouse=True, scope="module")
def _fio() -> None:
    if shutil.which("fio") is None:
        message = "fio is not installed (Debian's package fio)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)


class Site:
    """A folder with a platform, a campaign, a scratch directory and a database."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "scratch").mkdir()
        (root / "small.toml").write_text(CAMPAIGN)
        self.platform()

    def platform(self, *, before: str = SWITCH_ON, limit: str = "1m") -> None:
        text = PLATFORM.format(
            scratch=self.root / "scratch",
            root=self.root,
            before=before.format(root=self.root),
            limit=limit,
        )
        (self.root / "here.toml").write_text(text)
        if (self.root / "campaign").exists():
            (self.root / "campaign" / "platform.toml").write_text(text)

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ioncast", "campaign", *arguments]

    @property
    def run_arguments(self) -> tuple[str, ...]:
        return (
            *("run", "small.toml", "--platform", "here.toml"),
            *("--dir", "campaign", "--engine", "fio"),
        )

    def ioncast(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a campaign, and wait until some of its runs are done."""
        process = subprocess.Popen(
            self.command(*(arguments or self.run_arguments)),
            cwd=self.root,
            env=self.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while len(self.ended()) < 3:
            assert process.poll() is None, "the campaign ended too soon"
            assert time.monotonic() < deadline, "no run came to its end"
            time.sleep(0.01)
        return process

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "IONCAST_DB": str(self.root / "bench.sqlite")}

    def ended(self) -> list[Path]:
        return list((self.root / "campaign" / "runs").glob("*/exit_code"))

    def status(self) -> dict[str, Any]:
        done = self.ioncast("status", "campaign", "--format", "json")
        assert done.returncode == 0, done.stderr
        record: dict[str, Any] = json.loads(done.stdout)
        return record

    def stored(self) -> list[dict[str, Any]]:
        engine = open_database(self.root / "bench.sqlite", create=False)
        with transaction(engine) as connection:
            rows = [dict(row) for row in export_rows(connection)]
        engine.dispose()
        return rows

    def cells(self) -> Counter[tuple[bool, int]]:
        return Counter((row["file_per_process"], row["io_nodes"]) for row in self.stored())

    def switched(self) -> list[str]:
        return (self.root / "switched").read_text().splitlines()


EVERY_CELL_THREE_TIMES = Counter({(f, n): 3 for f in (True, False) for n in (0, 2)})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    place = Site(tmp_path)
    yield place
    subprocess.run(["pkill", "-KILL", "-f", str(tmp_path)], check=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site whose campaign came to its end; not to be changed."""
    place = Site(tmp_path_factory.mktemp("finished"))
    done = place.ioncast(*place.run_arguments)
    assert done.returncode == 0, done.stderr
    assert f"{RUNS} of {RUNS} runs done" in done.stdout
    return place


def test_a_campaign_measures_every_configuration_with_every_number_of_io_nodes(
    finished: Site,
) -> None:
    assert finished.cells() == EVERY_CELL_THREE_TIMES
    assert finished.status() | {"directory": ""} == {
        "campaign": "small",
        "system": "here",
        "engine": "fio",
        "directory": "",
        "running": False,
        "runs": RUNS,
        "done": RUNS,
        "failed": 0,
        "left": 0,
        "failures": [],
    }


def test_a_measurement_keeps_where_it_is_from(finished: Site) -> None:
    version = subprocess.run(["fio", "--version"], capture_output=True, text=True, check=True)
    for row in finished.stored():
        assert row["engine"] == "fio"
        assert row["engine_version"] in version.stdout
        assert row["campaign"] == "small"
        assert "fio" in row["command"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", row["started"])
        assert row["bytes"] == 2 << 20
        assert row["bandwidth_mib_s"] == pytest.approx(2 / row["time_s"], rel=0.01)


def test_io_nodes_are_switched_on_before_and_off_after_each_run(finished: Site) -> None:
    states = [line.split() for line in finished.switched()]
    on = [n for what, n in states if what == "on"]
    assert Counter(on) == {"0": 6, "2": 6}
    for position, (what, n) in enumerate(states):
        if what == "on":
            assert states[position + 1] == ["off", n]


def test_the_runs_are_in_random_order_with_the_repetitions_interleaved(finished: Site) -> None:
    order = [
        path.parent.name for path in sorted(finished.ended(), key=lambda p: p.stat().st_mtime_ns)
    ]
    cells = [name.rpartition("-r")[0] for name in order]
    assert order != sorted(order)
    assert any(cells[i] != cells[i + 1] for i in range(RUNS - 1) if cells.count(cells[i]) == 3)
    assert sum(cells[i] == cells[i + 1] for i in range(RUNS - 1)) < RUNS - 4


def test_nothing_is_left_in_the_test_directory(finished: Site) -> None:
    assert list((finished.root / "scratch").iterdir()) == []


def test_a_run_that_fails_is_kept_as_failed_and_does_not_stop_the_others(site: Site) -> None:
    site.platform(before='echo no such I/O nodes; [ "$ION_COUNT" = 0 ]')
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 1
    assert "6 of 12 runs done, 6 failed" in done.stdout
    assert site.cells() == {(True, 0): 3, (False, 0): 3}
    failures = site.status()["failures"]
    assert {failure["io_nodes"] for failure in failures} == {2}
    for failure in failures:
        assert "the command before the run failed" in failure["reason"]
        assert "no such I/O nodes" in Path(failure["log"]).read_text()


def test_what_failed_is_run_again_only_when_asked_for(site: Site) -> None:
    site.platform(before='[ "$ION_COUNT" = 0 ]')
    site.ioncast(*site.run_arguments)
    site.platform()
    again = site.ioncast("resume", "campaign")
    assert again.returncode == 1
    assert "6 of 12 runs done, 6 failed" in again.stdout
    retried = site.ioncast("resume", "campaign", "--retry-failed")
    assert retried.returncode == 0, retried.stderr
    assert site.cells() == EVERY_CELL_THREE_TIMES
    assert len(list((site.root / "campaign" / "runs").glob("*.failed-1"))) == 6


def test_after_a_kill_in_the_middle_nothing_is_lost_and_nothing_is_there_twice(site: Site) -> None:
    process = site.start()
    process.kill()
    process.wait()
    before = len(site.ended())
    assert before < RUNS
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 0, done.stderr
    assert site.cells() == EVERY_CELL_THREE_TIMES
    # Its run in flight went on by itself and was not run again.
    assert sum(line.startswith("on") for line in site.switched()) == RUNS


@pytest.mark.parametrize("engine", ["fio", "ior"])
def test_the_laptop_campaign_killed_and_resumed_is_whole(site: Site, engine: str) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    arguments = ("--platform", "here.toml", "--dir", "campaign", "--engine", engine)
    process = site.start("run", "laptop", *arguments)
    process.kill()
    process.wait()
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 0, done.stderr
    rows = site.stored()
    assert {row["engine"] for row in rows} == {engine}
    shape = ("operation", "file_access", "transfer_size", "block_size", "io_nodes")
    cells = Counter(tuple(row[name] for name in shape) for row in rows)
    assert len(cells) == 6 * 2
    assert set(cells.values()) == {3}
    assert sum(line.startswith("on") for line in site.switched()) == 36


def test_after_the_machine_died_only_the_run_in_flight_is_run_again(site: Site) -> None:
    process = site.start()
    process.send_signal(signal.SIGSTOP)
    subprocess.run(["pkill", "-KILL", "-f", str(site.root)], check=False)
    process.kill()
    process.wait()
    time.sleep(0.2)
    ended = {path.parent.name: path.stat().st_mtime_ns for path in site.ended()}
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 0, done.stderr
    assert site.cells() == EVERY_CELL_THREE_TIMES
    for path in site.ended():
        assert ended.get(path.parent.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    assert sum(line.startswith("on") for line in site.switched()) <= RUNS + 1
    assert list((site.root / "scratch").iterdir()) == []


def test_an_interrupt_ends_the_run_in_flight_and_cleans_up_after_it(site: Site) -> None:
    process = site.start()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert list((site.root / "scratch").iterdir()) == []
    assert site.switched()[-1].startswith("off")
    status = site.status()
    assert not status["running"]
    assert status["failed"] == 0
    assert len(site.stored()) == status["done"] < RUNS
    assert site.ioncast("resume", "campaign").returncode == 0
    assert site.cells() == EVERY_CELL_THREE_TIMES


def test_a_campaign_that_runs_is_not_started_a_second_time(site: Site) -> None:
    site.platform(before="sleep 1")
    process = site.start()
    assert site.status()["running"]
    second = site.ioncast("resume", "campaign")
    assert second.returncode == 2
    assert "the campaign is running already" in second.stderr
    process.send_signal(signal.SIGINT)
    process.wait(20)


def test_a_campaign_stops_before_the_disk_is_full(site: Site) -> None:
    free = shutil.disk_usage(site.root).free
    site.platform(limit=f"{(free >> 20) + 1024}m")
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 2
    assert "bytes free" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (0, 0, RUNS)
    site.platform()
    assert site.ioncast("resume", "campaign").returncode == 0
    assert site.cells() == EVERY_CELL_THREE_TIMES


def test_a_folder_is_used_by_one_campaign(finished: Site) -> None:
    again = finished.ioncast(*finished.run_arguments)
    assert again.returncode == 2
    assert "ioncast campaign resume" in again.stderr


def test_a_campaign_that_grew_goes_on_with_what_is_new(site: Site) -> None:
    site.ioncast(*site.run_arguments)
    grown = CAMPAIGN.replace("repetitions = 3", "repetitions = 4")
    (site.root / "campaign" / "campaign.toml").write_text(grown)
    assert site.ioncast("resume", "campaign").returncode == 0
    assert set(site.cells().values()) == {4}


def test_the_report_shows_every_measured_cell(finished: Site) -> None:
    done = finished.ioncast("report", "campaign", "--format", "json", "--html", "report.html")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["configurations"]
    stored = sorted(row["bandwidth_mib_s"] for row in finished.stored())
    shown = [v for row in rows for values in row["bandwidths_mib_s"].values() for v in values]
    assert sorted(shown) == stored
    page = (finished.root / "report.html").read_text()
    assert "small on here" in page
    assert "mpiexec -n 2 ior" in finished.ioncast("report", "campaign").stdout


def test_a_folder_that_is_no_campaign_is_said_to_be_none(site: Site) -> None:
    for command in ("status", "resume", "report"):
        done = site.ioncast(command, "scratch")
        assert done.returncode == 2
        assert "not the folder of a campaign" in done.stderr


def test_iops_finds_no_fault_with_its_configuration(finished: Site) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "iops", "check", str(finished.root / "campaign" / "iops.yaml")],
        capture_output=True,
        text=True,
        check=False,
        cwd=finished.root,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
