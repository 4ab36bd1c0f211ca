"""The I/O libraries that a run used."""

from __future__ import annotations

from pathlib import Path

import pytest

from ioncast.insights.facts.libraries import libraries_of
from tests.support.checking import facts_in
from tests.support.records import (
    CounterRecord,
    counter_record,
    mpiio_record,
    posix_record,
    write_log,
)


@pytest.mark.parametrize(
    ("records", "libraries"),
    [
        ([posix_record("/scratch/data.bin")], ("posix",)),
        ([posix_record("/scratch/h5/plain")], ("posix",)),
        ([posix_record("/a.h5"), mpiio_record("/a.h5")], ("hdf5", "mpiio")),
        ([posix_record("/a.bin"), counter_record("H5F", "/a.bin")], ("hdf5", "posix")),
        # ADIOS2 writes a folder.
        ([posix_record("/out.bp/data.0")], ("adios", "posix")),
        ([posix_record("/a.nc")], ("netcdf", "posix")),
        ([posix_record("/a.nc"), counter_record("PNETCDF_FILE", "/a.nc")], ("pnetcdf", "posix")),
        (
            [
                posix_record("/a.nc"),
                counter_record("PNETCDF_FILE", "/b"),
                counter_record("H5F", "/a.nc"),
            ],
            ("netcdf", "pnetcdf", "hdf5", "posix"),
        ),
    ],
)
def test_libraries_are_told_by_modules_and_names(
    records: list[CounterRecord], libraries: tuple[str, ...], tmp_path: Path
) -> None:
    log = write_log(tmp_path / "app.darshan", records, nprocs=2)
    assert libraries_of(facts_in(log)) == libraries
