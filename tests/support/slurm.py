"""A real Slurm for tests, from Debian's packages, each daemon as its own user.

It needs root, because slurmd starts jobs for other users.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.services import PATH, use
from tests.support.serving import free_port, wait_for

# An admin would create users. The tests take users that every Debian has.
REST_USER, DATABASE_USER = "daemon", "backup"
SERVICE_USER, WATCH_USER, ARBITER_USER = "www-data", "list", "irc"
# Machines that run tests are busy.
_PATIENCE_S = 180.0
# From 24.05 on, slurmrestd's option -s names parts of the interface instead of versions.
_NEW_INTERFACE = (24, 5)

_CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser=slurm
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge/munge.sock
CryptoType=crypto/munge
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={root}/jwt.key
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
ReturnToService=2
MinJobAge=3600
MessageTimeout=60
BatchStartTimeout=300
KillWait=2
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={root}/jobs
Licenses=ionode:8
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
"""
_SLURMDBD = """
DbdHost=localhost
DbdPort={port}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={root}/munge/munge.sock
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={root}/jwt.key
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_accounting
LogFile={root}/slurmdbd.log
PidFile={root}/slurmdbd.pid
"""
_WITH_ACCOUNTING = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=localhost
AccountingStoragePort={port}
AccountingStoragePass={root}/munge/munge.sock
AccountingStorageTRES=license/ionode
"""
_DATABASE = """
CREATE DATABASE IF NOT EXISTS slurm_accounting;
CREATE USER IF NOT EXISTS slurm@localhost IDENTIFIED VIA unix_socket;
GRANT ALL ON slurm_accounting.* TO slurm@localhost;
"""
_NODE = "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=2 RealMemory=1000"
_PARTITION = "PartitionName=batch Nodes=ALL Default=YES State=UP MaxTime=10"


def version() -> tuple[int, int]:
    """The version of this machine's Slurm, such as (24, 11)."""
    said = subprocess.run(
        ["slurmctld", "-V"], env={"PATH": PATH}, check=True, capture_output=True, text=True
    ).stdout
    year, month, *_ = said.split()[-1].split(".")
    return int(year), int(month)


