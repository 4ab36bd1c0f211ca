"""The classes that colours tell apart: sizes and orders of requests, compute nodes, and servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ioncast_base.visible_text import visible
from summario.lustre_components import LustreComponents
from summario.lustre_servers import bytes_of_requests
from summario.phases.streams import changes
from summario.reading.operations import UNKNOWN_OFFSET, Operations

Colouring = Literal["operation", "size", "order", "host", "server"]
COLOURINGS: tuple[Colouring, ...] = ("operation", "size", "order", "host", "server")
OTHERS = "others"
UNKNOWN_OST, SEVERAL_OSTS = -1, -2

_SIZES = {
    "less than 4 KiB": 4 << 10,
    "4 to 64 KiB": 64 << 10,
    "64 KiB to 1 MiB": 1 << 20,
    "1 to 4 MiB": 4 << 20,
}
_LARGEST = "4 MiB and more"
_ORDERS = ("the first in its file", "consecutive", "forwards with a gap", "backwards")
_UNKNOWN = "not known"
# The style sheet has eight colours.
_MOST = 7


@dataclass(frozen=True)
class Classes:
    """The class of each request, an index into `names`."""

    names: tuple[str, ...]
    of_request: NDArray[np.int64]

    def __iter__(self) -> Iterator[tuple[str, NDArray[np.bool_]]]:
        """Yield the classes that have requests, with these as a mask."""
        for index, name in enumerate(self.names):
            mask = self.of_request == index
            if mask.any():
                yield name, mask


def classes_of(
    operations: Operations, colouring: Colouring, lustre: LustreComponents | None = None
) -> Classes:
    """Divide requests into classes; "operation" makes one class of all.

    Parameters
    ----------
    lustre : LustreComponents, optional
        The layouts of files, for "server"; without one, servers are not known.
    """
    if colouring == "size":
        edges = np.array(list(_SIZES.values()))
        return Classes((*_SIZES, _LARGEST), np.searchsorted(edges, operations.length, "right"))
    if colouring == "order":
        return Classes((*_ORDERS, _UNKNOWN), _orders(operations))
    if colouring == "host":
        names = [visible(name) or _UNKNOWN for name in operations.hosts]
        return _largest(names, operations.host.astype(np.int64), operations.length)
    if colouring == "server":
        return _servers(operations, lustre)
    return Classes(("",), np.zeros(len(operations), np.int64))


def _orders(operations: Operations) -> NDArray[np.int64]:
    """Compare each request with the one before it of the same process, file, api and operation."""
    keys = operations.rank, operations.file_id, operations.operation, operations.api
    order = np.lexsort((operations.start_seconds, *keys))
    offset, length = operations.offset[order], operations.length[order]
    found = np.zeros(len(order), np.int64)
    gap = offset[1:] - offset[:-1] - length[:-1]
    found[1:] = np.where(gap == 0, 1, np.where(gap > 0, 2, 3))
    found[changes(*(key[order] for key in keys))] = 0
    found[offset == UNKNOWN_OFFSET] = len(_ORDERS)
    classes = np.empty_like(found)
    classes[order] = found
    return classes


def servers_of(operations: Operations, lustre: LustreComponents) -> NDArray[np.int64]:
    """Find the server (OST) of each request; `UNKNOWN_OST` or `SEVERAL_OSTS` without one."""
    ost = np.full(len(operations), UNKNOWN_OST)
    osts = np.zeros(len(operations), np.int64)
    for found in bytes_of_requests(lustre, operations):
        osts += np.bincount(found.segment, minlength=len(osts))
        ost[found.segment] = found.ost
    return np.where(osts > 1, SEVERAL_OSTS, ost)


def server_name(ost: int) -> str:
    """Name a server of `servers_of`."""
    return {UNKNOWN_OST: _UNKNOWN, SEVERAL_OSTS: "several OSTs"}.get(ost, f"OST {ost}")


def _servers(operations: Operations, lustre: LustreComponents | None) -> Classes:
    """Divide requests by their servers."""
    if lustre is None:
        return Classes((_UNKNOWN,), np.zeros(len(operations), np.int64))
    numbers, place = np.unique(servers_of(operations, lustre), return_inverse=True)
    return _largest([server_name(ost) for ost in numbers.tolist()], place, operations.length)


def _largest(names: list[str], of_request: NDArray[np.int64], length: NDArray[np.int64]) -> Classes:
    """Keep the classes of most bytes; all others become one."""
    moved = np.bincount(of_request, length, minlength=len(names))
    kept = np.sort(np.argsort(-moved, kind="stable")[:_MOST])
    place = np.full(max(len(names), 1), len(kept))
    place[kept] = np.arange(len(kept))
    return Classes((*(names[each] for each in kept), OTHERS), place[of_request])
