"""Logs with the counters of the tables in Carns et al. (2009), "24/7 Characterization".

The numbers are the paper's. Counters that it does not print are 0, or follow from those that it
prints. The misprints that definitions/insights.md lists are corrected.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.records import mpiio_record, posix_record, write_log

MIB = 1 << 20


def madbench(folder: Path) -> Path:
    """MADBench2 (Table III): 1,024 processes, 81 % of the run time in MPI-IO."""
    processes, run_seconds, size = 1024, 100, 19_568_768
    bytes_ = 8 * processes * size
    records = [
        posix_record(
            "/pvfs/files/data",
            OPENS=processes,
            READS=8 * processes,
            WRITES=8 * processes,
            BYTES_READ=bytes_,
            BYTES_WRITTEN=bytes_,
            MAX_BYTE_READ=80_161_536_128 - 1,
            MAX_BYTE_WRITTEN=80_161_536_128 - 1,
            SEQ_READS=7_172,
            SEQ_WRITES=7_172,
            RW_SWITCHES=7 * processes,
            FILE_NOT_ALIGNED=16 * processes - 32,
            SIZE_READ_10M_100M=8 * processes,
            SIZE_WRITE_10M_100M=8 * processes,
            ACCESS1_ACCESS=size,
            ACCESS1_COUNT=16 * processes,
            STRIDE1_STRIDE=1_920,
            STRIDE1_COUNT=12_288,
        ),
        mpiio_record(
            "/pvfs/files/data",
            COLL_OPENS=processes,
            INDEP_READS=8 * processes,
            INDEP_WRITES=8 * processes,
            BYTES_READ=bytes_,
            BYTES_WRITTEN=bytes_,
            ACCESS1_ACCESS=size,
            ACCESS1_COUNT=16 * processes,
            SIZE_READ_AGG_10M_100M=8 * processes,
            SIZE_WRITE_AGG_10M_100M=8 * processes,
            RW_SWITCHES=7 * processes,
            F_READ_TIME=0.40 * run_seconds * processes,
            F_WRITE_TIME=0.41 * run_seconds * processes,
        ),
    ]
    path = folder / "madbench.darshan"
    return write_log(path, records, nprocs=processes, run_seconds=run_seconds)


CHOMBO_SIZES = ((28_800, 15_622), (16_000, 15_109), (480_896, 13_818), (254_592, 11_428))
CHOMBO_STRIDES = ((2_885_376, 2_725), (2_530_944, 1_654), (1_752_192, 1_567), (86_400, 1_481))


def chombo(folder: Path, seeks: int = 49_123) -> Path:
    """Chombo I/O (Tables IVa to IVc): 512 processes, 75 % of the run time in MPI-IO writes."""
    processes, run_seconds = 512, 200
    common = {
        f"{kind}{place}_{part}": number
        for kind, name, pairs in (
            ("ACCESS", "ACCESS", CHOMBO_SIZES),
            ("STRIDE", "STRIDE", CHOMBO_STRIDES),
        )
        for place, pair in enumerate(pairs, 1)
        for part, number in zip((name, "COUNT"), pair, strict=True)
    }
    bytes_ = 18_240_000_000
    records = [
        posix_record(
            "/pvfs/chombo.h5",
            OPENS=processes,
            WRITES=96_783,
            BYTES_WRITTEN=bytes_,
            MAX_BYTE_WRITTEN=bytes_ - 1,
            SEEKS=seeks,
            CONSEC_WRITES=47_661,
            SEQ_WRITES=96_762,
            FILE_NOT_ALIGNED=96_780,
            MEM_NOT_ALIGNED=70,
            SIZE_WRITE_0_100=3,
            SIZE_WRITE_10K_100K=50_000,
            SIZE_WRITE_100K_1M=46_780,
            **common,
        ),
        mpiio_record(
            "/pvfs/chombo.h5",
            COLL_OPENS=processes,
            INDEP_WRITES=96_783,
            BYTES_WRITTEN=bytes_,
            F_WRITE_TIME=0.75 * run_seconds * processes,
        ),
    ]
    path = folder / "chombo.darshan"
    return write_log(path, records, nprocs=processes, run_seconds=run_seconds)


def s3d(folder: Path, name: str) -> Path:
    """S3D-IO (Table VI): 16 processes; `name` is collective, independent or sieving."""
    writes, reads, unaligned, written_mib, run_seconds, mpiio_seconds = {
        "collective": (5, 0, 4, 6.25, 6, 0.60),
        "independent": (102_401, 0, 102_399, 6.25, 1_443, 1_426.47),
        "sieving": (81, 80, 80, 87.11, 11, 4.82),
    }[name]
    records = [
        posix_record(
            "/pvfs/s3d.field",
            OPENS=16,
            WRITES=writes,
            READS=reads,
            BYTES_WRITTEN=round(written_mib * MIB),
            BYTES_READ=reads * MIB,
            FILE_NOT_ALIGNED=unaligned,
        ),
        mpiio_record(
            "/pvfs/s3d.field",
            COLL_OPENS=16,
            COLL_WRITES=64,
            BYTES_WRITTEN=round(6.25 * MIB),
            F_WRITE_TIME=16 * mpiio_seconds,
        ),
    ]
    return write_log(folder / f"{name}.darshan", records, nprocs=16, run_seconds=run_seconds)


def homme(folder: Path, name: str) -> Path:
    """HOMME (Table VII): 2,048 processes; `name` is collective or independent."""
    sizes, unaligned, run_seconds = {
        "collective": (
            ((6_078_464, 1), (16_777_216, 128), (8_388_608, 59), (4_194_304, 4)),
            0,
            120,
        ),
        "independent": (((30_848, 86_400),), 86_399, 176),
    }[name]
    counters = {}
    for place, (size, count) in enumerate(sizes, 1):
        counters |= {f"ACCESS{place}_ACCESS": size, f"ACCESS{place}_COUNT": count}
    record = posix_record(
        "/lustre/homme.nc",
        OPENS=2048,
        WRITES=sum(count for _, count in sizes),
        BYTES_WRITTEN=sum(size * count for size, count in sizes),
        FILE_ALIGNMENT=MIB,
        FILE_NOT_ALIGNED=unaligned,
        **counters,
    )
    return write_log(
        folder / f"homme-{name}.darshan", [record], nprocs=2048, run_seconds=run_seconds
    )
