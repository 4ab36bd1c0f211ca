"""Records of every module and version, compared with libdarshan-util's conversions of them.

The logs are written word by word: each counter has a value of its own. PyDarshan returns a record
of an old version in the newest layout.
"""

import struct
from pathlib import Path
from typing import Any

import pytest

from summario.reading.layouts import COUNTER_MODULES, SIZE_BINS, layout_of, newest_version
from summario.reading.log import DarshanLog, read_log
from summario.reading.records import Records
from tests.support.libdarshan import misread_counters, opened, records_of
from tests.support.log_bytes import write_modules

FIXTURES = Path(__file__).parents[1] / "fixtures"
NPROCS = 4
VERSIONS = [
    (module, version)
    for module in COUNTER_MODULES
    for version in range(1, newest_version(module) + 1)
]
# Version 1 of the POSIX module counted stdio calls too. libdarshan drops a record with any.
STDIO_CALLS = {"POSIX_FOPENS", "POSIX_FREADS", "POSIX_FWRITES", "POSIX_FSEEKS"}


def words_of(module: str, version: int, rank: int, byte_order: str) -> bytes:
    """Write a record whose words are all different."""
    layout = layout_of(module, version)
    values = {name: 1000 * (rank + 2) + word for name, word in layout.columns.items()}
    values |= dict.fromkeys(STDIO_CALLS & values.keys(), 0)
    integers = [name for name in values if "_F_" not in name]
    reals = [value / 8 for name, value in values.items() if "_F_" in name]
    trailing = [7] * layout.trailing
    form = f"{byte_order}Qq{len(integers)}q{len(reals)}d{layout.trailing}q"
    return struct.pack(
        form, 0xFEDC_BA98 << 32 | rank + 1, rank, *map(values.get, integers), *reals, *trailing
    )


def log_of(path: Path, module: str, version: int, byte_order: str) -> Records:
    data = b"".join(words_of(module, version, rank, byte_order) for rank in (-1, 0, NPROCS - 1))
    write_modules(path, {module: (version, data)}, nprocs=NPROCS, byte_order=byte_order)
    return read_log(path, modules=COUNTER_MODULES).records[module]


def theirs_of(path: Path, module: str) -> list[dict[str, Any]]:
    with opened(path) as handle:
        return list(records_of(handle, module))


@pytest.mark.parametrize(
    ("module", "version"), [pair for pair in VERSIONS if pair[0] in ("POSIX", "MPI-IO")]
)
def test_histograms_and_common_sizes_follow_one_another(module: str, version: int) -> None:
    # The extraction views them as one table (darshan-{posix,mpiio}-log-format.h).
    prefix, infix = ("MPIIO", "_AGG") if module == "MPI-IO" else ("POSIX", "")
    columns = layout_of(module, version).columns
    for names in (
        [f"{prefix}_SIZE_READ{infix}_{size}" for size in SIZE_BINS],
        [f"{prefix}_SIZE_WRITE{infix}_{size}" for size in SIZE_BINS],
        [f"{prefix}_ACCESS{i}_ACCESS" for i in range(1, 5)],
        [f"{prefix}_ACCESS{i}_COUNT" for i in range(1, 5)],
    ):
        first = columns[names[0]]
        assert [columns[name] for name in names] == list(range(first, first + len(names)))


@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize(("module", "version"), VERSIONS)
def test_counters_of_every_version_are_those_of_libdarshan(
    tmp_path: Path, module: str, version: int, byte_order: str
) -> None:
    records = log_of(tmp_path / "a.darshan", module, version, byte_order)
    theirs = theirs_of(tmp_path / "a.darshan", module)
    assert records.ids.tolist() == [record["id"] for record in theirs]
    assert records.ranks.tolist() == [record["rank"] for record in theirs] == [-1, 0, NPROCS - 1]
    misread = misread_counters(module, version, byte_order)
    comparable = records.columns.keys() & theirs[0]["named"].keys()
    if module == "PNETCDF_FILE" and version < 3:
        # Both kinds of opens became one counter.
        opens = records.integers("PNETCDF_FILE_INDEP_OPENS", "PNETCDF_FILE_COLL_OPENS").sum(axis=1)
        if "PNETCDF_FILE_OPENS" not in misread:
            assert opens.tolist() == [record["named"]["PNETCDF_FILE_OPENS"] for record in theirs]
    else:
        missing = set(layout_of(module, version).counters) - STDIO_CALLS - comparable
        assert not missing
    for name in comparable - misread:
        ours = records.real(name) if "_F_" in name else records.integer(name)
        assert ours.tolist() == [record["named"][name] for record in theirs], name


