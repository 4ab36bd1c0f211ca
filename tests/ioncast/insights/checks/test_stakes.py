"""The seconds that each cause can cost at most, from counters whose sums one can do by hand.

Unless a test says otherwise, four processes run for 100 s.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ioncast.insights.checks.values import Applied, CheckedCause, Thresholds
from tests.support.checking import check_log, check_records
from tests.support.log_bytes import Dxt, dxt_bytes
from tests.support.records import (
    CounterRecord,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

MIB = 1 << 20
LARGE = {"WRITES": 100, "BYTES_WRITTEN": 400 * MIB, "SIZE_WRITE_1M_4M": 100}
SMALL = {"WRITES": 2000, "BYTES_WRITTEN": 20 * MIB, "SIZE_WRITE_1K_10K": 2000}


def seconds(tmp_path: Path, records: Sequence[CounterRecord], code: str) -> float:
    found = check_records(tmp_path, records)[code].seconds_at_stake
    assert found is not None
    return found


def cause(tmp_path: Path, records: Sequence[CounterRecord], name: str) -> CheckedCause:
    path = write_log(tmp_path / "app.darshan", records, nprocs=4)
    return next(each for each in check_log(path).causes if each.name == name)


def of_rank(rank: int, path: str = "/f", **counters: float) -> CounterRecord:
    """A file of one process."""
    return posix_record(f"{path}{rank}", rank, OPENS=1, **counters)


def test_small_requests_take_their_part_of_the_time_of_the_slowest_process(tmp_path: Path) -> None:
    """Of rank 1's requests 2,000 of 2,500 are small; it writes for 40 s, rank 0 for 10 s."""
    records = [
        of_rank(0, **SMALL, F_WRITE_TIME=10),
        of_rank(1, **SMALL | {"WRITES": 2500, "SIZE_WRITE_1M_4M": 500}, F_WRITE_TIME=40),
    ]
    assert seconds(tmp_path, records, "P06") == pytest.approx(40 * 2000 / 2500)


def test_the_slowest_process_of_a_reduced_record_counts(tmp_path: Path) -> None:
    """Four processes write for 40 s together, and read metadata for 10 s; the slowest needs 20 s.

    So of each second of all, the slowest process has 20 / 50.
    """
    record = posix_record(
        "/f", OPENS=4, **SMALL, F_WRITE_TIME=40, F_META_TIME=10, F_SLOWEST_RANK_TIME=20
    )
    assert seconds(tmp_path, [record], "P06") == pytest.approx(40 * 20 / 50)


def test_without_a_slowest_process_the_mean_counts(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "a.darshan", [posix_record("/f", OPENS=4, **SMALL, F_WRITE_TIME=40)], nprocs=4
    )
    checked = check_log(path)
    assert checked.verdict.is_mean
    assert checked.verdict.write_seconds == pytest.approx(10)
    assert checked.causes[0].seconds_at_stake == pytest.approx(10)


def test_where_other_files_are_faster_small_requests_cost_the_difference(tmp_path: Path) -> None:
    """Rank 0 writes 20 MiB in 10 s with small requests, and 400 MiB in 20 s with large ones."""
    records = [
        of_rank(0, "/small", **SMALL, F_WRITE_TIME=10),
        of_rank(0, "/large", **LARGE, F_WRITE_TIME=20),
    ]
    assert seconds(tmp_path, records, "P06") == pytest.approx(10 - 20 / (400 / 20))


def test_a_part_of_the_requests_costs_at_most_its_part_of_the_time(tmp_path: Path) -> None:
    """Half of the requests are small: 5 of 10 s, although other files would be 9 s faster."""
    half = {"WRITES": 4000, "BYTES_WRITTEN": 20 * MIB, "SIZE_WRITE_1K_10K": 2000}
    half["SIZE_WRITE_1M_4M"] = 2000
    records = [
        of_rank(0, "/small", **half, F_WRITE_TIME=10),
        of_rank(0, "/large", **LARGE, F_WRITE_TIME=20),
    ]
    assert seconds(tmp_path, records, "P06") == pytest.approx(5)


def test_where_other_files_are_slower_all_their_time_counts(tmp_path: Path) -> None:
    records = [
        of_rank(0, "/small", **SMALL, F_WRITE_TIME=1),
        of_rank(0, "/large", **LARGE, F_WRITE_TIME=60),
    ]
    assert seconds(tmp_path, records, "P06") == pytest.approx(1)


