"""The content of logs, compared with what PyDarshan reads from them."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from summario.phases.extract import extract_phases
from summario.reading.layouts import COUNTER_MODULES, layout_of, newest_version
from summario.reading.log import read_log

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.darshan"))
LARGE_BYTES = 1 << 20


@pytest.fixture(scope="module")
def darshan() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("darshan")


def compare(darshan: object, path: Path) -> None:
    backend = darshan.backend.cffi_backend
    log = read_log(path, modules=COUNTER_MODULES)
    assert set(log.records) == set(COUNTER_MODULES) & set(log.header.modules)
    handle = backend.log_open(str(path))
    job = backend.log_get_job(handle)
    assert (log.job.nprocs, log.job.id) == (job["nprocs"], job["jobid"])
    names = backend.log_get_name_records(handle)
    assert log.names == {int(key): name for key, name in names.items()}
    for module, records in log.records.items():
        integers, reals = names_of(backend, module)
        row = 0
        while (record := backend.log_get_record(handle, module, "numpy")) is not None:
            assert records.ids[row] == np.uint64(record["id"])
            assert records.ranks[row] == record["rank"]
            for name, value in zip(integers, record["counters"], strict=True):
                if name in records.columns and name != "POSIX_RENAMED_FROM":
                    assert records.integer(name)[row] == value, name
            for name, value in zip(reals, record["fcounters"], strict=True):
                if name in records.columns and not spoilt_by_the_library(log.header, module, name):
                    assert records.real(name)[row] == value, name
            row += 1
        assert row == len(records.words), module
    backend.log_close(handle)


def names_of(backend: object, module: str) -> tuple[list[str], list[str]]:
    """PyDarshan's names of a module's counters; ours for BG/Q, whose names it does not have."""
    if module != "BG/Q":
        return backend.counter_names(module), backend.fcounter_names(module)
    ours = list(layout_of(module, newest_version(module)).counters)
    return ours[:-1], ours[-1:]


def spoilt_by_the_library(header: object, module: str, name: str) -> bool:
    """Whether libdarshan-util 3.5.0 itself reads this counter of an old POSIX record wrongly.

    Its conversion to version 4 cuts off the last two floating-point counters, and leaves three
    counters of big-endian records in the wrong byte order.
    """
    if module != "POSIX" or header.module_versions[module] >= 4:
        return False
    unswapped = ("POSIX_F_META_TIME", "POSIX_F_MAX_READ_TIME", "POSIX_F_MAX_WRITE_TIME")
    return name.startswith("POSIX_F_VARIANCE_RANK_") or (
        header.byte_order == ">" and name in unswapped
    )


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_counters_names_and_job_are_pydarshans(darshan: object, path: Path) -> None:
    compare(darshan, path)


@pytest.mark.slow
def test_logs_of_every_release_and_byte_order_read_as_pydarshan_does(
    darshan: object, shared_data: Path
) -> None:
    logs = sorted((shared_data / "darshan-logs/release_logs").glob("*.darshan"))
    assert {path.stem.rsplit("-", 1)[1] for path in logs} >= {"3.0.0", "3.1.8", "3.4.7"}
    for path in logs:
        compare(darshan, path)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["darshan-logs", "live", "runs", "testbed"])
def test_all_counters_of_shared_logs_are_pydarshans(
    darshan: object, shared_data: Path, folder: str
) -> None:
    logs = sorted((shared_data / folder).rglob("*.darshan"))
    # PyDarshan takes a minute for 64,000 records.
    logs = [path for path in logs if path.stat().st_size < LARGE_BYTES]
    assert len(logs) >= 9
    for path in logs:
        compare(darshan, path)


def test_counters_have_pydarshans_names_and_order(darshan: object) -> None:
    backend = darshan.backend.cffi_backend
    for module in COUNTER_MODULES:
        integers, reals = names_of(backend, module)
        counters = layout_of(module, newest_version(module)).counters
        assert counters == (*integers, *reals), module


def test_a_log_that_darshan_convert_compressed_with_bzip2_is_read_the_same() -> None:
    folder = FIXTURES[0].parent
    zlib, bzip2 = (read_log(folder / name / "multiphase.darshan") for name in (".", "bzip2"))
    assert (zlib.header.compression, bzip2.header.compression) == (0, 1)
    assert bzip2.names == zlib.names
    for module, records in zlib.records.items():
        assert (bzip2.records[module].words == records.words).all()
    assert [replace(phase, log="") for phase in extract_phases(bzip2)] == [
        replace(phase, log="") for phase in extract_phases(zlib)
    ]


def test_darshans_partial_flag_is_reported(shared_data: Path) -> None:
    log = read_log(shared_data / "darshan-logs/partial_data_stdio/partial_data_stdio.darshan")
    assert log.records["STDIO"].partial
    assert any("STDIO" in warning and "partial" in warning for warning in log.warnings)


def test_a_job_record_behind_zeros_is_found(shared_data: Path) -> None:
    """Some MPI-IO libraries write zeros first; Darshan's own reader stops there."""
    path = next((shared_data / "io500-traces").glob("ior-easy_api_POSIX*4MB*"))
    assert read_log(path).job.nprocs == 4
