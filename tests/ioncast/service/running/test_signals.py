"""SIGTERM ends the service at every moment of its start, and leaves nothing."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import signalled
from tests.support.examples import SEED, examples
from tests.support.serving import PATIENCE_S, Served, start, wait_for

pytestmark = pytest.mark.serving

SIGNALLED = (sys.executable, signalled.__file__)


@contextmanager
def demonstration(folder: Path, at_call: int) -> Iterator[Served]:
    """Start a demonstration that gets SIGTERM at a call of a function; the first one is 1."""
    (folder / "tmp").mkdir(parents=True)
    served = start(
        folder,
        *("--demo", "--workers", "1"),
        under=(*SIGNALLED, str(at_call), str(folder / "calls")),
        environment={"TMPDIR": str(folder / "tmp")},
    )
    try:
        yield served
    finally:
        # A process that missed the signal must not disturb other tests.
        for pid in [served.process.pid, *left(folder)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        served.process.wait()


def left(folder: Path) -> list[int]:
    """List the processes that still run with the environment of a demonstration."""
    mark = f"TMPDIR={folder / 'tmp'}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if any(each.startswith(mark) for each in variables):
                found.append(int(process.name))
    return found


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> int:
    """The number of calls until a demonstration serves."""
    folder = tmp_path_factory.mktemp("counted")
    with demonstration(folder, at_call=0) as served:
        wait_for(lambda: "interface on" in served.log.read_text(), "service")
        return int((folder / "calls").read_text())


@pytest.mark.promise("service-sigterm")
@pytest.mark.slow
def test_a_demonstration_ends_whenever_it_is_asked_to_while_it_starts(
    calls: int, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    for number in range(examples(50, part=0.7)):
        # In the last moments the processes start.
        at_call = chance.choice([chance.randrange(calls), calls - chance.randrange(calls // 50)])
        folder = tmp_path / str(number)
        with demonstration(folder, at_call) as served:
            code = served.process.wait(PATIENCE_S)
            assert code in {0, -signal.SIGTERM, 128 + signal.SIGTERM}, at_call
            wait_for(lambda folder=folder: not left(folder), f"end after call {at_call}")
            assert list((folder / "tmp").iterdir()) == [], at_call
