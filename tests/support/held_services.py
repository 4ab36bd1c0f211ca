"""Tests that hold a service and a Slurm until they are interrupted.

pytest collects them only when `test_guard.py` names this file.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from sqlalchemy import Engine

from tests.support.serving import running
from tests.support.slurm import cluster


def hold(name: str) -> None:
    Path(os.environ["HELD_IN"], name).touch()
    time.sleep(600)


@pytest.mark.serving
def test_a_service_is_held(location: str, database: Engine, tmp_path: Path) -> None:
    with running(tmp_path, "--db", location, "--workers", "1"):
        hold("service")


@pytest.mark.slurm
def test_a_slurm_is_held(tmp_path: Path) -> None:
    with cluster(tmp_path / "slurm", nodes=1) as found:
        number = found.submit(script="#!/bin/sh\nsleep 600\n")
        found.wait_for(number, "RUNNING")
        hold("slurm")
