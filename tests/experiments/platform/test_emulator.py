from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from experiments.platform import building, emulator, folders, programs, remains
from experiments.platform.description import Links
from experiments.platform.emulated import Emulated
from experiments.platform.emulator import down, find, up
from ioncast_base.errors import BusyError, InputError, IoncastError, UnknownNameError
from tests.support.command import killed_at_the_end
from tests.support.emulated import (
    emulated,
    leftovers,
    received_bytes,
    small,
    wait_until,
)

pytestmark = pytest.mark.platform

IONCAST = (sys.executable, "-m", "ioncast", "platform")
PLATFORMS = Path("/run/ioncast-platform")
_PATIENCE_S = 120.0


# A platform with enough mounts to stop `up` among them.
DESCRIPTION = """
name = "example"
io_nodes = [0, 1, 2]
[compute_nodes]
count = 4
processes = 2
[storage]
servers = 2
replicas = 2
memory = "1g"
[links]
compute_nodes = "1gbit"
io_nodes = "1gbit"
storage = "1gbit"
burst = "1mb"
"""


def starting(name: str, folder: Path) -> subprocess.Popen[str]:
    """Start the command that brings a platform up; it finds programs in a folder first."""
    file = folder / "example.toml"
    file.write_text(DESCRIPTION)
    return subprocess.Popen(
        [*IONCAST, "up", str(file), "--name", name],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


# Moments while a platform comes up, each with a condition that is true from then on.
MOMENTS: dict[str, Callable[[str], object]] = {
    "first folder": lambda name: (PLATFORMS / name).exists(),
    "first namespace": lambda name: Path(f"/run/netns/{name}-sw").exists(),
    "first server": lambda name: (PLATFORMS / name / "logs/server0.log").exists(),
    "last I/O node": lambda name: (PLATFORMS / name / "logs/forwarder1.log").exists(),
    "first mount": lambda name: (
        f"{PLATFORMS}/{name}/mounts/io1/" in Path("/proc/self/mounts").read_text(encoding="utf-8")
    ),
}


def test_a_file_is_the_same_through_every_node_and_number_of_io_nodes(platform: Emulated) -> None:
    (platform.scratch / "made outside").write_bytes(b"before")
    views = [platform.node_directory(io_nodes, node) for io_nodes in (0, 1, 2) for node in (0, 1)]
    assert all(os.path.ismount(view) for view in views)
    assert {(view / "made outside").read_bytes() for view in views} == {b"before"}
    (views[-1] / "made inside").write_bytes(b"after")
    assert {(view / "made inside").read_bytes() for view in views} == {b"after"}
    assert (platform.scratch / "made inside").read_bytes() == b"after"


@pytest.mark.parametrize(
    ("io_nodes", "forwarding"), [(0, []), (1, ["io0"]), (2, ["io1"])], ids=["0", "1", "2"]
)
def test_bytes_pass_through_the_io_node(
    platform: Emulated, io_nodes: int, forwarding: list[str]
) -> None:
    size_bytes = 4 << 20
    before = {node: received_bytes(platform, node) for node in ("io0", "io1")}
    # This is the second of two compute nodes: with two I/O nodes it uses the second one.
    (platform.node_directory(io_nodes, 1) / f"through{io_nodes}").write_bytes(bytes(size_bytes))
    received = {node: received_bytes(platform, node) - before[node] for node in before}
    assert [node for node, size in received.items() if size >= size_bytes] == forwarding


def test_a_link_is_as_slow_as_its_description(name: str) -> None:
    links = Links(compute_nodes="8mbit", io_nodes="1gbit", storage="1gbit", burst="64kb")
    with emulated(small(name, links=links)) as platform:
        begun = time.monotonic()
        (platform.node_directory(1, 0) / "file").write_bytes(bytes(1 << 20))
        # 1 MiB at 8 Mbit/s takes 1.05 s, and a burst saves some of it.
        assert time.monotonic() - begun > 0.9


def test_two_platforms_are_up_at_once(platform: Emulated) -> None:
    name = f"{platform.name}-b"
    (platform.node_directory(1, 0) / "file").write_bytes(b"one")
    with emulated(small(name)) as other:
        (other.node_directory(1, 0) / "file").write_bytes(b"other")
        assert (platform.scratch / "file").read_bytes() == b"one"
        assert (other.scratch / "file").read_bytes() == b"other"
    assert leftovers(name) == []
    assert (platform.node_directory(2, 1) / "file").read_bytes() == b"one"


def test_a_platform_that_is_up_is_found(platform: Emulated) -> None:
    assert find(platform.name) == platform


def test_a_platform_that_is_not_up_is_not_found() -> None:
    with pytest.raises(UnknownNameError, match="no platform called nowhere is up"):
        find("nowhere")


def test_a_platform_has_only_the_mounts_of_its_description(platform: Emulated) -> None:
    with pytest.raises(InputError, match="no runs with 4 I/O nodes; choose one of 0, 1, 2"):
        platform.node_directory(4, 0)
    with pytest.raises(InputError, match="no compute node 2"):
        platform.node_directory(1, 2)


def test_a_platform_that_is_up_does_not_come_up_again(platform: Emulated) -> None:
    with pytest.raises(IoncastError, match=f"is up already.*ioncast platform down {platform.name}"):
        up(platform.description)
    assert (platform.node_directory(1, 0)).is_mount()


def test_down_leaves_nothing_and_may_be_repeated(name: str) -> None:
    up(small(name))
    assert leftovers(name) != []
    assert down(name)
    assert leftovers(name) == []
    assert not down(name)


def test_down_works_while_others_unmount(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_too_late(*command: str) -> str:
        programs.run(*command)
        return programs.run(*command)

    up(small(name))
    monkeypatch.setattr(remains, "run", run_too_late)
    assert down(name)
    assert leftovers(name) == []


def test_a_platform_comes_up_by_one_process_at_a_time(name: str) -> None:
    with emulator.locked(name), pytest.raises(BusyError, match=f"{name} up or down"):
        up(small(name))


# Each of these programs opens a file, and then creates a second file as a sign.
# This one keeps its file open whatever happens.
WRITES_ON = """
import sys, time
files = [open(path, "w") for path in sys.argv[1:]]
time.sleep(600)
"""
# This one closes its file when the file system is gone.
LETS_GO = """
import os, sys, time
file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
open(sys.argv[2], "w").close()
try:
    while True:
        os.write(file, b"more")
        time.sleep(0.01)
except OSError:
    os.closerange(file, file + 1)
    time.sleep(600)
"""
# This one opens a file at the same path, but in its own file system.
OF_ITS_OWN = """
import subprocess, sys, time
from pathlib import Path
path = Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "own", path.parent], check=True)
file = path.open("w")
Path(sys.argv[2]).touch()
time.sleep(600)
"""


@contextmanager
def using(
    file: Path, opened: Path, program: str, *starter: str
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, and wait until it has opened its file."""
    command = [*starter, sys.executable, "-c", program, str(file), str(opened)]
    with killed_at_the_end(command) as process:
        wait_until(opened.exists)
        yield process


def test_a_program_that_keeps_a_file_open_is_ended_by_down(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "_GRACE_S", 0.0)
    with emulated(small(name)) as platform:
        file = platform.node_directory(1, 0) / "written"
        with using(file, tmp_path / "opened", WRITES_ON) as process:
            down(name)
            assert process.wait(_PATIENCE_S) != 0


def test_programs_that_close_their_files_or_use_other_file_systems_live_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remains, "_GRACE_S", _PATIENCE_S)
    with emulated(small(name)) as platform:
        file, other_file = (platform.node_directory(1, node) / "file" for node in (0, 1))
        with (
            using(file, tmp_path / "0", LETS_GO) as lets_go,
            using(other_file, tmp_path / "1", OF_ITS_OWN, "unshare", "--mount") as has_its_own,
        ):
            down(name)
            assert (lets_go.poll(), has_its_own.poll()) == (None, None)


def test_network_namespaces_of_others_stay(name: str) -> None:
    namespace = f"{name}-cn0"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    try:
        with killed_at_the_end(["ip", "netns", "exec", namespace, "sleep", "600"]) as process:
            assert not down(name)
            with pytest.raises(IoncastError, match=f"{namespace} exists already.*--name"):
                up(small(name))
            assert process.poll() is None
            assert Path(f"/run/netns/{namespace}").exists()
    finally:
        subprocess.run(["ip", "netns", "delete", namespace], check=True)


def test_down_is_not_done_before_the_folder_is_gone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop_halfway(folder: Path) -> None:
        monkeypatch.undo()
        raise FileNotFoundError(folder / "removed by its owner")

    folders.make_platforms()
    folders.folder_of(name).mkdir()
    monkeypatch.setattr(shutil, "rmtree", stop_halfway)
    assert down(name)
    assert leftovers(name) == []


def test_a_platform_comes_up_without_a_working_compiler(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This is the error if the C library's headers are missing.
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'fatal error: sched.h: No such file' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with emulated(small(name)) as platform:
        assert find(name) == platform
        assert not platform.yielding.exists()


def test_nothing_is_left_if_the_kernel_cannot_shape_links(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This is the error of tc if the kernel's module sch_tbf is missing.
    program = tmp_path / "tc"
    program.write_text("#!/bin/sh\necho 'Error: Specified qdisc kind is unknown.' >&2\nexit 2\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(IoncastError, match=r"Specified qdisc kind is unknown.*sch_tbf"):
        up(small(name))
    assert leftovers(name) == []


def test_nothing_is_left_of_a_platform_that_does_not_come_up(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(description: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(building, "start_all", fail)
    with pytest.raises(OSError, match="no space left"):
        up(small(name))
    assert leftovers(name) == []


@pytest.mark.parametrize(
    ("number", "program"),
    # The program that `up` runs while it builds the network, starts the servers, or mounts.
    [(signal.SIGINT, "tc"), (signal.SIGTERM, "ss"), (signal.SIGHUP, "stat")],
)
def test_nothing_is_left_when_a_signal_stops_it(
    name: str, number: signal.Signals, program: str, tmp_path: Path
) -> None:
    """The signal comes while `up` waits for a program that does not answer."""
    (tmp_path / program).write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nexec sleep 600\n")
    (tmp_path / program).chmod(0o755)
    process = starting(name, tmp_path)
    wait_until(lambda: (tmp_path / "asked").exists() or process.poll() is not None)
    process.send_signal(number)
    _, errors = process.communicate(timeout=_PATIENCE_S)
    assert (process.returncode, errors.strip()) == (130, "ioncast: stopped")
    assert leftovers(name) == []


def is_unlocked(name: str) -> bool:
    """Whether a killed command, and every program that it was about to start, has ended."""
    with suppress(BusyError), emulator.locked(name):
        return True
    return False


@pytest.mark.parametrize("moment", MOMENTS)
def test_down_removes_everything_that_a_killed_up_left(
    name: str, moment: str, tmp_path: Path
) -> None:
    process = starting(name, tmp_path)
    wait_until(lambda: MOMENTS[moment](name) or process.poll() is not None)
    process.kill()
    process.communicate()
    wait_until(lambda: is_unlocked(name))
    assert leftovers(name) != []
    with pytest.raises(IoncastError, match=f"ioncast platform down {name}"):
        up(small(name))
    assert down(name)
    assert leftovers(name) == []


def test_down_finishes_the_work_of_a_killed_down(name: str) -> None:
    up(small(name))
    process = subprocess.Popen([*IONCAST, "down", name])
    wait_until(lambda: not (PLATFORMS / name / "mounts/io1").exists())
    process.kill()
    process.wait()
    # The killed command may have been unmounting.
    wait_until(lambda: is_unlocked(name) and not any("process" in what for what in leftovers(name)))
    down(name)
    assert leftovers(name) == []


def test_the_name_of_one_platform_may_begin_with_anothers(name: str) -> None:
    up(small(f"{name}-cn0"))
    try:
        down(name)
        assert find(f"{name}-cn0").scratch.is_mount()
    finally:
        down(f"{name}-cn0")
    assert leftovers(f"{name}-cn0") == []
