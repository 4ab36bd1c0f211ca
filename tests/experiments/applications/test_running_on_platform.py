from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.applications.running import run_application
from experiments.applications.spec import Application, Step, irregular
from experiments.platform.emulated import Emulated
from ioncast_base.errors import InputError
from summario.phases.extract import extract_phases
from summario.reading.log import read_log
from tests.support.emulated import emulated, received_bytes, small, unique_name
from tests.support.undisturbed import run_at_once

pytestmark = pytest.mark.platform

_MIB = 1024**2
_READ = Step("input", "read", "shared", "contiguous", ((_MIB, 2),))


@pytest.fixture(scope="module")
def platform() -> Iterator[Emulated]:
    with emulated(small(unique_name())) as platform:
        yield platform


@pytest.mark.parametrize("io_nodes", [0, 1, 2])
def test_a_run_leaves_its_log_and_nothing_else(
    platform: Emulated, tmp_path: Path, io_nodes: int
) -> None:
    application = replace(irregular(8, 2, 1 / 128), pause_s=0.0)
    log = tmp_path / "run.darshan"

    run = run_at_once(application, platform, io_nodes, log)

    phases = extract_phases(read_log(log))
    assert [phase.bytes for phase in phases] == [step.bytes for step in run.steps]
    assert run.bytes == application.bytes
    assert list(platform.scratch.iterdir()) == []


def test_io_nodes_carry_the_bytes_of_the_runs_that_use_them(
    platform: Emulated,
) -> None:
    step = Step("data", "write", "unique", "contiguous", ((_MIB, 2),))
    application = Application("forwarded", 4, 2, (step,))
    received = [received_bytes(platform, "io0")]
    for io_nodes in (0, 1):
        run_application(application, platform, io_nodes)
        received.append(received_bytes(platform, "io0"))

    direct, forwarded = received[1] - received[0], received[2] - received[1]
    assert direct < application.bytes / 10
    assert forwarded >= application.bytes


def test_no_io_node_has_the_input_of_a_run_in_its_cache(platform: Emulated) -> None:
    application = Application("reader", 4, 2, (_READ,))
    for _ in range(2):
        before = received_bytes(platform, "io0")
        run_application(application, platform, 1)
        assert received_bytes(platform, "io0") - before >= application.bytes


def test_a_run_with_io_nodes_that_the_platform_lacks_is_rejected(platform: Emulated) -> None:
    with pytest.raises(InputError, match="no runs with 3 I/O nodes; choose one of 0, 1, 2"):
        run_application(Application("reader", 4, 2, (_READ,)), platform, 3)
