"""The checks on counters, each with a log that has the finding and one that has it not.

The expected numbers are in the comments of Drishti's Table II and in its figure of AMReX (Ather
2022), or follow from the counters of the written log.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ioncast.insights.checks.record import to_record
from ioncast.insights.checks.values import Thresholds
from tests.support.checking import check_log, check_records, facts_in
from tests.support.records import (
    CounterRecord,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

MIB = 1 << 20
Records = Sequence[CounterRecord]


def contiguous(path: str = "/scratch/f", rank: int = -1, **counters: float) -> CounterRecord:
    """Four processes write 100 requests of 4 MiB each into parts of their own, aligned."""
    return posix_record(
        path,
        rank,
        **{
            "OPENS": 4,
            "WRITES": 400,
            "BYTES_WRITTEN": 1600 * MIB,
            "MAX_BYTE_WRITTEN": 1600 * MIB - 1,
            "CONSEC_WRITES": 396,
            "SEQ_WRITES": 399,
            "SIZE_WRITE_1M_4M": 400,
            **counters,
        },
    )


def reads(n: int, **counters: float) -> CounterRecord:
    return posix_record("/scratch/in", READS=n, OPENS=4, **counters)


def writes(n: int, **counters: float) -> CounterRecord:
    return posix_record("/scratch/out", WRITES=n, OPENS=4, **counters)


# For each code: the records of a log with the finding, and of one that is just below it.
CASES: dict[str, tuple[Records, Records]] = {
    "S01": (
        [stdio_record("/scratch/t", WRITES=1, BYTES_WRITTEN=11), contiguous(BYTES_WRITTEN=89)],
        [stdio_record("/scratch/t", WRITES=1, BYTES_WRITTEN=10), contiguous(BYTES_WRITTEN=90)],
    ),
    # (W - R) / N = 11 / 99, and 10 / 100.
    "P01": ([posix_record("/f", READS=44, WRITES=55)], [posix_record("/f", READS=45, WRITES=55)]),
    "P02": ([posix_record("/f", READS=55, WRITES=44)], [posix_record("/f", READS=55, WRITES=45)]),
    "P03": (
        [posix_record("/f", BYTES_READ=44, BYTES_WRITTEN=55)],
        [posix_record("/f", BYTES_READ=45, BYTES_WRITTEN=55)],
    ),
    "P04": (
        [posix_record("/f", BYTES_READ=55, BYTES_WRITTEN=44)],
        [posix_record("/f", BYTES_READ=55, BYTES_WRITTEN=45)],
    ),
    "P05": (
        [reads(10_009, SIZE_READ_100_1K=1001, SIZE_READ_1M_4M=9008)],
        [reads(10_000, SIZE_READ_100_1K=1000, SIZE_READ_1M_4M=9000)],
    ),
    "P06": (
        [writes(10_009, SIZE_WRITE_0_100=1001, SIZE_WRITE_1M_4M=9008)],
        [writes(10_000, SIZE_WRITE_0_100=1000, SIZE_WRITE_1M_4M=9000)],
    ),
    "P07": ([reads(100, MEM_NOT_ALIGNED=11)], [reads(100, MEM_NOT_ALIGNED=10)]),
    "P08": ([reads(100, FILE_NOT_ALIGNED=11)], [reads(100, FILE_NOT_ALIGNED=10)]),
    "P09": (
        [reads(2, BYTES_READ=1101, MAX_BYTE_READ=999)],
        [reads(2, BYTES_READ=1100, MAX_BYTE_READ=999)],
    ),
    "P10": (
        [writes(2, BYTES_WRITTEN=1101, MAX_BYTE_WRITTEN=999)],
        [writes(2, BYTES_WRITTEN=1100, MAX_BYTE_WRITTEN=999)],
    ),
    # Four processes: four first requests. 1,001 of 5,000 others, and 1,000 of 5,000.
    "P11": ([reads(5004, SEQ_READS=3999)], [reads(5004, SEQ_READS=4000)]),
    # At least 80 % of 10 others; the second log has 7 of 10.
    "P12": ([reads(14, SEQ_READS=8, CONSEC_READS=7)], [reads(14, SEQ_READS=7, CONSEC_READS=7)]),
    "P13": ([writes(5004, SEQ_WRITES=3999)], [writes(5004, SEQ_WRITES=4000)]),
    "P14": (
        [writes(14, SEQ_WRITES=8, CONSEC_WRITES=7)],
        [writes(14, SEQ_WRITES=7, CONSEC_WRITES=7)],
    ),
    # The second log has the same requests, but each of its two files has one process.
    "P15": (
        [posix_record("/f", rank, READS=600, SIZE_READ_0_100=600) for rank in (0, 1)],
        [posix_record(f"/f{rank}", rank, READS=600, SIZE_READ_0_100=600) for rank in (0, 1)],
    ),
    "P16": (
        [posix_record("/f", rank, WRITES=600, SIZE_WRITE_0_100=600) for rank in (0, 1)],
        [posix_record(f"/f{rank}", rank, WRITES=600, SIZE_WRITE_0_100=600) for rank in (0, 1)],
    ),
    "M01": ([contiguous()], [contiguous(), mpiio_record("/scratch/f", COLL_WRITES=4)]),
    "M02": (
        [mpiio_record("/f", INDEP_READS=1001)],
        [mpiio_record("/f", INDEP_READS=1001, COLL_READS=1)],
    ),
    "M03": ([mpiio_record("/f", INDEP_WRITES=1001)], [mpiio_record("/f", INDEP_WRITES=1000)]),
    "M04": ([mpiio_record("/f", SPLIT_READS=1)], [mpiio_record("/f", INDEP_READS=1)]),
    "M05": ([mpiio_record("/f", COLL_WRITES=1)], [mpiio_record("/f", NB_WRITES=1)]),
    "M06": (
        [mpiio_record("/f", COLL_READS=8)],
        [mpiio_record("/f", COLL_READS=8, NB_READS=1)],
    ),
    "M07": (
        [mpiio_record("/f", INDEP_WRITES=8)],
        [mpiio_record("/f", INDEP_WRITES=8, SPLIT_WRITES=1)],
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_a_check_finds_its_condition(code: str, tmp_path: Path) -> None:
    found = check_records(tmp_path, CASES[code][0])[code]
    assert found.finding.level in found.check.levels
    assert found.finding.thresholds.keys() <= vars(Thresholds()).keys()
    assert "{" not in found.sentence


@pytest.mark.parametrize("code", CASES)
def test_a_check_is_silent_just_below_its_threshold(code: str, tmp_path: Path) -> None:
    assert code not in check_records(tmp_path, CASES[code][1])


@pytest.mark.parametrize("operation", ["READ", "WRITE"])
@pytest.mark.parametrize(
    ("small", "large", "is_found"),
    [
        (1001, 9008, True),
        # Just 1,000 of them, and just a tenth.
        (1000, 1000, False),
        (2000, 18_000, False),
    ],
)
def test_small_requests_need_both_their_share_and_their_count(
    operation: str, small: int, large: int, is_found: bool, tmp_path: Path
) -> None:
    counters = {
        f"{operation}S": small + large,
        f"SIZE_{operation}_0_100": small,
        f"SIZE_{operation}_1M_4M": large,
    }
    found = check_records(tmp_path, [posix_record("/f", **counters)])
    expected = {"READ": {"P05", "P15"}, "WRITE": {"P06", "P16"}}[operation]
    assert {"P05", "P06", "P15", "P16"} & found.keys() == (expected if is_found else set())


@pytest.mark.parametrize(("operation", "code"), [("READ", "P11"), ("WRITE", "P13")])
@pytest.mark.parametrize(
    ("random", "ordered", "is_found"),
    [
        (1001, 3999, True),
        # Just 1,000 of them, and just a fifth.
        (1000, 1000, False),
        (2000, 8000, False),
    ],
)
def test_random_requests_need_both_their_share_and_their_count(
    operation: str, code: str, random: int, ordered: int, is_found: bool, tmp_path: Path
) -> None:
    """The first request of each of the four processes does not count."""
    counters = {f"{operation}S": 4 + random + ordered, f"SEQ_{operation}S": ordered}
    found = check_records(tmp_path, [posix_record("/f", OPENS=4, **counters)])
    assert (code in found) == is_found


@pytest.mark.parametrize("code", CASES)
def test_nothing_is_found_without_requests(code: str, tmp_path: Path) -> None:
    idle = [posix_record("/f", OPENS=1), mpiio_record("/f"), stdio_record("/t", OPENS=1)]
    assert code not in check_records(tmp_path, idle)


def test_a_contiguous_aligned_program_with_large_requests_has_only_good_findings(
    tmp_path: Path,
) -> None:
    collective = mpiio_record("/scratch/f", COLL_WRITES=400, NB_WRITES=4, BYTES_WRITTEN=1600 * MIB)
    found = check_records(tmp_path, [contiguous(), collective])
    assert not {code for code, each in found.items() if each.finding.level in ("HIGH", "WARN")}
    assert {"M05", "P14"} <= found.keys()
    assert found["P14"].sentence == (
        "99.00% of the writes are consecutive, 0.75% are sequential with gaps, 0.00% are surely"
        " random"
    )


def test_an_incomplete_log_calls_nothing_good(tmp_path: Path) -> None:
    found = check_records(tmp_path, [contiguous()], partial=["POSIX"])
    assert "P14" not in found
    assert "M01" in found


def test_standard_streams_do_not_count_as_stdio(tmp_path: Path) -> None:
    printed = stdio_record("<STDOUT>", WRITES=1000, BYTES_WRITTEN=1 << 30)
    assert "S01" not in check_records(tmp_path, [printed, contiguous()])


def test_the_bytes_of_a_file_count_once_for_stdio(tmp_path: Path) -> None:
    """Of 100 + 11 bytes 11 move through STDIO, which is 9.9 %."""
    records = [
        contiguous("/scratch/f", BYTES_WRITTEN=100),
        mpiio_record("/scratch/f", COLL_WRITES=4, BYTES_WRITTEN=100),
        stdio_record("/scratch/t", WRITES=1, BYTES_WRITTEN=11),
    ]
    assert "S01" not in check_records(tmp_path, records)


def test_requests_of_exactly_one_mebibyte_are_not_small(tmp_path: Path) -> None:
    """Darshan counts them in the bin up to 1 MiB."""
    of_one_mib = writes(
        8192, SIZE_WRITE_100K_1M=8192, ACCESS1_ACCESS=MIB, ACCESS1_COUNT=8192, SEQ_WRITES=8188
    )
    assert {"P06", "P16"}.isdisjoint(check_records(tmp_path, [of_one_mib]))


def test_first_accesses_are_not_random(tmp_path: Path) -> None:
    """Each of 3,000 files gets one write, so none of them can be in order."""
    files = [posix_record(f"/scratch/{n}", 0, OPENS=1, WRITES=1) for n in range(3000)]
    assert {"P13", "P14"}.isdisjoint(check_records(tmp_path, files))


def test_files_without_a_known_block_size_do_not_count_as_aligned(tmp_path: Path) -> None:
    unknown = posix_record("/a", READS=10_000, FILE_ALIGNMENT=-1)
    unaligned = posix_record("/b", READS=100, FILE_NOT_ALIGNED=11)
    [file] = check_records(tmp_path, [unknown, unaligned])["P08"].finding.files
    assert (file.path, file.number, file.share) == ("/b", 11, 0.11)


def test_alignment_is_unknown_if_no_block_size_is_known(tmp_path: Path) -> None:
    log = write_log(
        tmp_path / "app.darshan", [posix_record("/a", READS=9, FILE_ALIGNMENT=-1)], nprocs=4
    )
    assert check_log(log).unknown["P08"] == "the log does not tell the alignment of the files"


def test_small_requests_are_named_by_files_with_half_of_the_thresholds_share(
    tmp_path: Path,
) -> None:
    records = [
        posix_record("/most", WRITES=9_400, SIZE_WRITE_0_100=9_400),
        posix_record("/some", WRITES=600, SIZE_WRITE_0_100=501),
        posix_record("/few", WRITES=500, SIZE_WRITE_0_100=500),
    ]
    found = check_records(tmp_path, records)["P06"]
    assert found.finding.numbers["files"] == 1
    assert [file.path for file in found.finding.files] == ["/most"]


def test_at_most_twenty_files_are_named_and_all_are_counted(tmp_path: Path) -> None:
    files = [posix_record(f"/{n:02}", READS=n, FILE_NOT_ALIGNED=n) for n in range(1, 31)]
    finding = check_records(tmp_path, files)["P08"].finding
    assert finding.numbers["files"] == 30
    assert [file.path for file in finding.files] == [f"/{n:02}" for n in range(30, 10, -1)]


@pytest.mark.parametrize(
    ("own", "variant"),
    [
        # MPI-IO asked for the extent, and POSIX read it five times: data sieving.
        (mpiio_record("/scratch/in", INDEP_READS=100, BYTES_READ=1000), "sieving"),
        # Read-modify-write: MPI-IO only wrote.
        (mpiio_record("/scratch/in", INDEP_WRITES=100, BYTES_WRITTEN=1000), "sieving_of_writes"),
        # The same by aggregators, where switching data sieving off changes nothing.
        (mpiio_record("/scratch/in", COLL_READS=100, BYTES_READ=1000), "buffering"),
        (mpiio_record("/scratch/in", COLL_WRITES=100, BYTES_WRITTEN=1000), "buffering_of_writes"),
        # The program itself read everything five times.
        (mpiio_record("/scratch/in", INDEP_READS=500, BYTES_READ=5000), ""),
        (mpiio_record("/scratch/other", INDEP_READS=5, BYTES_READ=1000), ""),
    ],
)
def test_amplification_by_mpiio_is_told_by_its_cause(
    own: CounterRecord, variant: str, tmp_path: Path
) -> None:
    below = reads(5, BYTES_READ=5000, MAX_BYTE_READ=999)
    found = check_records(tmp_path, [below, own])["P09"]
    assert found.finding.variant == variant
    assert found.finding.numbers["factor"] == 5
    assert ("data sieving" in found.sentence) == variant.startswith("sieving")
    assert ("collective buffering" in found.sentence) == variant.startswith("buffering")
    advised = {advice.key for advice in found.advice}
    if variant.startswith("buffering"):
        assert advised == {f"no_gaps_{'writes' if variant.endswith('writes') else 'reads'}"}


@pytest.mark.parametrize(
    ("calls", "key"), [("COLL_WRITES", "no_gaps_writes"), ("INDEP_WRITES", "no_sieving_writes")]
)
def test_repeated_writes_below_mpiio_are_told_by_their_cause(
    calls: str, key: str, tmp_path: Path
) -> None:
    """As with `ior -a MPIIO -w -c -b 20m -t 64k` and romio_cb_write=enable: 240 times the bytes."""
    below = writes(1280, BYTES_WRITTEN=240_000, MAX_BYTE_WRITTEN=999)
    own = mpiio_record("/scratch/out", BYTES_WRITTEN=1000, **{calls: 1280})
    found = check_records(tmp_path, [below, own])["P10"]
    assert found.finding.numbers["factor"] == 240
    assert found.advice[0].key == key


def test_data_sieving_of_some_files_is_counted(tmp_path: Path) -> None:
    records = [
        reads(5, BYTES_READ=5000, MAX_BYTE_READ=999),
        posix_record("/scratch/two", READS=5, BYTES_READ=2000, MAX_BYTE_READ=999),
        mpiio_record("/scratch/in", INDEP_READS=100, BYTES_READ=1000),
    ]
    found = check_records(tmp_path, records)["P09"]
    assert (found.finding.variant, found.finding.numbers["sieved"]) == ("partly", 1)
    assert found.file_words == ("5.00 times", "2.00 times")


def test_one_process_needs_no_mpiio(tmp_path: Path) -> None:
    assert "M01" not in check_records(tmp_path, [contiguous()], nprocs=1)


def test_a_file_with_as_many_independent_reads_as_writes_is_not_named(tmp_path: Path) -> None:
    records = [
        mpiio_record("/even", INDEP_READS=2000, INDEP_WRITES=2000),
        mpiio_record("/reads", INDEP_READS=1001, INDEP_WRITES=1000),
        mpiio_record("/few", INDEP_READS=1000),
    ]
    found = check_records(tmp_path, records)
    assert [file.path for file in found["M02"].finding.files] == ["/reads"]
    assert found["M03"].finding.files == ()


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/scratch/out.dat", ["nonblocking_writes"]),
        ("/scratch/plt.h5", ["asynchronous_hdf5", "nonblocking_writes"]),
    ],
)
def test_the_asynchronous_connector_is_advised_for_hdf5(
    path: str, keys: list[str], tmp_path: Path
) -> None:
    log = write_log(tmp_path / "app.darshan", [mpiio_record(path, COLL_WRITES=8)], nprocs=4)
    record = to_record("app", check_log(log), facts_in(log))
    [found] = [each for each in record["findings"] if each["code"] == "M07"]
    assert [advice["key"] for advice in found["advice"]] == keys
    libraries = [next(iter(advice["snippets"])) for advice in found["advice"]]
    assert libraries == (["hdf5", "mpiio"] if path.endswith(".h5") else ["mpiio"])


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ([], "collective_writes"),
        ([mpiio_record("/f", INDEP_WRITES=1, COLL_WRITES=1)], "collective_writes"),
        ([mpiio_record("/f", COLL_WRITES=1)], "collective_buffering"),
    ],
)
def test_advice_for_small_requests_depends_on_mpiio(
    more: list[CounterRecord], key: str, tmp_path: Path
) -> None:
    found = check_records(tmp_path, [*CASES["P06"][0], *more])["P06"]
    assert [advice.key for advice in found.advice] == [key, "larger_writes"]


def of_ior(
    n: int, size: int, *, consecutive: int, path: str = "/scratch/f", **calls: int
) -> Records:
    """Requests of four processes to a file, as Darshan counts those of IOR with MPI-IO."""
    size_bin = "1M_4M" if size > MIB else "10K_100K"
    moved = {"BYTES_WRITTEN": n * size, "MAX_BYTE_WRITTEN": n * size - 1}
    ordered = {"OPENS": 6, "WRITES": n, "CONSEC_WRITES": consecutive, "SEQ_WRITES": n - 1}
    return [
        posix_record(path, **ordered, **moved, **{f"SIZE_WRITE_{size_bin}": n}),
        mpiio_record(path, BYTES_WRITTEN=n * size, **{f"SIZE_WRITE_AGG_{size_bin}": n}, **calls),
    ]


# ior -a MPIIO -w with 1,280 calls of 64 KiB: -b 20m, and -b 64k -s 320.
APART = of_ior(1280, 65_536, consecutive=1276, INDEP_WRITES=1280)
IN_TURN = of_ior(1280, 65_536, consecutive=0, INDEP_WRITES=1280)
# -b 6400m -t 4m.
LARGE = of_ior(6400, 4 * MIB, consecutive=6396, INDEP_WRITES=6400)
# A call of 4 MiB with gaps, which POSIX moves in pieces of 512 KiB.
IN_PIECES = [
    of_ior(51_200, 65_536, consecutive=51_196, path="/scratch/f")[0],
    of_ior(6400, 4 * MIB, consecutive=0, INDEP_WRITES=6400)[1],
]


@pytest.mark.parametrize(
    ("records", "keys"),
    [
        (
            APART,
            {"M03": ["larger_writes"], "P06": ["larger_writes"], "P16": ["larger_writes"]},
        ),
        (
            IN_TURN,
            {
                "M03": ["collective_writes"],
                "P06": ["collective_writes", "larger_writes"],
                "P16": ["use_mpiio", "collective_writes"],
            },
        ),
        (LARGE, {"M03": []}),
    ],
)
def test_collective_calls_are_advised_for_small_requests_between_those_of_others(
    records: Records, keys: dict[str, list[str]], tmp_path: Path
) -> None:
    found = check_records(tmp_path, records)
    assert {
        code: [advice.key for advice in found[code].advice]
        for code in ("M03", "P06", "P16")
        if code in found
    } == keys


def test_independent_calls_of_1_mib_and_more_are_a_fact(tmp_path: Path) -> None:
    found = check_records(tmp_path, LARGE)["M03"]
    assert found.finding.level == "INFO"
    assert found.sentence.endswith("contiguous calls of 1 MiB and more need no others")


def test_large_calls_that_posix_moves_in_pieces_are_harmful(tmp_path: Path) -> None:
    found = check_records(tmp_path, IN_PIECES)["M03"]
    assert (found.finding.level, found.finding.variant) == ("HIGH", "")


def test_collective_calls_join_no_requests_in_a_file_of_one_process(tmp_path: Path) -> None:
    """Nobody else uses the file, so M03 does not ask for them, and P06 for larger requests."""
    records = [
        each
        for rank in range(4)
        for each in (
            posix_record(f"/f{rank}", rank, OPENS=1, WRITES=600, SIZE_WRITE_0_100=600),
            mpiio_record(f"/f{rank}", rank, INDEP_WRITES=600, SIZE_WRITE_AGG_0_100=600),
        )
    ]
    found = check_records(tmp_path, records)
    assert "M03" not in found
    assert [advice.key for advice in found["P06"].advice] == ["larger_writes"]


@pytest.mark.parametrize(
    ("records", "keys"),
    [
        ([reads(100, FILE_NOT_ALIGNED=100)], ["align_reads"]),
        ([writes(100, FILE_NOT_ALIGNED=100)], ["align_writes"]),
        ([writes(100, FILE_NOT_ALIGNED=100), reads(100)], ["align_writes"]),
        (
            [writes(100, FILE_NOT_ALIGNED=100), reads(100, FILE_NOT_ALIGNED=100)],
            ["align_reads", "align_writes"],
        ),
        # Aggregators made 20 requests of 100 collective calls.
        (
            [
                writes(20, FILE_NOT_ALIGNED=20, BYTES_WRITTEN=1000),
                mpiio_record("/scratch/out", COLL_WRITES=100, BYTES_WRITTEN=1000),
            ],
            ["align_aggregators"],
        ),
        # The requests are those of the calls.
        (
            [
                writes(100, FILE_NOT_ALIGNED=100, BYTES_WRITTEN=1000),
                mpiio_record("/scratch/out", INDEP_WRITES=100, BYTES_WRITTEN=1000),
            ],
            ["align_writes"],
        ),
    ],
)
def test_advice_for_unaligned_requests_depends_on_who_moves_them(
    records: Records, keys: list[str], tmp_path: Path
) -> None:
    found = check_records(tmp_path, records)["P08"]
    assert [advice.key for advice in found.advice] == keys


@pytest.fixture
def amrex(tmp_path: Path) -> dict[str, str]:
    """The sentences for the run of AMReX in Drishti's figure 13, by code.

    512 processes write ten HDF5 files. Each file has 49,164 small writes and 4 larger ones, and
    about 12 reads.
    """
    posix = [
        posix_record(
            f"/scratch/plt0000{n}.h5",
            OPENS=512,
            READS=12,
            CONSEC_READS=3,
            SEQ_READS=7,
            WRITES=49_168,
            CONSEC_WRITES=5,
            SEQ_WRITES=49_163,
            SIZE_WRITE_1K_10K=49_164,
            SIZE_WRITE_1M_4M=4,
            BYTES_READ=4_000,
            MAX_BYTE_READ=99_999,
            BYTES_WRITTEN=1 << 30,
            MAX_BYTE_WRITTEN=(1 << 30) - 1,
        )
        for n in range(10)
    ]
    mpiio = [
        mpiio_record(
            f"/scratch/plt0000{n}.h5",
            COLL_WRITES=1536,
            INDEP_WRITES=3 if n else 2,
            INDEP_READS=1,
            BYTES_WRITTEN=1 << 30,
        )
        for n in range(10)
    ]
    found = check_records(tmp_path, [*posix, *mpiio], nprocs=512)
    assert [file.number for file in found["P06"].finding.files] == [49_164] * 10
    assert [f"{file.share:.2%}" for file in found["P06"].finding.files] == ["10.00%"] * 10
    assert [file.number for file in found["P16"].finding.files] == [49_164] * 10
    assert all(
        "asynchronous_hdf5" in {advice.key for advice in found[code].advice}
        for code in ("M06", "M07")
    )
    return {code: each.sentence for code, each in found.items()}


def test_reads_and_writes_are_those_of_posix_where_mpiio_moves_more(tmp_path: Path) -> None:
    """MPI-IO moves 1 GiB past POSIX, which has one write of 512 bytes (../shared/cases)."""
    records = [
        mpiio_record("/f", COLL_WRITES=1024, BYTES_WRITTEN=1024 * MIB),
        posix_record("/f", WRITES=1, BYTES_WRITTEN=512),
    ]
    found = check_records(tmp_path, records)
    assert found["P01"].sentence.endswith("(1), 0.00% are reads (0), counted in POSIX")
    assert found["P03"].sentence.endswith("(512 bytes), 0.00% are read (0 bytes), counted in POSIX")


def test_requests_that_are_not_counted_are_not_compared(tmp_path: Path) -> None:
    """Bytes and sequential reads, but no number of reads, as in ../shared/cases."""
    records = [writes(1024, BYTES_WRITTEN=1024 * MIB), reads(0, BYTES_READ=MIB, SEQ_READS=8)]
    path = write_log(tmp_path / "a.darshan", records, nprocs=8)
    checked = check_log(path)
    codes = {each.check.code for each in checked.findings}
    assert "P03" in codes
    assert not {"P01", "P02"} & codes
    assert checked.unknown["P01"] == "the log does not count all requests"


def test_amrex_has_the_findings_of_drishtis_figure(amrex: dict[str, str]) -> None:
    assert amrex["P01"].startswith("99.98% of the requests are writes")
    assert "0.02% are reads" in amrex["P01"]
    assert amrex["P03"].startswith("100.00% of the bytes are written")
    assert amrex["P06"] == "491,640 of 491,680 writes (99.99%) are smaller than 1 MiB"
    assert amrex["P16"].startswith("491,640 of 491,680 writes in shared files (99.99%)")
    assert amrex["P14"].startswith(
        "0.01% of the writes are consecutive, 99.98% are sequential with gaps"
    )
    assert amrex["M05"] == "15,360 writes through MPI-IO are collective (99.81%)"
    # 58.2 % of the few reads are in order, which Drishti calls good: no P12.
    of_drishti = {code for code in amrex if code[0] in "SPM"}
    assert of_drishti == {"P01", "P03", "P06", "P14", "P16", "M05", "M06", "M07"}
