"""The state of each node of a platform, and everything that is left of one that is not up."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from experiments.platform.daemons import Daemon, answering, clients, forwarders, servers
from experiments.platform.description import Description
from experiments.platform.emulator import find
from experiments.platform.network import nodes
from experiments.platform.remains import Remains, marks, remains
from ioncast_base.errors import UnknownNameError
from ioncast_base.text_tables import text_table


@dataclass(frozen=True)
class NodeState:
    """The state of a node.

    Attributes
    ----------
    node : str
        Name of the node within the platform.
    rate : str or None
        Rate of its link, as tc writes it; None if the link is not shaped.
    daemons, daemons_alive : int
        Number of daemons that should run on the node, and of those that do.
    mounts, mounts_answering : int
        Number of mounts that the node should have, and of those that answered.
    """

    node: str
    rate: str | None
    daemons: int
    daemons_alive: int
    mounts: int
    mounts_answering: int

    @property
    def works(self) -> bool:
        """Whether all daemons run and all mounts answer."""
        return self.daemons == self.daemons_alive and self.mounts == self.mounts_answering


@dataclass(frozen=True)
class Status:
    """The state of a platform.

    Attributes
    ----------
    name : str
        The platform's name.
    nodes : tuple of NodeState
        Compute nodes, I/O nodes, storage servers, the administrator's node; empty if the
        platform is not up.
    remains : Remains
        Everything of the platform that exists on this machine.
    """

    name: str
    nodes: tuple[NodeState, ...]
    remains: Remains

    @property
    def works(self) -> bool:
        """Whether the platform is up and every node works."""
        return bool(self.nodes) and all(node.works for node in self.nodes)

    def to_record(self) -> dict[str, Any]:
        """Make the object that `--format json` prints."""
        found = self.remains
        folder = str(found.folder) if found.folder else None
        return {
            "name": self.name,
            "nodes": [asdict(node) for node in self.nodes],
            "found": {"folder": folder, **self._counts()},
        }

    def to_text(self) -> str:
        """Make the table of nodes, or one line for a platform that is not up."""
        counts = ", ".join(f"{count} {what}" for what, count in self._counts().items())
        if not self.nodes:
            return f"{self.name} is not up; left of it: {counts}"
        rows = [
            {
                "node": node.node,
                "link": node.rate or "not shaped",
                "daemons alive": f"{node.daemons_alive} of {node.daemons}",
                "mounts answering": f"{node.mounts_answering} of {node.mounts}",
            }
            for node in self.nodes
        ]
        return f"{text_table(rows)}\n{self.name} is up: {counts}"

    def _counts(self) -> dict[str, int]:
        return {
            "namespaces": len(self.remains.namespaces),
            "processes": len(self.remains.processes),
            "mounts": len(self.remains.mounts),
        }


def status_of(name: str) -> Status:
    """Look at a platform and everything that exists of it.

    Raises
    ------
    IoncastError
        If this process is not root's.
    """
    try:
        found = states(find(name).description)
    except UnknownNameError:
        found = []
    return Status(name, tuple(found), remains(name))


def states(description: Description) -> list[NodeState]:
    """Look at each node of a platform.

    Parameters
    ----------
    description : Description
        The platform.

    Returns
    -------
    list of NodeState
        Compute nodes, I/O nodes, storage servers, the administrator's node.
    """
    mounting = clients(description)
    alive = set(marks(description.name).values())
    answers = answering(description.name, mounting)
    daemons = _by_node([*servers(description), *forwarders(description), *mounting])
    mounts = _by_node(mounting)
    return [
        NodeState(
            node=node.name,
            rate=node.rate,
            daemons=len(daemons[node.name]),
            daemons_alive=len(daemons[node.name] & alive),
            mounts=len(mounts[node.name]),
            mounts_answering=len(mounts[node.name] & answers),
        )
        for node in nodes(description)
    ]


def _by_node(daemons: Iterable[Daemon]) -> Mapping[str, set[str]]:
    """Names of daemons by the name of their node."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for daemon in daemons:
        names[daemon.node.name].add(daemon.name)
    return names
