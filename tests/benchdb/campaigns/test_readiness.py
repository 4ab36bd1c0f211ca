"""Checks before a campaign starts, with real launchers, programs and file systems."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchdb.campaigns import launcher_starts as starts
from tests.support.command import run_ioncast

CAMPAIGN = """
name = "small"
description = "One pattern."
repetitions = 1
seed = 7

[[grid]]
operation = "write"
file_access = "unique"
transfer_size = "64k"
bytes_per_process = "{size}"
"""
PLATFORM = """
system = "here"
io_nodes = [0]
nodes = 1
processes_per_node = 2
test_directory = "{scratch}"
free_space_limit = "1m"
launch = "{launch}"
"""


class Site:
    """A folder with a campaign, a platform, and a folder for test files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scratch = root / "scratch"
        self.scratch.mkdir()

    def start(
        self,
        *,
        engine: str,
        launch: str = "mpiexec -n {tasks}",
        scratch: Path | None = None,
        size: str = "1m",
        more: str = "",
    ) -> subprocess.CompletedProcess[str]:
        (self.root / "small.toml").write_text(CAMPAIGN.format(size=size))
        platform = PLATFORM.format(scratch=scratch or self.scratch, launch=launch)
        (self.root / "here.toml").write_text(platform + more)
        return run_ioncast(
            *("campaign", "run", "small.toml", "--platform", "here.toml", "--dir", "campaign"),
            *("--engine", engine),
            folder=self.root,
            environment={"IONCAST_DB": str(self.root / "bench.sqlite")},
        )

    def problems(self, done: subprocess.CompletedProcess[str]) -> list[str]:
        """The problems of a campaign that did not start."""
        assert done.returncode == 2
        assert not (self.root / "campaign").exists()
        return [line.removeprefix("ioncast: ") for line in done.stderr.splitlines()]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


@pytest.fixture
def ior() -> str:
    found = shutil.which("ior")
    if found is None:
        pytest.skip("ior is not installed")
    return found


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}\n")
    file.chmod(0o755)
    return file


def test_a_launcher_that_is_missing_is_found(site: Site, ior: str) -> None:
    done = site.start(engine="ior", launch="mpiexecx -n {tasks}")
    assert site.problems(done) == [
        "mpiexecx: not found on this machine, or not executable; install it, or correct launch in"
        " the platform file"
    ]


@pytest.mark.parametrize(
    ("launch", "expected"),
    [
        ("mpiexec -bogus -n {tasks}", r"mpiexec -bogus -n 2: cannot start 2 processes: .*bogus.*"),
        ("false", r"false: cannot start 2 processes: exit code 1; correct launch, nodes or .*"),
        ("mpiexec -n 1", r"mpiexec -n 1: starts 1 of 2 processes, going by their output; .*"),
        ("mpiexec -n 3", r"mpiexec -n 3: starts 3 of 2 processes, going by their output; .*"),
        ("true", r"true: starts 0 of 2 processes, going by their output; correct launch, .*"),
        ("", r"without a launcher: starts 1 of 2 processes, going by their output; .*"),
    ],
)
def test_a_launcher_that_cannot_start_the_processes_is_found(
    site: Site, ior: str, launch: str, expected: str
) -> None:
    [problem] = site.problems(site.start(engine="ior", launch=launch))
    assert re.fullmatch(expected, problem)


