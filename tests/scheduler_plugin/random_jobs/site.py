"""Two clusters of the same configuration, of which one has ioncast as docs/slurm.md installs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchdb.store.database import opened_database, transaction
from ioncast.service.running.demo_data import fill
from ioncast.service.store.tokens import add_token
from tests.scheduler_plugin.random_jobs.submissions import MODES, NODES, PROGRAM, QOS
from tests.support.serving import Served, start, stop, wait_for
from tests.support.slurm import (
    ARBITER_USER,
    WATCH_USER,
    Cluster,
    as_user,
    cluster,
    give_file_of_root,
    give_secret,
    open_to_all,
)

LUA = Path(__file__).resolve().parents[3] / "scheduler_plugin" / "lua"
# Slurm 26.05 finds no associations of nobody.
USER = "games"
_KNOWN = f"/v1/decisions?system=testbed&user={USER}&executable={PROGRAM.decode()}&tasks=16"
_SETTINGS = """
return {{
    mode = "arbitrate",
    interactive = "on",
    partitions = {{ {partitions} }},
    address = "unix:{folder}/decisions.sock",
    system = "testbed",
    pool = 8,
    heartbeat = "{folder}/heartbeat/heartbeat",
    limits = "{folder}/limits/limits",
    token_file = "{folder}/plugin.token",
    -- Machines that run tests are slow. But each question to a stopped service takes that long.
    deadline_ms = 2000,
}}
"""
_DAEMONS = """
system = "testbed"
[slurmrestd]
address = "unix:{rest}"
user = "{user}"
token_file = "{folder}/{user}.jwt"
timeout_s = 60
[service]
address = "unix:{folder}/ioncast.sock"
token_file = "{folder}/{user}.token"
[darshan]
folder = "{folder}/logs"
[watch]
state = "{folder}/watch/watch.sqlite"
limits = "{folder}/limits/limits"
period_s = 0.5
[arbitrate]
period_s = 0.5
heartbeat = "{folder}/heartbeat/heartbeat"
lock = "{folder}/arbitrate/lock"
"""
_LINES = (
    "AccountingStorageEnforce=limits,qos",
    *(f"PartitionName={name} Nodes=ALL State=UP MaxTime=10" for name in MODES if name != "batch"),
)
_SETUP = (
    *(f"add qos {name} MaxTRESPerJob=license/ionode=2 {flags}" for name, flags in QOS.items()),
    f"add user {USER} account=everybody qos=normal,{','.join(QOS)} defaultqos=normal",
)


class Daemon:
    """`ioncast slurm COMMAND` as its own user, with its log in the folder."""

    def __init__(self, folder: Path, command: str, user: str) -> None:
        ioncast = [sys.executable, "-m", "ioncast", "slurm", command]
        self._command = [*as_user(user), *ioncast, "--config", str(folder / f"{user}.toml")]
        self.log = folder / f"{command}.log"
        self.process = self._started()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def restart(self) -> None:
        """Start again, as systemd does after an end."""
        self.process = self._started()

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(self._command, stderr=log)


@dataclass
class Site:
    """Both clusters, and the parts of ioncast beside one of them."""

    folder: Path
    service: Served
    plain: Cluster = field(init=False)
    with_ioncast: Cluster = field(init=False)
    watch: Daemon = field(init=False)
    arbiter: Daemon = field(init=False)

    @property
    def program(self) -> Path:
        return self.folder / PROGRAM.decode()

    @property
    def heartbeat(self) -> Path:
        return self.folder / "heartbeat" / "heartbeat"

    @property
    def limits(self) -> Path:
        return self.folder / "limits" / "limits"

    def file(self, name: str) -> Path:
        """A file of the plugin."""
        return self.with_ioncast.folder / name

    def reload(self) -> None:
        """Let slurmctld load the plugin again: its script must be newer than the last load."""
        later = int(time.time()) + 1
        os.utime(self.file("job_submit.lua"), (later, later))

    def service_processes(self) -> list[int]:
        return [self.service.process.pid, *self.service.processes()]

    def restart_service(self) -> None:
        self.service = _service(self.folder, self.service.port)

    def wait_until_working(self) -> None:
        self.service.wait_until_ready()
        wait_for(lambda: self.service.decide(_KNOWN).json["source"] == "history", "prepared answer")
        before = self.heartbeat.read_text()
        wait_for(lambda: self.heartbeat.read_text() != before, "heartbeat")


def _service(folder: Path, port: int | None = None) -> Served:
    # One worker: of two, one could know a token later than the other.
    return start(folder, "--db", str(folder / "demo.sqlite"), "--workers", "1", port=port)


def _prepare(folder: Path) -> None:
    open_to_all(folder)
    (folder / "logs").mkdir()
    for name, user in (*(("watch", WATCH_USER), ("arbitrate", ARBITER_USER), ("state", "root")),):
        (folder / name).mkdir()
        shutil.chown(folder / name, user)
    give_file_of_root(folder / "limits" / "limits", WATCH_USER)
    give_file_of_root(folder / "heartbeat" / "heartbeat", ARBITER_USER)
    program = folder / PROGRAM.decode()
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    database = str(folder / "demo.sqlite")
    fill(database)
    with opened_database(database) as opened, transaction(opened, write=True) as connection:
        for name, role, user in (
            (WATCH_USER, "scheduler", WATCH_USER),
            (ARBITER_USER, "reader", ARBITER_USER),
            ("plugin", "scheduler", "slurm"),
        ):
            give_secret(folder / f"{name}.token", add_token(connection, name, role), user)


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "state", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def _settings(folder: Path) -> str:
    partitions = ", ".join(f'{name} = {{ mode = "{mode}" }}' for name, mode in MODES.items())
    return _SETTINGS.format(folder=folder, partitions=partitions)


@contextmanager
def _cluster(folder: Path, *, has_ioncast: bool) -> Iterator[Cluster]:
    files = {}
    if has_ioncast:
        files = {name: (LUA / name).read_text() for name in ("job_submit.lua", "ioncast.lua")}
        files["ioncast_settings.lua"] = _settings(folder)
    with cluster(
        folder / ("ioncast" if has_ioncast else "plain"),
        nodes=NODES,
        files=files,
        lines=[*_LINES, *(["JobSubmitPlugins=lua"] if has_ioncast else [])],
        rest=has_ioncast,
        accounting=True,
    ) as found:
        for command in _SETUP:
            found.run("sacctmgr", "-i", *command.split())
        yield found


def _daemon(site: Path, slurm: Cluster, command: str, user: str) -> Daemon:
    give_secret(site / f"{user}.jwt", slurm.token(user, 7 * 86_400), user)
    settings = _DAEMONS.format(folder=site, user=user, rest=slurm.rest)
    (site / f"{user}.toml").write_text(settings)
    return Daemon(site, command, user)


@contextmanager
def both(folder: Path) -> Iterator[Site]:
    """Run two clusters, and ioncast with one of them."""
    _prepare(folder)
    with ExitStack() as stack:
        stack.enter_context(_small_disk(folder / "state"))
        site = Site(folder, _service(folder))
        stack.callback(lambda: stop(site.service))
        # Before it listens, a cluster could take its port.
        site.service.wait_until_ready()
        site.plain = stack.enter_context(_cluster(folder, has_ioncast=False))
        site.with_ioncast = stack.enter_context(_cluster(folder, has_ioncast=True))
        site.with_ioncast.add_operator(ARBITER_USER)
        site.watch = _daemon(folder, site.with_ioncast, "watch", WATCH_USER)
        stack.callback(site.watch.end)
        site.arbiter = _daemon(folder, site.with_ioncast, "arbitrate", ARBITER_USER)
        stack.callback(site.arbiter.end)
        site.wait_until_working()
        wait_for(lambda: "\nqos\trefusing\t2\n" in site.limits.read_text(), "limits")
        yield site
