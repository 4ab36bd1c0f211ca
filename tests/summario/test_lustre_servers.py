"""Servers of byte ranges, compared with the rule applied to each single byte."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import record_id
from summario.lustre_components import LustreComponents, lustre_components_of
from summario.lustre_servers import bytes_of_servers
from summario.reading.log import read_log
from summario.reading.operations import operations_of
from tests.support.log_bytes import Component, lustre_bytes_2, write_modules

MIB = 1 << 20
NPROCS = 4
Segment = tuple[str, int, int]
"""Path, offset and length."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lustre")


def layouts(folder: Path, *records: tuple[str, int, Sequence[Component]]) -> LustreComponents:
    data = b"".join(lustre_bytes_2(*record) for record in records)
    path = write_modules(folder / "a.darshan", {"LUSTRE": (2, data)}, nprocs=NPROCS)
    return lustre_components_of(read_log(path, modules=("LUSTRE",)))


def divided(components: LustreComponents, *segments: Segment) -> list[tuple[int, int, int]]:
    """List (segment, OST, bytes)."""
    found = bytes_of_servers(
        components,
        np.array([record_id(path) for path, _, _ in segments], np.uint64),
        np.array([offset for _, offset, _ in segments], np.int64),
        np.array([length for _, _, length in segments], np.int64),
    )
    columns = (found.segment.tolist(), found.ost.tolist(), found.bytes.tolist())
    return list(zip(*columns, strict=True))


def byte_by_byte(components: Sequence[Component], segments: Sequence[Segment]) -> Counter[object]:
    """ost_ids[(offset // stripe_size) % stripe_count] of each byte, in its component."""
    found: Counter[object] = Counter()
    for index, (_, offset, length) in enumerate(segments):
        for byte in range(offset, offset + length):
            for each in components:
                if each.start <= byte and (each.end == -1 or byte < each.end) and each.osts:
                    found[index, each.osts[byte // each.size % len(each.osts)]] += 1
    return found


FOUR = [Component(MIB, (10, 11, 12, 13))]


def test_a_request_of_one_stripe_is_on_one_server(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, FOUR))
    assert divided(components, ("/a", 5 * MIB, MIB)) == [(0, 11, MIB)]


def test_a_request_across_a_stripes_edge_is_on_two_servers(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, FOUR))
    assert divided(components, ("/a", 4 * MIB - 1, MIB)) == [(0, 10, MIB - 1), (0, 13, 1)]


def test_the_byte_behind_a_request_is_not_touched(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, FOUR))
    assert divided(components, ("/a", 0, MIB), ("/a", 0, MIB + 1)) == [
        (0, 10, MIB),
        (1, 10, MIB),
        (1, 11, 1),
    ]


def test_a_large_request_is_divided_evenly(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, FOUR))
    large = 1 << 50
    quarter = large // 4
    assert divided(components, ("/a", 3 * MIB, large)) == [
        (0, ost, quarter) for ost in (10, 11, 12, 13)
    ]


@pytest.mark.parametrize(
    ("offset", "length"), [(0, 0), (5, -1), (-1, 100), (-5, 10), (-1, (1 << 63) - 1)]
)
def test_segments_without_bytes_or_offset_touch_nothing(
    folder: Path, offset: int, length: int
) -> None:
    assert divided(layouts(folder, ("/a", 0, FOUR)), ("/a", offset, length)) == []


def test_the_largest_numbers_do_not_overflow(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, [Component((1 << 32) - 1, (1, 2, 3))]))
    largest = (1 << 63) - 1
    found = divided(components, ("/a", largest - 10, largest))
    assert sum(bytes_ for _, _, bytes_ in found) == 10


def test_files_without_a_layout_are_on_no_server(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, FOUR))
    assert divided(components, ("/b", 0, MIB), ("/a", 0, 1)) == [(1, 10, 1)]
    nothing = layouts(folder)
    assert divided(nothing, ("/a", 0, MIB)) == []
    assert divided(components) == []


