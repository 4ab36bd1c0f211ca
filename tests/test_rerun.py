"""CI runs failed tests once more, alone (`.ci/rerun.py`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

RERUN = Path(__file__).resolve().parents[1] / ".ci" / "rerun.py"
PASSES = "def test_passes(): pass\n"
FAILS = "def test_fails(): assert False\n"
# Passes when the file `marks/NAME` exists, which its first run makes.
FLAKY = """
from pathlib import Path
import pytest
def is_second(name):
    mark = Path("marks", name)
    found = mark.exists()
    mark.parent.mkdir(exist_ok=True)
    mark.touch()
    return found
"""
FLAKY_TEST = f"{FLAKY}\ndef test_flaky(): assert is_second('a')\n"
FLAKY_SERVICE = f"""{FLAKY}
@pytest.fixture(scope="module")
def service():
    assert is_second("service")
@pytest.mark.parametrize("number", range(12))
def test_service(service, number): pass
"""
LOST_WORKER = f"""{FLAKY}
import os
def test_ends_its_process():
    if not is_second("lost"): os._exit(1)
"""
CANNOT_BE_COLLECTED = f"{FLAKY}\nassert is_second('collected')\n{PASSES}"
TWELVE = f"""{FLAKY}
@pytest.mark.parametrize("number", range(6))
def test_flaky(number): assert is_second(f"{{__name__}}{{number}}")
"""


@pytest.mark.parametrize(
    ("files", "code", "last_line", "flaky"),
    [
        ([PASSES], 0, "1 passed", []),
        ([PASSES, FLAKY_TEST], 0, "1 passed", ["test_1.py::test_flaky"]),
        ([FLAKY_TEST, FAILS], 1, "1 failed, 1 passed", ["test_0.py::test_flaky"]),
        ([FLAKY_SERVICE], 0, "12 passed", [f"test_0.py::test_service[{n}]" for n in range(12)]),
        ([TWELVE, TWELVE], 1, "12 failed", []),
    ],
    ids=["passes", "flaky", "fails", "service", "too many"],
)
def test_only_failures_that_come_again_count(
    tmp_path: Path, files: list[str], code: int, last_line: str, flaky: list[str]
) -> None:
    done = run(tmp_path, files)
    assert done.returncode == code, done.stdout
    assert last_line in done.stdout.splitlines()[-1]
    _, _, named = done.stdout.partition("FLAKY: ")
    assert [line for line in named.splitlines() if "::" in line and "FAILED" not in line] == flaky


def test_a_file_that_once_cannot_be_collected_counts(tmp_path: Path) -> None:
    done = run(tmp_path, [PASSES, CANNOT_BE_COLLECTED])
    assert (done.returncode != 0, "once more" in done.stdout) == (True, False)


def test_a_lost_worker_counts(tmp_path: Path) -> None:
    done = run(tmp_path, [LOST_WORKER])
    assert (done.returncode, "once more" in done.stdout) == (1, False)


def test_a_later_run_names_the_flaky_tests_of_earlier_ones(tmp_path: Path) -> None:
    run(tmp_path, [FLAKY_TEST])
    done = run(tmp_path, [PASSES])
    assert "test_0.py::test_flaky" in done.stdout.partition("FLAKY: ")[2]


def run(folder: Path, files: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a project of these files in a worker."""
    for number, text in enumerate(files):
        (folder / f"test_{number}.py").write_text(text)
    options = ["-n", "1", "--dist", "loadfile", "-c", "/dev/null", f"--rootdir={folder}"]
    # The other plugins take seconds to load.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        [sys.executable, RERUN, *options, "-p", "xdist.plugin", "-p", "no:cacheprovider"],
        cwd=folder,
        env={"PATH": "", "IONCAST_FLAKY": str(folder / "flaky"), **alone},
        capture_output=True,
        text=True,
        check=False,
    )
