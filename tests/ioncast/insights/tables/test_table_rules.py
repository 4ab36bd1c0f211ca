"""The rules of definitions/insights.md, §1 and §7, as far as tables follow them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioncast.insights.tables.characterising import Characterisation
from tests.ioncast.insights.tables.reading import characterisation, rows_of, rows_of_file
from tests.support.records import (
    CounterRecord,
    counter_record,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)

MIB = 1 << 20


def tables_of(
    folder: Path,
    *records: CounterRecord,
    nprocs: int = 4,
    run_seconds: float = 100,
    **options: bool,
) -> Characterisation:
    path = write_log(folder / "a.darshan", records, nprocs=nprocs, run_seconds=run_seconds)
    return characterisation(path, **options)


def test_files_written_with_one_request_each_are_not_random(tmp_path: Path) -> None:
    records = [posix_record(f"/d/{n}", 0, OPENS=1, WRITES=1, BYTES_WRITTEN=9) for n in range(9)]
    random = rows_of(tables_of(tmp_path, *records), "pattern")["POSIX", "random writes"]
    assert (random.value, random.share) == (0, 0)


def test_the_first_request_after_each_open_is_not_random(tmp_path: Path) -> None:
    # Two opens (one of the three is a dup): F = 2. Of 10 reads 5 are sequential, so 3 are random,
    # of the 8 that can have an order.
    record = posix_record(
        "/d/f", 0, OPENS=3, DUPS=1, READS=10, BYTES_READ=10 * MIB, SEQ_READS=5, CONSEC_READS=2
    )
    pattern = rows_of(tables_of(tmp_path, record), "pattern")
    random = pattern["POSIX", "random reads"]
    assert (random.value, random.share, random.note) == (3, 3 / 8, "at least")
    assert pattern["POSIX", "consecutive reads"].share == 2 / 10
    assert pattern["POSIX", "sequential reads"].share == 5 / 10


def test_a_surplus_of_one_file_does_not_hide_random_requests_of_another(tmp_path: Path) -> None:
    records = [
        posix_record("/d/random", 0, OPENS=1, READS=11, BYTES_READ=11),
        # More sequential reads than reads that can have an order: the first one was elsewhere.
        posix_record("/d/sequential", 0, OPENS=5, READS=11, BYTES_READ=11, SEQ_READS=11),
    ]
    random = rows_of(tables_of(tmp_path, *records), "pattern")["POSIX", "random reads"]
    assert (random.value, random.share) == (10, 10 / (10 + 6))


def test_requests_of_exactly_1_mib_are_not_small(tmp_path: Path) -> None:
    record = posix_record(
        "/d/f",
        WRITES=10,
        BYTES_WRITTEN=9 * MIB,
        SIZE_WRITE_100K_1M=9,
        SIZE_WRITE_0_100=1,
        ACCESS1_ACCESS=MIB,
        ACCESS1_COUNT=7,
    )
    small = rows_of(tables_of(tmp_path, record), "pattern")["POSIX", "writes below 1 MiB"]
    assert (small.value, small.share) == (3, 0.3)


def test_an_fdopen_a_dup_and_a_fileno_open_nothing_anew(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        posix_record("/d/f", 0, OPENS=7, DUPS=2, FILENOS=1, READS=1, BYTES_READ=1),
        stdio_record("/d/g", 0, OPENS=5, FDOPENS=2, WRITES=1, BYTES_WRITTEN=1),
    )
    operations = rows_of(found, "operations")
    counts = [operations["POSIX", name].value for name in ("opens", "dups", "filenos")] + [
        operations["STDIO", name].value for name in ("opens", "fdopens")
    ]
    assert counts == [4, 2, 1, 3, 2]


def test_common_sizes_of_several_records_are_added_and_the_larger_wins_a_tie(
    tmp_path: Path,
) -> None:
    records = [
        posix_record(
            f"/d/{rank}",
            rank,
            WRITES=20,
            BYTES_WRITTEN=20,
            ACCESS1_ACCESS=100,
            ACCESS1_COUNT=3,
            # An empty slot before a used one.
            ACCESS2_ACCESS=0,
            ACCESS2_COUNT=5,
            ACCESS3_ACCESS=10 + rank,
            ACCESS3_COUNT=4,
            ACCESS4_ACCESS=200,
            ACCESS4_COUNT=1,
        )
        for rank in range(4)
    ]
    sizes = rows_of(tables_of(tmp_path, *records), "sizes").values()
    assert [(row.characteristic, row.value, row.share) for row in sizes] == [
        ("requests of 100 bytes", 12, 12 / 80),
        ("requests of 200 bytes", 4, 4 / 80),
        ("requests of 13 bytes", 4, 4 / 80),
        ("requests of 12 bytes", 4, 4 / 80),
    ]


def test_at_most_all_requests_are_preceded_by_a_seek(tmp_path: Path) -> None:
    record = posix_record("/d/f", SEEKS=500, WRITES=20, BYTES_WRITTEN=20)
    found = tables_of(tmp_path, record)
    row = rows_of(found, "pattern")["POSIX", "preceded by a seek"]
    assert (row.value, row.share, row.note) == (20, 1, "at most")
    assert rows_of(found, "operations")["POSIX", "seeks"].value == 500


def test_an_unknown_block_size_is_said(tmp_path: Path) -> None:
    record = posix_record("/d/f", FILE_ALIGNMENT=-1, WRITES=5, BYTES_WRITTEN=5)
    found = tables_of(tmp_path, record)
    row = rows_of(found, "pattern")["POSIX", "unaligned in the file"]
    assert (row.value, row.share, row.note) == (None, None, "not known")
    assert any("block size" in sentence and "1 file" in sentence for sentence in found.not_recorded)


def test_files_with_an_unknown_block_size_do_not_count_in_the_share(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        posix_record("/d/f", FILE_ALIGNMENT=-1, WRITES=500, BYTES_WRITTEN=5),
        posix_record("/d/g", FILE_NOT_ALIGNED=3, WRITES=5, BYTES_WRITTEN=5),
    )
    pattern = rows_of(found, "pattern")
    unaligned, aligned = (
        pattern["POSIX", name] for name in ("unaligned in the file", "aligned in the file")
    )
    assert (unaligned.value, unaligned.share) == (3, 3 / 5)
    assert (aligned.value, aligned.note) == (2, "of files with a known block size")


def test_without_posix_records_amplification_is_not_known(tmp_path: Path) -> None:
    # DAOS: MPI-IO does not call POSIX.
    found = tables_of(tmp_path, mpiio_record("/d/f", COLL_WRITES=8, BYTES_WRITTEN=8 * MIB))
    layers = rows_of(found, "layers")
    for name in ("amplification of writes", "aggregation of writes"):
        row = layers["MPIIO", name]
        assert row.value is None
        assert row.note == "not known: the files have no POSIX records"
    assert ("MPIIO", "amplification of reads") not in layers


def test_only_files_that_were_used_through_mpiio_count_for_amplification(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        mpiio_record("/d/f", COLL_WRITES=8, BYTES_WRITTEN=8 * MIB),
        posix_record("/d/f", WRITES=4, BYTES_WRITTEN=16 * MIB),
        posix_record("/d/g", WRITES=999, BYTES_WRITTEN=999 * MIB),
    )
    layers = rows_of(found, "layers")
    assert layers["MPIIO", "amplification of writes"].value == 2
    assert layers["MPIIO", "aggregation of writes"].value == 2


def test_only_files_with_records_of_both_layers_count_for_amplification(tmp_path: Path) -> None:
    # The file on DAOS, or the one that no longer fitted into Darshan's memory, has no POSIX record.
    found = tables_of(
        tmp_path,
        mpiio_record("/d/f", COLL_WRITES=8, BYTES_WRITTEN=8 * MIB),
        posix_record("/d/f", WRITES=4, BYTES_WRITTEN=16 * MIB),
        mpiio_record("/d/g", COLL_WRITES=24, BYTES_WRITTEN=24 * MIB),
    )
    layers = rows_of(found, "layers")
    assert layers["MPIIO", "amplification of writes"].value == 2
    assert layers["MPIIO", "aggregation of writes"].value == 2


def test_the_slowest_process_is_named_from_rank_records(tmp_path: Path) -> None:
    records = [
        posix_record(f"/d/{name}", rank, WRITES=1, BYTES_WRITTEN=rank + 1, F_WRITE_TIME=seconds)
        for name, rank, seconds in (("f", 0, 1), ("f", 2, 5), ("g", 0, 3), ("h", 0, 4))
    ]
    found = tables_of(tmp_path, *records, by_file=True)
    slowest = rows_of(found, "time")["POSIX", "slowest process: read, write and metadata"]
    # Rank 0 needs 1 + 3 + 4 seconds, rank 2 needs 5.
    assert (slowest.value, slowest.share, slowest.note) == (8, 0.08, "at least")
    assert rows_of(found, "time")["POSIX", "write"].value == (1 + 5 + 3 + 4) / 4
    of_file = rows_of_file(found, "/d/f")
    assert of_file["files", "", "slowest rank"].value == 2
    assert of_file["files", "", "fastest rank"].value == 0
    assert of_file["files", "", "slowest rank's bytes"].value == 3
    assert ("files", "", "slowest rank") not in rows_of_file(found, "/d/g")


def test_the_extremes_of_a_reduced_record_are_darshans(tmp_path: Path) -> None:
    record = posix_record(
        "/d/f",
        WRITES=8,
        BYTES_WRITTEN=8,
        SLOWEST_RANK=3,
        SLOWEST_RANK_BYTES=5,
        FASTEST_RANK=1,
        F_SLOWEST_RANK_TIME=7.5,
        F_VARIANCE_RANK_TIME=2.25,
        F_WRITE_TIME=12,
    )
    found = tables_of(tmp_path, record, by_file=True)
    of_file = rows_of_file(found, "/d/f")
    names = ("slowest rank", "slowest rank's time", "fastest rank", "variance of the ranks' time")
    assert [
        of_file["files", key, name].value for key, name in (("", names[0]), ("", names[1]))
    ] == [*(3, 7.5)]
    assert of_file["files", "", "fastest rank"].value == 1
    assert of_file["files", "POSIX", "variance of the ranks' time"].value == 2.25
    time = rows_of(found, "time")
    assert time["POSIX", "write"].value == 12 / 4
    assert time["POSIX", "slowest process: read, write and metadata"].value == 7.5


def test_files_are_open_from_the_first_open_to_the_last_close(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        posix_record("/d/f", F_OPEN_START_TIMESTAMP=10, F_CLOSE_END_TIMESTAMP=40, WRITES=1),
        posix_record("/d/g", 0, F_OPEN_START_TIMESTAMP=10, F_CLOSE_END_TIMESTAMP=30, WRITES=1),
        # Never closed.
        posix_record("/d/h", 0, F_OPEN_START_TIMESTAMP=10, WRITES=1),
    )
    row = rows_of(found, "time")["POSIX", "files open"]
    assert (row.value, row.note) == ((4 * 30 + 20) / 4, "at most")


def test_without_a_run_time_times_have_no_shares(tmp_path: Path) -> None:
    record = posix_record("/d/f", WRITES=1, BYTES_WRITTEN=1, F_WRITE_TIME=1)
    found = tables_of(tmp_path, record, run_seconds=0)
    assert any("no shares of the run time" in sentence for sentence in found.not_recorded)
    time = rows_of(found, "time")
    assert (time["POSIX", "write"].value, time["POSIX", "write"].share) == (0.25, None)


def test_files_are_counted_by_processes_and_access(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        posix_record("/d/all", READS=1, BYTES_READ=5, MAX_BYTE_READ=4, OPENS=4),
        *(
            posix_record("/d/some", rank, WRITES=1, BYTES_WRITTEN=5, MAX_BYTE_WRITTEN=99 + rank)
            for rank in (0, 3)
        ),
        posix_record("/d/one", 1, READS=1, BYTES_READ=1, WRITES=1, BYTES_WRITTEN=1),
        posix_record("/d/opened", 1, OPENS=1),
    )
    files = {name: row.value for (_, name), row in rows_of(found, "files").items()}
    assert files == {
        "files": 4,
        "used by one process": 2,
        "shared by all processes": 1,
        "shared by some processes": 1,
        "read only": 1,
        "written only": 1,
        "read and written": 1,
        "without bytes": 1,
        "bytes read": 6,
        "bytes written": 11,
        "size of all": 5 + 103 + 1,
        "size of the largest": 103,
    }


def test_bytes_count_once_at_the_highest_layer_of_each_file(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        mpiio_record("/d/f", COLL_WRITES=8, BYTES_WRITTEN=8),
        posix_record("/d/f", WRITES=4, BYTES_WRITTEN=16),
        posix_record("/d/g", WRITES=4, BYTES_WRITTEN=4),
    )
    assert rows_of(found, "files")["", "bytes written"].value == 12


def test_calls_of_libraries_are_counted_by_kind(tmp_path: Path) -> None:
    found = tables_of(
        tmp_path,
        posix_record("/d/f.h5", WRITES=4, BYTES_WRITTEN=4),
        counter_record("H5F", "/d/f.h5", OPENS=4, USE_MPIIO=1),
        counter_record(
            "H5D", "/d/f.h5:/x", file="/d/f.h5", POINT_SELECTS=3, USE_MPIIO_COLLECTIVE=1
        ),
        counter_record(
            "PNETCDF_VAR", "/d/g.nc:v", file="/d/g.nc", COLL_WRITES=8, PUT_VARA=5, BPUT_VARN=3
        ),
        by_file=True,
    )
    libraries = {key: row.value for key, row in rows_of(found, "libraries").items() if row.value}
    assert libraries == {
        ("H5F", "file opens"): 4,
        ("H5F", "files through MPI-IO"): 1,
        ("H5D", "point selections"): 3,
        ("H5D", "datasets with collective access"): 1,
        ("PNETCDF_VAR", "collective writes"): 8,
        ("PNETCDF_VAR", "calls of put_vara"): 5,
        ("PNETCDF_VAR", "calls of bput_varn"): 3,
    }
    of_file = rows_of_file(found, "/d/f.h5")
    assert of_file["libraries", "H5D", "point selections"].value == 3


def test_calls_of_libraries_in_all_logs_of_a_run_are_added(tmp_path: Path) -> None:
    paths = [
        write_log(
            tmp_path / f"{opens}.darshan", [counter_record("H5F", "/d/f", 0, OPENS=opens)], nprocs=1
        )
        for opens in (2, 3)
    ]
    libraries = rows_of(characterisation(*paths), "libraries")
    assert libraries["H5F", "file opens"].value == 5


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (mpiio_record("/d/f", COLL_WRITES=1), "does not record datatypes, their sizes and extents"),
        (stdio_record("/d/f", WRITES=1), "does not record sizes, strides, order and alignment"),
        (counter_record("DFS", "/d/f", WRITES=1), "no data that moved through DFS"),
    ],
)
def test_facts_that_darshan_does_not_have_are_said(
    tmp_path: Path, record: CounterRecord, said: str
) -> None:
    found = tables_of(tmp_path, record)
    assert any(said in sentence for sentence in found.not_recorded)


def test_missing_records_are_said(tmp_path: Path) -> None:
    record = posix_record("/d/f", WRITES=1, BYTES_WRITTEN=1)
    path = write_log(tmp_path / "a.darshan", [record], nprocs=1, partial=["POSIX"])
    [sentence, *_] = characterisation(path).not_recorded
    assert sentence.startswith("Darshan ran out of memory for POSIX")


def test_only_matching_files_count(tmp_path: Path) -> None:
    records = [posix_record(f"/d/{name}", WRITES=1, BYTES_WRITTEN=5) for name in ("a.h5", "b.dat")]
    path = write_log(tmp_path / "a.darshan", records, nprocs=1)
    for pattern in ("*.h5", "/d/a*", "a.h5"):
        found = characterisation(path, patterns=[pattern], by_file=True)
        assert found.files is not None
        assert found.files.paths == ("/d/a.h5",)
        assert rows_of(found, "layers")["POSIX", "bytes written"].value == 5


def test_system_files_do_not_count(tmp_path: Path) -> None:
    records = [posix_record(path, WRITES=1, BYTES_WRITTEN=5) for path in ("/d/a", "/proc/stat")]
    path = write_log(tmp_path / "a.darshan", records, nprocs=1)
    counts = [
        rows_of(characterisation(path, all_files=all_files), "files")["", "files"].value
        for all_files in (False, True)
    ]
    assert counts == [1, 2]