def test_a_launcher_that_reports_an_error_and_hangs_is_found(
    site: Site, ior: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As mpiexec of MPICH does with a host that does not exist."""
    launcher = program(site.root / "bin" / "launcher", "echo could not resolve host; sleep 600")
    # A busy machine may need longer until the launcher has reported its error.
    for seconds in (1.0, 60.0):
        monkeypatch.setattr(starts, "_START_SECONDS", seconds)
        [problem] = site.problems(site.start(engine="ior", launch=str(launcher)))
        assert problem.startswith(f"{launcher}: does not start 2 processes: ")
        if "could not resolve host;" in problem:
            return
    raise AssertionError(problem)


def test_a_program_that_is_missing_is_found_where_the_launcher_starts_it(site: Site) -> None:
    more = f'[programs]\nior = "{site.root}/ior"\n'
    [problem] = site.problems(site.start(engine="ior", more=more))
    assert problem.startswith(f"{site.root}/ior: not found, or not executable, on ")
    (site.root / "ior").write_text("not a program")
    assert site.problems(site.start(engine="ior", more=more)) == [problem]


def test_fio_is_looked_for_on_this_machine(site: Site) -> None:
    more = f'[programs]\nfio = "{site.root}/fio"\n'
    [problem] = site.problems(site.start(engine="fio", more=more))
    assert problem.startswith(f"{site.root}/fio: not found on this machine, or not executable")
    assert "programs.fio" in problem


@pytest.mark.fio
def test_a_program_on_the_path_of_the_runs_is_found(site: Site) -> None:
    fio = program(site.root / "bin" / "fio", f'exec {shutil.which("fio")} "$@"')
    path = f'[io_nodes_switch]\nenvironment = {{PATH = "{fio.parent}:$PATH"}}\n'
    done = site.start(engine="fio", more=path)
    assert done.returncode == 0, done.stderr
    settings = json.loads((site.root / "campaign" / "settings.json").read_text())
    assert settings["program"] == str(fio)


@pytest.mark.parametrize("key", ["before", "after"])
def test_commands_of_the_platform_are_looked_for(site: Site, key: str) -> None:
    more = f'[io_nodes_switch]\n{key} = "/opt/none/forward {{io_nodes}}"\n'
    more += f'[programs]\nfio = "{shutil.which("true")}"\n'
    [problem] = site.problems(site.start(engine="fio", more=more))
    assert problem == (
        "/opt/none/forward: not found on this machine, or not executable; install it, or correct"
        f" io_nodes_switch.{key} in the platform file"
    )


def test_all_problems_are_in_one_list(site: Site) -> None:
    problems = site.problems(
        site.start(
            engine="ior",
            launch="mpiexecx -n {tasks}",
            scratch=site.root / "none",
            more='[programs]\nior = "/opt/none/ior"\n[io_nodes_switch]\nafter = "/opt/none/stop"\n',
        )
    )
    assert [problem.partition(":")[0] for problem in problems] == [
        "/opt/none/stop",
        "mpiexecx",
        "/opt/none/ior",
        str(site.root / "none"),
    ]


def test_a_resumed_campaign_is_checked_again(site: Site, ior: str) -> None:
    launcher = program(site.root / "bin" / "launcher", 'exec mpiexec "$@"')
    assert site.start(engine="ior", launch=f"{launcher} -n {{tasks}}").returncode == 0
    shutil.rmtree(next((site.root / "campaign" / "runs").iterdir()))
    launcher.unlink()
    folder = site.root / "campaign"
    done = run_ioncast("campaign", "resume", folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"ioncast: {launcher}: not found on this machine")
    assert len(done.stderr.splitlines()) == 1


def test_the_folder_of_the_runs_must_exist(site: Site, ior: str) -> None:
    """It is one problem, although the launched processes find it too."""
    [problem] = site.problems(site.start(engine="ior", scratch=site.root / "none"))
    assert problem == (
        f"{site.root}/none: the test directory does not exist or cannot be written to; create it,"
        " or correct test_directory in the platform file"
    )


@pytest.fixture
def small_file_system(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB and 8 inodes."""
    place = tmp_path / "small"
    place.mkdir()
    options = ["-t", "tmpfs", "-o", "size=4m,nr_inodes=8", "tmpfs"]
    if os.geteuid() != 0 or subprocess.run(["mount", *options, place], check=False).returncode:
        pytest.skip("only root can mount file systems")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.fio
def test_a_file_system_that_is_too_small_is_found(site: Site, small_file_system: Path) -> None:
    [problem] = site.problems(site.start(engine="fio", scratch=small_file_system, size="2m"))
    assert problem == (
        f"{small_file_system}: has 4.0 MiB free, but the largest run needs 4.0 MiB and must leave"
        " 1.0 MiB free; free space there, correct test_directory, or lower free_space_limit in the"
        " platform file"
    )
    assert site.start(engine="fio", scratch=small_file_system, size="1m").returncode == 0


@pytest.mark.fio
def test_a_file_system_without_inodes_is_found(site: Site, small_file_system: Path) -> None:
    # The root folder of the file system takes an inode.
    for number in range(6):
        (small_file_system / str(number)).touch()
    [problem] = site.problems(site.start(engine="fio", scratch=small_file_system))
    assert problem == (
        f"{small_file_system}: has 1 inode free, but the largest run writes 2 files; remove files"
        " there, or correct test_directory in the platform file"
    )


@pytest.mark.fio
def test_a_file_system_that_is_read_only_is_found(site: Site, small_file_system: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_file_system], check=True)
    [problem] = site.problems(site.start(engine="fio", scratch=small_file_system))
    assert problem.startswith(f"{small_file_system}: the test directory does not exist or cannot")


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.fio
def test_files_that_the_system_rejects_are_found(site: Site) -> None:
    """As with a quota, the file system has the space, but this user cannot have it."""
    with files_of_at_most(3 << 20):
        [problem] = site.problems(site.start(engine="fio", size="4m"))
    assert problem == (
        f"{site.scratch}: 8.0 MiB, the files of the largest run, cannot be written: File too large;"
        " check the quota and the file system, or correct test_directory in the platform file"
    )
    assert list(site.scratch.iterdir()) == []


@pytest.mark.fio
def test_a_limit_of_one_file_does_not_reject_smaller_files(site: Site) -> None:
    with files_of_at_most(3 << 20):
        done = site.start(engine="fio", size="2m")
    assert done.returncode == 0, done.stderr
