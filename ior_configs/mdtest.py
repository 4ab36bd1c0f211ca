"""Configurations of mdtest: small files, each created, read and removed by one process."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ioncast_base.errors import InputError
from ioncast_base.limits import LARGEST_BYTES, LARGEST_COUNT
from ioncast_base.sizes import format_size


@dataclass(frozen=True)
class MdtestConfig:
    """A run of mdtest on files, without its folder.

    Attributes
    ----------
    files_per_process : int
        Number of files of each process (``-n``).
    bytes_per_file : int
        Bytes that are written into each file and read from it (``-w``, ``-e``); 0 for empty files.
    own_directory : bool
        Whether each process has a directory of its own (``-u``).
    tasks, nodes : int
        Number of processes, and of compute nodes.

    Raises
    ------
    InputError
        If a number is out of range.

    Examples
    --------
    >>> MdtestConfig(200, 8192, True, tasks=16, nodes=8).command_line(launcher=True)
    'mpiexec -n 16 mdtest -F -n 200 -w 8k -e 8k -u'
    """

    files_per_process: int
    bytes_per_file: int
    own_directory: bool
    tasks: int
    nodes: int

    def __post_init__(self) -> None:
        for name in ("files_per_process", "tasks", "nodes"):
            if not 1 <= getattr(self, name) <= LARGEST_COUNT:
                raise InputError(f"{name} is {getattr(self, name)}, not from 1 to {LARGEST_COUNT}")
        if self.nodes > self.tasks:
            raise InputError(f"{self.nodes} nodes are more than {self.tasks} processes")
        if self.bytes_per_file < 0 or self.bytes_per_process * self.tasks > LARGEST_BYTES:
            raise InputError(f"all files together would have more than {LARGEST_BYTES} bytes")

    @property
    def bytes_per_process(self) -> int:
        """Bytes in the files of a process."""
        return self.files_per_process * self.bytes_per_file

    def to_args(self) -> list[str]:
        """The arguments of mdtest that describe the files; it works on files only (``-F``)."""
        args = ["-F", "-n", str(self.files_per_process)]
        if self.bytes_per_file:
            size = format_size(self.bytes_per_file)
            args += ["-w", size, "-e", size]
        return [*args, *(["-u"] if self.own_directory else [])]

    def command_line(self, launcher: bool = False) -> str:
        """Write the run as a line for people, as `IorConfig.command_line` does."""
        prefix = ["mpiexec", "-n", str(self.tasks)] if launcher else []
        return shlex.join([*prefix, "mdtest", *self.to_args()])
