"""The content of logs, compared with what PyDarshan reads from them."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

from ioncast_base.errors import BusyError
from summario.reading.log import read_log

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.darshan"))


@pytest.fixture(scope="module")
def darshan() -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("darshan")


def compare(darshan: object, path: Path) -> None:
    backend = darshan.backend.cffi_backend
    log = read_log(path)
    handle = backend.log_open(str(path))
    job = backend.log_get_job(handle)
    if job["nprocs"]:
        assert (log.job.nprocs, log.job.id) == (job["nprocs"], job["jobid"])
    assert log.names == {
        int(key): name for key, name in backend.log_get_name_records(handle).items()
    }
    for module, records in log.records.items():
        row = 0
        while (record := backend.log_get_record(handle, module, "dict")) is not None:
            assert records.ids[row] == np.uint64(record["id"])
            assert records.ranks[row] == record["rank"]
            for name, value in record["counters"].items():
                if name in records.columns and name != "POSIX_RENAMED_FROM":
                    assert records.integer(name)[row] == value, name
            for name, value in record["fcounters"].items():
                if name in records.columns and not spoilt_by_the_library(log.header, module, name):
                    assert records.real(name)[row] == value, name
            row += 1
        assert row == len(records.words), module
    backend.log_close(handle)


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


def test_darshans_partial_flag_is_reported(shared_data: Path) -> None:
    log = read_log(shared_data / "darshan-logs/partial_data_stdio/partial_data_stdio.darshan")
    assert log.records["STDIO"].partial
    assert any("STDIO" in warning and "partial" in warning for warning in log.warnings)


def test_a_job_record_behind_zeros_is_found(shared_data: Path) -> None:
    """Some MPI-IO libraries write zeros first; Darshan's own reader stops there."""
    path = next((shared_data / "io500-traces").glob("ior-easy_api_POSIX*4MB*"))
    assert read_log(path).job.nprocs == 4


def test_a_full_disk_is_not_called_a_fault_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    with Path("/dev/full").open("r+b", buffering=0) as full:
        monkeypatch.setattr("tempfile.TemporaryFile", lambda: full)
        with pytest.raises(BusyError, match="No space left on device; make room there") as caught:
            read_log(FIXTURES[0])
    assert caught.value.where == tempfile.gettempdir()