@dataclass(frozen=True)
class _Daemon:
    """The command, the user and the environment of a daemon."""

    command: Sequence[str]
    user: str = "root"
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Cluster:
    """A running cluster: a controller, nodes, and further daemons.

    Attributes
    ----------
    folder : Path
        The folder of all files of the cluster, such as slurm.conf and the scripts of plugins.
    environment : dict
        The environment for Slurm's commands.
    """

    folder: Path
    environment: dict[str, str]
    _known: dict[str, _Daemon]
    _daemons: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def run(
        self,
        *command: str | bytes,
        user: str | None = None,
        check: bool = True,
        told: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run one of Slurm's commands, perhaps as another user."""
        return subprocess.run(
            command,
            env=self.environment,
            user=user,
            group=user and pwd.getpwnam(user).pw_gid,
            cwd=self.folder,
            input=told,
            check=check,
            capture_output=True,
            text=True,
            # Texts of users may have any bytes.
            errors="surrogateescape",
            timeout=_PATIENCE_S,
        )

    def submit(
        self, *options: str | bytes, script: str = "#!/bin/sh\ntrue\n", user: str | None = None
    ) -> int:
        """Submit a job script and return the job's id."""
        out = ("--parsable", "--output=/dev/null")
        submitted = self.run("sbatch", *out, *options, user=user, told=script)
        return int(submitted.stdout.split(";")[0])

    def job(self, job_id: int) -> dict[str, str]:
        """Read the output of `scontrol show job`; of an array or a het job only the first part."""
        lines = (
            self.run("scontrol", "show", "job", str(job_id)).stdout.split("\n\n")[0].splitlines()
        )
        fields: dict[str, str] = {}
        for line in lines:
            # Texts of users and admins may contain anything, but have lines of their own.
            words = [line.strip()] if _is_text(line) else line.split()
            fields |= dict(word.split("=", 1) for word in words if "=" in word)
        return fields

    def wait_for(self, job_id: int, *states: str) -> dict[str, str]:
        """Wait until a job is in one of these states, and return its fields."""

        def is_so() -> dict[str, str] | None:
            found = self.job(job_id)
            return found if found["JobState"] in states else None

        found: dict[str, str] = self.wait(is_so, f"{states} of job {job_id}")
        return found

    def controller_log(self) -> str:
        """Read the log of slurmctld."""
        return (self.folder / "slurmctld.log").read_text(errors="replace")

    @property
    def rest(self) -> Path:
        """The socket of slurmrestd."""
        return self.folder / "rest" / "slurmrestd.sock"

    def token(self, user: str = "root", lifespan_s: int = 3600) -> str:
        """Make a token for slurmrestd."""
        said = self.run("scontrol", "token", f"lifespan={lifespan_s}", f"username={user}").stdout
        return said.strip().removeprefix("SLURM_JWT=")

    def add_operator(self, user: str) -> None:
        """Let a user change the jobs of others; this needs accounting."""
        self.run(
            *("sacctmgr", "-i", "add", "user", user, "account=everybody", "adminlevel=Operator")
        )

    def start(self, name: str) -> None:
        """Start a daemon and wait until it is ready."""
        # Each start of pytest closes the common folder to other users again.
        open_to_all(self.folder)
        daemon = self._known[name]
        with (self.folder / f"{name}.out").open("ab") as output:
            self._daemons[name] = subprocess.Popen(
                daemon.command,
                env={**self.environment, **daemon.environment},
                user=daemon.user,
                group=pwd.getpwnam(daemon.user).pw_gid,
                extra_groups=[],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.wait(lambda: self._is_up(name), name)

    def stop(self, name: str) -> None:
        """End a daemon."""
        process = self._daemons.pop(name)
        process.terminate()
        try:
            # A slurmctld that is killed forgets jobs, so wait for its normal end.
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    @contextmanager
    def stopped(self, name: str) -> Iterator[None]:
        """Let a daemon hang for a while."""
        process = self._daemons[name]
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds, and return its value."""
        try:
            return wait_for(condition, what, _PATIENCE_S)
        except AssertionError as error:
            files = self.folder.glob("*.out")
            logs = "\n".join(each.read_text(errors="replace")[-1500:] for each in files)
            raise TimeoutError(f"Slurm: {error}\n{logs}") from error

    def end(self) -> None:
        """End all jobs, and then all daemons in the reverse order of their start.

        A job that still runs would make slurmstepd try to reach slurmctld again and again.
        """
        with contextlib.suppress(subprocess.SubprocessError, TimeoutError):
            if jobs := self._jobs():
                self.run("scancel", *jobs, check=False)
                self.wait(lambda: not self._jobs(), "end of all jobs")
        for name in reversed(list(self._daemons)):
            self.stop(name)

    def _jobs(self) -> list[str]:
        """List all jobs that have not ended, also waiting jobs, which would start later."""
        if "slurmctld" not in self._daemons:
            return []
        return self._said("squeue", "-h", "-o%A").split()

    def _is_up(self, name: str) -> bool:
        if name == "munged":
            return (self.folder / "munge" / "munge.sock").exists()
        if name == "mariadbd":
            return _accepts(self.folder / "database" / "mariadb.sock")
        if name == "slurmdbd":
            return self.run("sacctmgr", "list", "cluster", check=False).returncode == 0
        if name == "slurmctld":
            return "UP" in self._said("scontrol", "ping")
        if name == "slurmrestd":
            return _accepts(self.rest)
        return self._said("sinfo", "-hn", name, "-o%t").strip() == "idle"

    def _said(self, *command: str) -> str:
        try:
            return self.run(*command, check=False).stdout
        except subprocess.TimeoutExpired:
            return ""


def _is_text(line: str) -> bool:
    texts = ("AdminComment=", "Comment=", "Command=", "WorkDir=", "SubmitLine=")
    return line.strip().startswith(texts)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as client:
        return client.connect_ex(str(path)) == 0


@contextmanager
def cluster(
    root: Path,
    *,
    nodes: int = 4,
    files: Mapping[str, str] | None = None,
    lines: Sequence[str] = (),
    rest: bool = False,
    accounting: bool = False,
) -> Iterator[Cluster]:
    """Run a cluster with two cores on each node, and 8 licences of `ionode`.

    Parameters
    ----------
    root : Path
        The folder of all its files, which is created. Other users may read it.
    nodes : int
        The number of nodes; their names are n1, n2, …
    files : mapping of str to str, optional
        Names and texts of further files beside slurm.conf.
    lines : sequence of str
        Further lines of slurm.conf.
    rest : bool
        Whether slurmrestd runs as well.
    accounting : bool
        Whether slurmdbd runs as well, with MariaDB. Operators of Slurm need it.
    """
    use("slurm")
    root.mkdir(parents=True, exist_ok=True)
    shutil.chown(root, "slurm", "slurm")
    open_to_all(root)
    _make_folder(root / "state", "slurm")
    _make_folder(root / "munge", "munge")
    names = [f"n{number}" for number in range(1, nodes + 1)]
    controller, accountant, *ports = _free_ports(nodes + 2)
    host = socket.gethostname()
    texts = [_CONFIGURATION.format(root=root, host=host, controller=controller)]
    if accounting:
        texts.append(_WITH_ACCOUNTING.format(root=root, port=accountant))
    texts += [
        _NODE.format(name=name, host=host, port=port)
        for name, port in zip(names, ports, strict=True)
    ]
    (root / "slurm.conf").write_text("\n".join([*texts, _PARTITION, *lines, ""]))
    if version() >= _NEW_INTERFACE:
        # Newer versions look for cgroups, which a machine of tests may not have.
        (root / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    for name, text in (files or {}).items():
        (root / name).write_text(text)
    _make_secret(root / "munge" / "munge.key", os.urandom(128), "munge")
    _make_secret(root / "jwt.key", os.urandom(128), "slurm")
    environment = {**os.environ, "PATH": PATH, "SLURM_CONF": str(root / "slurm.conf")}
    daemons = {"munged": _munged(root / "munge")}
    if accounting:
        daemons |= _accounting(root, accountant)
    daemons["slurmctld"] = _Daemon(["slurmctld", "-D"], "slurm")
    daemons |= {name: _Daemon(["slurmd", "-D", "-N", name]) for name in names}
    if rest:
        daemons["slurmrestd"] = _slurmrestd(root / "rest", accounting)
    with ExitStack() as stack:
        found = Cluster(root, environment, daemons)
        stack.callback(found.end)
        for name in daemons:
            found.start(name)
            if name == "slurmdbd":
                found.run("sacctmgr", "-i", "add", "cluster", "test")
                found.run("sacctmgr", "-i", "add", "account", "everybody")
        yield found


def _munged(folder: Path) -> _Daemon:
    places = {"key-file": "key", "socket": "sock", "pid-file": "pid", "log-file": "log"}
    options = [f"--{name}={folder}/munge.{suffix}" for name, suffix in places.items()]
    # munged rejects folders that other users may write to, such as /tmp, without --force.
    return _Daemon(
        ["munged", "--foreground", "--force", *options, f"--seed-file={folder}/munge.seed"], "munge"
    )


def _slurmrestd(folder: Path, accounting: bool) -> _Daemon:
    _make_folder(folder, REST_USER)
    where = f"unix:{folder}/slurmrestd.sock"
    is_new = version() >= _NEW_INTERFACE
    parts = ["slurmctld", "slurmdbd"] if is_new else ["openapi/v0.0.38", "openapi/dbv0.0.38"]
    interfaces = ",".join(parts[: 1 + accounting])
    command = ["slurmrestd", "-a", "rest_auth/jwt", "-s", interfaces, where]
    return _Daemon(command, REST_USER, {"SLURM_JWT": "daemon"})


def _accounting(root: Path, port: int) -> dict[str, _Daemon]:
    text = _SLURMDBD.format(root=root, port=port).encode()
    _make_secret(root / "slurmdbd.conf", text, "slurm")
    folder = root / "database"
    _make_folder(folder, DATABASE_USER)
    (folder / "init.sql").write_text(_DATABASE)
    subprocess.run(
        ["mariadb-install-db", "--no-defaults", f"--datadir={folder}/data", "--skip-test-db"],
        user=DATABASE_USER,
        group=pwd.getpwnam(DATABASE_USER).pw_gid,
        env={"PATH": PATH},
        check=True,
        capture_output=True,
    )
    database = [
        *("mariadbd", "--no-defaults", "--skip-networking", f"--datadir={folder}/data"),
        *(f"--socket={folder}/mariadb.sock", f"--init-file={folder}/init.sql"),
    ]
    at_socket = {"MYSQL_UNIX_PORT": f"{folder}/mariadb.sock"}
    return {
        "mariadbd": _Daemon(database, DATABASE_USER),
        "slurmdbd": _Daemon(["slurmdbd", "-D"], "slurm", at_socket),
    }


def _make_folder(path: Path, owner: str) -> None:
    path.mkdir()
    shutil.chown(path, owner, pwd.getpwnam(owner).pw_gid)


def _make_secret(path: Path, content: bytes, owner: str) -> None:
    path.write_bytes(content)
    path.chmod(0o600)
    shutil.chown(path, owner)


def as_user(user: str) -> list[str]:
    """Make the beginning of a command that runs as a user who may read all files.

    On some machines only root may read the folder of Python.
    """
    reading = [f"--{which}-caps=+dac_read_search" for which in ("inh", "ambient")]
    who = ["--reuid", user, "--regid", str(pwd.getpwnam(user).pw_gid), "--clear-groups"]
    return ["setpriv", *who, *reading, "--no-new-privs"]


def give_secret(path: Path, content: str, user: str) -> None:
    """Write a file as docs/slurm.md says: root owns it, and one user may read it."""
    path.write_text(content)
    path.chmod(0o640)
    shutil.chown(path, "root", pwd.getpwnam(user).pw_gid)


def give_file_of_root(path: Path, user: str) -> None:
    """Make a file for slurmctld as the units do: in a folder of root, and a user may write it."""
    path.parent.mkdir(mode=0o755)
    path.touch()
    path.chmod(0o664)
    shutil.chown(path, "root", pwd.getpwnam(user).pw_gid)


@contextmanager
def slurm(root: Path) -> Iterator[dict[str, str]]:
    """Run a cluster of two nodes and yield the environment of its clients."""
    with cluster(root, nodes=2) as found:
        yield found.environment


def open_to_all(folder: Path) -> None:
    """Let other users, such as slurmctld's, into a folder; folders of tests are closed to them."""
    for each in (folder, *folder.parents):
        mode = each.stat().st_mode
        if each.owner() == "root" and mode & 0o011 != 0o011:
            each.chmod(mode | 0o011)
    folder.chmod(0o755)


def _free_ports(count: int) -> list[int]:
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)
