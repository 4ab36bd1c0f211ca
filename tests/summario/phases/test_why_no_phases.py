"""A log without phases says what Darshan counted instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.applications.darshan_writer import Record, write_log
from summario.phases.extract import extract
from summario.phases.settings import ExtractionSettings
from summario.reading.log import read_log

NOT_IN_A_LOG = (
    "reads and writes through mapped memory, copy_file_range or sendfile do not show in a Darshan"
    " log"
)


def used(path: str, api: str = "POSIX", rank: int = 0, **counters: int) -> Record:
    module = {"MPIIO": "MPI-IO"}.get(api, api)
    return Record(module, path, rank, {f"{api}_{name}": n for name, n in counters.items()})


def warnings_of(folder: Path, *records: Record, **settings: str | bool) -> tuple[str, ...]:
    log = read_log(write_log(folder / "a.darshan", nprocs=4, records=records))
    found = extract(log, ExtractionSettings(**settings))
    assert found.phases == ()
    return found.warnings


def test_a_program_that_maps_or_copies_has_opens_and_mmaps(tmp_path: Path) -> None:
    assert warnings_of(
        tmp_path,
        used("/data/in", OPENS=1, MMAPS=2, STATS=1),
        used("/data/in", rank=1, OPENS=3),
        used("/data/out", OPENS=1, MMAPS=-1),
    ) == (
        "no I/O phases: Darshan counted 5 opens, 2 mmaps and 1 stat of 2 files in POSIX, but no"
        " reads or writes",
        NOT_IN_A_LOG,
    )


def test_opens_of_every_layer_are_told(tmp_path: Path) -> None:
    first, second = warnings_of(
        tmp_path,
        used("/data/a", "MPIIO", rank=-1, COLL_OPENS=4),
        used("/data/a", rank=-1, OPENS=4),
        used("/data/b", "STDIO", OPENS=1),
    )
    assert first == (
        "no I/O phases: Darshan counted 4 opens of 1 file in POSIX, 4 opens of 1 file in MPI-IO and"
        " 1 open of 1 file in STDIO, but no reads or writes"
    )
    assert second == NOT_IN_A_LOG


def test_io_of_only_system_files_names_the_option_that_counts_it(tmp_path: Path) -> None:
    records = [
        used("/usr/lib/libm.so.6", OPENS=1, READS=2, BYTES_READ=1024),
        used("<STDOUT>", "STDIO", OPENS=1, WRITES=1, BYTES_WRITTEN=512),
    ]
    [said] = warnings_of(tmp_path, *records)
    assert said == (
        "no I/O phases: the only reads and writes are those of system files and standard streams"
        " (2 files, 1.5 KiB), which --all-files counts"
    )
    path = write_log(tmp_path / "b.darshan", nprocs=4, records=records)
    assert len(extract(read_log(path), ExtractionSettings(all_files=True)).phases) == 2


def test_a_program_in_python_that_maps_its_data_is_not_only_system_files(tmp_path: Path) -> None:
    said = warnings_of(
        tmp_path,
        used("/usr/lib/python3/os.pyc", OPENS=1, READS=1, BYTES_READ=100),
        used("/data/weights", OPENS=1, MMAPS=1),
    )
    assert said[0].startswith("no I/O phases: Darshan counted 1 open and 1 mmap of 1 file in POSIX")
    assert "--all-files" in said[-1]


def test_a_layer_that_no_file_was_used_through_names_the_other_layers(tmp_path: Path) -> None:
    assert warnings_of(
        tmp_path,
        used("/data/a", OPENS=1, WRITES=1, BYTES_WRITTEN=1),
        used("/data/b", "STDIO", OPENS=1, WRITES=1, BYTES_WRITTEN=1),
        layer="mpiio",
    ) == (
        "no I/O phases: the files were read and written through POSIX and STDIO, which --layer"
        " mpiio leaves out",
    )


def test_reads_and_writes_of_no_bytes_are_said_to_move_none(tmp_path: Path) -> None:
    assert warnings_of(
        tmp_path,
        used("/data/a", OPENS=1, READS=3),
        used("/data/b", OPENS=1, WRITES=1, MMAPS=1),
    ) == ("no I/O phases: the reads and writes of 2 files moved no bytes",)


def test_a_partial_module_is_said_too(tmp_path: Path) -> None:
    path = write_log(
        tmp_path / "a.darshan",
        nprocs=4,
        records=[used("/data/a", OPENS=1)],
        partial_modules=["POSIX"],
    )
    partial, *_ = extract(read_log(path)).warnings
    assert "left records out" in partial


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("empty_log/empty_log", "Darshan counted no call on a file"),
        (
            "ior_daos/snyder_ior-DFS_id4681120-53379_5-8-15060-3270540599978592154_1",
            "the program used DFS and DAOS, and ioncast makes no phases of their calls",
        ),
        (
            "runtime_heatmap_inactive_ranks/treddy_runtime_heatmap_inactive_ranks",
            "system files and standard streams (1 file, 495 bytes), which --all-files counts",
        ),
    ],
)
def test_real_logs_without_phases_are_explained(name: str, said: str, shared_data: Path) -> None:
    found = extract(read_log(shared_data / "darshan-logs" / f"{name}.darshan"))
    assert found.phases == ()
    assert said in found.warnings[0]
    assert found.warnings[0].startswith("no I/O phases: ")


def test_a_log_with_phases_has_no_such_warning(tmp_path: Path) -> None:
    records = [
        used("/data/a", OPENS=1, WRITES=1, BYTES_WRITTEN=1),
        used("/data/b", OPENS=1, MMAPS=1),
    ]
    path = write_log(tmp_path / "a.darshan", nprocs=4, records=records)
    assert extract(read_log(path)).warnings == ()
