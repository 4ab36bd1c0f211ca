from __future__ import annotations

import ctypes
import errno
import mmap
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.applications import running
from experiments.applications.darshan_writer import Record
from experiments.applications.rank import page_aligned
from experiments.applications.running import longest_s, run_application
from experiments.applications.spec import (
    Application,
    Step,
    collective,
    hacc_io,
    irregular,
    multiphase,
    periodic_a,
    single_a,
    single_b,
    small_files,
)
from ioncast_base.darshan_runtime import find_darshan
from ioncast_base.errors import InputError, IoncastError
from summario.phases.extract import extract_phases
from summario.reading.log import read_log as read_darshan_log
from tests.support.darshan_reader import read_log
from tests.support.mpi_in_python import needs_mpi
from tests.support.plain_platform import OtherProgram, PlainPlatform
from tests.support.pydarshan import without_pydarshan
from tests.support.undisturbed import run_at_once

_SCALE = 1 / 64
_MIB = 1024**2


@pytest.fixture
def platform(tmp_path: Path) -> PlainPlatform:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return PlainPlatform(scratch)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "run.darshan"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("application", "kinds"),
    [
        (single_a(4, 2, _SCALE), [("write", "contiguous", "shared", 1, 4)]),
        (single_b(4, 2, _SCALE), [("write", "contiguous", "unique", 4, 4)]),
        (hacc_io(4, 2, _SCALE), [("write", "contiguous", "unique", 4, 4)]),
        (
            periodic_a(4, 2, _SCALE, phases=2, pause_s=1.1),
            [("write", "sequential", "shared", 1, 4)] * 2,
        ),
        (
            multiphase(4, 2, _SCALE, pause_s=0.0),
            [
                ("read", "contiguous", "shared", 1, 4),
                ("write", "contiguous", "unique", 4, 4),
                ("write", "sequential", "shared", 1, 4),
            ],
        ),
        (
            irregular(8, 2, _SCALE, pause_s=0.0),
            [("write", "contiguous", "unique", 8, 8), ("write", "contiguous", "shared", 1, 2)],
        ),
        (
            small_files(4, 2, 6 / 200, pause_s=1.1),
            [("write", "contiguous", "unique", 24, 4), ("read", "contiguous", "unique", 24, 4)],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Application) else None,
)
def test_the_phases_of_a_runs_log_are_the_applications_steps(
    platform: PlainPlatform,
    log: Path,
    application: Application,
    kinds: list[tuple[str, str, str, int, int]],
) -> None:
    run = run_at_once(application, platform, 0, log)

    phases = sorted(extract_phases(read_darshan_log(log)), key=lambda phase: phase.start_seconds)
    assert [
        (p.operation, p.spatiality, p.file_access, p.n_files, p.processes) for p in phases
    ] == kinds
    assert [phase.bytes for phase in phases] == [
        application.step_bytes(step) for step in application.steps
    ]
    assert [phase.bytes for phase in phases] == [step.bytes for step in run.steps]
    for phase, step in zip(phases, run.steps, strict=True):
        assert phase.end_seconds - phase.start_seconds <= step.time_s + 1e-6


def test_the_bandwidth_is_all_bytes_over_the_time_of_all_steps_without_pauses(
    platform: PlainPlatform,
) -> None:
    run = run_application(periodic_a(2, 1, _SCALE, phases=3, pause_s=0.3), platform, 0)

    assert run.bytes == 3 * 2 * 2 * _MIB
    assert run.time_s == sum(step.time_s for step in run.steps)
    assert run.bandwidth_mib_s == run.bytes / _MIB / run.time_s
    assert run.log_source is None


def test_a_log_of_the_bundled_processes_says_that_ioncast_wrote_it(
    platform: PlainPlatform, log: Path
) -> None:
    run = run_application(single_a(2, 1, _SCALE), platform, 0, log=log)

    assert run.log_source == "counters"
    assert "written_by=ioncast" in read_log(log)["metadata"]


def test_a_run_removes_its_files_and_those_of_a_killed_run(platform: PlainPlatform) -> None:
    left_by_a_killed_run = platform.scratch / "single-a" / "data"
    left_by_a_killed_run.parent.mkdir()
    left_by_a_killed_run.write_bytes(b"old")

    run_application(single_a(2, 1, _SCALE), platform, 0)

    assert list(platform.scratch.iterdir()) == []


def test_a_missing_file_system_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IoncastError, match=r"files cannot be created: No such file or directory"):
        run_application(single_a(2, 1, _SCALE), PlainPlatform(tmp_path / "unmounted"), 0)


