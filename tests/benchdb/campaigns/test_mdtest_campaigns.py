"""Campaigns with `[[files]]`: mdtest measures rates of files beside the bandwidths of others."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchdb.campaigns.collecting import rates_of, result_of
from benchdb.campaigns.engines import BenchmarkJob
from benchdb.campaigns.folder import CampaignFolder, CampaignRun, create, obstacles
from benchdb.campaigns.mdtest_engine import MDTEST
from benchdb.campaigns.report import rows_of
from benchdb.measurements.file_rates import FileRate, rates_of_system
from benchdb.store.database import open_database, transaction
from ior_configs import MdtestConfig
from tests.support.command import run_ioncast

OUTPUT = Path(__file__).parent / "fixtures" / "mdtest-4.1-small-files.txt"
OPERATIONS = ["create", "read", "remove", "stat"]
FILES = """
name = "small"
description = "Files and bytes."
repetitions = 1
seed = 7

[[files]]
files_per_process = 20
bytes_per_file = "8k"
"""
GRID = """
[[grid]]
operation = "write"
file_access = "unique"
transfer_size = "64k"
bytes_per_process = "64k"
"""
PLATFORM = """
system = "here"
io_nodes = [0, 2]
nodes = 1
processes_per_node = 2
test_directory = "{scratch}"
free_space_limit = "1m"
launch = "mpiexec -n {{tasks}}"
io_nodes_switch.environment = {{ ION_COUNT = "{{io_nodes}}" }}
"""


def platform(folder: Path, more: str = "") -> str:
    (folder / "scratch").mkdir(exist_ok=True)
    return PLATFORM.format(scratch=folder / "scratch") + more


def started(folder: Path, campaign: str = FILES) -> CampaignFolder:
    return create(
        folder / "campaign",
        campaign=campaign,
        platform=platform(folder),
        system="here",
        engine="fio",
        program="fio",
        mdtest="mdtest",
        database=None,
    )


def ended(folder: CampaignFolder, output: str, code: str = "0") -> CampaignRun:
    """Let the first run of a campaign end with an output."""
    run = folder.runs[0]
    run.path.mkdir(parents=True)
    (run.path / "started").write_text("2026-11-29T10:00:00+00:00\n")
    (run.path / "output.txt").write_text(output)
    (run.path / "exit_code").write_text(code)
    return run


def test_a_run_of_mdtest_has_the_rates_that_it_printed(tmp_path: Path) -> None:
    folder = started(tmp_path)
    run = ended(folder, OUTPUT.read_text())
    result = result_of(folder, run)
    assert result is not None
    assert (result.state, result.bandwidth_mib_s) == ("done", None)
    printed = {
        line.split()[1]: float(line.split()[-2])
        for line in OUTPUT.read_text().splitlines()
        if line.startswith("   File ") and float(line.split()[-2])
    }
    assert result.files_per_s == {
        "create": printed["creation"],
        "stat": printed["stat"],
        "read": printed["read"],
        "remove": printed["removal"],
    }
    # It is read again from the note beside the run.
    assert result_of(folder, run) == result
    *_, rates = rates_of(folder, run)
    for rate in rates:
        assert (rate.io_nodes, rate.tasks, rate.nodes) == (0, 2, 1)
        assert (rate.files_per_process, rate.unique_directory) == (20, True)
        assert (rate.bytes_per_file, rate.campaign) == (8192, "small")
        assert rate.started == "2026-11-29T10:00:00+00:00"
        assert (rate.used, rate.note) == (True, None)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("2 tasks, 40", "4 tasks, 80", "the benchmark ran another configuration: "),
        ("'-u' ", "", "the benchmark ran another configuration: "),
        ("-- finished", "-- ended", "this run of mdtest did not finish"),
    ],
    ids=["tasks", "directory", "unfinished"],
)
def test_a_run_that_was_not_asked_for_failed(
    tmp_path: Path, old: str, new: str, reason: str
) -> None:
    folder = started(tmp_path)
    result = result_of(folder, ended(folder, OUTPUT.read_text().replace(old, new)))
    assert result is not None
    assert result.state == "failed"
    assert reason in (result.reason or "")


def test_a_run_without_all_operations_failed(tmp_path: Path) -> None:
    folder = started(tmp_path)
    first, _ = OUTPUT.read_text().split("\n-- started", 1)
    result = result_of(folder, ended(folder, first))
    assert result is not None
    assert "does not have one rate of each operation" in (result.reason or "")


def test_the_report_has_the_rates_apart_from_the_bandwidths(tmp_path: Path) -> None:
    folder = started(tmp_path, FILES + GRID)
    mdtest = next(run for run in folder.runs if isinstance(run.cell.config, MdtestConfig))
    assert [row.measured for row in rows_of(folder)].count("bandwidth") == 1
    mdtest.path.mkdir(parents=True)
    (mdtest.path / "output.txt").write_text(OUTPUT.read_text())
    (mdtest.path / "exit_code").write_text("0")
    done = run_ioncast("campaign", "report", folder.path, "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    assert "MiB/s by number of I/O nodes" in done.stdout
    assert "files/s by number of I/O nodes" in done.stdout
    assert "files/s" in (tmp_path / "page.html").read_text()
    report = json.loads(run_ioncast("campaign", "report", folder.path, "--format", "json").stdout)
    assert [sorted(row) for row in report["configurations"]] == [
        ["bandwidths_mib_s", "configuration", "failed", "nodes"]
    ]
    assert sorted(row["operation"] for row in report["files"]) == OPERATIONS
    assert all(len(row["files_per_s"]["0"]) == 1 for row in report["files"])


def test_an_adaptive_campaign_has_no_files(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(FILES + GRID)
    (tmp_path / "p.toml").write_text(platform(tmp_path))
    arguments = ["campaign", "run", "c.toml", "--platform", "p.toml", "--engine", "fio"]
    done = run_ioncast(*arguments, "--adaptive", "--regret", "0.1", folder=tmp_path)
    assert done.returncode == 2
    assert "move the tables [[files]] to a campaign of their own" in done.stderr


def test_an_adaptive_campaign_gets_no_files_later(tmp_path: Path) -> None:
    folder = started(tmp_path, FILES + GRID)
    settings = json.loads((folder.path / "settings.json").read_text())
    settings["goal"] = {"regret": 0.1, "budget_s": None}
    (folder.path / "settings.json").write_text(json.dumps(settings))
    done = run_ioncast("campaign", "resume", folder.path)
    assert done.returncode == 2
    assert "campaign.toml: an adaptive campaign measures bandwidths" in done.stderr


@pytest.mark.fio
def test_a_missing_mdtest_is_found_before_the_first_run(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(FILES)
    text = platform(tmp_path, f'[programs]\nfio = "{shutil.which("fio")}"\n')
    (tmp_path / "p.toml").write_text(text.replace("{ ION", '{ PATH = "/nowhere", ION'))
    arguments = ["campaign", "run", "c.toml", "--platform", "p.toml", "--engine", "fio"]
    done = run_ioncast(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert "not found on this machine: mdtest; install it, or name it" in done.stderr
    assert not (tmp_path / "small-here").exists()


def test_a_platform_with_too_few_nodes_cannot_run_it(tmp_path: Path) -> None:
    folder = started(tmp_path)
    config = MdtestConfig(20, 8192, True, tasks=4, nodes=2)
    assert obstacles(config, folder.platform, "fio") == ["it needs 2 nodes, here has nodes = 1"]


def job(config: MdtestConfig) -> BenchmarkJob[MdtestConfig]:
    return BenchmarkJob(config, "mdtest", "srun", "/scratch/f", "output.txt")


def test_on_three_nodes_other_nodes_read_the_files() -> None:
    command = MDTEST.measure(job(MdtestConfig(20, 8192, False, tasks=12, nodes=3)))
    assert command == (
        "set -o pipefail; srun mdtest -F -n 20 -w 8k -e 8k -N 4 -d /scratch/f | tee output.txt"
    )


@pytest.mark.slow
@pytest.mark.fio
def test_a_campaign_measures_files_and_bytes(tmp_path: Path) -> None:
    found = shutil.which("mdtest")
    if found is None or shutil.which("mpiexec") is None:
        pytest.skip("mdtest and mpiexec are not on the PATH; no distribution packages mdtest")
    (tmp_path / "c.toml").write_text(FILES + GRID)
    (tmp_path / "p.toml").write_text(platform(tmp_path))
    database = {"IONCAST_DB": str(tmp_path / "bench.sqlite")}
    done = run_ioncast(
        *("campaign", "run", "c.toml", "--platform", "p.toml", "--engine", "fio", "--dir", "run"),
        folder=tmp_path,
        environment=database,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 of 4 runs done" in done.stdout
    cells = Counter((rate.operation, rate.io_nodes) for rate in stored(tmp_path))
    assert cells == {(operation, n): 1 for operation in OPERATIONS for n in (0, 2)}
    assert not any((tmp_path / "scratch").iterdir())
    again = run_ioncast("campaign", "resume", "run", folder=tmp_path, environment=database)
    assert again.returncode == 0
    assert len(stored(tmp_path)) == 8


def stored(folder: Path) -> list[FileRate]:
    engine = open_database(folder / "bench.sqlite", create=False)
    with transaction(engine) as connection:
        rates: list[Any] = rates_of_system(connection, "here")
    engine.dispose()
    return rates
