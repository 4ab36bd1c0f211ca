from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "ioncast",
    "ioncast_base",
    "summario",
    "ior_configs",
    "benchdb",
    "predictor",
    "scheduler_plugin",
)


def files_of(folder: Path) -> set[str]:
    """List all files of the packages but READMEs, also in linked folders."""
    return {
        os.path.relpath(Path(place, name), folder)
        for package in PACKAGES
        for place, _, names in os.walk(folder / package, followlinks=True)
        for name in names
        if "__pycache__" not in place and name != "README.md"
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the content of a wheel in a folder."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("built")
    command = ("egg_info", "--egg-base", folder, "build_py", "--build-lib", folder / "lib")
    subprocess.run(
        [sys.executable, "-c", "import setuptools; setuptools.setup()", "--quiet", *command],
        cwd=PROJECT,
        check=True,
        capture_output=True,
    )
    return folder / "lib"


@pytest.mark.slow
def test_a_wheel_has_every_file_of_the_packages(built: Path) -> None:
    assert files_of(built) == files_of(PROJECT)


def test_a_wheel_has_no_experiments(built: Path) -> None:
    assert {path.name for path in built.iterdir()} == set(PACKAGES)


def test_a_wheel_has_the_data_of_the_demonstration_as_they_are(built: Path) -> None:
    source = PROJECT / "experiments" / "data" / "testbed"
    target = built / "ioncast" / "service" / "running" / "testbed"
    for path in source.rglob("*"):
        if path.is_file():
            copy = target / path.relative_to(source)
            assert not copy.is_symlink()
            assert copy.read_bytes() == path.read_bytes()
