from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from experiments.applications.running import run_application
from experiments.applications.spec import hacc_io, single_a
from ioncast_base.errors import IoncastError
from tests.support.plain_platform import OtherProgram

_SCALE = 1 / 64


def test_a_process_that_fails_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    platform = OtherProgram(
        tmp_path, ("sh", "-c", "echo started >&2; echo no such mount >&2; exit 3")
    )

    with pytest.raises(IoncastError, match=r"single-a with 4 I/O nodes.*\(3\): no such mount"):
        run_application(single_a(2, 1, _SCALE), platform, 4)

    assert list(tmp_path.iterdir()) == []


def test_the_reason_is_the_first_error_of_a_program_of_ioncast(tmp_path: Path) -> None:
    said = ("a warning", "ioncast: no such mount", "ioncast: me too", "Abort(1) on node 1")
    platform = OtherProgram(
        tmp_path, ("sh", "-c", f"printf '%s\\n' {' '.join(map(repr, said))} >&2; exit 1")
    )

    with pytest.raises(IoncastError, match=r"\(1\): no such mount$"):
        run_application(single_a(2, 1, _SCALE), platform, 0)


def test_a_run_that_takes_too_long_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    communicate = subprocess.Popen.communicate

    def after_its_words(process: subprocess.Popen[str], timeout: float) -> tuple[str, str]:
        """Do not let the time run out before the process has printed its error."""
        while True:
            try:
                return communicate(process, timeout=timeout)
            except subprocess.TimeoutExpired as error:
                if error.stderr:
                    raise

    monkeypatch.setattr(subprocess.Popen, "communicate", after_its_words)
    pid_file = tmp_path / "pid"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    slow = f"echo $$ > {pid_file}; echo server lost >&2; exec sleep 600"
    platform = OtherProgram(scratch, ("sh", "-c", slow))

    with pytest.raises(IoncastError, match=r"longer than 0\.5 s: server lost$"):
        run_application(single_a(2, 1, _SCALE), platform, 0, limit_s=0.5)

    assert not Path("/proc", pid_file.read_text().strip()).exists()


def test_libraries_that_the_platform_preloads_stay_when_darshan_traces(tmp_path: Path) -> None:
    program = tmp_path / "hacc_io_write"
    program.write_text(
        f"""#!/bin/sh
echo "$LD_PRELOAD" > {tmp_path / "preloaded"}
touch "$DARSHAN_LOGFILE"
echo ' WRITE Checkpoint Perf: 2 BW[MB/s] 2097152 Bytes 1 MaxTime[sec]'
"""
    )
    program.chmod(0o755)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    platform = OtherProgram(scratch, ("env", "LD_PRELOAD=/absent/yielding.so"))

    run = run_application(
        hacc_io(2, 1, 1.0),
        platform,
        0,
        log=tmp_path / "run.darshan",
        darshan=Path("/absent/libdarshan.so"),
        hacc_io_program=program,
    )

    assert run.log_source == "darshan"
    preloaded = (tmp_path / "preloaded").read_text().strip()
    assert preloaded == "/absent/libdarshan.so:/absent/yielding.so"
