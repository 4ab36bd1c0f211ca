"""Campaigns as a site runs them, with IOPS and fio on a disk of this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from benchdb.campaigns.folder import create
from benchdb.measurements.exports import export_rows
from benchdb.store.database import open_database, transaction
from tests.support.command import run_ioncast
from tests.support.emulated import wait_until

pytestmark = pytest.mark.fio

CAMPAIGN = """
name = "small"
description = "Two patterns, quickly."
repetitions = 2
seed = 7

[[grid]]
api = "POSIX"
operation = "write"
layout = "contiguous"
file_access = ["unique", "shared"]
transfer_size = "64k"
bytes_per_process = "1m"
"""
RUNS = 8

PLATFORM = """
system = "here"
io_nodes = {io_nodes}
nodes = 1
processes_per_node = 2
test_directory = "{scratch}"
free_space_limit = "{limit}"
launch = "mpiexec -n {{tasks}}"

[io_nodes_switch]
environment = {{ ION_COUNT = "{{io_nodes}}" }}
before = '''{before}'''
after = '''{after}'''
"""
SWITCH_ON = 'echo on "$ION_COUNT" >> {root}/switched'
SWITCH_OFF = 'echo off "$ION_COUNT" >> {root}/switched'
# A command that makes the third run wait until the file `go` exists.
THIRD_WAITS = """
echo >> {root}/begun
[ "$(wc -l < {root}/begun)" -ne 3 ] || while [ ! -e {root}/go ]; do sleep 0.1; done
"""


def campaign_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ioncast", "campaign", *arguments]


# Enough runs to tell a random order from others.
THRICE = CAMPAIGN.replace("repetitions = 2", "repetitions = 3")
RUNS_OF_THRICE = 12
# One run with each number of I/O nodes.
SMALLEST = CAMPAIGN.replace("repetitions = 2", "repetitions = 1").replace(
    '["unique", "shared"]', '"unique"'
)


def cell(row: dict[str, Any]) -> tuple[bool, int]:
    return (row["file_per_process"], row["io_nodes"])


class Site:
    """A folder with a platform, a campaign, a scratch directory and a database."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.started: list[subprocess.Popen[bytes]] = []
        (root / "scratch").mkdir()
        (root / "small.toml").write_text(CAMPAIGN)
        self.platform()

    def platform(
        self,
        *,
        before: str = SWITCH_ON,
        after: str = SWITCH_OFF,
        limit: str = "1m",
        io_nodes: str = "[0, 2]",
    ) -> None:
        text = PLATFORM.format(
            scratch=self.root / "scratch",
            root=self.root,
            before=before.replace("{root}", str(self.root)),
            after=after.replace("{root}", str(self.root)),
            limit=limit,
            io_nodes=io_nodes,
        )
        (self.root / "here.toml").write_text(text)
        if (self.root / "campaign").exists():
            (self.root / "campaign" / "platform.toml").write_text(text)

    @property
    def run_arguments(self) -> tuple[str, ...]:
        return (
            *("run", "small.toml", "--platform", "here.toml"),
            *("--dir", "campaign", "--engine", "fio"),
        )

    def ioncast(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_ioncast("campaign", *arguments, folder=self.root, environment=self.variables)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a campaign, and return when its third run waits (see `THIRD_WAITS`)."""
        process = subprocess.Popen(
            campaign_command(*(arguments or self.run_arguments)),
            cwd=self.root,
            env={**os.environ, **self.variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.started.append(process)
        begun = self.root / "begun"
        wait_until(lambda: process.poll() or (begun.exists() and len(begun.read_text()) == 3))
        assert process.poll() is None, "the campaign ended too soon"
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """Kill a campaign, and wait until its orchestrator has stopped."""
        process.kill()
        process.wait()
        wait_until(lambda: not self.status()["running"])

    def measure_slowly(self) -> None:
        """Make the third run of fio wait while its files are in the test directory."""
        slow = self.root / "bin" / "fio"
        slow.parent.mkdir()
        slow.write_text(
            f'#!/bin/sh\n{shutil.which("fio")} "$@" || exit\n'
            + THIRD_WAITS.replace("{root}", str(self.root))
        )
        slow.chmod(0o755)
        file = self.root / "here.toml"
        file.write_text(f'{file.read_text()}\n[programs]\nfio = "{slow}"\n')

    def limit_files(self, most_bytes: int, same_failures: int | None = None) -> None:
        """Let fio write files of at most so many bytes, so that the system rejects longer ones."""
        limited = self.root / "bin" / "fio"
        limited.parent.mkdir(exist_ok=True)
        limited.write_text(
            f'#!/bin/sh\ntrap "" XFSZ\nulimit -f {most_bytes >> 9}\n'
            f'exec {shutil.which("fio")} "$@"\n'
        )
        limited.chmod(0o755)
        self.platform(before="", after="")
        file = self.root / "here.toml"
        own = "" if same_failures is None else f"same_failures_limit = {same_failures}\n"
        if not (self.root / "campaign").exists():
            file.write_text(f'{own}{file.read_text()}\n[programs]\nfio = "{limited}"\n')

    @property
    def variables(self) -> dict[str, str]:
        return {"IONCAST_DB": str(self.root / "bench.sqlite")}

    def ended(self) -> list[Path]:
        return list((self.root / "campaign" / "runs").glob("*/exit_code"))

    def status(self) -> dict[str, Any]:
        done = self.ioncast("status", "campaign", "--format", "json")
        assert not done.stderr
        record: dict[str, Any] = json.loads(done.stdout)
        assert done.returncode == (record["state"] == "failed")
        return record

    def stored(self, database: str = "bench.sqlite") -> list[dict[str, Any]]:
        engine = open_database(self.root / database, create=False)
        with transaction(engine) as connection:
            rows = [dict(row) for row in export_rows(connection)]
        engine.dispose()
        return rows

    def cells(self) -> Counter[tuple[bool, int]]:
        return Counter(cell(row) for row in self.stored())

    def switched(self) -> list[str]:
        return (self.root / "switched").read_text().splitlines()


EVERY_CELL_TWICE = Counter({(f, n): 2 for f in (True, False) for n in (0, 2)})


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    place = Site(tmp_path)
    yield place
    for process in place.started:
        process.kill()
        process.wait()
    subprocess.run(["pkill", "-KILL", "-f", str(tmp_path)], check=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A site whose campaign has finished; tests must not change it."""
    place = Site(tmp_path_factory.mktemp("finished"))
    (place.root / "small.toml").write_text(THRICE)
    done = place.ioncast(*place.run_arguments)
    assert done.returncode == 0, done.stderr
    assert f"{RUNS_OF_THRICE} of {RUNS_OF_THRICE} runs done" in done.stdout
    return place


def test_a_campaign_measures_every_configuration_with_every_number_of_io_nodes(
    finished: Site,
) -> None:
    assert set(finished.cells()) == set(EVERY_CELL_TWICE)
    assert set(finished.cells().values()) == {3}
    assert finished.status() | {"directory": ""} == {
        "campaign": "small",
        "system": "here",
        "engine": "fio",
        "directory": "",
        "state": "complete",
        "running": False,
        "stopped": None,
        "runs": RUNS_OF_THRICE,
        "done": RUNS_OF_THRICE,
        "failed": 0,
        "left": 0,
        "errors": [],
        "failures": [],
    }


def test_a_measurement_is_stored_with_its_origin(finished: Site) -> None:
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
    assert any(
        cells[i] != cells[i + 1] for i in range(RUNS_OF_THRICE - 1) if cells.count(cells[i]) == 3
    )
    assert sum(cells[i] == cells[i + 1] for i in range(RUNS_OF_THRICE - 1)) < RUNS_OF_THRICE - 4


def with_two_nodes(site: Site, directory: str = "") -> None:
    """Give the site two nodes; `directory` is the template of their paths to the test directory."""
    site.platform(before="", after="")
    (site.root / "small.toml").write_text(SMALLEST)
    file = site.root / "here.toml"
    key = f'node_directory = "{site.root}/{directory}"\n' if directory else ""
    file.write_text(file.read_text().replace("nodes = 1\n", f"nodes = 2\n{key}"))


def test_fio_runs_on_the_nodes_whose_directories_are_here(site: Site) -> None:
    with_two_nodes(site, "io{io_nodes}-cn{node}")
    for io_nodes in (0, 2):
        for node in (0, 1):
            (site.root / f"io{io_nodes}-cn{node}").symlink_to("scratch")
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 0, done.stderr + done.stdout
    rows = site.stored()
    assert [(row["tasks"], row["nodes"], row["bytes"]) for row in rows] == [(4, 2, 4 << 20)] * 2
    for row in rows:
        assert f"io{row['io_nodes']}-cn0/" in row["command"]
        assert f"io{row['io_nodes']}-cn1/" in row["command"]
    assert list((site.root / "scratch").iterdir()) == []


def test_a_node_without_its_directory_is_found_before_the_first_run(site: Site) -> None:
    with_two_nodes(site, "io{io_nodes}-cn{node}")
    (site.root / "io0-cn0").symlink_to("scratch")
    refused = site.ioncast(*site.run_arguments)
    assert refused.returncode == 2
    assert "io0-cn1: the directory of a node does not exist" in refused.stderr
    assert not (site.root / "campaign").exists()


def test_fio_without_node_directories_cannot_run_on_two_nodes(site: Site) -> None:
    with_two_nodes(site)
    refused = site.ioncast(*site.run_arguments)
    assert refused.returncode == 2
    assert "fio runs on one node, because here has no node_directory" in refused.stderr


def test_nothing_is_left_in_the_test_directory(finished: Site) -> None:
    assert list((finished.root / "scratch").iterdir()) == []


def test_a_run_that_fails_is_kept_as_failed_and_does_not_stop_the_others(site: Site) -> None:
    site.platform(before='echo no such I/O nodes; [ "$ION_COUNT" = 0 ]')
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 1
    assert "4 of 8 runs done, 4 failed" in done.stdout
    assert site.cells() == {(True, 0): 2, (False, 0): 2}
    failures = site.status()["failures"]
    assert {failure["io_nodes"] for failure in failures} == {2}
    for failure in failures:
        assert "the command before the run failed" in failure["reason"]
        assert "no such I/O nodes" in Path(failure["log"]).read_text()


@pytest.mark.parametrize("limit", [None, 2])
def test_failures_in_a_row_with_the_same_error_stop_the_campaign(
    site: Site, limit: int | None
) -> None:
    site.limit_files(1 << 18, limit)
    stopped = site.ioncast(*site.run_arguments)
    limit = limit or 3
    assert stopped.returncode == 2
    [cause] = stopped.stderr.splitlines()[-1:]
    assert f"{limit} runs in a row failed with the same error: fio: " in cause
    assert "File too large" in cause
    assert cause.endswith(
        "ioncast campaign resume campaign --retry-failed`".replace(
            "campaign --", f"{site.root}/campaign --"
        )
    )
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (0, limit, RUNS - limit)
    assert status["state"] == "failed"
    assert status["stopped"] in cause
    assert len(site.ended()) == limit
    assert list((site.root / "scratch").iterdir()) == []


def test_a_stopped_campaign_continues_after_the_repair(site: Site) -> None:
    site.limit_files(1 << 18)
    site.ioncast(*site.run_arguments)
    # Nothing was repaired: the failures of the first attempt do not count again.
    again = site.ioncast("resume", "campaign")
    assert "3 runs in a row failed with the same error" in again.stderr
    assert site.status()["failed"] == 6
    site.limit_files(1 << 30)
    done = site.ioncast("resume", "campaign", "--retry-failed")
    assert done.returncode == 0, done.stderr
    assert site.cells() == EVERY_CELL_TWICE
    assert site.status()["state"] == "complete"


def test_failures_with_other_errors_in_turn_do_not_stop_the_campaign(site: Site) -> None:
    site.platform(
        before="""
echo >> {root}/begun
[ $(($(wc -l < {root}/begun) % 2)) = 0 ] || { echo "no I/O node is free"; exit 3; }
echo "license server unreachable"; exit 3
"""
    )
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 1
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (0, RUNS, 0)
    assert status["state"] == "failed"
    assert status["stopped"] is None
    assert [(error["error"], error["runs"]) for error in status["errors"]] == [
        ("the command before the run failed: no I/O node is free", 4),
        ("the command before the run failed: license server unreachable", 4),
    ]


def test_failures_between_runs_that_succeed_do_not_stop_the_campaign(site: Site) -> None:
    site.platform(before="echo >> {root}/begun; [ $(($(wc -l < {root}/begun) % 3)) = 0 ] || exit 3")
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 1
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (2, 6, 0)
    assert status["state"] == "complete"


def test_the_status_tells_each_error_once(site: Site) -> None:
    site.limit_files(1 << 18)
    site.ioncast(*site.run_arguments)
    shown = site.ioncast("status", "campaign")
    assert shown.returncode == 1
    _, state, error, why, then = shown.stdout.splitlines()
    assert state == "failed: 0 of 8 runs done, 3 failed"
    assert error.startswith("failed 3 times: fio: ")
    assert "File too large" in error
    assert "repetition" in error
    assert why.startswith("stopped because 3 runs in a row failed with the same error: fio: ")
    assert then == "continue with `ioncast campaign resume campaign --retry-failed`"


def test_failed_runs_run_again_only_when_asked_for(site: Site) -> None:
    site.platform(before='[ "$ION_COUNT" = 0 ]')
    site.ioncast(*site.run_arguments)
    site.platform()
    again = site.ioncast("resume", "campaign")
    assert again.returncode == 1
    assert "4 of 8 runs done, 4 failed" in again.stdout
    retried = site.ioncast("resume", "campaign", "--retry-failed")
    assert retried.returncode == 0, retried.stderr
    assert site.cells() == EVERY_CELL_TWICE
    assert len(list((site.root / "campaign" / "runs").glob("*.failed-1"))) == 4


def test_after_a_kill_nothing_is_lost_and_nothing_is_stored_twice(site: Site) -> None:
    site.measure_slowly()
    process = site.start()
    site.kill(process)
    assert len(site.ended()) == 2
    (site.root / "go").touch()
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 0, done.stderr
    assert site.cells() == EVERY_CELL_TWICE
    # The run that was in progress finished by itself and was not repeated.
    assert sum(line.startswith("on") for line in site.switched()) == RUNS


@pytest.mark.parametrize("engine", ["fio", "ior"])
def test_the_laptop_campaign_is_complete_after_a_kill_and_a_resume(site: Site, engine: str) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not installed")
    site.platform(io_nodes="[2]", before=SWITCH_ON + THIRD_WAITS)
    arguments = ("--platform", "here.toml", "--dir", "campaign", "--engine", engine)
    site.kill(site.start("run", "laptop", *arguments))
    (site.root / "go").touch()
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 0, done.stderr
    rows = site.stored()
    assert {row["engine"] for row in rows} == {engine}
    shape = ("operation", "file_access", "transfer_size", "block_size", "io_nodes")
    cells = Counter(tuple(row[name] for name in shape) for row in rows)
    assert len(cells) == 6
    assert set(cells.values()) == {3}
    assert sum(line.startswith("on") for line in site.switched()) == 18


def test_after_a_crash_of_the_machine_only_the_current_run_is_repeated(site: Site) -> None:
    site.measure_slowly()
    site.kill(site.start())
    subprocess.run(["pkill", "-KILL", "-f", str(site.root)], check=True)
    ended = {path.parent.name: path.stat().st_mtime_ns for path in site.ended()}
    assert len(ended) == 2
    assert list((site.root / "scratch").iterdir()) != []
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 0, done.stderr
    assert site.cells() == EVERY_CELL_TWICE
    for path in site.ended():
        assert ended.get(path.parent.name, path.stat().st_mtime_ns) == path.stat().st_mtime_ns
    assert sum(line.startswith("on") for line in site.switched()) == RUNS + 1
    assert list((site.root / "scratch").iterdir()) == []


def test_an_interrupt_stops_the_current_run_and_cleans_up(site: Site) -> None:
    site.measure_slowly()
    process = site.start()
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 130
    assert list((site.root / "scratch").iterdir()) == []
    assert site.switched()[-1].startswith("off")
    status = site.status()
    assert not status["running"]
    assert status["failed"] == 0
    assert len(site.stored()) == status["done"] == 2
    assert site.ioncast("resume", "campaign").returncode == 0
    assert site.cells() == EVERY_CELL_TWICE


def test_an_interrupt_waits_until_the_io_nodes_are_off(site: Site) -> None:
    site.platform(after=THIRD_WAITS + SWITCH_OFF)
    process = site.start()
    process.send_signal(signal.SIGTERM)
    (site.root / "go").touch()
    assert process.wait(300) == 130
    states = [line.split() for line in site.switched()]
    # A run that is stopped before it has switched I/O nodes on still switches them off.
    after = [(n, states[place + 1 :]) for place, (what, n) in enumerate(states) if what == "on"]
    assert after
    assert all(later[:1] == [["off", n]] for n, later in after)
    assert len(site.stored()) == len(site.ended())


@pytest.mark.parametrize(
    ("before", "after", "done"),
    [
        ("cd /", "cd /; exit 0", 2),
        ("exit 3", "", 0),
        ("   ", "exit 5", 2),
        ("true # nothing to do", "# nothing", 2),
        ("if true\nthen\n  true\nfi\n", "true &", 2),
    ],
)
def test_the_commands_of_a_site_may_be_any_shell_commands(
    site: Site, before: str, after: str, done: int
) -> None:
    (site.root / "small.toml").write_text(SMALLEST)
    site.platform(before=before, after=after)
    site.ioncast(*site.run_arguments)
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (done, 2 - done, 0)


def test_a_run_does_not_wait_for_programs_that_a_command_leaves_running(site: Site) -> None:
    (site.root / "small.toml").write_text(SMALLEST)
    site.platform(before="sleep 600 & echo $! >> {root}/asleep", after="")
    done = site.ioncast(*site.run_arguments)
    asleep = [int(line) for line in (site.root / "asleep").read_text().split()]
    for process_id in asleep:
        # Fails if the program is not running any more.
        os.kill(process_id, signal.SIGTERM)
    assert done.returncode == 0, done.stderr
    assert len(asleep) == 2


def test_commands_that_are_not_a_shell_script_are_rejected_before_the_first_run(site: Site) -> None:
    site.platform(before="if true; then")
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 2
    assert "not a valid shell script" in done.stderr
    assert site.ended() == []


def test_runs_whose_files_are_missing_or_cut_off_are_repeated(site: Site) -> None:
    assert site.ioncast(*site.run_arguments).returncode == 0
    first, second, third, *_ = sorted(site.ended())
    shutil.rmtree(first.parent)
    for file in second.parent.iterdir():
        file.write_bytes(b"")
    (third.parent / "output.json").unlink()
    tried = site.ioncast("resume", "campaign")
    assert tried.returncode == 1
    assert "No such file" in tried.stdout
    while site.status()["left"]:
        site.ioncast("resume", "campaign")
    assert site.ioncast("resume", "campaign", "--retry-failed").returncode == 0
    assert site.status()["done"] == RUNS


def test_a_campaign_continues_in_its_own_database(site: Site) -> None:
    (site.root / "small.toml").write_text(SMALLEST)
    site.ioncast(*site.run_arguments, "--db", "own.sqlite")
    (site.root / "campaign" / "campaign.toml").write_text(
        SMALLEST.replace("repetitions = 1", "repetitions = 2")
    )
    done = run_ioncast(
        *("campaign", "resume", site.root / "campaign"),
        folder=site.root / "scratch",
        environment=site.variables,
    )
    assert done.returncode == 0
    assert not (site.root / "bench.sqlite").exists()
    assert list((site.root / "scratch").iterdir()) == []
    assert len(site.stored("own.sqlite")) == 4


def test_a_password_is_not_written_to_the_folder(site: Site) -> None:
    create(
        site.root / "campaign",
        campaign=CAMPAIGN,
        platform=(site.root / "here.toml").read_text(),
        system="here",
        engine="fio",
        program="fio",
        database="postgresql://me:hush@host/base?password=hush",
    )
    kept = (site.root / "campaign" / "settings.json").read_text()
    assert "hush" not in kept
    assert "me" in kept


def test_a_start_that_fails_leaves_no_folder(site: Site) -> None:
    refused = site.ioncast(*site.run_arguments, "--db", "postgresql://nobody@127.0.0.1:1/none")
    assert refused.returncode == 2
    assert len(refused.stderr.strip().splitlines()) == 1
    assert not (site.root / "campaign").exists()


def test_a_second_spelling_of_a_system_is_rejected(site: Site) -> None:
    (site.root / "small.toml").write_text(SMALLEST)
    site.ioncast(*site.run_arguments)
    file = site.root / "here.toml"
    file.write_text(file.read_text().replace('system = "here"', 'system = "HERE"'))
    refused = site.ioncast(*site.run_arguments[:4], "--dir", "other", "--engine", "fio")
    assert refused.returncode == 2
    assert "the database already has a system 'here'" in refused.stderr
    assert not (site.root / "other").exists()


def test_the_folder_may_have_any_name(site: Site) -> None:
    (site.root / "small.toml").write_text(SMALLEST)
    name = "it's {{ a }} $HOME {% name %}"
    done = site.ioncast(*site.run_arguments[:4], "--dir", name, "--engine", "fio")
    assert done.returncode == 0, done.stderr
    assert {path.name for path in site.root.iterdir()} >= {name}
    assert len(site.stored()) == 2


def test_a_folder_is_for_one_system(site: Site) -> None:
    (site.root / "small.toml").write_text(SMALLEST)
    site.ioncast(*site.run_arguments)
    file = site.root / "campaign" / "platform.toml"
    file.write_text(file.read_text().replace('system = "here"', 'system = "there"'))
    done = site.ioncast("resume", "campaign")
    assert done.returncode == 2
    assert "the campaign began on 'here', not on 'there'" in done.stderr


def test_a_running_campaign_cannot_be_started_again(site: Site) -> None:
    site.platform(before=THIRD_WAITS)
    process = site.start()
    try:
        assert site.status()["running"]
        second = site.ioncast("resume", "campaign")
        assert second.returncode == 2
        assert "the campaign is already running" in second.stderr
    finally:
        (site.root / "go").touch()
        process.send_signal(signal.SIGINT)
        process.wait(300)


def test_a_campaign_stops_before_the_disk_is_full(site: Site) -> None:
    # The limit is far above the free space, because other programs use the disk at the same time.
    disk = shutil.disk_usage(site.root)
    site.platform(limit=f"{(disk.free + disk.total) // 2 >> 20}m")
    done = site.ioncast(*site.run_arguments)
    assert done.returncode == 2
    assert "free, but the next run and free_space_limit need" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (0, 0, RUNS)
    site.platform()
    assert site.ioncast("resume", "campaign").returncode == 0
    assert site.cells() == EVERY_CELL_TWICE


def test_no_run_starts_without_a_lock(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a lock, a run would remove the files of another run with the same configuration."""
    (site.root / "bin").mkdir()
    flock = site.root / "bin" / "flock"
    flock.write_text("#!/bin/sh\nexit 65\n")
    flock.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("PATH", f"{flock.parent}:{os.environ['PATH']}")
        done = site.ioncast(*site.run_arguments)
    assert done.returncode == 2
    assert "running cannot be locked: flock must work in this folder" in done.stderr
    status = site.status()
    assert (status["done"], status["failed"], status["left"]) == (0, 0, RUNS)
    assert site.ioncast("resume", "campaign").returncode == 0


def test_settings_that_fio_does_not_use_switch_no_io_nodes(site: Site) -> None:
    """Only `launch` contains {io_nodes} here, and fio does not use it."""
    file = site.root / "here.toml"
    launch = "mpiexec -n {tasks}"
    text = file.read_text().replace(launch, f"with {{io_nodes}} {launch}")
    file.write_text(text.replace('"{io_nodes}"', '"some"'))
    refused = site.ioncast(*site.run_arguments)
    assert refused.returncode == 2
    [line] = refused.stderr.splitlines()
    assert "no setting that fio uses contains {io_nodes}" in line
    assert not (site.root / "campaign").exists()


def test_a_folder_is_used_by_one_campaign(finished: Site) -> None:
    again = finished.ioncast(*finished.run_arguments)
    assert again.returncode == 2
    assert "ioncast campaign resume" in again.stderr


def test_a_campaign_that_grew_runs_only_the_new_repetitions(site: Site) -> None:
    site.ioncast(*site.run_arguments)
    (site.root / "campaign" / "campaign.toml").write_text(THRICE)
    assert site.ioncast("resume", "campaign").returncode == 0
    assert set(site.cells().values()) == {3}
    results = (site.root / "campaign" / "results.csv").read_text().splitlines()
    assert len(results) == 1 + RUNS_OF_THRICE


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


def test_a_folder_without_a_campaign_is_rejected(site: Site) -> None:
    for command in ("status", "resume", "report"):
        done = site.ioncast(command, "scratch")
        assert done.returncode == 2
        assert "not the folder of a campaign" in done.stderr


def test_iops_accepts_its_configuration(finished: Site) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "iops", "check", str(finished.root / "campaign" / "iops.yaml")],
        capture_output=True,
        text=True,
        check=False,
        cwd=finished.root,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_iops_reports_on_the_folder_with_variables_for_people(
    finished: Site, tmp_path: Path
) -> None:
    made = subprocess.run(
        [
            *(sys.executable, "-m", "iops", "report", str(finished.root / "campaign")),
            *("-o", "page.html"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert made.returncode == 0
    assert "Report generated" in made.stdout + made.stderr
    page = (tmp_path / "page.html").read_text()
    assert "Error" not in page
    assert "4 × 3 = 12" in page
    for name, kind, values in [
        ("file_access", "str", "shared, unique"),
        ("request_size", "str", "64 KiB"),
        ("processes", "int", "2"),
        ("io_nodes", "int", "0, 2"),
    ]:
        assert f"<strong>{name}</strong></td><td>{kind}</td><td>{values}</td>" in page
    means = [
        mean([row["bandwidth_mib_s"] for row in finished.stored() if cell(row) == one])
        for one in finished.cells()
    ]
    assert f"{max(means):.4f}" in page
    assert "mpiexec -n 2 ior -a POSIX -w -F -b 1m -t 64k" in page
