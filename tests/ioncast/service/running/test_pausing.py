"""`ioncast decisions pause` on a running service: all servers obey, also after a restart."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.serving import Served, running, stop, wait_for

pytestmark = pytest.mark.serving

HACC = "/v1/decisions?system=testbed&executable=hacc_io_write_posix_fpp&user=demo&tasks=16"


def decisions(location: str, *words: str) -> None:
    command = [sys.executable, "-m", "ioncast", "decisions", *words, "--db", location]
    subprocess.run(command, check=True, capture_output=True)


def answers(served: Served) -> list[dict[str, Any]]:
    """The answers of each process for decisions only, and of the web process."""
    found = [served.ask(HACC).json]
    for decider in served.all_deciders():
        with served.alone(decider):
            found.append(served.decide(HACC).json)
    return found


def is_paused(answer: dict[str, Any]) -> bool:
    return answer["io_nodes"] is None and "paused by alice" in answer["why"]


def test_a_pause_reaches_all_servers_and_survives_restarts(
    demo_on_sqlite: Path, tmp_path: Path
) -> None:
    location = str(tmp_path / "bench.sqlite")
    shutil.copy(demo_on_sqlite, location)
    with running(tmp_path, "--db", location) as served:
        wait_for(lambda: all(a["source"] == "history" for a in answers(served)), "answers")
        decisions(location, "pause", "testbed", "--by", "alice")
        wait_for(lambda: all(map(is_paused, answers(served))), "pause")
        for pid in (served.process.pid, *served.processes()):
            os.kill(pid, signal.SIGKILL)
    with running(tmp_path, "--db", location) as served:
        assert all(map(is_paused, answers(served)))
        stop(served)
        shutil.rmtree(served.state)
    with running(tmp_path, "--db", location) as served:
        wait_for(lambda: all(map(is_paused, answers(served))), "pause without a state folder")
        decisions(location, "resume", "testbed")
        wait_for(lambda: all(a["source"] == "history" for a in answers(served)), "answers")
