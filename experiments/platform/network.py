"""The nodes of a platform, and the lines for `ip` and `tc` that build its network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.platform.description import Description

SWITCH = "sw"
# Bytes of packets that may wait at a link. A shorter queue drops packets, and TCP then stays below
# the rate.
_QUEUE = "4mb"


@dataclass(frozen=True)
class Node:
    """A network namespace with one link to the switch.

    Attributes
    ----------
    name : str
        Name within the platform, such as cn0, io0, pf0 or adm.
    address : str
        IP address.
    rate : str or None
        Rate of its link, as tc writes it; None if the link is not shaped.
    """

    name: str
    address: str
    rate: str | None


def compute_node(description: Description, number: int) -> Node:
    """Describe a compute node."""
    return Node(f"cn{number}", f"10.71.1.{number + 1}", description.links.compute_nodes)


def io_node(description: Description, number: int) -> Node:
    """Describe an I/O node."""
    return Node(f"io{number}", f"10.71.2.{number + 1}", description.links.io_nodes)


def server(description: Description, number: int) -> Node:
    """Describe a storage server."""
    return Node(f"pf{number}", f"10.71.3.{number + 1}", description.links.storage)


# Its mount creates and removes files outside of measurements.
ADMINISTRATOR = Node("adm", "10.71.4.1", None)


def nodes(description: Description) -> list[Node]:
    """All nodes of a platform."""
    return [
        *(compute_node(description, number) for number in description.all_compute_nodes),
        *(io_node(description, number) for number in description.all_io_nodes),
        *(server(description, number) for number in description.all_servers),
        ADMINISTRATOR,
    ]


def namespace(platform: str, node: str) -> str:
    """Name of a node's network namespace."""
    return f"{platform}-{node}"


def namespaces(description: Description) -> list[str]:
    """Names of a platform's network namespaces: first the switch's, then those of all nodes."""
    names = [SWITCH, *(node.name for node in nodes(description))]
    return [namespace(description.name, name) for name in names]


@dataclass(frozen=True)
class Batch:
    """Lines for one call of `ip` or `tc`.

    Attributes
    ----------
    program : str
        ``ip`` or ``tc``.
    namespace : str or None
        Network namespace that the lines change; None for the host's.
    text : str
        The lines, for the standard input.
    """

    program: str
    namespace: str | None
    text: str

    @property
    def command(self) -> list[str]:
        """The command that reads the lines from its standard input."""
        place = ["-n", self.namespace] if self.namespace else []
        return [self.program, *place, "-batch", "-"]


def batches(description: Description) -> Iterator[Batch]:
    """Make the lines that build the network.

    A token bucket shapes every link at both of its ends.

    Parameters
    ----------
    description : Description
        The platform.

    Yields
    ------
    Batch
        The calls in the order in which they must run.
    """
    platform, all_nodes = description.name, nodes(description)
    switch = namespace(platform, SWITCH)
    yield Batch("ip", None, _lines(f"netns add {name}" for name in namespaces(description)))
    yield Batch("ip", switch, _switch(platform, all_nodes))
    for node in all_nodes:
        yield Batch("ip", namespace(platform, node.name), _own_end(node))
    shaped = [node for node in all_nodes if node.rate]
    bucket = f"burst {description.links.burst} limit {_QUEUE}"
    for node in shaped:
        line = f"qdisc add dev e0 root tbf rate {node.rate} {bucket}"
        yield Batch("tc", namespace(platform, node.name), _lines([line]))
    ports = (f"qdisc add dev p-{node.name} root tbf rate {node.rate} {bucket}" for node in shaped)
    yield Batch("tc", switch, _lines(ports))


def at_rate(description: Description, node: Node, rate: str) -> Iterator[Batch]:
    """Make the lines that shape the link of a node otherwise, at both of its ends.

    Parameters
    ----------
    rate : str
        The new rate, as tc writes it.
    """
    platform = description.name
    shaped = f"root tbf rate {rate} burst {description.links.burst} limit {_QUEUE}"
    own, port = (f"qdisc replace dev {device} {shaped}" for device in ("e0", f"p-{node.name}"))
    yield Batch("tc", namespace(platform, node.name), _lines([own]))
    yield Batch("tc", namespace(platform, SWITCH), _lines([port]))


def _switch(platform: str, all_nodes: list[Node]) -> str:
    lines = ["link add br0 type bridge", "link set br0 up", "link set lo up"]
    for node in all_nodes:
        peer = f"peer name e0 netns {namespace(platform, node.name)}"
        lines.append(f"link add p-{node.name} type veth {peer}")
        lines.append(f"link set p-{node.name} master br0 up")
    return _lines(lines)


def _own_end(node: Node) -> str:
    return _lines([f"addr add {node.address}/16 dev e0", "link set lo up", "link set e0 up"])


def _lines(lines: Iterator[str] | list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
