"""Adaptive campaigns as a site runs them, with fio on a disk of this machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchdb.campaigns.test_campaigns import (
    CAMPAIGN,
    EVERY_CELL_TWICE,
    SWITCH_ON,
    THIRD_WAITS,
    Site,
)

pytestmark = pytest.mark.fio

# 2 configurations with 2 numbers of I/O nodes, each at most 6 times.
WIDE = CAMPAIGN.replace("repetitions = 2", "repetitions = 6")
MOST_RUNS = 24


def names_of_runs(site: Site) -> list[str]:
    return sorted(run.parent.name for run in site.ended())


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    place = Site(tmp_path)
    (tmp_path / "small.toml").write_text(WIDE)
    yield place
    for process in place.started:
        process.kill()
        process.wait()
    subprocess.run(["pkill", "-KILL", "-f", str(tmp_path)], check=False)


def test_a_killed_campaign_goes_on_and_stops_at_the_wanted_regret(site: Site) -> None:
    site.platform(before=SWITCH_ON + THIRD_WAITS)
    goal = ("--adaptive", "--regret", "0.3", "--budget", "10m")
    process = site.start(*site.run_arguments, *goal)
    site.kill(process)
    assert site.status()["state"] == "not running"
    (site.root / "go").touch()
    resumed = site.ioncast("resume", "campaign")
    assert resumed.returncode == 0, resumed.stderr
    assert "ended because the expected regret is as low as wanted" in resumed.stdout
    status = site.status()
    assert (status["state"], status["failed"]) == ("complete", 0)
    # Ten runs tell how bandwidths scatter; before that no regret counts as known.
    assert 10 <= status["done"] < MOST_RUNS
    assert status["adaptive"]["expected_regret"] <= 0.3
    assert "run 10: " in resumed.stderr
    # Each run that was begun ended once, and is stored once.
    assert len(site.stored()) == status["done"] == len(names_of_runs(site))
    on = [line for line in site.switched() if line.startswith("on")]
    assert len(on) == status["done"]
    # After the goal, resuming runs nothing.
    again = site.ioncast("resume", "campaign")
    assert again.returncode == 0
    assert len(site.stored()) == status["done"]


def test_no_run_begins_that_would_end_after_the_budget(site: Site) -> None:
    done = site.ioncast(*site.run_arguments, "--adaptive", "--budget", "1s")
    assert done.returncode == 0, done.stderr
    assert "ended because no run fits into the rest of the budget" in done.stdout
    assert site.stored() == []
    assert site.status()["state"] == "complete"


def test_a_campaign_without_an_end_in_sight_runs_every_repetition_once(site: Site) -> None:
    (site.root / "small.toml").write_text(CAMPAIGN)
    done = site.ioncast(*site.run_arguments, "--adaptive", "--regret", "0")
    assert done.returncode == 0, done.stderr
    assert "ended because every cell had all of its repetitions" in done.stdout
    assert site.cells() == EVERY_CELL_TWICE
    report = json.loads(site.ioncast("report", "campaign", "--format", "json").stdout)
    assert len(report["configurations"]) == 2


def test_a_cell_whose_run_failed_is_not_tried_again_until_the_next_start(site: Site) -> None:
    # Only runs without I/O nodes fail.
    site.platform(before='[ "$ION_COUNT" -ne 0 ] || [ -e {root}/mended ]', after="")
    file = site.root / "here.toml"
    file.write_text(f"same_failures_limit = 9\n{file.read_text()}")
    done = site.ioncast(*site.run_arguments, "--adaptive", "--regret", "0.000001")
    assert done.returncode == 1, done.stderr
    assert "failed 2 times: the command before the run failed" in done.stdout
    assert {row["io_nodes"] for row in site.stored()} == {2}
    (site.root / "mended").touch()
    again = site.ioncast("resume", "campaign")
    assert again.returncode == 0, again.stderr
    assert set(site.cells().values()) == {6}
    assert len(site.cells()) == 4


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--adaptive",), "--adaptive: give --regret or --budget, or both"),
        (("--regret", "0.1"), "--regret: needs --adaptive"),
        (("--budget", "1h"), "--budget: needs --adaptive"),
    ],
)
def test_options_that_do_not_belong_together_are_one_line(
    site: Site, options: tuple[str, ...], said: str
) -> None:
    done = site.ioncast(*site.run_arguments, *options)
    assert (done.returncode, done.stderr.strip()) == (2, f"ioncast: {said}")
    assert not (site.root / "campaign").exists()


def test_an_adaptive_campaign_cannot_be_spread(site: Site) -> None:
    (site.root / "small.toml").write_text(WIDE.replace("seed", 'spread = "1h"\nseed'))
    done = site.ioncast(*site.run_arguments, "--adaptive", "--budget", "1h")
    assert done.returncode == 2
    assert "an adaptive campaign cannot be spread over time" in done.stderr
