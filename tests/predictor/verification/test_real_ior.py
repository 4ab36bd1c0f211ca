"""Genuine IOR under a genuine Darshan, on machines that have both."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import pytest

from ioncast_base.errors import InputError
from predictor.verification.verifying_machine import find_machine
from tests.support.command import run_ioncast

# IOR opens one file in each process; mdtest opens 200.
OTHER_IO = {"small-files"}
# These shares of time depend on the machine.
TIMED = {"metadata time", "concurrency", "slowest rank"}


@pytest.fixture
def library() -> str:
    """The path of Darshan's library."""
    try:
        return find_machine(None, None, os.environ.get("IONCAST_DARSHAN_LIB")).darshan
    except InputError as error:
        pytest.skip(f"IOR under Darshan cannot run here: {error}")


@pytest.mark.slow
def test_every_proposed_line_does_the_io_of_its_log(
    library: str, shared_data: Path, tmp_path: Path
) -> None:
    live = shared_data / "live"
    with (live / "manifest.csv").open(encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    for name in names:
        options = ("--verify", "--darshan-lib", library, "--work-dir", tmp_path, "--format", "json")
        done = run_ioncast("match", live / f"{name}.darshan", *options)
        assert done.returncode == 0, done.stderr
        for row in json.loads(done.stdout):
            counted = [each for each in row["aspects"] if each["name"] not in TIMED]
            differing = [each for each in counted if each["agreement"] < 0.95]
            assert bool(differing) == (name in OTHER_IO), (name, differing)
        assert list(tmp_path.iterdir()) == []
