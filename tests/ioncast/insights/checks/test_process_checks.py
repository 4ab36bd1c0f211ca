"""The checks on processes, traces and servers: each with a log that has the finding, and without.

The conditions are those of definitions/insights.md, section 3, which come from Drishti and DXT
Explorer (Ather 2022). The expected numbers follow from the counters of the written logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Dxt, Heatmap
from ioncast.insights.checks.values import Applied, Checked, IoNodesOfRun, Thresholds
from tests.support.checking import check_log, check_records
from tests.support.log_bytes import (
    Component,
    dxt_bytes,
    heatmap_bytes,
    lustre_bytes_1,
    lustre_bytes_2,
)
from tests.support.records import (
    CounterRecord,
    counter_record,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

MIB = 1 << 20
GIB = 1 << 30
Modules = Mapping[str, tuple[int, bytes]]
Records = Sequence[CounterRecord]


def shared(path: str = "/f", **counters: float) -> CounterRecord:
    """Four processes write 1,000 bytes, 250 each."""
    return posix_record(path, **{"WRITES": 4, "BYTES_WRITTEN": 1000, **counters})


def own(rank: int, path: str = "", **counters: float) -> CounterRecord:
    return posix_record(path or f"/f{rank}", rank, **{"WRITES": 1, **counters})


def on_four_ranks(*moved: int) -> Records:
    return [own(rank, BYTES_WRITTEN=bytes_) for rank, bytes_ in enumerate(moved)]


def slow(difference: float, together: float) -> CounterRecord:
    return shared(
        F_WRITE_TIME=together,
        SLOWEST_RANK=3,
        F_SLOWEST_RANK_TIME=10 + difference,
        F_FASTEST_RANK_TIME=10,
    )


# For each code: the records of a log with the finding, and of one that is just below it.
CASES: dict[str, tuple[Records, Records]] = {
    # The sum over a process's own records.
    "P17": (
        [own(2, "/a", F_META_TIME=20), own(2, "/b", F_META_TIME=10.5)],
        [own(2, "/a", F_META_TIME=20), own(1, "/b", F_META_TIME=10.5)],
    ),
    "P18": (
        [shared(SLOWEST_RANK_BYTES=151)],
        [shared(SLOWEST_RANK_BYTES=150)],
    ),
    # 3 of 19 s, and 3 of 20 s.
    "P19": ([slow(3, 19)], [slow(3, 20)]),
    # (100 - 69) / 100, and (100 - 70) / 100.
    "P21": (
        [own(0, "/f", BYTES_WRITTEN=100), own(1, "/f", BYTES_WRITTEN=69)],
        [own(0, "/f", BYTES_WRITTEN=100), own(1, "/f", BYTES_WRITTEN=70)],
    ),
    "P22": (
        [own(0, "/f", BYTES_READ=69), own(1, "/f", BYTES_READ=100)],
        [own(0, "/f", BYTES_READ=70), own(1, "/f", BYTES_READ=100)],
    ),
    "D01": (
        [own(0, WRITES=116, BYTES_WRITTEN=116 * MIB), own(1, WRITES=100, BYTES_WRITTEN=100 * MIB)],
        [own(0, WRITES=115, BYTES_WRITTEN=115 * MIB), own(1, WRITES=100, BYTES_WRITTEN=100 * MIB)],
    ),
    # Mean 1.25, standard deviation 0.43: 2 is above; all at the mean: nobody is.
    "D02": (on_four_ranks(MIB, MIB, MIB, 2 * MIB), on_four_ranks(MIB, MIB, MIB, MIB)),
    "I02": (
        [shared(F_META_TIME=24, F_WRITE_TIME=76)],
        [shared(F_META_TIME=23, F_WRITE_TIME=77)],
    ),
    # A run time of 100 s.
    "I06": ([own(0, F_WRITE_TIME=0.99)], [own(0, F_WRITE_TIME=1.0)]),
}


@pytest.mark.parametrize("code", CASES)
def test_a_log_with_the_finding_has_it(code: str, tmp_path: Path) -> None:
    assert code in check_records(tmp_path, CASES[code][0])


@pytest.mark.parametrize("code", CASES)
def test_a_log_just_below_the_threshold_has_it_not(code: str, tmp_path: Path) -> None:
    assert code not in check_records(tmp_path, CASES[code][1])


# P17: metadata of single processes.


def test_processes_with_much_metadata_are_named_the_slowest_first(tmp_path: Path) -> None:
    records = [own(rank, F_META_TIME=seconds) for rank, seconds in enumerate((31, 20, 40, 29))]
    found = check_records(tmp_path, records)["P17"].finding
    assert (found.ranks, found.numbers["seconds"]) == ((2, 0), 40)
    assert "P17" not in check_records(tmp_path, [own(2, F_META_TIME=30)])


def test_a_record_of_all_processes_counts_by_its_mean(tmp_path: Path) -> None:
    """Its time is that of 4 processes together, and no process can be named."""
    assert "P17" not in check_records(tmp_path, [shared(F_META_TIME=120)])
    found = check_records(tmp_path, [shared(F_META_TIME=124)])["P17"].finding
    assert (found.ranks, found.variant, found.numbers["mean_seconds"]) == ((), "unnamed", 31)


def test_metadata_of_mpiio_does_not_count_again(tmp_path: Path) -> None:
    records = [own(1, "/f", F_META_TIME=20), mpiio_record("/f", 1, F_META_TIME=25)]
    assert "P17" not in check_records(tmp_path, records)


# P18, P19: the slowest and the fastest process of a shared file.


def test_bytes_of_a_file_of_mpiio_are_those_of_mpiio(tmp_path: Path) -> None:
    """At POSIX only aggregators move bytes."""
    aggregated = shared(SLOWEST_RANK_BYTES=1000)
    assert "P18" in check_records(tmp_path, [aggregated])
    above = mpiio_record("/f", COLL_WRITES=4, BYTES_WRITTEN=1000, SLOWEST_RANK_BYTES=250)
    balanced = mpiio_record(
        "/f", COLL_WRITES=4, BYTES_WRITTEN=1000, SLOWEST_RANK_BYTES=250, FASTEST_RANK_BYTES=250
    )
    assert "P18" in check_records(tmp_path, [aggregated, above])
    assert "P18" not in check_records(tmp_path, [aggregated, balanced])


def test_a_file_of_some_processes_has_the_slowest_of_their_records(tmp_path: Path) -> None:
    """Ranks 1 to 3 of 4 write; the fastest by time is rank 2, the slowest rank 3."""
    records = [
        own(1, "/f", BYTES_WRITTEN=100, F_WRITE_TIME=5),
        own(2, "/f", BYTES_WRITTEN=40, F_WRITE_TIME=1),
        own(3, "/f", BYTES_WRITTEN=160, F_WRITE_TIME=4, F_META_TIME=3),
    ]
    found = check_records(tmp_path, records)
    bytes_, time = found["P18"].finding, found["P19"].finding
    assert bytes_.numbers["share"] == pytest.approx(120 / 300)
    assert (bytes_.numbers["slowest_bytes"], bytes_.numbers["fastest_bytes"]) == (160, 40)
    assert time.numbers["share"] == pytest.approx(6 / 13)
    assert (time.ranks, time.numbers["seconds"]) == ((3,), 7)
    # The slowest takes 7 s, the three together 13 s.
    assert time.numbers["above_mean_share"] == pytest.approx((7 - 13 / 3) / 7)


def test_a_file_of_one_process_is_not_shared(tmp_path: Path) -> None:
    records = [own(0, BYTES_WRITTEN=1, F_WRITE_TIME=1), own(1, BYTES_WRITTEN=99, F_WRITE_TIME=50)]
    assert not {"P18", "P19", "P21"} & check_records(tmp_path, records).keys()


def test_a_difference_of_less_than_a_second_does_not_make_a_process_slow(tmp_path: Path) -> None:
    assert "P19" in check_records(tmp_path, [slow(1.01, 5)])
    assert "P19" not in check_records(tmp_path, [slow(1.0, 5)])


def test_a_share_above_the_mean_alone_is_not_a_finding(tmp_path: Path) -> None:
    """With 512 processes the quotient is about 1/512, however slow one of them is."""
    many = slow(20, 512 * 11.0)
    assert "P19" not in check_records(tmp_path, [many], nprocs=512)


def test_the_slowest_process_has_its_number_in_a_run_of_several_logs(tmp_path: Path) -> None:
    """Each log counts from 0, so rank 3 of the second log, after one of 8 processes, is rank 11."""
    first = write_log(tmp_path / "a.darshan", [shared("/a")], nprocs=8)
    second = write_log(tmp_path / "b.darshan", [slow(3, 19)], nprocs=4)
    found = {each.check.code: each.finding for each in check_log(first, second).findings}
    assert (found["P19"].ranks, found["P19"].numbers["rank"]) == ((11,), 11)


# D01, D02: what each process did.


def test_a_balanced_program_that_only_writes_is_clean(tmp_path: Path) -> None:
    found = check_records(tmp_path, on_four_ranks(*[64 * MIB] * 4))
    assert not {"D01", "D02", "P18", "P19", "P21", "P22"} & found.keys()


def test_a_little_more_on_rank_0_is_clean(tmp_path: Path) -> None:
    """A header of a few bytes is no imbalance."""
    records = on_four_ranks(64 * MIB + 512, *[64 * MIB] * 3)
    assert not {"D01", "D02"} & check_records(tmp_path, records).keys()


def test_processes_without_a_record_count_as_zeros(tmp_path: Path) -> None:
    alone = [own(0, WRITES=2, BYTES_WRITTEN=2 * MIB)]
    found = check_records(tmp_path, alone)
    assert found["D01"].finding.variant == "writes_alone"
    assert found["D02"].finding.ranks == (0,)
    # One process has nobody to be compared with, two are compared by P21.
    assert not {"D01", "D02"} & check_records(tmp_path, alone, nprocs=1).keys()
    assert {"D01", "D02"} & check_records(tmp_path, alone, nprocs=2).keys() == {"D01"}


@pytest.mark.parametrize(
    ("rank_0", "rank_1", "variant"),
    [
        ({"READS": 9, "WRITES": 9}, {"READS": 2, "WRITES": 2}, ""),
        ({"READS": 9, "WRITES": 2}, {"READS": 2, "WRITES": 2}, "reads"),
        ({"READS": 2, "WRITES": 9}, {"READS": 2, "WRITES": 2}, "writes"),
        # More requests, but not more bytes.
        ({"READS": 9, "WRITES": 9, "BYTES_READ": 2 * MIB}, {"BYTES_READ": 2 * MIB}, None),
    ],
)
def test_the_first_case_of_rank_0_is_named(
    rank_0: dict[str, int], rank_1: dict[str, int], variant: str | None, tmp_path: Path
) -> None:
    moved = {"BYTES_READ": 8 * MIB}
    records = [own(0, **{**moved, **rank_0}), own(1, **{"BYTES_READ": MIB, **rank_1})]
    found = check_records(tmp_path, records)
    assert (found["D01"].finding.variant if "D01" in found else None) == variant


def busy(moved: Sequence[int], requests: Sequence[int], seconds: Sequence[int]) -> Records:
    """Rank i writes so many MiB with so many requests in so many seconds."""
    return [
        own(rank, BYTES_WRITTEN=mib * MIB, WRITES=count, F_WRITE_TIME=time)
        for rank, (mib, count, time) in enumerate(zip(moved, requests, seconds, strict=True))
    ]


@pytest.mark.parametrize(
    ("records", "ranks"),
    [
        (busy([1, 1, 1, 4], [1, 1, 1, 4], [1, 1, 1, 4]), (3,)),
        # Requests and time that do not differ say nothing against it.
        (busy([1, 1, 1, 4], [1, 1, 1, 1], [1, 1, 1, 1]), (3,)),
        # Equal bytes.
        (busy([1, 1, 1, 1], [1, 1, 1, 4], [1, 1, 1, 4]), None),
        # Rank 3 has most bytes, but rank 2 most requests, or the longest time.
        (busy([1, 1, 1, 4], [1, 1, 4, 1], [1, 1, 1, 1]), None),
        (busy([1, 1, 1, 4], [1, 1, 1, 4], [1, 1, 4, 1]), None),
        # Of 10, 9, 0 and 0 the mean is 4.75, and the standard deviation 4.76.
        (busy([10, 9], [10, 9], [10, 9]), (0,)),
    ],
)
def test_a_process_is_unbalanced_in_all_that_differs(
    records: Records, ranks: tuple[int, ...] | None, tmp_path: Path
) -> None:
    found = check_records(tmp_path, records)
    assert (found["D02"].finding.ranks if "D02" in found else None) == ranks


def test_rank_0_with_few_bytes_is_not_a_finding(tmp_path: Path) -> None:
    assert "D01" not in check_records(tmp_path, [own(0, BYTES_WRITTEN=MIB)])
    assert "D01" in check_records(tmp_path, [own(0, BYTES_WRITTEN=MIB + 1)])


def test_without_bytes_of_single_processes_the_balance_is_unknown(tmp_path: Path) -> None:
    """The record of all processes has a tenth of the bytes."""
    known = [*on_four_ranks(*[MIB] * 4), shared(BYTES_WRITTEN=4 * MIB // 10)]
    assert not unknown(tmp_path, known) & {"D01", "D02"}
    reduced = [*on_four_ranks(*[MIB] * 4), shared(BYTES_WRITTEN=4 * MIB // 9 + 1)]
    assert unknown(tmp_path, reduced) >= {"D01", "D02"}


def test_an_empty_log_has_no_finding_and_nothing_unknown_about_ranks(tmp_path: Path) -> None:
    checked = checked_log(tmp_path, [], modules={"DXT_POSIX": (2, b"")})
    assert checked.findings == ()
    assert not checked.unknown.keys() & {"D01", "D02", "M09", "I03", "I04"}


# Traces.


def traced(*requests: Dxt) -> Modules:
    return {"DXT_POSIX": (1, dxt_bytes([each for each in requests if each.module == "DXT_POSIX"]))}


def burst(rank: int, start: float, end: float, path: str = "/f") -> Dxt:
    return Dxt("DXT_POSIX", path, rank, f"node{rank}", [(rank * MIB, MIB, start, end)])


def written(processes: int, bursts: int = 1) -> Records:
    count = processes * bursts
    return [shared(WRITES=count, BYTES_WRITTEN=count * MIB)]


def test_a_process_that_ends_a_phase_late_is_a_straggler(tmp_path: Path) -> None:
    """Seven processes end at 10 s; 15 % of the phase of 11.8 s are 1.77 s."""
    others = [burst(rank, 0, 10) for rank in range(7)]
    checked = checked_log(
        tmp_path, written(8), nprocs=8, modules=traced(*others, burst(7, 0, 11.8))
    )
    [found] = [each.finding for each in checked.findings if each.check.code == "D03"]
    assert found.ranks == (7,)
    assert (found.numbers["rank"], found.numbers["phase"]) == (7, 1)
    assert found.numbers["late_seconds"] == pytest.approx(1.8)
    clean = checked_log(tmp_path, written(8), nprocs=8, modules=traced(*others, burst(7, 0, 11.7)))
    assert "D03" not in codes(clean) | clean.unknown.keys()


def test_many_phases_with_short_pauses_are_too_many(tmp_path: Path) -> None:
    """101 bursts of 2 s with pauses of 1.5 s; as long as the bursts, the pauses are no matter."""

    def checked(bursts: int, pause: float) -> set[str]:
        steps = [burst(0, start, start + 2) for start in every(bursts, 2 + pause)]
        found = checked_log(tmp_path, written(1, bursts), nprocs=1, modules=traced(*steps))
        assert "I05" not in found.unknown
        return codes(found)

    assert "I05" in checked(101, 1.5)
    assert "I05" not in checked(100, 1.5)
    assert "I05" not in checked(101, 2)


def every(count: int, seconds: float) -> list[float]:
    return [index * seconds for index in range(count)]


def test_without_a_whole_trace_its_checks_are_unknown(tmp_path: Path) -> None:
    assert unknown(tmp_path, written(1)) >= {"D03", "I05"}
    cut = checked_log(tmp_path, written(1), modules=traced(burst(0, 0, 1)), partial=["DXT_POSIX"])
    assert cut.unknown.keys() >= {"D03", "I05"}


def test_a_whole_trace_finds_repeated_bytes_in_a_file_with_gaps(tmp_path: Path) -> None:
    """The last 100 of 1,000 bytes are written twice: fewer bytes than the file has."""
    records = [posix_record("/f", WRITES=2, BYTES_WRITTEN=200, MAX_BYTE_WRITTEN=999)]
    twice = [Dxt("DXT_POSIX", "/f", rank, "a", [(900, 100, 0.0, 1.0)]) for rank in (0, 1)]
    found = check_records(tmp_path, records, modules=traced(*twice))["P10"].finding
    assert found.files[0].number == 2
    once = [Dxt("DXT_POSIX", "/f", rank, "a", [(900 - 100 * rank, 100, 0, 1)]) for rank in (0, 1)]
    assert "P10" not in check_records(tmp_path, records, modules=traced(*once))
    assert "P10" not in check_records(tmp_path, records)


def test_larger_requests_of_rank_0_count_although_all_make_as_many(tmp_path: Path) -> None:
    """Rank 0 writes 8 MiB with 2 requests, the others 1 MiB with 2, and rank 3 with 3."""
    requests = (2, 2, 2, 3)
    records = [
        posix_record(f"/f{rank}", rank, WRITES=n, BYTES_WRITTEN=MIB * (1 if rank else 8))
        for rank, n in enumerate(requests)
    ]
    found = check_records(tmp_path, records)
    assert found["D01"].finding.variant == "writes"
    assert found["D02"].finding.ranks == (0,)


def test_of_processes_with_equal_bytes_all_are_unbalanced(tmp_path: Path) -> None:
    """Two of eight processes write 4 MiB; the first of them takes longer."""
    records = [
        posix_record(f"/f{rank}", rank, WRITES=4, BYTES_WRITTEN=4 * MIB, F_WRITE_TIME=9 - 3 * rank)
        for rank in (0, 1)
    ] + [posix_record(f"/f{rank}", rank, WRITES=1, BYTES_WRITTEN=1000) for rank in range(2, 8)]
    assert check_records(tmp_path, records, nprocs=8)["D02"].finding.ranks == (0, 1)


def test_unequal_processes_with_few_bytes_are_not_unbalanced(tmp_path: Path) -> None:
    """They write a log file of 28 KiB, for example."""
    records = [own(0, BYTES_WRITTEN=28 * 1024), own(1, BYTES_WRITTEN=9), own(2, BYTES_WRITTEN=9)]
    assert not {"D01", "D02"} & check_records(tmp_path, records).keys()


@pytest.mark.parametrize(
    ("nprocs", "most", "is_found"),
    [(496, 95, True), (496, 89, False), (256, 95, False)],
    ids=["one process", "several processes", "perhaps one node"],
)
def test_one_process_below_mpiio_for_several_nodes(
    tmp_path: Path, nprocs: int, most: int, *, is_found: bool
) -> None:
    """MPI-IO is balanced, but at POSIX rank 2 moves 95 of 100 MiB."""
    records = [
        mpiio_record("/f", COLL_WRITES=nprocs, BYTES_WRITTEN=100 * MIB, F_WRITE_TIME=90),
        posix_record(
            "/f",
            WRITES=100,
            BYTES_WRITTEN=100 * MIB,
            SLOWEST_RANK=2,
            SLOWEST_RANK_BYTES=most * MIB,
            F_WRITE_TIME=45,
            F_SLOWEST_RANK_TIME=40,
        ),
    ]
    found = check_records(tmp_path, records, nprocs=nprocs)
    assert ("P18" in found) == is_found
    if is_found:
        assert (found["P18"].finding.variant, found["P18"].finding.ranks) == ("below", (2,))
        assert found["P18"].seconds_at_stake == pytest.approx(40 * (1 - 1 / 496))


def test_one_aggregator_of_one_node_is_not_an_imbalance(tmp_path: Path) -> None:
    checked = checked_log(tmp_path, collective(), nprocs=4, modules=aggregating("a", idle="aaa"))
    assert "P18" not in codes(checked)


# Aggregators.


def collective(path: str = "/f", calls: int = 64, **counters: float) -> Records:
    """Collective writes of 64 MiB, which POSIX makes with 16 requests of 4 MiB."""
    moved = 64 * MIB
    return [
        mpiio_record(path, COLL_WRITES=calls, BYTES_WRITTEN=moved, SIZE_WRITE_AGG_1M_4M=calls),
        posix_record(
            path, WRITES=16, BYTES_WRITTEN=moved, SIZE_WRITE_1M_4M=16, F_VARIANCE_RANK_BYTES=1e12
        ),
    ]


def aggregating(*hosts: str, idle: Sequence[str] = (), small: int = 0) -> Modules:
    """Rank i writes its part of 64 MiB on host i; idle ranks only call MPI-IO."""
    part = 64 * MIB // len(hosts)
    writers = [
        Dxt("DXT_POSIX", "/f", rank, host, [(rank * part, part, 1.0, 2.0)])
        for rank, host in enumerate(hosts)
    ]
    if small:
        writers.append(Dxt("DXT_POSIX", "/f", len(hosts), hosts[0], [(0, small, 0.5, 0.6)]))
    callers = [
        Dxt("DXT_MPIIO", "/f", rank, host, [(rank * MIB, MIB, 1.0, 2.0)])
        for rank, host in enumerate([*hosts, *idle])
    ]
    return {"DXT_POSIX": (1, dxt_bytes(writers)), "DXT_MPIIO": (2, dxt_bytes(callers))}


def placement(folder: Path, modules: Modules, nprocs: int) -> tuple[str, Applied]:
    checked = checked_log(folder, collective(), nprocs=nprocs, modules=modules)
    [found] = [each for each in checked.findings if each.check.code in ("M08", "M09", "M10")]
    return found.check.code, found


def test_more_aggregators_than_compute_nodes(tmp_path: Path) -> None:
    code, found = placement(tmp_path, aggregating("a", "a", "b", "b", idle="ab"), 6)
    assert (code, found.finding.ranks) == ("M09", (0, 1, 2, 3))
    assert found.finding.numbers == {"aggregators": 4, "nodes": 2}


@pytest.mark.parametrize(
    "modules", [aggregating("a", "a", "b", "b"), aggregating("a", "a", idle="aa")]
)
def test_without_traffic_between_nodes_aggregators_are_never_too_many(
    tmp_path: Path, modules: Modules
) -> None:
    """In the first run all processes write, so none aggregates. The second run has one node."""
    checked = checked_log(tmp_path, collective(), nprocs=4, modules=modules)
    assert "M09" not in codes(checked)


def test_fewer_aggregators_than_compute_nodes(tmp_path: Path) -> None:
    code, found = placement(tmp_path, aggregating("a", "b", idle="cd"), 4)
    assert (code, found.finding.numbers["aggregators"]) == ("M08", 2)


def test_one_aggregator_on_each_compute_node(tmp_path: Path) -> None:
    assert placement(tmp_path, aggregating("a", "b", idle="ab"), 4)[0] == "M10"


def test_as_many_aggregators_as_nodes_but_on_other_nodes(tmp_path: Path) -> None:
    code, found = placement(tmp_path, aggregating("a", "a", idle="bb"), 4)
    assert (code, found.finding.numbers["empty"]) == ("M08", "b")


def test_a_process_that_writes_a_header_is_not_an_aggregator(tmp_path: Path) -> None:
    """Of 64 MiB and 677,867.3 bytes, these bytes are 1 %."""
    small = aggregating("a", "b", idle="ab", small=677_867)
    assert placement(tmp_path, small, 4)[0] == "M10"
    assert placement(tmp_path, aggregating("a", "b", idle="ab", small=677_868), 4)[0] == "M09"


def test_two_hundred_aggregators_count_although_each_moves_half_a_percent(tmp_path: Path) -> None:
    nodes = [f"n{number}" for number in range(200)]
    found = placement(tmp_path, aggregating(*nodes), 200)[1]
    assert (found.check.code, found.finding.numbers["aggregators"]) == ("M10", 200)


def test_aggregators_on_some_of_the_nodes_are_not_too_many(tmp_path: Path) -> None:
    """The trace names the node of three of the four processes."""
    modules = aggregating("a", "a", "a")
    assert unknown(tmp_path, collective(), modules=modules) >= {"M08", "M09", "M10"}


def test_a_heat_map_does_not_tell_the_nodes_of_aggregators(tmp_path: Path) -> None:
    """Two nodes and two aggregators, which may be on the same node."""
    rows = [Heatmap("POSIX", rank, 0.1, [0, 32 * MIB], [0, 0]) for rank in (0, 1)]
    calls = aggregating("a", "b", idle="ab")["DXT_MPIIO"]
    modules = {"DXT_MPIIO": calls, "HEATMAP": (1, heatmap_bytes(rows))}
    log = {"modules": modules, "names": ["heatmap:POSIX"]}
    assert unknown(tmp_path, collective(), **log) >= {"M08", "M09", "M10"}


def test_without_a_trace_the_aggregators_are_unknown(tmp_path: Path) -> None:
    assert unknown(tmp_path, collective()) >= {"M08", "M09", "M10"}


def test_independent_calls_have_no_aggregators(tmp_path: Path) -> None:
    records = [mpiio_record("/f", INDEP_WRITES=64), posix_record("/f", WRITES=64)]
    assert not unknown(tmp_path, records) & {"M08", "M09", "M10"}


# I07: collective calls that ran as independent ones.


def alike(requests: int = 64, calls: int = 64, **posix: float) -> Records:
    moved = calls * MIB
    return [
        mpiio_record("/f", COLL_WRITES=calls, BYTES_WRITTEN=moved, SIZE_WRITE_AGG_1M_4M=calls),
        posix_record(
            "/f",
            **{"WRITES": requests, "BYTES_WRITTEN": moved, "SIZE_WRITE_1M_4M": requests, **posix},
        ),
    ]


def test_calls_that_look_alike_in_both_layers_ran_alone(tmp_path: Path) -> None:
    found = check_records(tmp_path, alike())["I07"].finding
    assert (found.numbers["calls"], found.files[0].path) == (64, "/f")


@pytest.mark.parametrize(
    "records",
    [
        # Other numbers, other sizes, other bytes.
        alike(requests=16),
        alike(SIZE_WRITE_1M_4M=0, SIZE_WRITE_4M_10M=64),
        alike(BYTES_WRITTEN=3 * 64 * MIB),
        # The same requests by half of the processes: the bytes of the others are 0.
        alike(F_VARIANCE_RANK_BYTES=float((16 * MIB) ** 2)),
        [mpiio_record("/f", COLL_WRITES=64, BYTES_WRITTEN=64 * MIB)],
        [
            mpiio_record("/f", INDEP_WRITES=64, BYTES_WRITTEN=64, SIZE_WRITE_AGG_0_100=64),
            posix_record("/f", WRITES=64, BYTES_WRITTEN=64, SIZE_WRITE_0_100=64),
        ],
    ],
)
def test_calls_that_differ_from_the_requests_below_did_not(
    records: Records, tmp_path: Path
) -> None:
    assert "I07" not in check_records(tmp_path, records)


def test_the_calls_of_one_process_are_no_case(tmp_path: Path) -> None:
    assert "I07" not in check_records(tmp_path, alike(), nprocs=1)


def both_layers(ranks: Sequence[int], below: Sequence[int], lengths: Sequence[int]) -> Modules:
    """Each of `ranks` calls with 1 MiB; each of `below` makes requests of its length."""
    above = [Dxt("DXT_MPIIO", "/f", rank, "a", [(0, MIB, 0.0, 1.0)]) for rank in ranks]
    requests = [
        Dxt("DXT_POSIX", "/f", rank, "a", [(0, length, 0.0, 1.0)])
        for rank, length in zip(below, lengths, strict=True)
    ]
    return {"DXT_MPIIO": (2, dxt_bytes(above)), "DXT_POSIX": (1, dxt_bytes(requests))}


@pytest.mark.parametrize(
    ("below", "lengths", "ran_alone"),
    [
        ([0, 1, 2, 3], [MIB] * 4, True),
        # A view spreads the bytes elsewhere; the process and the length tell.
        ([3, 2, 1, 0], [MIB] * 4, True),
        # Rank 0 collects the data of rank 1.
        ([0, 0, 2, 3], [MIB] * 4, False),
        ([0, 1, 2, 3], [2 * MIB, MIB, MIB, MIB // 2], False),
    ],
)
def test_a_trace_tells_the_processes_below(
    below: list[int], lengths: list[int], ran_alone: bool, tmp_path: Path
) -> None:
    records = [
        mpiio_record("/f", COLL_WRITES=4, BYTES_WRITTEN=4 * MIB),
        posix_record("/f", WRITES=4, BYTES_WRITTEN=sum(lengths)),
    ]
    modules = both_layers([0, 1, 2, 3], below, lengths)
    assert ("I07" in check_records(tmp_path, records, modules=modules)) == ran_alone


# Lustre.


def large(bytes_: int = GIB, nprocs: int = 4, path: str = "/l/f") -> CounterRecord:
    return posix_record(path, WRITES=nprocs, BYTES_WRITTEN=bytes_, MAX_BYTE_WRITTEN=bytes_ - 1)


def test_one_stripe_for_a_large_shared_file(tmp_path: Path) -> None:
    one = {"LUSTRE": (1, lustre_bytes_1("/l/f", -1, MIB, [17]))}
    [file] = check_records(tmp_path, [large()], modules=one)["I03"].finding.files
    assert (file.path, file.number) == ("/l/f", GIB)
    assert "I03" not in check_records(tmp_path, [large(GIB - 1)], modules=one)
    two = {"LUSTRE": (1, lustre_bytes_1("/l/f", -1, MIB, [17, 18]))}
    assert "I03" not in check_records(tmp_path, [large()], modules=two)
    unique = posix_record("/l/f", 0, BYTES_WRITTEN=GIB, MAX_BYTE_WRITTEN=GIB - 1)
    assert "I03" not in check_records(tmp_path, [unique], modules=one)


def test_only_components_with_bytes_of_the_file_count(tmp_path: Path) -> None:
    """The second component begins behind the file's last byte."""

    def layout(start: int) -> Modules:
        components = [Component(MIB, [1], 0, start), Component(MIB, [2, 3], start)]
        return {"LUSTRE": (2, lustre_bytes_2("/l/f", -1, components))}

    assert "I03" in check_records(tmp_path, [large()], modules=layout(GIB))
    assert "I03" not in check_records(tmp_path, [large()], modules=layout(GIB - MIB))


