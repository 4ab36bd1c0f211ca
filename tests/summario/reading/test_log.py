"""The content of logs, compared with what PyDarshan reads from them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from summario.phases.extract import extract_phases
from summario.reading.layouts import COUNTER_MODULES, layout_of, newest_version
from summario.reading.log import DarshanLog, read_log
from summario.reading.records import Records
from tests.support.libdarshan import (
    backend,
    counter_names,
    misread_counters,
    opened,
    records_of,
)

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures").glob("*.darshan"))
LARGE_BYTES = 1 << 20


def compare(path: Path) -> None:
    log = read_log(path)
    with opened(path) as handle:
        job = backend().log_get_job(handle)
        assert (log.job.nprocs, log.job.id) == (job["nprocs"], job["jobid"])
        names = backend().log_get_name_records(handle)
        assert log.names == {int(key): name for key, name in names.items()}
    compare_modules(path)


def compare_modules(path: Path) -> None:
    log = read_log(path, modules=COUNTER_MODULES)
    assert set(log.records) == set(COUNTER_MODULES) & set(log.header.modules)
    with opened(path) as handle:
        for module, records in log.records.items():
            compare_records(log, module, records, list(records_of(handle, module)))


def compare_records(
    log: DarshanLog, module: str, records: Records, theirs: list[dict[str, Any]]
) -> None:
    assert records.ids.tolist() == [record["id"] for record in theirs], module
    assert records.ranks.tolist() == [record["rank"] for record in theirs], module
    if records.file_ids is not None:
        assert records.file_ids.tolist() == [record["file_rec_id"] for record in theirs]
    version = log.header.module_versions[module]
    misread = misread_counters(module, version, log.header.byte_order)
    for name in records.columns.keys() & theirs[0]["named"].keys() - misread:
        ours = records.real(name) if "_F_" in name else records.integer(name)
        assert ours.tolist() == [record["named"][name] for record in theirs], name


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_counters_names_and_job_are_pydarshans(path: Path) -> None:
    compare(path)


@pytest.mark.slow
def test_logs_of_every_release_and_byte_order_read_as_pydarshan_does(shared_data: Path) -> None:
    logs = sorted((shared_data / "darshan-logs/release_logs").glob("*.darshan"))
    assert {path.stem.rsplit("-", 1)[1] for path in logs} >= {"3.0.0", "3.1.8", "3.4.7"}
    for path in logs:
        compare(path)


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["darshan-logs", "live", "runs", "testbed"])
def test_all_counters_of_shared_logs_are_pydarshans(shared_data: Path, folder: str) -> None:
    logs = sorted((shared_data / folder).rglob("*.darshan"))
    # PyDarshan takes a minute for 64,000 records.
    logs = [path for path in logs if path.stat().st_size < LARGE_BYTES]
    assert len(logs) >= 9
    for path in logs:
        compare(path)


@pytest.mark.slow
def test_all_counters_are_pydarshans_behind_a_job_record_that_it_cannot_read(
    shared_data: Path,
) -> None:
    logs = sorted((shared_data / "io500-traces").glob("*.darshan"))
    # The records of mdworkbench's logs have another size: a modified Darshan wrote them.
    logs = [path for path in logs if "mdworkbench" not in path.name]
    assert len(logs) == 19
    for path in logs:
        compare_modules(path)


def test_counters_have_pydarshans_names_and_order() -> None:
    for module in COUNTER_MODULES:
        integers, reals = counter_names(module)
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