def test_a_few_bytes_of_a_cache_are_no_rate(tmp_path: Path) -> None:
    few = {"WRITES": 4, "BYTES_WRITTEN": 8 * MIB, "SIZE_WRITE_1M_4M": 4, "F_WRITE_TIME": 0.01}
    records = [of_rank(0, "/small", **SMALL, F_WRITE_TIME=10), of_rank(0, "/large", **few)]
    assert seconds(tmp_path, records, "P06") == pytest.approx(10)


def test_random_requests_are_an_estimate(tmp_path: Path) -> None:
    """1,500 of 2,000 reads begin before the end of the read before them; one is the first."""
    record = of_rank(
        0,
        READS=2000,
        BYTES_READ=8000 * MIB,
        SIZE_READ_1M_4M=2000,
        CONSEC_READS=499,
        SEQ_READS=499,
        F_READ_TIME=40,
    )
    found = check_records(tmp_path, [record])["P11"]
    assert found.seconds_at_stake == pytest.approx(40 * 1500 / 2000)
    assert found.finding.is_estimate


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # A request of 4 MiB touches 5 blocks of 1 MiB, 2 of them in part.
        (4 * MIB, 40 * 2 / 5),
        (128 * MIB, 40 * 2 / 129),
    ],
)
def test_unaligned_requests_cost_their_edges(size: int, expected: float, tmp_path: Path) -> None:
    record = of_rank(
        0,
        WRITES=100,
        BYTES_WRITTEN=100 * size,
        SIZE_WRITE_1M_4M=100,
        FILE_NOT_ALIGNED=100,
        FILE_ALIGNMENT=MIB,
        F_WRITE_TIME=40,
    )
    found = check_records(tmp_path, [record])["P08"]
    assert found.seconds_at_stake == pytest.approx(expected)
    assert found.finding.is_estimate


def test_small_requests_are_not_unaligned_too(tmp_path: Path) -> None:
    """They begin between blocks because they are small."""
    record = of_rank(0, **SMALL, FILE_NOT_ALIGNED=2000, FILE_ALIGNMENT=MIB, F_WRITE_TIME=40)
    assert seconds(tmp_path, [record], "P08") == 0


def test_buffers_that_are_not_aligned_have_no_known_cost(tmp_path: Path) -> None:
    record = of_rank(0, **LARGE, MEM_NOT_ALIGNED=100, F_WRITE_TIME=40)
    found = check_records(tmp_path, [record])["P07"]
    assert (found.seconds_at_stake, found.importance) == (None, "unknown")


def test_metadata_cost_the_metadata_of_the_slowest_process(tmp_path: Path) -> None:
    records = [
        of_rank(0, **LARGE, F_WRITE_TIME=10, F_META_TIME=35),
        of_rank(1, **LARGE, F_WRITE_TIME=20, F_META_TIME=1),
        stdio_record("/log", 0, WRITES=1, BYTES_WRITTEN=5, F_META_TIME=3),
    ]
    for code in ("P17", "I02"):
        assert seconds(tmp_path, records, code) == pytest.approx(38)


def test_stdio_costs_its_data_time(tmp_path: Path) -> None:
    record = stdio_record(
        "/f", 0, WRITES=9, BYTES_WRITTEN=MIB, READS=9, F_WRITE_TIME=4, F_READ_TIME=2, F_META_TIME=7
    )
    assert seconds(tmp_path, [record], "S01") == pytest.approx(6)


def test_bytes_that_are_moved_again_cost_their_part(tmp_path: Path) -> None:
    """400 MiB are written into a file of 100 MiB."""
    record = of_rank(0, **LARGE, MAX_BYTE_WRITTEN=100 * MIB - 1, F_WRITE_TIME=40)
    assert seconds(tmp_path, [record], "P10") == pytest.approx(30)


def test_a_slow_process_of_a_shared_file_costs_its_time_above_the_mean(tmp_path: Path) -> None:
    record = posix_record(
        "/f",
        OPENS=4,
        **LARGE,
        F_WRITE_TIME=40,
        SLOWEST_RANK=3,
        F_SLOWEST_RANK_TIME=30,
        F_FASTEST_RANK_TIME=1,
    )
    assert seconds(tmp_path, [record], "P19") == pytest.approx(30 - 40 / 4)