@pytest.mark.parametrize(
    ("osts", "level"), [(124, "OK"), (123, "WARN"), (25, "WARN"), (24, "HIGH")]
)
def test_the_use_of_osts(osts: int, level: str, tmp_path: Path) -> None:
    """The written file system has 248 OSTs: half of them are 124, a tenth are 24.8."""
    modules = {"LUSTRE": (1, lustre_bytes_1("/l/f", -1, MIB, range(osts)))}
    found = check_records(tmp_path, [large()], modules=modules)["I04"].finding
    assert (found.level, found.numbers["used"], found.numbers["osts"]) == (level, osts, 248)


def test_osts_without_bytes_are_not_used(tmp_path: Path) -> None:
    """3 MiB with stripes of 1 MiB are on 3 OSTs, although the file could have 124."""
    modules = {"LUSTRE": (1, lustre_bytes_1("/l/f", -1, MIB, range(124)))}
    found = check_records(tmp_path, [large(3 * MIB)], modules=modules)["I04"].finding
    assert (found.level, found.numbers["used"]) == ("HIGH", 3)


@pytest.mark.parametrize(("osts", "level"), [(4, "OK"), (5, "WARN"), (20, "WARN"), (21, "HIGH")])
def test_version_2_needs_the_number_of_osts_of_the_site(
    osts: int, level: str, tmp_path: Path
) -> None:
    modules = {"LUSTRE": (2, lustre_bytes_2("/l/f", -1, [Component(MIB, [1, 2])]))}
    assert "I04" in unknown(tmp_path, [large()], modules=modules)
    site = Thresholds(osts=osts)
    found = check_records(tmp_path, [large()], modules=modules, thresholds=site)["I04"]
    assert found.finding.level == level


