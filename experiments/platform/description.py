"""The description of an emulated platform: nodes, links, and the I/O node of each compute node."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, PlainSerializer, Strict, model_validator

from ioncast_base.errors import InputError
from ioncast_base.quantities import Bytes
from ioncast_base.sizes import format_size, parse_size
from ioncast_base.toml_files import TomlTable, distinct, read_by, read_toml, refusing

BUNDLED = Path(__file__).with_name("testbed.toml")

# A campaign leaves at least this much of the storage free: it is small, and nobody else uses it.
FREE_SPACE_LIMIT_BYTES = 64 << 20

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,31}")
_RATE = re.compile(r"[1-9][0-9]{0,8}[kmg]bit")
_BURST = re.compile(r"[1-9][0-9]{0,8}[km]b")


def is_name(text: str) -> bool:
    """Whether a text can be a platform's name: the names of its namespaces begin with it."""
    return bool(_NAME.fullmatch(text))


def check_name(text: str) -> str:
    """Check that a text can be a platform's name."""
    if not is_name(text):
        raise InputError(
            f"{text!r} cannot be the name of a platform",
            remedy="use at most 32 letters, digits and hyphens, the first one a letter",
        )
    return text


def _rate(text: str) -> str:
    if not _RATE.fullmatch(text):
        raise InputError(f"{text!r} is not the rate of a link", remedy='write it like "100mbit"')
    return text


def _burst(text: str) -> str:
    if not _BURST.fullmatch(text):
        raise InputError(f"{text!r} is not a burst", remedy='write it like "256kb"')
    return text


# The addresses of one kind of node differ only in their last byte.
_Nodes = Annotated[int, Field(gt=0, le=250)]
_Threads = Annotated[int, Field(gt=0, le=64)]
_Size = Annotated[
    Bytes,
    read_by(parse_size),
    PlainSerializer(format_size),
]
_Rate = Annotated[str, AfterValidator(refusing(_rate))]
_IoNodes = Annotated[int, Field(ge=0, le=250)]


class ComputeNodes(TomlTable):
    """The compute nodes.

    Attributes
    ----------
    count : int
        Number of compute nodes.
    processes : int
        Processes on each compute node, unless a run says another number.
    """

    count: _Nodes = Field(description="number of compute nodes", examples=[8])
    processes: Annotated[int, Field(gt=0, le=1024)] = Field(
        description="processes on each compute node", examples=[2]
    )


class Forwarding(TomlTable):
    """The daemons on the I/O nodes.

    Attributes
    ----------
    threads : int
        Threads with which each daemon forwards requests.
    """

    threads: _Threads = 16


class Storage(TomlTable):
    """The parallel file system behind the I/O nodes.

    Attributes
    ----------
    servers : int
        Number of servers; a file is on one server, or on one group of replicas.
    replicas : int
        Servers that hold the same files. With more than one, writers of a shared file lock
        each other out, as in file systems with distributed locks.
    threads : int
        Threads of each server.
    cache : int
        Bytes that each client of the file system may cache: an I/O node, or a compute node
        with direct access. 0 turns the cache off.
    memory : int
        Bytes that all servers together may hold.
    """

    servers: _Nodes = Field(description="number of storage servers", examples=[4])
    replicas: _Nodes = 1
    threads: _Threads = 4
    cache: _Size = 0
    # Not 0: to the kernel this would mean memory without a limit.
    memory: Annotated[_Size, Field(gt=0)] = Field(
        description="bytes that all servers together may hold", examples=["4g"]
    )

    @model_validator(mode="after")
    def _replicas_fit(self) -> Storage:
        refusing(_check_replicas)(self)
        return self


def _check_replicas(storage: Storage) -> None:
    if storage.servers % storage.replicas:
        raise InputError(
            f"{storage.servers} servers cannot be in groups of {storage.replicas} replicas"
        )


class Links(TomlTable):
    """The rates of the nodes' links, in each direction, as tc writes them.

    Attributes
    ----------
    compute_nodes, io_nodes, storage : str
        Rate of the link of each node of that kind.
    burst : str
        Bytes that may pass at once at full speed.
    """

    compute_nodes: _Rate = Field(
        description="the rate of a compute node's link", examples=["100mbit"]
    )
    io_nodes: _Rate = Field(description="the rate of an I/O node's link", examples=["480mbit"])
    storage: _Rate = Field(description="the rate of a storage server's link", examples=["400mbit"])
    burst: Annotated[str, AfterValidator(refusing(_burst))] = "256kb"