def test_each_extent_has_its_servers(folder: Path) -> None:
    """Stripes count from the beginning of the file (Lustre: lov_stripe_number)."""
    components = layouts(
        folder,
        (
            "/a",
            0,
            [
                Component(MIB, (), 0, MIB, pattern=2),
                Component(MIB, (7,), MIB, 3 * MIB),
                Component(2 * MIB, (20, 21), 3 * MIB, -1),
            ],
        ),
    )
    # 1 MiB on a metadata server, 2 on OST 7, 1 on the second stripe, 2 on the first.
    assert divided(components, ("/a", 0, 6 * MIB)) == [
        (0, 7, 2 * MIB),
        (0, 20, 2 * MIB),
        (0, 21, MIB),
    ]


def test_an_ost_with_several_stripes_has_one_row(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, [Component(MIB, (4, 5, 4, 5))]))
    assert divided(components, ("/a", 0, 3 * MIB)) == [(0, 4, 2 * MIB), (0, 5, MIB)]


def test_only_the_first_mirror_counts(folder: Path) -> None:
    components = layouts(
        folder,
        (
            "/a",
            0,
            [
                Component(MIB, (1,), 0, MIB, mirror=1),
                Component(MIB, (2,), MIB, -1, mirror=1),
                Component(MIB, (8, 9), mirror=2),
            ],
        ),
    )
    assert divided(components, ("/a", 0, 2 * MIB)) == [(0, 1, MIB), (0, 2, MIB)]


def test_the_record_with_most_components_counts(folder: Path) -> None:
    """A process that opened the file first saw only the components in use at that time."""
    begun = [Component(MIB, (1,), 0, MIB)]
    grown = [*begun, Component(MIB, (2, 3), MIB, -1)]
    components = layouts(folder, ("/a", 0, begun), ("/a", 1, grown), ("/a", 2, begun))
    assert divided(components, ("/a", 0, 3 * MIB)) == [(0, 1, MIB), (0, 2, MIB), (0, 3, MIB)]


small = st.integers(1, 40)
osts = st.lists(st.integers(0, 5), max_size=5).map(tuple)


@st.composite
def file_layouts(draw: st.DrawFn) -> list[Component]:
    edges = sorted(draw(st.sets(st.integers(1, 300), max_size=3)))
    starts, ends = [0, *edges], [*edges, -1]
    return [
        Component(draw(small), draw(osts), start, end)
        for start, end in zip(starts, ends, strict=True)
    ]


@given(
    components=file_layouts(),
    ranges=st.lists(st.tuples(st.integers(0, 400), st.integers(0, 400)), max_size=5),
)
def test_every_byte_is_on_the_server_that_the_rule_says(
    folder: Path, components: list[Component], ranges: list[tuple[int, int]]
) -> None:
    segments = [("/a", offset, length) for offset, length in ranges]
    other = ("/0", 3, [Component(MIB, (99,))])
    found = divided(layouts(folder, other, ("/a", -1, components)), *segments)
    assert {(segment, ost): bytes_ for segment, ost, bytes_ in found} == byte_by_byte(
        components, segments
    )
    assert [row[:2] for row in found] == sorted(row[:2] for row in found)


def test_all_traced_bytes_of_a_genuine_file_are_on_its_server(shared_data: Path) -> None:
    """Its file has one stripe, on OST 106 as darshan-parser prints it."""
    log = read_log(
        shared_data / "darshan-logs/ior_hdf5_lustre_dxt/ior_hdf5_example.darshan",
        modules=("LUSTRE", "DXT_POSIX"),
    )
    components = lustre_components_of(log)
    requests = operations_of(log)
    found = bytes_of_servers(components, requests.file_id, requests.offset, requests.length)
    assert set(found.ost.tolist()) == {106}
    of_file = np.isin(requests.file_id, components.file_id)
    assert found.bytes.sum() == requests.length[of_file].sum() > 0


def test_a_million_requests_take_one_call(folder: Path) -> None:
    components = layouts(folder, ("/a", 0, FOUR))
    count = 1_000_000
    found = bytes_of_servers(
        components,
        np.full(count, record_id("/a"), np.uint64),
        np.arange(count) * MIB + 7,
        np.full(count, MIB),
    )
    assert len(found.bytes) == 2 * count
    assert found.bytes.sum() == count * MIB
    assert np.bincount(found.ost)[10:].tolist() == [count // 2] * 4