@pytest.mark.parametrize(
    ("module", "version"),
    [("POSIX", 1), ("POSIX", 2), ("POSIX", 3), ("MPI-IO", 1), ("H5F", 1), ("PNETCDF_FILE", 1)],
)
def test_counters_that_a_version_does_not_have_are_unset_in_libdarshan(
    tmp_path: Path, module: str, version: int
) -> None:
    """So our older layouts leave out exactly the counters that it fills in."""
    records = log_of(tmp_path / "a.darshan", module, version, "<")
    [first, *_] = theirs_of(tmp_path / "a.darshan", module)
    absent = first["named"].keys() - records.columns.keys() - {"PNETCDF_FILE_OPENS"}
    assert absent
    assert {first["named"][name] for name in absent} <= {-1, 0}


@pytest.mark.parametrize("byte_order", "<>")
@pytest.mark.parametrize("module", ["H5D", "PNETCDF_VAR"])
def test_datasets_and_variables_have_the_id_of_their_file(
    tmp_path: Path, module: str, byte_order: str
) -> None:
    records = log_of(tmp_path / "a.darshan", module, newest_version(module), byte_order)
    theirs = theirs_of(tmp_path / "a.darshan", module)
    assert records.file_ids.tolist() == [1002, 2002, 5002]
    if (module, byte_order) != ("H5D", ">"):
        # libdarshan-util does not swap the bytes of this id if the log has no H5F records.
        assert [record["file_rec_id"] for record in theirs] == [1002, 2002, 5002]


def test_the_first_version_of_h5d_has_no_ids_of_files(tmp_path: Path) -> None:
    assert log_of(tmp_path / "a.darshan", "H5D", 1, "<").file_ids is None
    assert log_of(tmp_path / "b.darshan", "BG/Q", 1, "<").file_ids is None


def by_name(log: DarshanLog, module: str, *counters: str) -> dict[str, list[int]]:
    """The counters of each record, by the end of its name."""
    records = log.records[module]
    names = [log.names[id_].rsplit("/", 1)[1] for id_ in records.ids.tolist()]
    return dict(zip(names, records.integers(*counters).tolist(), strict=True))


def test_datasets_of_a_program_are_read_as_it_wrote_them() -> None:
    """4 processes; dataset `blocks`: 4 x 8,192 numbers of 8 bytes, a row each, collectively.

    Dataset `rows`: 32 x 1,024 numbers, 8 rows each, written one by one.
    """
    log = read_log(FIXTURES / "programs/hdf5-dxt.darshan", modules=COUNTER_MODULES)
    assert by_name(log, "H5F", "H5F_OPENS", "H5F_USE_MPIIO") == {"p.h5": [4, 1]}
    counters = ("WRITES", "BYTES_WRITTEN", "BYTES_READ", "DATATYPE_SIZE", "USE_MPIIO_COLLECTIVE")
    sizes = ("ACCESS1_ACCESS", "ACCESS1_COUNT", "ACCESS1_LENGTH_D4", "DATASPACE_NPOINTS")
    assert by_name(log, "H5D", *(f"H5D_{name}" for name in counters)) == {
        "blocks": [4, 262_144, 0, 8, 1],
        "rows": [32, 262_144, 0, 8, 0],
    }
    assert by_name(log, "H5D", *(f"H5D_{name}" for name in sizes)) == {
        "blocks": [65_536, 4, 8_192, 32_768],
        "rows": [8_192, 32, 1_024, 32_768],
    }


def test_variables_of_a_program_are_read_as_it_wrote_them() -> None:
    """4 processes; variable `a`: 4 x 16,384 numbers of 4 bytes, written and read collectively.

    Variable `b`: 16 x 1,024 numbers of 8 bytes, written row by row by one process each.
    """
    log = read_log(FIXTURES / "programs/pnetcdf.darshan", modules=COUNTER_MODULES)
    counters = ("COLL_WRITES", "COLL_READS", "INDEP_WRITES", "BYTES_WRITTEN", "BYTES_READ")
    sizes = ("ACCESS1_ACCESS", "ACCESS1_COUNT", "NDIMS", "NPOINTS", "DATATYPE_SIZE")
    assert by_name(log, "PNETCDF_VAR", *(f"PNETCDF_VAR_{name}" for name in counters)) == {
        "p.nc:a": [4, 4, 0, 262_144, 262_144],
        "p.nc:b": [0, 0, 16, 131_072, 0],
    }
    assert by_name(log, "PNETCDF_VAR", *(f"PNETCDF_VAR_{name}" for name in sizes)) == {
        "p.nc:a": [65_536, 8, 2, 65_536, 4],
        "p.nc:b": [8_192, 16, 2, 16_384, 8],
    }


@pytest.mark.parametrize(
    ("name", "module", "file_module"),
    [
        ("programs/hdf5-dxt", "H5D", "H5F"),
        ("programs/pnetcdf", "PNETCDF_VAR", "PNETCDF_FILE"),
    ],
)
def test_datasets_and_variables_of_a_program_lead_to_its_file(
    name: str, module: str, file_module: str
) -> None:
    log = read_log(FIXTURES / f"{name}.darshan", modules=COUNTER_MODULES)
    [file_id] = log.records[file_module].ids.tolist()
    assert log.records[module].file_ids.tolist() == [file_id, file_id]
    assert log.records[file_module].file_ids is None
