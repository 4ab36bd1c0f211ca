"""The GlusterFS volume file of each daemon of a platform.

A volume file lists translators, each on top of others; the last one is the top. Each storage server
exports a folder. An I/O node is a client of all storage servers and exports their file system. A
compute node is a client of an I/O node, or with direct access of the storage servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.platform.description import Description
from experiments.platform.network import Node, io_node, server

STORAGE_PORT = 24100
FORWARDING_PORT = 24200
# With the default of 2 threads, an I/O node waits for itself when many clients mount at once.
_EVENT_THREADS = 24
_CACHE_TIMEOUT_S = 60
# GlusterFS 10 sometimes does not release a lock (its issue 4425). With this limit, a program that
# waits for the lock gets an error after a minute, not after the default of half an hour.
ANSWER_TIMEOUT_S = 60
_EXPORTED = "export"


@dataclass(frozen=True)
class _Graph:
    """Translators: their text from the bottom up, and the name of the top one."""

    top: str
    text: str

    def under(self, name: str, kind: str, options: Mapping[str, object] | None = None) -> _Graph:
        """Put a translator on top."""
        return _Graph(name, self.text + _volume(name, kind, options or {}, [self.top]))


def _volume(name: str, kind: str, options: Mapping[str, object], below: Sequence[str] = ()) -> str:
    lines = [f"volume {name}", f"  type {kind}"]
    lines += [f"  option {key} {value}" for key, value in options.items()]
    lines += [f"  subvolumes {' '.join(below)}"] if below else []
    return "\n".join([*lines, "end-volume", "", ""])


def storage_volume(description: Description, number: int, directory: Path) -> str:
    """Write the volume file of a storage server.

    Parameters
    ----------
    description : Description
        The platform.
    number : int
        Number of the server, from 0.
    directory : Path
        The folder that it exports.

    Returns
    -------
    str
        Text of the file.
    """
    disk = _Graph("disk", _volume("disk", "storage/posix", {"directory": directory}))
    locks = disk.under("locks", "features/locks")
    return _exported(locks, description.storage.threads, server(description, number), STORAGE_PORT)


def forwarding_volume(description: Description, number: int) -> str:
    """Write the volume file of an I/O node: a client of the storage, and a server itself."""
    node, threads = io_node(description, number), description.forwarding.threads
    return _exported(
        _file_system(description),
        threads,
        node,
        FORWARDING_PORT,
        {"event-threads": _EVENT_THREADS},
    )


def direct_volume(description: Description) -> str:
    """Write the volume file of a compute node with direct access to the storage."""
    return _file_system(description).text


def administrator_volume(description: Description) -> str:
    """Write the volume file of the administrator's mount: direct access without a cache."""
    return _distributed(description).text


def client_volume(description: Description, number: int) -> str:
    """Write the volume file of a compute node that uses an I/O node."""
    return _client("forwarder", io_node(description, number), FORWARDING_PORT)


def _exported(
    graph: _Graph,
    threads: int,
    node: Node,
    port: int,
    options: Mapping[str, object] | None = None,
) -> str:
    pool = graph.under(_EXPORTED, "performance/io-threads", {"thread-count": threads})
    listening = {
        "transport-type": "tcp",
        "transport.socket.listen-port": port,
        "transport.socket.bind-address": node.address,
        f"auth.addr.{_EXPORTED}.allow": "*",
    }
    return pool.under("server", "protocol/server", {**listening, **(options or {})}).text


def _client(name: str, node: Node, port: int) -> str:
    options = {
        "transport-type": "tcp",
        "remote-host": node.address,
        "remote-port": port,
        "remote-subvolume": _EXPORTED,
        "frame-timeout": ANSWER_TIMEOUT_S,
    }
    return _volume(name, "protocol/client", options)


def _file_system(description: Description) -> _Graph:
    """The file system as a client sees it, with the client's cache."""
    graph, size_bytes = _distributed(description), description.storage.cache
    options = {"cache-size": size_bytes, "cache-timeout": _CACHE_TIMEOUT_S}
    return graph.under("cache", "performance/io-cache", options) if size_bytes else graph


def _distributed(description: Description) -> _Graph:
    """All servers as one file system: a file is on one server, or on one group of replicas."""
    bricks = [f"brick{number}" for number in description.all_servers]
    text = "".join(
        _client(brick, server(description, number), STORAGE_PORT)
        for number, brick in enumerate(bricks)
    )
    replicas = description.storage.replicas
    if replicas > 1:
        groups = [bricks[first : first + replicas] for first in range(0, len(bricks), replicas)]
        bricks = [f"replicas{number}" for number in range(len(groups))]
        text += "".join(_replicated(*each) for each in zip(bricks, groups, strict=True))
    if len(bricks) == 1:
        return _Graph(bricks[0], text)
    return _Graph("files", text + _volume("files", "cluster/distribute", {}, bricks))


def _replicated(name: str, group: Sequence[str]) -> str:
    options = {
        "eager-lock": "on",
        "read-hash-mode": 1,
        "afr-pending-xattr": ",".join(group),
        "data-self-heal": "off",
        "metadata-self-heal": "off",
        "entry-self-heal": "off",
    }
    return _volume(name, "cluster/replicate", options, group)
