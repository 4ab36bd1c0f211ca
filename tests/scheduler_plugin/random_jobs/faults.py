"""Faults of ioncast's parts and of their surroundings, each as a context of some submissions."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.scheduler_plugin.random_jobs.site import USER, Daemon, Site
from tests.scheduler_plugin.random_jobs.submissions import NODES

Fault = Callable[[Site, random.Random], contextlib.AbstractContextManager[None]]

_GARBAGE = (b"", b"\x00" * 5000, b"return {", b"error('x')", b"\xff\xfe return nil", b"9" * 100_000)


@contextmanager
def nothing(site: Site, chance: random.Random) -> Iterator[None]:
    yield


@contextmanager
def service_killed(site: Site, chance: random.Random) -> Iterator[None]:
    for pid in site.service_processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    site.service.process.wait()
    yield
    site.restart_service()
    site.service.wait_until_ready()


@contextmanager
def service_stopped(site: Site, chance: random.Random) -> Iterator[None]:
    processes = site.service_processes()
    for pid in processes:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            os.kill(pid, signal.SIGCONT)


@contextmanager
def keeper_killed(site: Site, chance: random.Random) -> Iterator[None]:
    os.kill(site.service.keeper(), signal.SIGKILL)
    yield


@contextmanager
def disk_full(site: Site, chance: random.Random) -> Iterator[None]:
    full = site.folder / "state" / "full"
    with full.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    yield
    full.unlink()


@contextmanager
def database_locked(site: Site, chance: random.Random) -> Iterator[None]:
    with contextlib.closing(
        sqlite3.connect(site.folder / "demo.sqlite", timeout=60, isolation_level=None)
    ) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


@contextmanager
def _damaged(site: Site, path: Path, chance: random.Random) -> Iterator[None]:
    """Garbage in a file of the plugin."""
    content = path.read_bytes()
    path.write_bytes(chance.choice((*_GARBAGE, content[: chance.randrange(len(content))])))
    site.reload()
    try:
        yield
    finally:
        path.write_bytes(content)
        site.reload()


def settings_damaged(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _damaged(site, site.file("ioncast_settings.lua"), chance)


def plugin_damaged(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _damaged(site, site.file("ioncast.lua"), chance)


def script_damaged(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    """Slurm keeps the script that it has."""
    return _damaged(site, site.file("job_submit.lua"), chance)


def token_damaged(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _damaged(site, site.folder / "plugin.token", chance)


def limits_damaged(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _damaged(site, site.limits, chance)


@contextmanager
def _killed(daemon: Daemon) -> Iterator[None]:
    daemon.kill()
    yield
    daemon.restart()


@contextmanager
def _stopped(daemon: Daemon) -> Iterator[None]:
    daemon.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        daemon.signal(signal.SIGCONT)


def arbiter_killed(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _killed(site.arbiter)


def arbiter_stopped(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _stopped(site.arbiter)


def watch_killed(site: Site, chance: random.Random) -> contextlib.AbstractContextManager[None]:
    return _killed(site.watch)


@contextmanager
def heartbeat_damaged(site: Site, chance: random.Random) -> Iterator[None]:
    """A killed arbiter left garbage."""
    with _killed(site.arbiter):
        site.heartbeat.write_bytes(chance.choice((*_GARBAGE, b"inf", b"-1", b"nan", b"0x7fffffff")))
        yield


@contextmanager
def slurmrestd_ended(site: Site, chance: random.Random) -> Iterator[None]:
    site.with_ioncast.stop("slurmrestd")
    yield
    site.with_ioncast.start("slurmrestd")


@contextmanager
def slurmctld_restarted(site: Site, chance: random.Random) -> Iterator[None]:
    site.with_ioncast.stop("slurmctld")
    site.with_ioncast.start("slurmctld")
    # Until all nodes have answered, Slurm rejects some jobs.
    site.with_ioncast.wait(lambda: _are_nodes_known(site), "nodes")
    yield


def _are_nodes_known(site: Site) -> bool:
    command = ("sbatch", "--test-only", f"--nodes={NODES}", "--wrap=true")
    return site.with_ioncast.run(*command, user=USER, check=False).returncode == 0


# Without its file of limits the plugin gives more than them, as docs/slurm.md says.
FAULTS_OF_LIMITS = {limits_damaged}
FAULTS: tuple[Fault, ...] = (
    *(nothing, service_killed, service_stopped, keeper_killed, disk_full, database_locked),
    *(settings_damaged, plugin_damaged, script_damaged, token_damaged, limits_damaged),
    *(arbiter_killed, arbiter_stopped, watch_killed, heartbeat_damaged, slurmrestd_ended),
    slurmctld_restarted,
)
