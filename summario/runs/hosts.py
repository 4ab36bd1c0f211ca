"""The compute nodes of a job, as far as its log names them.

APMPI, AutoPerf's MPI module, has every process' host, DXT those of processes with traced I/O.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from ioncast_base.wording import counted
from summario.reading.apmpi import MODULE as APMPI
from summario.reading.apmpi import VERSION, hosts_by_rank
from summario.reading.dxt import DXT_MODULES, read_dxt_module
from summario.reading.log import DarshanLog

# The modules that `compute_nodes` looks at. `read_log` reads APMPI only where it is asked to.
HOST_MODULES = (APMPI, *DXT_MODULES.values())


@final
@dataclass(frozen=True)
class NodeCount:
    """The number of compute nodes of a job: a lower bound if its logs do not name `are_all`."""

    number: int
    are_all: bool = True
    source: Literal["given", "log"] = "log"

    @property
    def in_words(self) -> str | None:
        """The number and its source, if it is from the log."""
        if self.source == "given":
            return None
        return f"compute nodes: {self.number}, from the host names in the log"


@dataclass(frozen=True)
class ComputeNodes:
    """The compute nodes that a log names.

    If `are_all` is false, not every process' node is known, so all numbers are lower bounds.
    """

    processes: Mapping[str, int]
    are_all: bool

    @property
    def nodes(self) -> int:
        """The number of compute nodes."""
        return len(self.processes)

    @property
    def processes_per_node(self) -> int:
        """The number of processes on the compute node that has most of them."""
        return max(self.processes.values())


def compute_nodes(log: DarshanLog) -> ComputeNodes | None:
    """Tell on which compute nodes a job ran.

    APMPI and DXT may write the name of the same compute node differently (MPI's processor name,
    the kernel's host name). So only one of them counts: the one that names the compute nodes of
    more processes, APMPI if both name as many. A module that gives two names for one process does
    not count.
    """
    if not log.traces.keys() & set(HOST_MODULES):
        return None
    host_of_rank = max((_hosts_by_apmpi(log), _hosts_by_dxt(log)), key=len)
    if not host_of_rank:
        return None
    return ComputeNodes(
        processes=dict(Counter(host_of_rank.values())),
        are_all=len(host_of_rank) == log.job.nprocs,
    )


def count_nodes(logs: Iterable[DarshanLog]) -> NodeCount | None:
    """Count the compute nodes that the logs of one run name; None if they name none."""
    found = [compute_nodes(log) for log in logs]
    hosts = {host for nodes in found if nodes is not None for host in nodes.processes}
    are_all = all(nodes is not None and nodes.are_all for nodes in found)
    return NodeCount(len(hosts), are_all) if hosts else None


def job_nodes(given: int | None, named: NodeCount | None) -> NodeCount | None:
    """Choose a job's number of compute nodes: the given one, or all named ones, else None.

    Examples
    --------
    >>> print(job_nodes(None, NodeCount(1, are_all=False)))
    None
    """
    if given is not None:
        return NodeCount(given, source="given")
    return named if named is not None and named.are_all else None


def node_warnings(given: int | None, named: NodeCount | None) -> tuple[str, ...]:
    """Warn if the log names other compute nodes, or not those of all processes."""
    if named is None:
        return ()
    if given is None:
        partly = (
            "the log does not name the compute node of every process: the job had at least"
            f" {named.number}; give the number"
        )
        return () if named.are_all else (partly,)
    if given == named.number or (given > named.number and not named.are_all):
        return ()
    are_given = f"{counted(given, 'compute node')} {'is' if given == 1 else 'are'} given"
    how_many = named.number if named.are_all else f"at least {named.number}"
    return (f"{are_given}, but the log names {how_many}; the given number is used",)


def _hosts_by_dxt(log: DarshanLog) -> dict[int, str]:
    hosts: dict[str, int] = {}
    traced = [api for api, module in DXT_MODULES.items() if module in log.traces]
    modules = [read_dxt_module(log, api, hosts) for api in traced]
    names = list(hosts)
    named: set[tuple[int, int]] = set()
    for records in [module.records for module in modules]:
        # A process writes all its records one after the other.
        new = np.ones(len(records.rank), bool)
        new[1:] = (np.diff(records.rank) != 0) | (np.diff(records.host) != 0)
        named |= set(zip(records.rank[new].tolist(), records.host[new].tolist(), strict=True))
    return _host_of_rank([(rank, names[host]) for rank, host in named])


def _hosts_by_apmpi(log: DarshanLog) -> dict[int, str]:
    if log.header.module_versions.get(APMPI) != VERSION:
        return {}
    found = hosts_by_rank(log.traces.get(APMPI, b""), log.header.byte_order)
    return _host_of_rank([(rank, host) for rank, host in found if 0 <= rank < log.job.nprocs])


def _host_of_rank(pairs: list[tuple[int, str]]) -> dict[int, str]:
    """Map ranks to hosts; nothing if a rank has two hosts."""
    named = {(rank, host) for rank, host in pairs if host}
    host_of_rank = dict(sorted(named))
    return host_of_rank if len(host_of_rank) == len(named) else {}
