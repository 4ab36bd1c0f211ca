"""Bytes that a trace shows to be moved more than once: sum of lengths minus their union."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Dxt
from ioncast.insights.facts.overlaps import Overlaps, overlaps_of
from tests.support.checking import facts_in
from tests.support.log_bytes import dxt_bytes
from tests.support.records import posix_record, write_log

Range = tuple[str, int, int, int]
"""Path, rank, offset and length in bytes."""


def log(
    path: Path, ranges: Sequence[Range], *, missing: int = 0, partial: Sequence[str] = ()
) -> Path:
    """Write a log with these writes, and with `missing` more that are only counted."""
    files = sorted({path for path, *_ in ranges})
    records = [
        posix_record(name, WRITES=missing + sum(name == each[0] for each in ranges))
        for name in files
    ]
    traces = [
        Dxt("DXT_POSIX", name, rank, "n1", [(offset, length, 0.0, 1.0)])
        for name, rank, offset, length in ranges
    ]
    modules = {"DXT_POSIX": (1, dxt_bytes(traces))}
    return write_log(path / "a.darshan", records, nprocs=9, modules=modules, partial=partial)


def by_path(path: Path, ranges: Sequence[Range]) -> dict[str, tuple[int, int]]:
    facts = facts_in(log(path, ranges))
    found = overlaps_of(facts, "write")
    assert found is not None
    paths = [facts.files.path[file] for file in found.file]
    pairs = zip(found.bytes.tolist(), found.repeated_bytes.tolist(), strict=True)
    return dict(zip(paths, pairs, strict=True))


def test_bytes_that_another_process_wrote_count_again(tmp_path: Path) -> None:
    """[0, 10) and [5, 15) have 5 bytes in common; [20, 30) contains [22, 24) twice."""
    found = by_path(
        tmp_path,
        [
            ("/a", 0, 0, 10),
            ("/a", 1, 5, 10),
            ("/b", 0, 20, 10),
            ("/b", 1, 22, 2),
            ("/b", 2, 22, 2),
            ("/c", 0, 0, 5),
            ("/c", 1, 5, 5),
        ],
    )
    assert found == {"/a": (20, 5), "/b": (14, 4), "/c": (10, 0)}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["/a", "/b", "/c"]),
            st.integers(0, 8),
            st.integers(0, 40),
            st.integers(0, 12),
        ),
        min_size=1,
        max_size=40,
    )
)
def test_the_repeated_bytes_are_those_of_sets(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[Range]
) -> None:
    expected = {}
    for path in {path for path, *_ in ranges}:
        own = [range(offset, offset + length) for name, _, offset, length in ranges if name == path]
        moved = sum(map(len, own))
        expected[path] = moved, moved - len({byte for each in own for byte in each})
    assert by_path(tmp_path_factory.mktemp("log"), ranges) == expected


def test_offsets_up_to_the_largest_do_not_overflow(tmp_path: Path) -> None:
    top = 2**63 - 1
    ranges = [("/a", 0, top - 8, 8), ("/a", 1, top - 4, 4), ("/b", 0, 0, 1 << 59), ("/b", 1, 1, 3)]
    assert by_path(tmp_path, ranges) == {"/a": (12, 4), "/b": ((1 << 59) + 3, 3)}


def test_an_incomplete_trace_tells_nothing(tmp_path: Path) -> None:
    ranges = [("/a", 0, 0, 10)]

    def found(**what: object) -> Overlaps | None:
        return overlaps_of(facts_in(log(tmp_path, ranges, **what)), "write")  # type: ignore[arg-type]

    assert found() is not None
    assert found(missing=1) is None
    assert found(partial=["DXT_POSIX"]) is None


def test_a_log_without_a_trace_tells_nothing(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.darshan", [posix_record("/a", WRITES=1)], nprocs=1)
    assert overlaps_of(facts_in(path), "write") is None


def test_an_operation_that_nobody_used_has_no_files(tmp_path: Path) -> None:
    found = overlaps_of(facts_in(log(tmp_path, [("/a", 0, 0, 10)])), "read")
    assert found is not None
    assert found.file.tolist() == []
