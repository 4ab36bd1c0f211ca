"""Classes of requests: by size, by order in the file, by compute node, by server."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ioncast.timelines.colours import Colouring, classes_of
from ioncast.timelines.requests import TIMELINE_MODULES
from summario.lustre_components import lustre_components_of
from summario.reading.log import read_log
from summario.reading.operations import UNKNOWN_OFFSET, Operations, operations_of
from tests.ioncast.timelines.test_spans import operations


def names_of(table: Operations, colouring: Colouring) -> list[str]:
    classes = classes_of(table, colouring)
    return [classes.names[place] for place in classes.of_request.tolist()]


def with_offsets(*requests: tuple[int, float, int, int]) -> Operations:
    """Requests of a rank, with start, offset and length."""
    rank, start, offset, length = zip(*requests, strict=True)
    table = operations(
        [(r, s, 0.1, moved) for r, s, moved in zip(rank, start, length, strict=True)]
    )
    return replace(table, offset=np.array(offset))


def test_the_lower_edge_belongs_to_a_class_of_sizes() -> None:
    table = with_offsets(
        *((0, n, 0, size) for n, size in enumerate((0, 4095, 4096, 65536, 1 << 20, 4 << 20)))
    )
    assert names_of(table, "size") == [
        *("less than 4 KiB", "less than 4 KiB", "4 to 64 KiB"),
        *("64 KiB to 1 MiB", "1 to 4 MiB", "4 MiB and more"),
    ]


def test_orders_compare_requests_of_one_process_in_time() -> None:
    table = with_offsets(
        (0, 3.0, 40, 10),  # Behind the gap from 20 to 40.
        (0, 1.0, 0, 10),
        (1, 0.0, 500, 10),
        (0, 2.0, 10, 10),
        (0, 4.0, 0, 10),
        (1, 1.0, UNKNOWN_OFFSET, 10),
    )
    assert names_of(table, "order") == [
        *("forwards with a gap", "the first in its file", "the first in its file"),
        *("consecutive", "backwards", "not known"),
    ]


def test_only_the_nodes_of_most_bytes_have_colours_of_their_own() -> None:
    table = with_offsets(*((rank, 0.0, 0, 100 - rank) for rank in range(9)))
    table = replace(table, host=np.arange(9, dtype=np.int32), hosts=tuple("abcdefghi"))
    assert names_of(table, "host") == [*"abcdefg", "others", "others"]


def test_servers_are_those_of_the_layout(shared_data: Path) -> None:
    path = shared_data / "darshan-logs/ior_hdf5_lustre_dxt/ior_hdf5_example.darshan"
    log = read_log(path, modules=(*TIMELINE_MODULES, "LUSTRE"))
    table, components = operations_of(log), lustre_components_of(log)
    assert set(components.stripe_count.tolist()) == {1}
    classes = classes_of(table, "server", components)
    of_file = dict(zip(components.file_id.tolist(), components.ost_ids.tolist(), strict=True))
    known = [
        (classes.names[place], f"OST {of_file[file_id]}")
        for place, file_id, moved in zip(
            classes.of_request.tolist(), table.file_id.tolist(), table.length.tolist(), strict=True
        )
        if file_id in of_file and moved
    ]
    assert known
    assert all(found == expected for found, expected in known)
