"""Requests, bytes and time of each process: the sources, their order, and when they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.applications.darshan_writer import Dxt, Heatmap
from ioncast.insights.facts.rank_totals import RankFacts, ranks_of
from tests.support.checking import facts_in
from tests.support.log_bytes import dxt_bytes, heatmap_bytes
from tests.support.records import (
    CounterRecord,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

Modules = Mapping[str, tuple[int, bytes]]
MAPS = [f"heatmap:{api}" for api in ("POSIX", "MPIIO", "STDIO")]


def ranks(folder: Path, records: Sequence[CounterRecord], **log: Any) -> RankFacts | None:
    path = write_log(folder / "a.darshan", records, nprocs=4, names=MAPS, **log)
    return ranks_of(facts_in(path))


def found(folder: Path, records: Sequence[CounterRecord], **log: Any) -> RankFacts:
    by_rank = ranks(folder, records, **log)
    assert by_rank is not None
    return by_rank


def bytes_by_rank(by_rank: RankFacts) -> dict[int, float]:
    return dict(zip(by_rank.rank.tolist(), by_rank.bytes.tolist(), strict=True))


def traced(**modules: Sequence[Dxt]) -> Modules:
    versions = {"DXT_POSIX": 1, "DXT_MPIIO": 2}
    return {name: (versions[name], dxt_bytes(each)) for name, each in modules.items()}


def write(rank: int, length: int, module: Any = "DXT_POSIX", path: str = "/f") -> Dxt:
    return Dxt(module, path, rank, "n", [(0, length, 1.0, 1.5)])


def heatmap(rank: int, written: int, read: int = 0, module: Any = "POSIX") -> Heatmap:
    return Heatmap(module, rank, 0.1, [0, written], [read, 0])


def mapped(*heatmaps: Heatmap) -> Modules:
    return {"HEATMAP": (1, heatmap_bytes(heatmaps))}


def reduced(moved: int, **counters: float) -> CounterRecord:
    return posix_record("/f", WRITES=4, BYTES_WRITTEN=moved, **counters)


def test_a_trace_tells_everything(tmp_path: Path) -> None:
    both = Dxt("DXT_POSIX", "/f", 3, "n", [(0, 10, 1.0, 1.5), (10, 20, 2.0, 3.0)], [(0, 5, 4, 6)])
    by_rank = found(
        tmp_path, [reduced(130, BYTES_READ=5)], modules=traced(DXT_POSIX=[write(1, 100), both])
    )
    assert (by_rank.source, by_rank.processes, by_rank.rank.tolist()) == ("trace", 4, [1, 3])
    assert by_rank.reads is not None and by_rank.writes is not None
    assert (by_rank.reads.tolist(), by_rank.writes.tolist()) == ([0, 1], [1, 2])
    assert (by_rank.bytes_read.tolist(), by_rank.bytes_written.tolist()) == ([0, 5], [100, 30])
    assert by_rank.seconds is not None
    assert by_rank.seconds.tolist() == [0.5, 3.5]


def test_requests_of_mpiio_count_instead_of_those_below(tmp_path: Path) -> None:
    """Rank 0 writes for all four through POSIX; file /g has no MPI-IO."""
    records = [
        reduced(400),
        mpiio_record("/f", COLL_WRITES=4, BYTES_WRITTEN=400),
        posix_record("/g", 2, WRITES=1, BYTES_WRITTEN=7),
    ]
    modules = traced(
        DXT_POSIX=[write(0, 400), write(2, 7, path="/g")],
        DXT_MPIIO=[write(rank, 100, "DXT_MPIIO") for rank in range(4)],
    )
    by_rank = found(tmp_path, records, modules=modules)
    assert bytes_by_rank(by_rank) == {0: 100, 1: 100, 2: 107, 3: 100}


def test_a_trace_without_enough_bytes_does_not_count(tmp_path: Path) -> None:
    modules = {**traced(DXT_POSIX=[write(1, 89)]), **mapped(heatmap(2, 100))}
    assert found(tmp_path, [reduced(100)], modules=modules).source == "heat map"
    assert found(tmp_path, [reduced(98)], modules=modules).source == "trace"
    cut = ranks(tmp_path, [reduced(98)], modules=modules, partial=["DXT_POSIX"])
    assert cut is not None
    assert cut.source == "heat map"


def test_heat_maps_tell_bytes_alone(tmp_path: Path) -> None:
    maps = mapped(heatmap(0, 30, 5), heatmap(1, 0), heatmap(2, 60))
    by_rank = found(tmp_path, [reduced(90, BYTES_READ=5)], modules=maps)
    assert (by_rank.reads, by_rank.writes, by_rank.seconds) == (None, None, None)
    assert (by_rank.bytes_read.tolist(), by_rank.bytes_written.tolist()) == (
        [5, 0, 0],
        [30, 0, 60],
    )


def test_heat_maps_of_several_layers_add_up(tmp_path: Path) -> None:
    records = [reduced(50), stdio_record("/log", 3, WRITES=1, BYTES_WRITTEN=20)]
    maps = mapped(heatmap(0, 50), heatmap(0, 15, module="STDIO"), heatmap(3, 5, module="STDIO"))
    assert bytes_by_rank(found(tmp_path, records, modules=maps)) == {0: 65, 3: 5}


def test_a_heat_map_with_bytes_of_other_files_does_not_count(tmp_path: Path) -> None:
    """The heat map of POSIX also has the bytes that an aggregator moves for MPI-IO."""
    maps = mapped(heatmap(0, 111))
    assert ranks(tmp_path, [reduced(100)], modules=mapped(heatmap(0, 111))) is not None
    assert ranks(tmp_path, [reduced(100)], modules=mapped(heatmap(0, 112))) is None
    above = mpiio_record("/f", COLL_WRITES=4, BYTES_WRITTEN=100)
    assert ranks(tmp_path, [reduced(111), above], modules=maps) is None
    of_mpiio = mapped(heatmap(0, 111), *(heatmap(rank, 25, module="MPIIO") for rank in range(4)))
    by_rank = found(tmp_path, [reduced(111), above], modules=of_mpiio)
    assert bytes_by_rank(by_rank) == dict.fromkeys(range(4), 25)


def test_records_of_single_processes_count_last(tmp_path: Path) -> None:
    records = [
        posix_record("/a", 1, WRITES=2, BYTES_WRITTEN=60, F_WRITE_TIME=3, F_META_TIME=9),
        posix_record("/b", 1, READS=1, BYTES_READ=40, F_READ_TIME=1),
        stdio_record("/c", 2, WRITES=5, BYTES_WRITTEN=10),
    ]
    by_rank = found(tmp_path, records)
    assert (by_rank.source, bytes_by_rank(by_rank)) == ("records", {1: 100, 2: 10})
    assert by_rank.reads is not None and by_rank.writes is not None
    assert (by_rank.reads.tolist(), by_rank.writes.tolist()) == ([1, 0], [2, 5])
    assert by_rank.seconds is not None
    assert by_rank.seconds.tolist() == [4, 0]


@pytest.mark.parametrize(("moved", "is_known"), [(9, True), (10, False)])
def test_records_of_all_processes_may_have_less_than_a_tenth(
    moved: int, is_known: bool, tmp_path: Path
) -> None:
    records = [reduced(moved), posix_record("/a", 1, WRITES=1, BYTES_WRITTEN=100 - moved)]
    assert (ranks(tmp_path, records) is not None) == is_known


def test_two_billion_processes_need_no_memory(tmp_path: Path) -> None:
    """Only those with an entry are kept."""
    records = [posix_record("/a", 2**31 - 2, WRITES=1, BYTES_WRITTEN=100)]
    path = write_log(tmp_path / "a.darshan", records, nprocs=2**31 - 1)
    by_rank = ranks_of(facts_in(path))
    assert by_rank is not None
    assert (by_rank.processes, by_rank.rank.tolist()) == (2**31 - 1, [2**31 - 2])


def test_a_run_without_bytes_has_no_amounts(tmp_path: Path) -> None:
    assert ranks(tmp_path, [posix_record("/f", OPENS=4)]) is None


def test_genuine_sources_agree(shared_data: Path) -> None:
    """The same program with and without a trace: the amounts of each process are known exactly."""
    for name, expected in (
        ("rank0-only", {0: 128 << 20}),
        ("partial-ranks-0-7-of-24", dict.fromkeys(range(8), 16 << 20)),
        ("imbalance-shared", {rank: rank << 20 for rank in range(1, 24)}),
    ):
        logs = [shared_data / f"runs/logs/{name}{suffix}.darshan" for suffix in ("-dxt", "")]
        by_trace, by_heatmap = (ranks_of(facts_in(log)) for log in logs)
        assert by_trace is not None and by_heatmap is not None
        assert (by_trace.source, by_heatmap.source) == ("trace", "heat map")
        for by_rank in (by_trace, by_heatmap):
            moved = {rank: bytes_ for rank, bytes_ in bytes_by_rank(by_rank).items() if bytes_}
            assert moved == expected
