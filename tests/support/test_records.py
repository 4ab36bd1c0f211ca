"""Logs that are written from counters by name, read by PyDarshan."""

from pathlib import Path

import pytest

from tests.support.libdarshan import opened, records_of
from tests.support.records import (
    CounterRecord,
    counter_record,
    mpiio_record,
    posix_record,
    stdio_record,
    write_log,
)


@pytest.mark.parametrize(
    ("record", "counters"),
    [
        (
            posix_record("/a", READS=3, ACCESS1_ACCESS=1 << 20, F_READ_TIME=0.5),
            {"POSIX_READS": 3, "POSIX_ACCESS1_ACCESS": 1 << 20, "POSIX_F_READ_TIME": 0.5},
        ),
        (mpiio_record("/a", 2, COLL_WRITES=4), {"MPIIO_COLL_WRITES": 4}),
        (stdio_record("/b", 1, WRITES=-5, F_META_TIME=2), {"STDIO_WRITES": -5}),
        (
            counter_record("H5D", "/a:/x", file="/a", POINT_SELECTS=6, F_WRITE_TIME=3.5),
            {"H5D_POINT_SELECTS": 6, "H5D_F_WRITE_TIME": 3.5},
        ),
    ],
)
def test_libdarshan_reads_the_counters(
    tmp_path: Path, record: CounterRecord, counters: dict[str, float]
) -> None:
    path = write_log(tmp_path / "a.darshan", [record], nprocs=4, run_seconds=1.5)
    with opened(path) as handle:
        [found] = records_of(handle, record.module)
    assert {name: found["named"][name] for name in counters} == counters


def test_a_misspelt_counter_is_an_error() -> None:
    with pytest.raises(KeyError, match="POSIX_REEDS"):
        posix_record("/a", REEDS=3)