class NamedIoNodes(TomlTable):
    """Whether a run can name its I/O nodes.

    Attributes
    ----------
    any : bool
        Whether each compute node has a mount for each I/O node.
    """

    any: bool = False


class Description(TomlTable):
    """An emulated platform.

    Attributes
    ----------
    name : str
        Name of the platform; the names of its network namespaces begin with it.
    io_nodes : tuple of int
        The numbers of I/O nodes that a run can get, each once; 0 is direct access.
    compute_nodes : ComputeNodes
        The compute nodes.
    forwarding : Forwarding
        The daemons on the I/O nodes.
    storage : Storage
        The parallel file system.
    links : Links
        The rates of the network.
    mapping : dict of str to tuple of int
        The I/O node of each compute node, by number of I/O nodes. For a number that is missing,
        neighbours share an I/O node.
    placement : NamedIoNodes
        Whether a run can name its I/O nodes.
    """

    name: Annotated[str, AfterValidator(refusing(check_name))] = Field(
        description="name of the platform", examples=["testbed"]
    )
    io_nodes: Annotated[
        tuple[_IoNodes, ...],
        Strict(False),
        Field(min_length=1),
        AfterValidator(refusing(distinct)),
    ] = Field(description="the numbers of I/O nodes that a run can get", examples=[[0, 1, 2, 4, 8]])
    compute_nodes: ComputeNodes
    forwarding: Forwarding = Forwarding()
    storage: Storage
    links: Links
    mapping: dict[str, Annotated[tuple[int, ...], Strict(False)]] = Field(default_factory=dict)
    placement: NamedIoNodes = NamedIoNodes()

    @model_validator(mode="after")
    def _mapping_fits(self) -> Description:
        for io_nodes, chosen in self.mapping.items():
            refusing(lambda given: _check_mapping(self, *given))((io_nodes, chosen))
        return self

    def io_node(self, io_nodes: int, compute_node: int) -> int:
        """Find the I/O node that forwards for a compute node.

        Parameters
        ----------
        io_nodes : int
            Number of I/O nodes of the run, at least 1.
        compute_node : int
            Number of the compute node, from 0.

        Returns
        -------
        int
            Number of the I/O node, from 0.
        """
        blocks = [node * io_nodes // self.compute_nodes.count for node in self.all_compute_nodes]
        return self.mapping.get(str(io_nodes), blocks)[compute_node]

    @property
    def tasks(self) -> int:
        """Number of processes of a run on all compute nodes."""
        return self.compute_nodes.count * self.compute_nodes.processes

    def holds(self, n_bytes: int) -> bool:
        """Whether the storage can hold files of so many bytes and keep the limit of free space."""
        return n_bytes * self.storage.replicas + FREE_SPACE_LIMIT_BYTES <= self.storage.memory

    @property
    def all_compute_nodes(self) -> range:
        """Numbers of the compute nodes."""
        return range(self.compute_nodes.count)

    @property
    def all_io_nodes(self) -> range:
        """Numbers of the I/O nodes."""
        return range(max(self.io_nodes))

    @property
    def all_servers(self) -> range:
        """Numbers of the storage servers."""
        return range(self.storage.servers)


def _check_mapping(description: Description, io_nodes: str, chosen: tuple[int, ...]) -> None:
    """Check that a mapping gives every compute node an I/O node."""
    where = f"key `mapping.{io_nodes}`"
    if io_nodes not in {str(number) for number in description.io_nodes if number}:
        raise InputError(f"{where} must be for one of the numbers in `io_nodes` above 0")
    if len(chosen) != description.compute_nodes.count:
        raise InputError(
            f"{where} lists {len(chosen)} I/O nodes for"
            f" {description.compute_nodes.count} compute nodes"
        )
    if not all(0 <= node < int(io_nodes) for node in chosen):
        raise InputError(f"{where} must list numbers from 0 to {int(io_nodes) - 1}")


def read_description(path: str | Path = BUNDLED) -> Description:
    """Read the description of a platform.

    Parameters
    ----------
    path : str or Path
        A TOML file; experiments/platform/README.md explains its keys. The default is the
        platform on which experiments/data/testbed was measured.

    Returns
    -------
    Description
        The description.

    Raises
    ------
    InputError
        Naming the line of the first problem.
    """
    return read_toml(Path(path), Description)
