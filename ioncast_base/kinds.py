"""The kind of I/O: operation, api, spatiality and file access together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

Operation = Literal["read", "write"]
Api = Literal["POSIX", "MPIIO", "STDIO"]
Spatiality = Literal["contiguous", "sequential", "random", "collective", "unknown"]
FileAccess = Literal["shared", "unique"]
Order = Literal["contiguous", "sequential", "random"]
Fsync = Literal["none", "end", "each"]

OPERATIONS: tuple[Operation, ...] = get_args(Operation)
APIS: tuple[Api, ...] = get_args(Api)
SPATIALITIES: tuple[Spatiality, ...] = get_args(Spatiality)
FILE_ACCESSES: tuple[FileAccess, ...] = get_args(FileAccess)
ORDERS: tuple[Order, ...] = get_args(Order)
FSYNCS: tuple[Fsync, ...] = get_args(Fsync)

# A request of fewer bytes is small.
SMALL_REQUEST_BYTES = 1 << 20


class Kind(NamedTuple):
    """The kind of some I/O. Only I/O of the same kind is compared.

    Attributes
    ----------
    operation, api : str
        One of `OPERATIONS`, and of `APIS`; for a benchmark also another interface of IOR ("HDF5").
    spatiality : str
        One of `SPATIALITIES`: the order of requests; with MPI-IO, whether they were collective.
    file_access : str
        One of `FILE_ACCESSES`: one file for several processes, or a file for each.
    """

    operation: str
    api: str
    spatiality: str
    file_access: str

    def __str__(self) -> str:
        """The words of pages, messages and the database (`pattern` of decisions and outcomes)."""
        return " ".join(self)


def kind_of_record(phase: Mapping[str, Any]) -> Kind:
    """Read the kind of a phase from its record, as `ioncast phases --format json` writes it."""
    return Kind(phase["type"], phase["api"], phase["spatiality"], phase["files"])
