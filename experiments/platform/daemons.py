"""Starts a platform's daemons and mounts its file systems."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments.platform import remains, volumes
from experiments.platform.description import Description
from experiments.platform.folders import folder_of, mount_of, mount_through, scratch_of
from experiments.platform.network import (
    ADMINISTRATOR,
    Node,
    compute_node,
    io_node,
    namespace,
    server,
)
from experiments.platform.programs import run, succeed
from ioncast_base.errors import IoncastError

_PATIENCE_S = 30.0
_ATTEMPTS = 5
_ATTEMPT_S = 8.0
# With the kernel's caches, two compute nodes could see different states of one file.
_UNCACHED = ("--direct-io-mode=enable", "--attribute-timeout=0", "--entry-timeout=0")


@dataclass(frozen=True)
class Daemon:
    """A GlusterFS daemon on a node.

    Attributes
    ----------
    name : str
        Name of its volume file and its log.
    node : Node
        The node that it runs on.
    volume : str
        Text of its volume file.
    """

    name: str
    node: Node
    volume: str


@dataclass(frozen=True)
class Server(Daemon):
    """A daemon that clients connect to.

    Attributes
    ----------
    port : int
        The TCP port on which it listens.
    """

    port: int


@dataclass(frozen=True)
class Client(Daemon):
    """A daemon behind a mount.

    Attributes
    ----------
    mount : Path
        The mount point.
    """

    mount: Path


def servers(description: Description) -> list[Server]:
    """Daemons of the storage servers."""
    folder = folder_of(description.name)
    return [
        Server(
            name=f"server{number}",
            node=server(description, number),
            volume=volumes.storage_volume(description, number, folder / "bricks" / str(number)),
            port=volumes.STORAGE_PORT,
        )
        for number in description.all_servers
    ]


def forwarders(description: Description) -> list[Server]:
    """Daemons of the I/O nodes."""
    return [
        Server(
            name=f"forwarder{number}",
            node=io_node(description, number),
            volume=volumes.forwarding_volume(description, number),
            port=volumes.FORWARDING_PORT,
        )
        for number in description.all_io_nodes
    ]


def clients(description: Description) -> list[Client]:
    """Daemons behind the mounts: one for each pair of number of I/O nodes and compute node.

    With `placement.any` also one for each pair of I/O node and compute node.
    """
    administrator = Client(
        name="administrator",
        node=ADMINISTRATOR,
        volume=volumes.administrator_volume(description),
        mount=scratch_of(description.name),
    )
    views = [
        Client(
            name=f"io{io_nodes}-cn{node}",
            node=compute_node(description, node),
            volume=_view(description, io_nodes, node),
            mount=mount_of(description.name, io_nodes, node),
        )
        for io_nodes in description.io_nodes
        for node in description.all_compute_nodes
    ]
    named = [
        Client(
            name=f"through-io{io_node}-cn{node}",
            node=compute_node(description, node),
            volume=volumes.client_volume(description, io_node),
            mount=mount_through(description.name, io_node, node),
        )
        for io_node in (description.all_io_nodes if description.placement.any else ())
        for node in description.all_compute_nodes
    ]
    return [administrator, *views, *named]


def _view(description: Description, io_nodes: int, node: int) -> str:
    if io_nodes == 0:
        return volumes.direct_volume(description)
    return volumes.client_volume(description, description.io_node(io_nodes, node))


def start_all(description: Description) -> None:
    """Start the storage servers, then the I/O nodes, then mount.

    Parameters
    ----------
    description : Description
        The platform; its network and its folders exist.

    Raises
    ------
    IoncastError
        If a daemon does not start or a mount does not answer.
    """
    platform = description.name
    _start_servers(platform, servers(description))
    _start_servers(platform, forwarders(description))
    for daemon in forwarders(description):
        # A client that mounts while its I/O node has no storage yet would see no files.
        _wait_for(
            platform, daemon, partial(_has_storage, platform, daemon, description.storage.servers)
        )
    _mount_all(platform, clients(description))


def answering(platform: str, clients: Sequence[Client], *, patience_s: float = 5.0) -> set[str]:
    """Ask all mounted file systems for their size at the same time.

    Parameters
    ----------
    platform : str
        The platform's name.
    clients : sequence of Client
        The daemons behind the mounts.
    patience_s : float
        Seconds to wait for all answers.

    Returns
    -------
    set of str
        Names of the daemons whose mounts exist and answered.
    """
    mounted = remains.mounts(folder_of(platform))
    asked = {
        _member(platform, client): ["stat", "--file-system", str(client.mount)]
        for client in clients
        # At a place without a mount, the host's own file system would answer.
        if client.mount in mounted
    }
    answered = succeed(asked, patience_s=patience_s)
    return {client.name for client in clients if _member(platform, client) in answered}


def _start_servers(platform: str, daemons: Iterable[Server]) -> None:
    for daemon in daemons:
        run(*_command(platform, daemon, "glusterfsd"), member=_member(platform, daemon))
    for daemon in daemons:
        _wait_for(platform, daemon, partial(_listens, platform, daemon))


def _mount_all(platform: str, daemons: Sequence[Client]) -> None:
    missing = list(daemons)
    for _attempt in range(_ATTEMPTS):
        commands = {
            _member(platform, daemon): [
                *_command(platform, daemon, "glusterfs"),
                *_UNCACHED,
                str(daemon.mount),
            ]
            for daemon in missing
        }
        succeed(commands, patience_s=_ATTEMPT_S)
        answers = answering(platform, missing, patience_s=_ATTEMPT_S)
        missing = [daemon for daemon in missing if daemon.name not in answers]
        if not missing:
            return
        for daemon in missing:
            # A client that did not reach its server in time never answers, so mount it again.
            _unmount(platform, daemon)
    raise IoncastError(
        "does not answer", where=str(missing[0].mount), remedy=_see_log(platform, missing[0])
    )


def _unmount(platform: str, daemon: Client) -> None:
    remains.end(partial(remains.members, _member(platform, daemon)))
    if daemon.mount in remains.mounts(folder_of(platform)):
        remains.detach(daemon.mount)


def _member(platform: str, daemon: Daemon) -> str:
    return f"{platform}/{daemon.name}"


def _command(platform: str, daemon: Daemon, program: str) -> list[str]:
    folder = folder_of(platform)
    volume = folder / "volumes" / f"{daemon.name}.vol"
    volume.write_text(daemon.volume, encoding="utf-8")
    return [
        *_on(platform, daemon.node),
        program,
        f"--volfile={volume}",
        f"--log-file={folder / 'logs' / daemon.name}.log",
        "--log-level=WARNING",
    ]


def _on(platform: str, node: Node) -> list[str]:
    """Words in front of a command that run it on a node."""
    # Not `ip netns exec`: it would hide the mounts from the host.
    return ["nsenter", f"--net={remains.NAMESPACES / namespace(platform, node.name)}"]


def _listens(platform: str, daemon: Server) -> bool:
    sockets = run(*_on(platform, daemon.node), "ss", "-Hltn", "sport", "=", f":{daemon.port}")
    return bool(sockets.strip())


def _has_storage(platform: str, daemon: Server, servers: int) -> bool:
    states = ["-Htn", "state", "established", "dport", "=", f":{volumes.STORAGE_PORT}"]
    return len(run(*_on(platform, daemon.node), "ss", *states).splitlines()) >= servers


def _wait_for(platform: str, daemon: Daemon, condition: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise IoncastError(
                f"the daemon {daemon.name} does not start", remedy=_see_log(platform, daemon)
            )
        time.sleep(0.02)


def _see_log(platform: str, daemon: Daemon) -> str:
    """Quote the daemon's log, because it is removed when the platform does not come up."""
    log = folder_of(platform) / "logs" / f"{daemon.name}.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return f"the last line of its log: {lines[-1]}" if lines else "its log is empty"
