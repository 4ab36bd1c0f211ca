"""What works of a platform."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.platform import remains
from experiments.platform.daemons import Daemon, answering, clients, forwarders, servers
from experiments.platform.description import Description
from experiments.platform.network import nodes


@dataclass(frozen=True)
class NodeState:
    """What works of a node.

    Attributes
    ----------
    node : str
        Its name within the platform.
    rate : str or None
        Of its link, as tc writes it; None if it is not shaped.
    daemons, daemons_alive : int
        That should run there, and that do.
    mounts, mounts_answering : int
        That should be there, and that answered.
    """

    node: str
    rate: str | None
    daemons: int
    daemons_alive: int
    mounts: int
    mounts_answering: int

    @property
    def works(self) -> bool:
        """Whether nothing is missing."""
        return self.daemons == self.daemons_alive and self.mounts == self.mounts_answering


def states(description: Description) -> list[NodeState]:
    """Look at each node of a platform.

    Parameters
    ----------
    description : Description
        What should be there.

    Returns
    -------
    list of NodeState
        Compute nodes, I/O nodes, storage servers, the administrator's.
    """
    mounting = clients(description)
    alive = set(remains.marks(description.name).values())
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
    names: defaultdict[str, set[str]] = defaultdict(set)
    for daemon in daemons:
        names[daemon.node.name].add(daemon.name)
    return names