def test_nothing_stays_of_input_that_does_not_fit(
    platform: PlainPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_input = running._write_input

    def fill_up(application: Application, step: Step, folder: Path) -> None:
        write_input(application, step, folder)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(running, "_write_input", fill_up)

    with pytest.raises(IoncastError, match=r"multiphase: .* cannot be created: No space left"):
        run_application(multiphase(2, 1, _SCALE), platform, 0)

    assert list(platform.scratch.iterdir()) == []


def test_the_folder_for_temporary_files_may_have_a_long_path(
    platform: PlainPlatform, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    assert run_application(single_a(2, 1, _SCALE), platform, 0).bytes == 4 * _MIB


def test_a_process_that_fails_halfway_does_not_leave_the_others_waiting(
    platform: PlainPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = multiphase(4, 2, _SCALE, pause_s=0.0)
    monkeypatch.setattr(running, "_write_input", lambda *_: None)

    with pytest.raises(IoncastError, match=r"No such file or directory: .*/multiphase/input"):
        run_application(application, platform, 0, limit_s=300)


def test_the_reason_of_a_failed_run_is_that_of_the_process_that_failed_first(
    platform: PlainPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other processes end without an error of their own."""
    read = Step("input", "read", "unique", "contiguous", ((8, 1),))
    write = Step("output", "write", "shared", "contiguous", ((8, 1),))
    write_input = running._write_input

    def lose_one(application: Application, step: Step, folder: Path) -> None:
        write_input(application, step, folder)
        (folder / step.file_name(2)).unlink()

    monkeypatch.setattr(running, "_write_input", lose_one)
    application = Application("unlucky", 4, 2, (read, write))

    with pytest.raises(IoncastError, match=r"No such file or directory: .*/input\.00000002"):
        run_application(application, platform, 0, limit_s=300)


def test_the_longest_time_of_a_run_grows_with_its_bytes_and_pauses() -> None:
    assert longest_s(single_a(1, 1, 1.0)) == 600 + 128
    # RR-9366's PERIODIC-A: 16 GiB, at 5 MiB/s as measured in experiments/data/periodic.
    full = periodic_a(16, 8, 1.0)
    assert longest_s(full) == 600 + 7 * 10 + 16 * 1024
    assert longest_s(full) > 2 * 16 * 1024 / 5


def test_hacc_io_itself_is_measured_by_what_it_prints(tmp_path: Path) -> None:
    printed = (
        "-------- Aggregate Performance --------\n"
        " WRITE Checkpoint Perf: 44.5906 BW[MB/s] 463453184 Bytes 9.91209 MaxTime[sec] \n"
    )
    platform = OtherProgram(tmp_path, ("sh", "-c", f"printf '%s' '{printed}'"))

    run = run_application(hacc_io(16, 8, 1.0), platform, 0, hacc_io_program=Path("hacc_io_write"))

    assert (run.bytes, run.time_s) == (463_453_184, 9.91209)
    assert run.bandwidth_mib_s == pytest.approx(44.5906, rel=1e-5)


def test_hacc_io_itself_cannot_be_scaled(platform: PlainPlatform) -> None:
    with pytest.raises(InputError, match="always 24 MiB"):
        run_application(hacc_io(2, 1, 0.5), platform, 0, hacc_io_program=Path("hacc_io_write"))


def test_hacc_io_itself_writes_no_log_without_darshan(platform: PlainPlatform, log: Path) -> None:
    with pytest.raises(InputError, match="does not count"):
        run_application(
            hacc_io(2, 1, 1.0), platform, 0, log=log, hacc_io_program=Path("hacc_io_write")
        )


def test_a_run_whose_log_cannot_be_written_is_an_error_before_it_starts(
    platform: PlainPlatform, log: Path
) -> None:
    with without_pydarshan(), pytest.raises(InputError) as caught:
        run_application(single_a(2, 1, _SCALE), platform, 0, log=log)
    assert str(caught.value) == (
        "writing a Darshan log needs PyDarshan, which is not installed; use Python 3.12 or older"
        " and install ioncast's extra `darshan`"
    )
    assert not log.exists()


def test_a_run_that_needs_mpi_is_an_error_without_mpi4py(
    platform: PlainPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)

    with pytest.raises(InputError, match="mpi4py"):
        run_application(collective(2, 1, _SCALE), platform, 0)


@needs_mpi
def test_collective_steps_are_collective_in_the_log(platform: PlainPlatform, log: Path) -> None:
    run = run_application(collective(4, 2, _SCALE), platform, 0, log=log)

    (phase,) = extract_phases(read_darshan_log(log))
    assert (phase.api, phase.spatiality, phase.file_access) == ("MPIIO", "collective", "shared")
    assert phase.bytes == run.bytes == 4 * _MIB


@needs_mpi
def test_a_process_that_fails_ends_those_that_wait_for_it_in_collective_io(
    platform: PlainPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The offset of its last request is not possible in a file."""
    plan = running._plan

    def fail_one(application: Application, task: int, data: Path) -> list[dict[str, Any]]:
        steps = plan(application, task, data)
        if task == 2:
            steps[0]["accesses"][-1] = (-1, 8)
        return steps

    monkeypatch.setattr(running, "_plan", fail_one)

    with pytest.raises(IoncastError, match=r"a process failed \(\d+\): .*[Ii]nvalid argument"):
        run_application(collective(4, 2, _SCALE), platform, 0, limit_s=300)


@needs_mpi
@pytest.mark.skipif(find_darshan() is None, reason="Darshan's runtime is not installed")
def test_a_traced_run_has_the_log_that_darshan_wrote(
    platform: PlainPlatform, log: Path, tmp_path: Path
) -> None:
    application = replace(multiphase(4, 2, _SCALE), pause_s=0.0)

    run = run_application(application, platform, 0, log=log, darshan=find_darshan())

    assert run.log_source == "darshan"
    own = tmp_path / "own.darshan"
    run_application(application, platform, 0, log=own)
    traced, counted = (_requests(read_log(path)["records"]) for path in (log, own))
    assert traced == counted


def _requests(records: list[Record]) -> dict[str, list[int]]:
    names = ("POSIX_READS", "POSIX_WRITES", "POSIX_CONSEC_WRITES", "POSIX_SEQ_WRITES")
    return {
        record.path: [record.rank, *(record.counters[name] for name in names)]
        for record in records
        if record.module == "POSIX"
    }


@pytest.mark.parametrize("size", [0, 1, 38 * 12_500, 1 << 20])
def test_buffers_begin_with_a_page(size: int) -> None:
    buffer = page_aligned(size)
    assert len(buffer) >= size
    assert ctypes.addressof(ctypes.c_char.from_buffer(buffer)) % mmap.PAGESIZE == 0
