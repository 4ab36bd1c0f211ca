"""The emulated platform: bringing it up and down, and finding one that is up."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import humanize

from experiments.platform import remains, signals
from experiments.platform.daemons import clients, start_all
from experiments.platform.description import Description, check_name
from experiments.platform.network import batches, namespaces
from experiments.platform.programs import run, system_path
from ioncast_base.errors import BusyError, InputError, IoncastError, UnknownNameError

_PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ss": "iproute2",
    "nsenter": "util-linux",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "glusterfs": "glusterfs-client",
    "glusterfsd": "glusterfs-server",
}
# The storage is small, and nobody else's.
_FREE_SPACE_LIMIT = "64m"
_FUSE = Path("/dev/fuse")
_DESCRIPTION, _PLATFORM_FILE = "description.json", "platform.toml"


@dataclass(frozen=True)
class Placement:
    """Where the processes of a run go.

    Attributes
    ----------
    io_nodes : int
        I/O nodes that forward for the compute nodes; 0 is direct access.
    tasks : int
        Processes.
    nodes : int
        Compute nodes, the first ones; process r runs on node r · nodes // tasks.
    """

    io_nodes: int
    tasks: int
    nodes: int


@dataclass(frozen=True)
class Emulated:
    """A platform that is up.

    Attributes
    ----------
    description : Description
        What it consists of.
    """

    description: Description

    @property
    def name(self) -> str:
        """What it is called."""
        return self.description.name

    @property
    def folder(self) -> Path:
        """Where it keeps its files."""
        return remains.folder_of(self.name)

    @property
    def scratch(self) -> Path:
        """The file system: through the own compute node for ranks, never measured for others."""
        return self.folder / "scratch"

    @property
    def campaign_platform(self) -> Path:
        """Its platform file for `ioncast campaign`."""
        return self.folder / _PLATFORM_FILE

    @property
    def yielding(self) -> Path:
        """A library for MPI programs, not there where nothing could compile it: yielding.c."""
        return self.folder / "yielding.so"

    @property
    def tasks(self) -> int:
        """Processes where nobody says another number."""
        nodes = self.description.compute_nodes
        return nodes.count * nodes.processes

    def node_directory(self, io_nodes: int, node: int) -> Path:
        """Say where this machine finds the file system as one of the compute nodes sees it.

        Parameters
        ----------
        io_nodes : int
            I/O nodes that forward for the compute nodes; 0 is direct access.
        node : int
            Number of the compute node, from 0.

        Returns
        -------
        Path
            A mount point.

        Raises
        ------
        InputError
            If the platform has no such mount.
        """
        self._check_io_nodes(io_nodes)
        if node not in self.description.all_compute_nodes:
            raise InputError(f"the platform {self.name} has no compute node {node}")
        return self.folder / "mounts" / f"io{io_nodes}" / f"cn{node}"

    def rank_command(
        self,
        program: Sequence[str],
        *,
        io_nodes: int,
        tasks: int | None = None,
        nodes: int | None = None,
        mpi: bool = False,
    ) -> list[str]:
        """Write the command that runs a program on the compute nodes.

        Parameters
        ----------
        program : sequence of str
            The program and its arguments; it finds the file system at `scratch`.
        io_nodes : int
            I/O nodes that forward for the compute nodes; 0 is direct access.
        tasks : int, optional
            How many processes; without it, as many as the platform has places.
        nodes : int, optional
            The first so many compute nodes; without it, all. Process r of P runs on node
            r · nodes // P.
        mpi : bool
            Whether mpiexec starts the processes. Otherwise they are told who they are by
            IONCAST_RANK and IONCAST_TASKS.

        Returns
        -------
        list of str
            It ends when all processes ended, or one failed; then with its code.

        Raises
        ------
        InputError
            If the platform has no such numbers of nodes.
        """
        placement = self.place(io_nodes=io_nodes, tasks=tasks, nodes=nodes)
        numbers = {
            "io-nodes": placement.io_nodes,
            "tasks": placement.tasks,
            "nodes": placement.nodes,
        }
        options = [f"--{key}={number}" for key, number in numbers.items()]
        return [*_exec(self.name), *options, *(["--mpi"] if mpi else []), "--", *program]

    def place(self, *, io_nodes: int, tasks: int | None, nodes: int | None) -> Placement:
        """Say where the processes of a run go; as for `rank_command`."""
        self._check_io_nodes(io_nodes)
        most = self.description.compute_nodes.count
        nodes = most if nodes is None else nodes
        if not 1 <= nodes <= most:
            raise InputError(
                f"{nodes} compute nodes were asked for",
                where=f"platform {self.name}",
                remedy=f"it has 1 to {most}",
            )
        return Placement(io_nodes, self.tasks if tasks is None else tasks, nodes)

    def _check_io_nodes(self, io_nodes: int) -> None:
        if io_nodes not in self.description.io_nodes:
            known = ", ".join(map(str, self.description.io_nodes))
            raise InputError(
                f"it has no runs with {io_nodes} I/O nodes",
                where=f"platform {self.name}",
                remedy=f"known there are {known}",
            )


def _exec(name: str) -> list[str]:
    return [sys.executable, "-m", "ioncast", "platform", "exec", f"--name={name}"]


def up(description: Description) -> Emulated:
    """Bring a platform up.

    Whatever goes wrong, and when a signal stops it (SIGINT, SIGTERM, SIGHUP), everything is
    removed again.

    Parameters
    ----------
    description : Description
        What it consists of.

    Returns
    -------
    Emulated
        The platform, all of its mounts answering.

    Raises
    ------
    IoncastError
        If this machine cannot do it, or there is something of that name already.
    """
    check_machine()
    _check_memory(description)
    with signals.raised(), locked(description.name):
        _refuse_what_is_there(description)
        try:
            return _build(description)
        except BaseException:
            with signals.ignored():
                remains.clear(description.name)
            raise


def down(name: str) -> bool:
    """Remove a platform, or whatever is left of it.

    Parameters
    ----------
    name : str
        Of the platform.

    Returns
    -------
    bool
        Whether there was something.

    Raises
    ------
    IoncastError
        If something cannot be removed.
    """
    check_name(name)
    check_root()
    with locked(name):
        found = bool(remains.remains(name))
        remains.clear(name)
    return found


def find(name: str) -> Emulated:
    """Find a platform that is up.

    Parameters
    ----------
    name : str
        Of the platform.

    Returns
    -------
    Emulated
        The platform.

    Raises
    ------
    UnknownNameError
        If it is not up.
    IoncastError
        If this process is not root's.
    """
    check_name(name)
    check_root()
    remains.check_platforms()
    folder = remains.folder_of(name)
    if not (folder / _PLATFORM_FILE).exists():
        raise _not_up(name)
    text = (folder / _DESCRIPTION).read_text(encoding="utf-8")
    return Emulated(Description.model_validate_json(text))


def _not_up(name: str) -> UnknownNameError:
    if remains.folder_of(name).exists():
        return UnknownNameError(
            f"the platform {name} did not come up, or is not up yet",
            remedy=f"`ioncast platform down {name}` removes what is there",
        )
    others = ", ".join(remains.names())
    remedy = f"up are {others}" if others else f"bring it up: `ioncast platform up --name {name}`"
    return UnknownNameError(f"no platform called {name} is up", remedy=remedy)


def check_machine() -> None:
    """Refuse a machine that cannot have a platform.

    Raises
    ------
    IoncastError
        With what is missing.
    """
    check_root()
    missing = [name for name in _PACKAGES if shutil.which(name, path=system_path()) is None]
    if missing:
        packages = " ".join(sorted({_PACKAGES[name] for name in missing}))
        raise IoncastError(
            f"{', '.join(missing)} cannot be found on this machine",
            remedy=f"install Debian's packages {packages}, or your system's like them",
        )
    if not _has_fuse():
        raise IoncastError(
            "FUSE cannot be used here",
            where=str(_FUSE),
            remedy="load the kernel's module fuse; a container has to be given the device",
        )


def _has_fuse() -> bool:
    with suppress(OSError), _FUSE.open("rb"):
        return _FUSE.stat().st_rdev == os.makedev(10, 229)
    return False


def _check_memory(description: Description) -> None:
    """Refuse a storage that this machine could not hold when it is full."""
    wanted_bytes, there_bytes = description.storage.memory, _memory_bytes()
    if wanted_bytes > there_bytes:
        wanted, there = (
            humanize.naturalsize(size, binary=True) for size in (wanted_bytes, there_bytes)
        )
        raise InputError(
            f"its storage may hold {wanted}, this machine's memory and swap only {there}",
            where=f"platform {description.name}",
            remedy="write less as `storage.memory` in its description",
        )


def _memory_bytes() -> int:
    lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
    sizes_kib = {line.split(":")[0]: int(line.split()[1]) for line in lines}
    return 1024 * (sizes_kib["MemTotal"] + sizes_kib["SwapTotal"])


def check_root() -> None:
    """Refuse to go on as somebody who may neither see nor make what a platform consists of.

    Raises
    ------
    IoncastError
        If this process is not root's.
    """
    if os.geteuid() != 0:
        raise IoncastError(
            "only root may use a platform, its network namespaces and mounts",
            remedy="run it with sudo",
        )


def _refuse_what_is_there(description: Description) -> None:
    name = description.name
    if not remains.remains(name):
        _refuse_foreign_namespaces(description)
        return
    remedy = f"remove it first: `ioncast platform down {name}`"
    try:
        find(name)
    except UnknownNameError as error:
        what = f"something is left of an earlier platform {name}"
        raise IoncastError(what, remedy=remedy) from error
    raise IoncastError(f"the platform {name} is up already", remedy=remedy)


def _refuse_foreign_namespaces(description: Description) -> None:
    for namespace in namespaces(description):
        if os.path.lexists(remains.NAMESPACES / namespace):
            raise IoncastError(
                f"the network namespace {namespace} is there already, of no platform",
                remedy="give the platform another name: `ioncast platform up --name NAME`",
            )


def _build(description: Description) -> Emulated:
    emulated = Emulated(description)
    _make_folders(emulated)
    _build_network(description)
    start_all(description)
    _compile_yielding(emulated)
    rank = emulated.folder / "rank"
    rank.write_text(_rank_script(emulated), encoding="utf-8")
    rank.chmod(0o755)
    # The last: a platform that has it is up.
    emulated.campaign_platform.write_text(_platform_file(emulated), encoding="utf-8")
    return emulated


def _build_network(description: Description) -> None:
    remains.write_namespaces(description.name, namespaces(description))
    for batch in batches(description):
        try:
            run(*batch.command, told=batch.text, member=description.name)
        except IoncastError as error:
            raise IoncastError(
                f"the network cannot be built: {error.what}",
                where=error.where,
                remedy="the kernel needs network namespaces and its modules veth, bridge and"
                " sch_tbf, and you the right to use them (CAP_SYS_ADMIN, CAP_NET_ADMIN)",
            ) from error


def _make_folders(emulated: Emulated) -> None:
    folder, description = emulated.folder, emulated.description
    folder.mkdir(mode=0o700)
    (folder / _DESCRIPTION).write_text(description.model_dump_json(), encoding="utf-8")
    for name in ("bricks", "logs", "mounts", "scratch", "volumes"):
        (folder / name).mkdir()
    for name, size_bytes in (("bricks", description.storage.memory), ("mounts", 1 << 20)):
        options = f"size={size_bytes},mode=700"
        command = ["mount", "-t", "tmpfs", "-o", options, f"ioncast-{name}", str(folder / name)]
        run(*command, member=emulated.name)
    for number in description.all_servers:
        (folder / "bricks" / str(number)).mkdir()
    for client in clients(description):
        client.mount.mkdir(parents=True, exist_ok=True)


def _compile_yielding(emulated: Emulated) -> None:
    if compiler := shutil.which("cc"):
        source = Path(__file__).with_name("yielding.c")
        options = ["-O2", "-shared", "-fPIC", "-o", str(emulated.yielding)]
        # Without a compiler that works MPI programs are slower, not wrong.
        with suppress(IoncastError):
            run(compiler, *options, str(source), "-ldl", member=emulated.name)


def _rank_script(emulated: Emulated) -> str:
    settings = {
        "name": emulated.name,
        "folder": str(emulated.folder),
        "compute_nodes": emulated.description.compute_nodes.count,
    }
    lines = ["#!/bin/sh", *(f"{key}={value}" for key, value in settings.items())]
    body = Path(__file__).with_name("rank.sh").read_text(encoding="utf-8")
    return "\n".join([*lines, body])


def _platform_file(emulated: Emulated) -> str:
    description = emulated.description
    launch = " ".join(
        [
            *map(shlex.quote, _exec(emulated.name)),
            "--io-nodes={io_nodes} --tasks={tasks} --nodes={nodes} --mpi --",
        ]
    )
    values = {
        "system": description.name,
        "io_nodes": list(description.io_nodes),
        "nodes": description.compute_nodes.count,
        "processes_per_node": description.compute_nodes.processes,
        "test_directory": str(emulated.scratch),
        "node_directory": str(emulated.folder / "mounts" / "io{io_nodes}" / "cn{node}"),
        "free_space_limit": _FREE_SPACE_LIMIT,
        "launch": launch,
    }
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Let one process at a time make or remove a platform."""
    remains.make_platforms()
    # No platform's name begins with a dot.
    file = remains.PLATFORMS / f".{name}.lock"
    with file.open("wb") as lock:
        if not _hold(lock, file):
            raise BusyError(
                f"another process brings the platform {name} up or down", remedy="wait for it"
            )
        try:
            yield
        finally:
            file.unlink()


def _hold(lock: IO[bytes], file: Path) -> bool:
    """Lock a file, unless somebody else holds it, or held it and removed it since."""
    with suppress(BlockingIOError, FileNotFoundError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock.fileno()), file.stat())
    return False
