"""A lock that is never released does not block other programs for ever."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from experiments.platform import volumes
from experiments.platform.emulated import Emulated
from tests.support.emulated import emulated, small, unique_name

pytestmark = pytest.mark.platform


@pytest.fixture
def platform(monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulated]:
    monkeypatch.setattr(volumes, "ANSWER_TIMEOUT_S", 1)
    with emulated(small(unique_name())) as up:
        yield up


def test_removing_a_file_does_not_wait_for_an_io_node_that_hangs(platform: Emulated) -> None:
    """An I/O node that stops in the middle of its writes keeps the lock of the file."""
    with writing(platform.node_directory(1, 0) / "kept"), stopped(forwarder(platform)):
        remove = subprocess.Popen(["rm", "-f", str(platform.scratch / "kept")])
        # GlusterFS looks for overdue requests every ten seconds. By default it would wait half an
        # hour for the lock.
        remove.wait(300)


@contextmanager
def writing(file: Path) -> Iterator[None]:
    command = ["dd", "if=/dev/zero", f"of={file}", "bs=4k", "conv=notrunc"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as writer:
        while not (file.exists() and file.stat().st_size):
            assert writer.poll() is None
        try:
            yield
        finally:
            writer.kill()


@contextmanager
def stopped(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def forwarder(platform: Emulated) -> int:
    """The daemon of the first I/O node."""
    volume = f"/{platform.name}/volumes/forwarder0.vol"
    found = subprocess.run(["pgrep", "--full", volume], capture_output=True, check=True)
    return int(found.stdout)
