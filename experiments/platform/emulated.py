"""A platform that is up: its paths, and the commands that run programs on its compute nodes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.platform.description import Description
from experiments.platform.folders import (
    folder_of,
    mount_of,
    mount_through,
    platform_file_of,
    scratch_of,
)
from ioncast_base.errors import InputError
from ioncast_base.wording import counted, in_words


@dataclass(frozen=True)
class Placement:
    """The compute nodes of a run's processes, and their I/O nodes.

    Attributes
    ----------
    tasks : int
        Number of processes.
    mounts : tuple of Path
        The file system as each compute node of the run sees it; process r runs on the node of
        mount r · len(mounts) // tasks.
    """

    tasks: int
    mounts: tuple[Path, ...]


@dataclass(frozen=True)
class Emulated:
    """A platform that is up.

    Attributes
    ----------
    description : Description
        Its nodes and links.
    first_node : int
        The compute node of the first process of a run, so that several programs can run side by
        side.
    """

    description: Description
    first_node: int = 0

    @property
    def name(self) -> str:
        """The platform's name."""
        return self.description.name

    @property
    def folder(self) -> Path:
        """Folder of its files."""
        return folder_of(self.name)

    @property
    def scratch(self) -> Path:
        """Mount point of the file system.

        A process on a compute node sees the mount of its node here. All others see a mount
        that is neither shaped nor cached, for the files that a measurement needs.
        """
        return scratch_of(self.name)

    @property
    def campaign_platform(self) -> Path:
        """Its platform file for `ioncast campaign`."""
        return platform_file_of(self.name)

    @property
    def yielding(self) -> Path:
        """The library made from yielding.c, for MPI programs; missing without a C compiler."""
        return self.folder / "yielding.so"

    def node_directory(self, io_nodes: int, node: int) -> Path:
        """Give the path at which this machine has the file system as a compute node sees it.

        Parameters
        ----------
        io_nodes : int
            Number of I/O nodes of the run; 0 is direct access.
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
        return mount_of(self.name, io_nodes, node)

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
            Number of I/O nodes of the run; 0 is direct access.
        tasks : int, optional
            Number of processes; by default all that the description provides for.
        nodes : int, optional
            Number of compute nodes; by default all from `first_node` on. Process r of P runs on
            node first_node + r · nodes // P.
        mpi : bool
            Whether mpiexec starts the processes. Otherwise IONCAST_RANK and IONCAST_TASKS tell
            each process its number and the number of all.

        Returns
        -------
        list of str
            The command. It ends when all processes have ended or one has failed; its exit code
            is then the code of that one.

        Raises
        ------
        InputError
            If the platform has no such numbers of nodes.
        """
        placement = self.place(io_nodes=io_nodes, tasks=tasks, nodes=nodes)
        numbers = {
            "io-nodes": io_nodes,
            "tasks": placement.tasks,
            "nodes": len(placement.mounts),
            "first-node": self.first_node,
        }
        options = [f"--{key}={number}" for key, number in numbers.items()]
        return [*exec_command(self.name), *options, *(["--mpi"] if mpi else []), "--", *program]

    def place(self, *, io_nodes: int, tasks: int | None, nodes: int | None) -> Placement:
        """Place the processes of a run; parameters and errors are those of `rank_command`."""
        self._check_io_nodes(io_nodes)
        most = self.description.compute_nodes.count - self.first_node
        if most < 1:
            raise InputError(f"the platform {self.name} has no compute node {self.first_node}")
        nodes = most if nodes is None else nodes
        if not 1 <= nodes <= most:
            raise InputError(
                f"it cannot use {counted(nodes, 'compute node')}",
                where=f"platform {self.name}",
                remedy=f"choose 1 to {most}",
            )
        tasks = self.description.tasks if tasks is None else tasks
        numbers = range(self.first_node, self.first_node + nodes)
        return Placement(tasks, tuple(mount_of(self.name, io_nodes, node) for node in numbers))

    def place_through(
        self, compute_nodes: Sequence[str], io_nodes: Sequence[str], *, tasks: int | None
    ) -> Placement:
        """Place the processes of a run on named compute nodes, with named I/O nodes.

        Parameters
        ----------
        compute_nodes, io_nodes : sequence of str
            Names such as cn0 and io3. Compute node c of C in this list uses I/O node c · N // C
            of the other list, which has N.
        tasks : int, optional
            Number of processes; by default the description's for each of these compute nodes.

        Raises
        ------
        InputError
            If the platform lacks a node, or has no mount for each pair of nodes.
        """
        where = f"platform {self.name}"
        if not self.description.placement.any:
            remedy = "add a table [placement] with `any = true` to its description"
            raise InputError("a run cannot name its I/O nodes", where=where, remedy=remedy)
        on = _numbers(compute_nodes, "cn", self.description.compute_nodes.count, where)
        through = _numbers(io_nodes, "io", len(self.description.all_io_nodes), where)
        mounts = tuple(
            mount_through(self.name, through[place * len(through) // len(on)], node)
            for place, node in enumerate(on)
        )
        per_node = self.description.compute_nodes.processes
        return Placement(len(on) * per_node if tasks is None else tasks, mounts)

    def _check_io_nodes(self, io_nodes: int) -> None:
        if io_nodes not in self.description.io_nodes:
            known = ", ".join(map(str, self.description.io_nodes))
            raise InputError(
                f"it has no runs with {in_words(io_nodes)}",
                where=f"platform {self.name}",
                remedy=f"choose one of {known}",
            )


def _numbers(names: Sequence[str], kind: str, count: int, where: str) -> list[int]:
    """Read the numbers in names of nodes, such as cn0."""
    known = {f"{kind}{number}": number for number in range(count)}
    if unknown := [name for name in names if name not in known]:
        remedy = f"choose {kind}0 to {kind}{count - 1}" if count else ""
        raise InputError(f"it has no node {unknown[0]!r}", where=where, remedy=remedy)
    if len(set(names)) < len(names):
        raise InputError(f"{','.join(names)} has a node twice", where=where)
    return [known[name] for name in names]


def exec_command(name: str) -> list[str]:
    """Command line of `ioncast platform exec` on a platform, without its other options."""
    return [sys.executable, "-m", "ioncast", "platform", "exec", f"--name={name}"]