def test_a_rank_that_does_all_costs_its_time_above_the_mean_of_the_run(tmp_path: Path) -> None:
    """The other three processes do nothing."""
    records = [of_rank(0, **LARGE, F_WRITE_TIME=40)]
    for code in ("D01", "D02"):
        assert seconds(tmp_path, records, code) == pytest.approx(40 - 40 / 4)


def test_a_rank_that_is_not_the_slowest_costs_nothing(tmp_path: Path) -> None:
    """Rank 0 moves most, but rank 1 takes longer; without rank 0 the run would end as late."""
    records = [
        of_rank(0, **LARGE | {"BYTES_WRITTEN": 800 * MIB, "WRITES": 200}, F_WRITE_TIME=20),
        of_rank(1, **LARGE, F_WRITE_TIME=40),
    ]
    assert seconds(tmp_path, records, "D01") == 0


def test_independent_calls_of_shared_files_cost_their_time(tmp_path: Path) -> None:
    """They are small; the file of one process does not count."""
    small = {"INDEP_WRITES": 2000, "SIZE_WRITE_AGG_1K_10K": 2000, "BYTES_WRITTEN": MIB}
    records = [
        mpiio_record("/f", **small, F_WRITE_TIME=40, F_SLOWEST_RANK_TIME=15),
        mpiio_record("/own", 0, **small, F_WRITE_TIME=9),
    ]
    assert seconds(tmp_path, records, "M03") == pytest.approx(15)


def test_blocking_calls_cost_no_more_than_the_pause_after_them(tmp_path: Path) -> None:
    """Writes of 10 s before a pause of 4 s, of 3 s before 5 s, and of 9 s before the end."""
    windows = ((0, 10, 10), (14, 17, 3), (22, 31, 9))
    records = [
        mpiio_record(
            f"/f{number}",
            0,
            INDEP_WRITES=4,
            BYTES_WRITTEN=4 * MIB,
            F_WRITE_START_TIMESTAMP=start,
            F_WRITE_END_TIMESTAMP=end,
            F_WRITE_TIME=took,
        )
        for number, (start, end, took) in enumerate(windows)
    ]
    assert seconds(tmp_path, records, "M07") == pytest.approx(4 + 3)


def test_pauses_come_from_the_trace_if_the_log_has_one(tmp_path: Path) -> None:
    """Two writes of 10 s, with 6 s between them, to a file that stays open."""
    record = mpiio_record("/f", 0, INDEP_WRITES=2, BYTES_WRITTEN=2 * MIB, F_WRITE_TIME=20)
    segments = [(0, MIB, 0.0, 10.0), (MIB, MIB, 16.0, 26.0)]
    trace = dxt_bytes([Dxt("DXT_MPIIO", "/f", 0, "a", segments)])
    path = write_log(tmp_path / "a.darshan", [record], nprocs=4, modules={"DXT_MPIIO": (2, trace)})
    [found] = [each for each in check_log(path).findings if each.check.code == "M07"]
    assert found.seconds_at_stake == pytest.approx(6)


def test_the_same_time_is_at_stake_once(tmp_path: Path) -> None:
    """All writes are small, in a shared file and moved four times; only 40 s can be saved."""
    record = posix_record(
        "/f",
        OPENS=4,
        **SMALL,
        MAX_BYTE_WRITTEN=5 * MIB - 1,
        F_WRITE_TIME=160,
        F_SLOWEST_RANK_TIME=40,
    )
    path = write_log(tmp_path / "a.darshan", [record], nprocs=4)
    checked = check_log(path)
    small = next(each for each in checked.causes if each.name == "small requests")
    assert [each.check.code for each in small.findings] == ["P06", "P16"]
    assert small.seconds_at_stake == pytest.approx(40)
    assert checked.verdict.at_stake_seconds == pytest.approx(40)


def test_no_process_waits_for_longer_than_the_run(tmp_path: Path) -> None:
    """Several threads of a process spend 300 s in a run of 100 s."""
    records = [of_rank(0, **LARGE, F_WRITE_TIME=60, F_META_TIME=240)]
    path = write_log(tmp_path / "a.darshan", records, nprocs=1)
    verdict = check_log(path).verdict
    assert (verdict.io_seconds, verdict.metadata_seconds) == pytest.approx((100, 80))