# I01, I02, I06.


def test_an_allocation_unlike_the_decision(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.darshan", [large()], nprocs=4)
    unasked = check_log(path)
    assert "I01" not in codes(unasked) | unasked.unknown.keys()
    other = check_log(path, allocation=IoNodesOfRun(2, 8, 100.0, 400.0))
    assert "I01" in codes(other)
    same = check_log(path, allocation=IoNodesOfRun(8, 8, 400.0, 400.0))
    assert "I01" not in codes(same) | same.unknown.keys()


def test_the_share_of_metadata_is_that_of_all_files(tmp_path: Path) -> None:
    """Of POSIX and STDIO: 53 of 60 s. MPI-IO's records repeat POSIX's."""
    records = [
        shared(F_META_TIME=2, F_WRITE_TIME=6),
        mpiio_record("/f", COLL_WRITES=4, BYTES_WRITTEN=1000, F_META_TIME=90),
        stdio_record("/log", 1, WRITES=1, BYTES_WRITTEN=5, F_META_TIME=1, F_READ_TIME=1),
        posix_record("/empty", 2, OPENS=1, F_META_TIME=50),
    ]
    found = check_records(tmp_path, records)["I02"].finding
    assert found.numbers["share"] == pytest.approx(53 / 60)


def test_the_slowest_process_has_its_share_of_metadata_beside(tmp_path: Path) -> None:
    records = [
        own(0, BYTES_WRITTEN=9, F_META_TIME=1, F_WRITE_TIME=1),
        own(1, BYTES_WRITTEN=9, F_META_TIME=1, F_WRITE_TIME=4),
    ]
    found = check_records(tmp_path, records)["I02"].finding
    assert found.numbers["share"] == pytest.approx(2 / 7)
    assert (found.numbers["rank"], found.numbers["slowest_share"]) == (1, pytest.approx(0.2))


def test_with_too_little_io_no_cause_matters(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.darshan", [own(0, BYTES_WRITTEN=2 * MIB)], nprocs=4)
    found = check_log(path)
    assert {"I06", "D01"} <= codes(found)
    assert {cause.importance for cause in found.causes} == {"negligible"}


def test_one_busy_process_is_not_hidden_by_the_others(tmp_path: Path) -> None:
    """0.25 s on average, but 1 s of one process; of a run of 100 s."""
    busy = shared(F_WRITE_TIME=1, F_SLOWEST_RANK_TIME=1)
    assert "I06" not in check_records(tmp_path, [busy])
    assert "I06" in check_records(tmp_path, [shared(F_WRITE_TIME=1, F_SLOWEST_RANK_TIME=0.9)])


def test_without_run_time_the_share_of_io_is_not_evaluated(tmp_path: Path) -> None:
    path = write_log(tmp_path / "a.darshan", [shared()], nprocs=4, run_seconds=0)
    checked = check_log(path)
    assert "I06" not in codes(checked) | checked.unknown.keys()


def test_a_log_that_may_hide_io_says_nothing_about_its_amount(tmp_path: Path) -> None:
    """Darshan counts a call of mmap alone, and the time of DAOS does not count."""
    assert "I06" in unknown(tmp_path, [shared()], partial=["POSIX"])
    assert "I06" in unknown(tmp_path, [shared(MMAPS=2)])
    assert "I06" in unknown(tmp_path, [shared(), counter_record("DFS", "/daos/f")])
    # Darshan's shared library never counts mappings.
    assert "I06" in check_records(tmp_path, [shared(MMAPS=-1)])


def checked_log(folder: Path, records: Records, *, nprocs: int = 4, **log: object) -> Checked:
    return check_log(write_log(folder / "app.darshan", records, nprocs=nprocs, **log))  # type: ignore[arg-type]


def codes(checked: Checked) -> set[str]:
    return {each.check.code for each in checked.findings}


def unknown(folder: Path, records: Records, **log: object) -> set[str]:
    return set(checked_log(folder, records, **log).unknown)
