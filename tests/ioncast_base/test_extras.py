"""Installations without extras: the core works, and other commands name the extra they need."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from importlib.metadata import distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from ioncast_base import errors

PROJECT = Path(__file__).resolve().parents[2]
TESTBED = PROJECT / "experiments" / "data" / "testbed"
LOG = TESTBED / "logs" / "hacc-io-ionodes4.darshan"
# Runs a command as in an environment without some packages.
WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, *args):
        return None if name.partition(".")[0] in absent else super().find_spec(name, *args)
absent = set(sys.argv.pop(1).split(","))
sys.meta_path[:] = [Others if each is PathFinder else each for each in sys.meta_path]
from ioncast.cli import main
main()
"""


def name_of(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def installed_with(distribution: str, extra: str = "") -> set[str]:
    """The distributions that pip installs together with one."""
    found: set[str] = set()
    waiting = [(distribution, extra)]
    while waiting:
        name, wanted = waiting.pop()
        found.add(name_of(name))
        for line in requires(name) or ():
            needed = Requirement(line)
            is_wanted = needed.marker is None or needed.marker.evaluate({"extra": wanted})
            if is_wanted and name_of(needed.name) not in found:
                waiting.append((needed.name, next(iter(needed.extras), "")))
    return found


@pytest.fixture(scope="module")
def absent() -> str:
    """The packages that an installation of the core does not have."""
    core = installed_with("ioncast")
    files = {True: set[str](), False: set[str]()}
    for distribution in distributions():
        is_core = name_of(distribution.metadata["Name"]) in core
        tops = {file.parts[0].removesuffix(".py") for file in distribution.files or ()}
        files[is_core] |= {top for top in tops if top.isidentifier()}
    return ",".join(files[False] - files[True])


def without(absent: str, *args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, f"{absent},experiments", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT)


@pytest.mark.slow
def test_the_core_reads_checks_matches_and_predicts(absent: str, tmp_path: Path) -> None:
    assert {"flask", "pandas"} <= set(absent.split(","))
    database = tmp_path / "bench.sqlite"
    benchmarks = TESTBED / "benchmarks.csv"
    for args in (
        ("phases", LOG),
        ("check", LOG, "--html", tmp_path / "page.html"),
        ("characterize", LOG, "--html", tmp_path / "tables.html"),
        ("match", LOG, "--nodes", "8"),
        ("bench", "import", benchmarks, "--system", "here", "--tasks", "16", "--db", database),
        (
            *("predict", LOG, "--system", "here", "--nodes", "8", "--db", database),
            *("--plot", tmp_path / "curve.html"),
        ),
    ):
        result = without(absent, *args)
        assert (result.returncode, bool(result.stdout)) == (0, True), result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("args", "package", "extra"),
    [
        (("serve", "--bind", "unix:/no-such-folder/s"), "gunicorn", "service"),
        (("slurm", "watch"), "prometheus_client", "slurm"),
        (("bench", "list", "--db", "postgresql://here/there"), "psycopg", "postgresql"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    absent: str, args: tuple[str, ...], package: str, extra: str
) -> None:
    result = without(absent, *args)
    assert result.returncode == 2
    assert re.fullmatch(
        rf"ioncast: .*: this needs {package}, which is not installed;"
        rf" `pip install '\.\[{extra}\]'`"
        r" in ioncast's source folder installs it\n",
        result.stderr,
    )


@pytest.mark.slow
def test_a_campaign_without_its_extra_leaves_no_folder(absent: str, tmp_path: Path) -> None:
    platform, folder = tmp_path / "here.toml", tmp_path / "campaign"
    platform.write_text(f"""
system = "here"
io_nodes = [0]
nodes = 1
processes_per_node = 2
test_directory = "{tmp_path}"
launch = "env"
programs.fio = "true"
""")
    asked = ("campaign", "run", "laptop", "--platform", platform, "--dir", folder)
    result = without(absent, *asked, "--engine", "fio", "--db", tmp_path / "bench.sqlite")
    assert result.returncode == 2
    assert "this needs iops, which is not installed" in result.stderr
    assert not folder.exists()


@pytest.mark.parametrize("command", ["platform", "experiment"])
def test_experiments_are_commands_of_the_source_folder(absent: str, command: str) -> None:
    result = without(absent, command, "--help")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1)
    assert "exists only in ioncast's source folder" in result.stderr


def test_the_interface_of_python_names_its_extra() -> None:
    code = "import sys; sys.modules['pandas'] = None; import ioncast; ioncast.phases"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=PROJECT
    )
    assert "ioncast.phases: this needs pandas, which is not installed" in result.stderr


def test_each_package_is_in_its_extra() -> None:
    config = configparser.ConfigParser()
    config.read(PROJECT / "setup.cfg", encoding="utf-8")
    listed = {
        extra: {
            name_of(Requirement(line).name)
            for line in config["options.extras_require"][extra].split("\n")
            if line
        }
        for extra in set(errors.EXTRAS.values())
    }
    for package, extra in errors.EXTRAS.items():
        owners = {"iops": "iops-benchmark", "werkzeug": "flask"}
        assert name_of(owners.get(package, package)) in listed[extra]
