"""What each daemon of a platform does, as GlusterFS volume files.

A volume file lists translators, each on top of others; the last one is the top. The storage
servers export a directory each, I/O nodes are clients of them that export what they see, and
compute nodes are clients of an I/O node, or of the storage servers for direct access.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.platform.description import Description
from experiments.platform.network import Node, io_node, server

STORAGE_PORT = 24100
FORWARDING_PORT = 24200
# With the default of 2, an I/O node waits for itself when many clients mount at once.
_EVENT_THREADS = 24
_CACHE_TIMEOUT_S = 60
# GlusterFS 10 forgets to give a lock back now and then (its issue 4425): who waits for that gets
# an error, and does not wait for the half hour that is the default.
ANSWER_TIMEOUT_S = 60
_EXPORTED = "export"


@dataclass(frozen=True)
class _Graph:
    """Translators, the name of the top one, and their text from the bottom up."""

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
        Of the server, from 0.
    directory : Path
        What it exports.

    Returns
    -------
    str
        Text of the file.
    """
    disk = _Graph("disk", _volume("disk", "storage/posix", {"directory": directory}))
    locks = disk.under("locks", "features/locks")
    return _exported(locks, description.storage.threads, server(description, number), STORAGE_PORT)


def forwarding_volume(description: Description, number: int) -> str:
    """Write the volume file of an I/O node: a client of the storage that is a server itself."""
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
    """Write the volume file of who makes and removes files: direct access, never from a cache."""
    return _distributed(description).text


def client_volume(description: Description, number: int) -> str:
    """Write the volume file of a compute node whose requests an I/O node forwards."""
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
    """The file system as its clients see it, with their cache."""
    graph, size_bytes = _distributed(description), description.storage.cache
    options = {"cache-size": size_bytes, "cache-timeout": _CACHE_TIMEOUT_S}
    return graph.under("cache", "performance/io-cache", options) if size_bytes else graph


def _distributed(description: Description) -> _Graph:
    """All servers as one file system: each file on one server or group of replicas."""
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