@pytest.mark.parametrize(
    ("took", "importance"), [(9.9, "minor"), (10, "major"), (1, "minor"), (0.99, "negligible")]
)
def test_the_importance_is_the_share_of_the_run_time(
    took: float, importance: str, tmp_path: Path
) -> None:
    records = [of_rank(0, **SMALL, F_WRITE_TIME=took)]
    assert cause(tmp_path, records, "small requests").importance == importance


def test_thresholds_of_importance_are_settings(tmp_path: Path) -> None:
    records = [of_rank(0, **SMALL, F_WRITE_TIME=30)]
    strict = Thresholds(major_share=0.5, minor_share=0.4)
    assert check_records(tmp_path, records, thresholds=strict)["P06"].importance == "negligible"


def test_of_missing_records_nothing_is_negligible(tmp_path: Path) -> None:
    records = [of_rank(0, **SMALL, F_WRITE_TIME=0.1)]
    path = write_log(tmp_path / "a.darshan", records, nprocs=4, partial=["POSIX"])
    [found] = [each for each in check_log(path).findings if each.check.code == "P06"]
    assert found.importance == "unknown"


def test_without_a_run_time_no_share_is_known(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "a.darshan", [of_rank(0, **SMALL, F_WRITE_TIME=9)], nprocs=4, run_seconds=0
    )
    [found] = [each for each in check_log(path).findings if each.check.code == "P06"]
    assert (found.seconds_at_stake, found.share_of_run) == (pytest.approx(9), None)
    assert found.importance == "unknown"


# I08: processes that are slow at equal bytes.


def slow(*took: float, **counters: float) -> list[CounterRecord]:
    """A file for each process, which writes for so many seconds."""
    return [of_rank(rank, **LARGE | counters, F_WRITE_TIME=t) for rank, t in enumerate(took)]


def test_a_slow_process_with_equal_bytes_is_named(tmp_path: Path) -> None:
    found: Applied = check_records(tmp_path, slow(10, 10, 10, 70))["I08"]
    assert found.finding.ranks == (3,)
    assert [file.path for file in found.finding.files] == ["/f3"]
    assert found.seconds_at_stake == pytest.approx(70 - 25)


def test_the_host_of_a_slow_process_comes_from_the_trace(tmp_path: Path) -> None:
    """Rank 3 ran on host d, so its neighbours on a, b and c are not named."""
    trace = dxt_bytes(
        Dxt("DXT_POSIX", f"/f{rank}", rank, host, [(0, 400 * MIB, 0.0, took)])
        for rank, (host, took) in enumerate(zip("abcd", (10.0, 10.0, 10.0, 70.0), strict=True))
    )
    path = write_log(
        tmp_path / "a.darshan", slow(10, 10, 10, 70), nprocs=4, modules={"DXT_POSIX": (1, trace)}
    )
    [found] = [each for each in check_log(path).findings if each.check.code == "I08"]
    assert found.sentence.endswith("rank 3 takes 70.00 s; on d")


@pytest.mark.parametrize(
    "records",
    [
        slow(10, 10, 10, 19),
        slow(0.1, 0.1, 0.1, 1.0),
        slow(10, 70),
        # It takes longer because it has more to do, which D01 and D02 tell.
        [*slow(10, 10, 10), of_rank(3, **LARGE | {"BYTES_WRITTEN": 4000 * MIB}, F_WRITE_TIME=70)],
    ],
    ids=["twice", "seconds", "two", "bytes"],
)
def test_other_processes_are_not_slow(records: list[CounterRecord], tmp_path: Path) -> None:
    assert "I08" not in check_records(tmp_path, records)


def test_the_shared_cases_of_files_for_each_process(shared_data: Path) -> None:
    """One of 32 processes takes 680 s, the others 10 s: 650 s above the mean."""
    uneven = check_log(shared_data.parent / "cases" / "fpp-one-slow.darshan")
    first = uneven.causes[0]
    assert (first.name, first.importance) == ("unequal processes", "major")
    assert first.seconds_at_stake == pytest.approx(680 - 31 * 10 / 32 - 680 / 32, rel=0.01)
    even = check_log(shared_data.parent / "cases" / "fpp-even.darshan")
    assert not {each.importance for each in even.causes} & {"major", "minor"}
