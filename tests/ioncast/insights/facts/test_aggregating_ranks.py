"""Aggregators in traces and in heat maps, and when these tell too little."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt, Heatmap
from ioncast.insights.facts.aggregating_ranks import Aggregators, aggregators_of
from ioncast.insights.facts.collective_calls import collectives_of
from tests.support.checking import facts_in
from tests.support.log_bytes import dxt_bytes, heatmap_bytes
from tests.support.records import CounterRecord, mpiio_record, posix_record, write_log

MIB = 1 << 20
Modules = dict[str, tuple[int, bytes]]


def collective(path: str = "/f", mib: int = 64, **counters: float) -> list[CounterRecord]:
    calls = {"COLL_WRITES": 64, "BYTES_WRITTEN": 64 * MIB, **counters}
    return [
        mpiio_record(path, **calls),
        posix_record(path, WRITES=4, BYTES_WRITTEN=mib * MIB),
    ]


def mapped(*mib: int) -> Modules:
    """Rank i writes so many MiB."""
    rows = [Heatmap("POSIX", rank, 0.1, [0, each * MIB], [0, 0]) for rank, each in enumerate(mib)]
    return {"HEATMAP": (1, heatmap_bytes(rows))}


def found(folder: Path, records: Sequence[CounterRecord], modules: Modules) -> Aggregators | None:
    names = ["heatmap:POSIX"]
    path = write_log(folder / "a.darshan", records, nprocs=8, modules=modules, names=names)
    facts = facts_in(path)
    return aggregators_of(facts, collectives_of(facts))


def test_rows_of_the_heat_map_that_are_not_empty_are_aggregators(tmp_path: Path) -> None:
    aggregators = found(tmp_path, collective(), mapped(0, 32, 0, 32))
    assert aggregators is not None
    assert (aggregators.rank.tolist(), aggregators.hosts) == ([1, 3], None)


@pytest.mark.parametrize(("others", "is_known"), [(7, True), (8, False)])
def test_a_heat_map_has_at_most_a_tenth_of_other_files(
    others: int, is_known: bool, tmp_path: Path
) -> None:
    """64 MiB of 71 are 90.1 %, of 72 they are 88.9 %."""
    records = [*collective(), posix_record("/other", 5, WRITES=1, BYTES_WRITTEN=others * MIB)]
    assert (found(tmp_path, records, mapped(32, 32, others)) is not None) == is_known


def test_files_with_few_collective_calls_do_not_count(tmp_path: Path) -> None:
    records = collective(INDEP_WRITES=64)
    assert found(tmp_path, records, mapped(32, 32)) is None
    assert found(tmp_path, collective(INDEP_WRITES=63), mapped(32, 32)) is not None


def test_another_operation_of_the_same_file_does_not_count(tmp_path: Path) -> None:
    """All ranks read it on their own before ranks 1 and 2 write it for all."""
    records = [
        mpiio_record("/f", COLL_WRITES=64, INDEP_READS=8, BYTES_WRITTEN=64 * MIB),
        posix_record("/f", WRITES=2, READS=8, BYTES_WRITTEN=64 * MIB, BYTES_READ=8 * MIB),
    ]
    traces = [
        Dxt(
            "DXT_POSIX",
            "/f",
            rank,
            f"n{rank // 2}",
            [(0, 32 * MIB, 2.0, 3.0)] if rank in (1, 2) else [],
            [(rank * MIB, MIB, 0.0, 1.0)],
        )
        for rank in range(8)
    ]
    aggregators = found(tmp_path, records, {"DXT_POSIX": (1, dxt_bytes(traces))})
    assert aggregators is not None
    assert aggregators.rank.tolist() == [1, 2]
    assert (aggregators.hosts, aggregators.idle_hosts) == (frozenset({"n0", "n1"}), ("n2", "n3"))


def test_each_file_has_its_own_aggregators(tmp_path: Path) -> None:
    """Rank 1 moves all of a small file, which is less than 1 % of both."""
    records = [*collective("/f", mib=640), *collective("/g", mib=1)]
    traces = [
        Dxt("DXT_POSIX", "/f", 0, "n0", [(0, 640 * MIB, 2.0, 3.0)]),
        Dxt("DXT_POSIX", "/f", 2, "n0", [(0, MIB, 2.0, 3.0)]),
        Dxt("DXT_POSIX", "/g", 1, "n1", [(0, MIB, 2.0, 3.0)]),
    ]
    aggregators = found(tmp_path, records, {"DXT_POSIX": (1, dxt_bytes(traces))})
    assert aggregators is not None
    assert (aggregators.rank.tolist(), aggregators.hosts) == ([0, 1], frozenset({"n0", "n1"}))


def test_a_trace_without_most_of_the_bytes_leaves_it_to_the_heat_map(tmp_path: Path) -> None:
    trace = dxt_bytes([Dxt("DXT_POSIX", "/f", 0, "n0", [(0, 32 * MIB, 2.0, 3.0)])])
    modules = {**mapped(32, 32), "DXT_POSIX": (1, trace)}
    aggregators = found(tmp_path, collective(), modules)
    assert aggregators is not None
    assert aggregators.rank.tolist() == [0, 1]
