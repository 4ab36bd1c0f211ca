"""A real Slurm on this machine, from Debian's packages: one controller, two nodes, licences.

Needs root: slurmd starts jobs for other users.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_START_SECONDS = 30

_CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={root}/munge.sock
CryptoType=crypto/munge
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,sched_interval=1,bf_interval=1
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={root}/jobs
Licenses=ionode:8
StateSaveLocation={root}/state
SlurmdSpoolDir={root}/spool-%n
SlurmctldPidFile={root}/slurmctld.pid
SlurmdPidFile={root}/slurmd-%n.pid
SlurmctldLogFile={root}/slurmctld.log
SlurmdLogFile={root}/slurmd-%n.log
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={n1} CPUs=2 RealMemory=1000
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={n2} CPUs=2 RealMemory=1000
PartitionName=batch Nodes=n1,n2 Default=YES State=UP MaxTime=10
"""


def missing() -> list[str]:
    """What is not installed, or not allowed, for Slurm to run here."""
    absent = [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]
    return absent if os.geteuid() == 0 else [*absent, "root"]


@contextmanager
def slurm(root: Path) -> Iterator[dict[str, str]]:
    """Run a cluster whose files are in a folder; yields the environment of its clients."""
    (root / "state").mkdir(parents=True)
    ports = dict(zip(("ctld", "n1", "n2"), _free_ports(3), strict=True))
    configuration = root / "slurm.conf"
    configuration.write_text(_CONFIGURATION.format(root=root, host=socket.gethostname(), **ports))
    environment = {**os.environ, "PATH": _PATH, "SLURM_CONF": str(configuration)}
    (root / "munge.key").write_bytes(os.urandom(128))
    (root / "munge.key").chmod(0o600)
    daemons = {
        "munged": [
            "munged",
            "--foreground",
            "--force",
            f"--key-file={root}/munge.key",
            f"--socket={root}/munge.sock",
            f"--pid-file={root}/munged.pid",
            f"--log-file={root}/munged.log",
            f"--seed-file={root}/munged.seed",
        ],
        "slurmctld": ["slurmctld", "-D"],
        "n1": ["slurmd", "-D", "-N", "n1"],
        "n2": ["slurmd", "-D", "-N", "n2"],
    }
    with ExitStack() as stack:
        for name, command in daemons.items():
            stack.enter_context(_daemon(command, environment, root / f"{name}.out"))
            if name == "munged":
                _wait((root / "munge.sock").exists, root)
            if name == "slurmctld":
                _wait(lambda: "UP" in _said(["scontrol", "ping"], environment), root)
        _wait(lambda: "idle 2" in _said(["sinfo", "-h", "-o", "%t %D"], environment), root)
        yield environment


@contextmanager
def _daemon(command: list[str], environment: dict[str, str], output: Path) -> Iterator[None]:
    with output.open("wb") as file:
        process = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _said(command: list[str], environment: dict[str, str]) -> str:
    try:
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=10
        ).stdout
    except subprocess.TimeoutExpired:
        return ""


def _wait(ready: Callable[[], bool], root: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            logs = "\n".join(p.read_text(errors="replace")[-2000:] for p in root.glob("*.log"))
            raise TimeoutError(f"Slurm did not start\n{logs}")
        time.sleep(0.1)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
