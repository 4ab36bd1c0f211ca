"""The rule of fsync, with a made-up log for each case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.applications.darshan_writer import Record, record_id
from summario.phases.extract import extract_phases
from summario.reading.layouts import layout_of
from summario.reading.log import read_log
from tests.summario.phases.test_rules import NPROCS, heatmap, log_of, mpiio, posix, stdio
from tests.support.log_bytes import write_modules


def called(record: Record, **counters: int) -> Record:
    """The record with more counters of its module."""
    prefix = {"MPI-IO": "MPIIO"}.get(record.module, record.module)
    more = {f"{prefix}_{name}": count for name, count in counters.items()}
    return replace(record, counters={**record.counters, **more})


def synced(path: str = "/a", *, rank: int = 0, writes: int = 100, **counters: int) -> Record:
    return called(posix(path, 0, 1, rank=rank, requests=writes), **counters)


def posix_bytes(version: int, fsyncs: int) -> bytes:
    """A record of a version of the POSIX module: 100 writes of a byte by one process."""
    layout = layout_of("POSIX", version)
    assert layout is not None
    words = np.zeros(layout.words, "<i8")
    words[0] = np.uint64(record_id("/a")).view(np.int64)
    for name, value in {"WRITES": 100, "BYTES_WRITTEN": 100, "FSYNCS": fsyncs}.items():
        words[layout.columns[f"POSIX_{name}"]] = value
    words.view("<f8")[layout.columns["POSIX_F_WRITE_END_TIMESTAMP"]] = 1
    return words.tobytes()


def fsyncs_of(folder: Path, records: Sequence[Record], **contents: object) -> list[str | None]:
    return [phase.fsync for phase in extract_phases(log_of(folder, records, **contents))]


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        ({}, "none"),
        ({"FSYNCS": 4}, "end"),
        ({"FDSYNCS": 4}, "end"),
        ({"FSYNCS": 2, "FDSYNCS": 2}, "end"),
        # Rank 0 alone: no benchmark of IOR does that.
        ({"FSYNCS": 1}, None),
        ({"FSYNCS": 100}, "each"),
        ({"FSYNCS": 200}, "each"),
        ({"FSYNCS": 80}, "each"),
        # After every second write.
        ({"FSYNCS": 50}, None),
        # Opened 10 times by each process, with an fsync before each close.
        ({"FSYNCS": 40, "OPENS": 40}, "end"),
        ({"FSYNCS": 40, "OPENS": 48, "FILENOS": 4, "DUPS": 4}, "end"),
        ({"FSYNCS": 40, "OPENS": 44, "FILENOS": 40}, None),
    ],
    ids=str,
)
def test_the_number_of_calls_tells_when_fsync_is_called(
    counters: dict[str, int], expected: str | None, tmp_path: Path
) -> None:
    assert fsyncs_of(tmp_path, [synced(rank=-1, **counters)]) == [expected]


def test_one_fsync_after_the_only_write_is_an_end(tmp_path: Path) -> None:
    assert fsyncs_of(tmp_path, [synced(writes=1, FSYNCS=1)]) == ["end"]


@pytest.mark.parametrize(("fsyncs", "expected"), [(4, "end"), (12, "end"), (40, None)])
def test_a_file_between_pauses_may_have_an_fsync_in_each_piece(
    fsyncs: int, expected: str | None, tmp_path: Path
) -> None:
    record = called(posix("/a", 0, 11, rank=-1, requests=300), FSYNCS=fsyncs)
    found = fsyncs_of(tmp_path, [record], heatmaps=[heatmap(100, 0, 0, 0, 0, 100, 0, 0, 0, 0, 100)])
    assert found == [expected] * 3


def test_a_file_of_which_the_log_lacks_records_has_an_unknown_fsync(tmp_path: Path) -> None:
    record = synced(rank=-1, FSYNCS=4)
    assert fsyncs_of(tmp_path, [record], partial_modules=["POSIX"]) == [None]


@pytest.mark.parametrize("count", [-1, -(2**63), 2**63 - 1, 2**61])
def test_an_impossible_number_of_calls_is_an_unknown_fsync(count: int, tmp_path: Path) -> None:
    for counters in ({"FSYNCS": count}, {"FDSYNCS": count}, {"FSYNCS": 40, "OPENS": count}):
        assert fsyncs_of(tmp_path, [synced(rank=-1, **counters)]) == [None]


def test_reads_have_no_fsync(tmp_path: Path) -> None:
    read = posix("/a", 2, 3, rank=-1, requests=100, operation="READ")
    written = synced(rank=-1, FSYNCS=4)
    record = replace(
        written,
        counters={**read.counters, **written.counters},
        fcounters={**read.fcounters, **written.fcounters},
    )
    phases = extract_phases(log_of(tmp_path, [record]))
    assert {phase.operation: phase.fsync for phase in phases} == {"write": "end", "read": "none"}


@pytest.mark.parametrize(
    ("below", "expected"),
    [
        ({"POSIX_FSYNCS": 1}, "end"),
        ({"POSIX_FSYNCS": 10}, "each"),
        ({"POSIX_OPENS": 1}, "none"),
        (None, None),
    ],
)
def test_a_stream_has_the_fsync_of_its_posix_record(
    below: dict[str, int] | None, expected: str | None, tmp_path: Path
) -> None:
    # fsync(fileno(stream)) is counted there, although POSIX neither reads nor writes.
    records = [stdio("/a", requests=10)]
    if below is not None:
        records.append(Record("POSIX", "/a", 0, below))
    assert fsyncs_of(tmp_path, records) == [expected]


@pytest.mark.parametrize(
    ("syncs", "fsyncs", "expected"),
    [(0, 0, "none"), (1, 1, "end"), (10, 2, "each"), (0, 10, "each"), (0, 1, "end")],
)
def test_mpi_io_counts_its_own_calls_and_those_below(
    syncs: int, fsyncs: int, expected: str, tmp_path: Path
) -> None:
    above = called(mpiio("/a", INDEP=10), SYNCS=syncs)
    below = called(posix("/a", 0, 1, requests=10), FSYNCS=fsyncs)
    assert fsyncs_of(tmp_path, [above, below]) == [expected]


def test_mpi_io_without_posix_records_has_an_unknown_fsync(tmp_path: Path) -> None:
    other = posix("/b", 0, 1, requests=10)
    assert set(fsyncs_of(tmp_path, [mpiio("/a", INDEP=10), other])) == {None, "none"}
    assert fsyncs_of(tmp_path, [mpiio("/a", INDEP=10)]) == [None]


def test_files_with_and_without_fsync_in_one_phase_are_not_known(tmp_path: Path) -> None:
    assert fsyncs_of(tmp_path, [synced("/a", FSYNCS=100), synced("/b")]) == [None]
    # IOR 4.0 makes two calls after each write; the second ones do not count for another file.
    assert fsyncs_of(tmp_path, [synced("/a", FSYNCS=200), synced("/b")]) == [None]
    assert fsyncs_of(tmp_path, [synced("/a", FSYNCS=1), synced("/b")]) == [None]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_all_versions_of_the_posix_module_count_fsync(version: int, tmp_path: Path) -> None:
    for fsyncs, expected in ((0, "none"), (1, "end"), (100, "each")):
        modules = {"POSIX": (version, posix_bytes(version, fsyncs))}
        path = write_modules(tmp_path / "a.darshan", modules, nprocs=1, names=["/a"])
        [phase] = extract_phases(read_log(path))
        assert phase.fsync == expected


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(
    calls=st.lists(st.sampled_from([0, 1, 2, 50, 100]), min_size=NPROCS, max_size=NPROCS),
    order=st.permutations(range(NPROCS)),
)
def test_neither_the_order_of_ranks_nor_the_split_into_files_changes_it(
    calls: list[int], order: list[int]
) -> None:
    def found(paths: Sequence[str], ranks: Sequence[int]) -> list[str | None]:
        records = [
            synced(path, rank=rank, FSYNCS=count)
            for path, rank, count in zip(paths, ranks, calls, strict=True)
        ]
        with TemporaryDirectory() as folder:
            return fsyncs_of(Path(folder), records)

    shared = found(["/a"] * NPROCS, range(NPROCS))
    assert len(shared) == 1
    assert found(["/a"] * NPROCS, order) == shared
    assert found(["/a", "/b", "/c", "/d"], range(NPROCS)) == shared
