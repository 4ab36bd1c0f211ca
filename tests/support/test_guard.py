"""An interrupted run of the tests leaves no process behind."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.command import PROJECT, killed_at_the_end
from tests.support.serving import command_of, wait_for

HELD = PROJECT / "tests/support/held_services.py"


def processes_of(folder: Path) -> list[str]:
    """The commands of all processes that know a folder by their environment or arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        command = command_of(int(process.name))
        try:
            known = command.encode() + (process / "environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in known:
            found.append(command)
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name, because the names of sockets must be short."""
    with tempfile.TemporaryDirectory(prefix="held-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.mark.serving
@pytest.mark.slurm
@pytest.mark.parametrize(
    ("number", "send"),
    [(signal.SIGINT, os.killpg), (signal.SIGTERM, os.kill)],
    ids=["Ctrl-C", "SIGTERM"],
)
def test_an_interrupted_run_leaves_no_process(
    number: int, send: Callable[[int, int], None], folder: Path
) -> None:
    command = [sys.executable, "-m", "pytest", "-n", "2", "--basetemp", folder / "run", HELD]
    environment = os.environ | {"HELD_IN": str(folder)}
    with killed_at_the_end(command, env=environment, cwd=PROJECT, start_new_session=True) as run:
        for name in ("service", "slurm"):
            wait_for((folder / name).exists, name)
        names = " ".join(processes_of(folder))
        for name in ("ioncast.service.background", "slurmctld", "slurmd", "munged", "sleep 600"):
            assert name in names
        send(run.pid, number)
        run.wait(60)
    wait_for(lambda: not processes_of(folder), "end of all processes")
