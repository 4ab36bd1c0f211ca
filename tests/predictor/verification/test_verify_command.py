"""`ioncast match --verify` runs the benchmarks, compares their logs, and stores the fidelities."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchdb.measurements.storing import pattern_of
from benchdb.store.database import transaction_on
from benchdb.store.fidelities import fidelities_of
from ior_configs import IorConfig
from tests.predictor.verification.conftest import FIXTURES, Programs, leaves_log
from tests.support.command import killed_at_the_end, run_ioncast

pytestmark = pytest.mark.slow

PLAIN = FIXTURES / "variations/plain.darshan"
READ = FIXTURES / "variations/read.darshan"
Make = Callable[[str], Programs]


def test_the_same_io_has_a_fidelity_of_1(programs: Make) -> None:
    made = programs(leaves_log("plain"))
    done = run_ioncast("match", PLAIN, *made.options)
    assert done.returncode == 0
    assert "phase 0: fidelity 1.00\n" in done.stdout
    assert "run 1 of 1 under Darshan: mpiexec -n 4 ior -a POSIX -w -b 4m -t 64k" in done.stderr
    assert list(made.work_dir.iterdir()) == []


def test_other_io_is_explained(programs: Make) -> None:
    made = programs(leaves_log("strided"))
    done = run_ioncast("match", PLAIN, *made.options, "--format", "json")
    [row] = json.loads(done.stdout)
    assert row["fidelity"] == row["phase_fidelity"] < 0.6
    assert "begin where the request before them ends" in row["differences"][0]
    aspects = {each["name"]: each for each in row["aspects"]}
    assert aspects["consecutive requests"]["phase"] == 1
    assert aspects["consecutive requests"]["benchmark"] == 0
    assert aspects["bytes"]["agreement"] == 1


def test_the_file_of_a_read_is_written_first_and_without_darshan(programs: Make) -> None:
    made = programs(
        'echo "$DARSHAN_DISABLE ${DARSHAN_LOGFILE:+traced} $*" >> $NOTES;'
        ' while [ "$1" != -o ]; do shift; done; echo x > "$2"; ' + leaves_log("read")
    )
    notes = made.folder / "notes"
    done = run_ioncast("match", READ, *made.options, environment={"NOTES": str(notes)})
    assert done.returncode == 0, done.stderr
    written, read = notes.read_text().splitlines()
    assert written.startswith("1  -a POSIX -w ")
    assert read.startswith(" traced -a POSIX -r ")
    assert "fidelity 1.00" in done.stdout


def test_settings_of_the_user_for_darshan_do_not_reach_the_run(programs: Make) -> None:
    made = programs(f"env > $NOTES; {leaves_log('plain')}")
    notes = made.folder / "notes"
    environment = {
        "NOTES": str(notes),
        "DARSHAN_ENABLE_NONMPI": "1",
        "DARSHAN_MOD_DISABLE": "POSIX",
        "DXT_ENABLE_IO_TRACE": "1",
    }
    assert run_ioncast("match", PLAIN, *made.options, environment=environment).returncode == 0
    seen = {line.partition("=")[0] for line in notes.read_text().splitlines()}
    assert {name for name in seen if name.startswith(("DARSHAN_", "DXT_"))} == {
        "DARSHAN_LOGFILE",
        "DARSHAN_MMAP_LOGPATH",
        "DARSHAN_EXCLUDE_DIRS",
    }


@pytest.mark.parametrize(
    ("ior", "said"),
    [
        ("echo 'ERROR: cannot create f'; exit 3", "exit code 3: ERROR: cannot create f"),
        ("exit 255", "exit code 255 and printed nothing"),
        ("true", "Darshan wrote no log"),
        (
            "echo 'darshan_library_warning: unable to create log file' >&2",
            "Darshan wrote no log: darshan_library_warning: unable to create log file",
        ),
        ("echo garbage > $DARSHAN_LOGFILE", "not a Darshan log"),
        (": > $DARSHAN_LOGFILE", "not a Darshan log"),
        ("printf '\\033[31mred\\n'; exit 1", "exit code 1: [31mred"),
        (leaves_log("read"), "the log of the run has no write with POSIX"),
        (
            f"cp {FIXTURES}/again/fsync-each.darshan $DARSHAN_LOGFILE",
            "the run had 8 processes instead of 4",
        ),
    ],
)
def test_a_run_that_fails_is_one_clear_line(programs: Make, ior: str, said: str) -> None:
    made = programs(ior)
    done = run_ioncast("match", PLAIN, *made.options)
    assert done.returncode == 2
    assert done.stdout == ""
    [line] = [line for line in done.stderr.splitlines() if "under Darshan" not in line]
    assert line.startswith("ioncast: ")
    assert said in line
    assert list(made.work_dir.iterdir()) == []


def test_a_launcher_that_starts_other_processes_is_told(programs: Make) -> None:
    made = programs(leaves_log("plain"))
    (made.folder / "mpiexec").write_text('#!/bin/bash\nshift 2\nexec "$@"\n')
    done = run_ioncast("match", PLAIN, *made.options)
    assert done.returncode == 2
    assert "mpiexec -n 4: starts 1 of 4 processes" in done.stderr
    assert "under Darshan" not in done.stderr


def test_a_file_that_is_not_a_library_is_named(programs: Make) -> None:
    made = programs("true")
    made.library.write_bytes(b"")
    done = run_ioncast("match", PLAIN, *made.options)
    assert done.returncode == 2
    assert "cannot be preloaded" in done.stderr


def test_a_run_that_hangs_is_stopped(programs: Make) -> None:
    made = programs("echo $$ > $NOTES; sleep 600")
    notes = made.folder / "notes"
    done = run_ioncast(
        "match", PLAIN, *made.options, "--time-limit", "5s", environment={"NOTES": str(notes)}
    )
    assert done.returncode == 2
    assert "has not ended after 5 s" in done.stderr
    assert list(made.work_dir.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(notes.read_text()), 0)


def test_a_run_that_prints_without_end_takes_little_memory(programs: Make) -> None:
    # The file of its output gets 4 TiB of zeros, which take no space on the disk.
    made = programs("truncate -s 4T said; echo 'ERROR: no memory' >> said; exit 1")
    done = run_ioncast("match", PLAIN, *made.options)
    assert done.returncode == 2
    assert "exit code 1: ERROR: no memory" in done.stderr


def test_processes_that_ignore_a_signal_are_stopped_too(programs: Make) -> None:
    made = programs("(trap '' TERM; echo $BASHPID > $NOTES; exec sleep 600) & wait")
    notes = made.folder / "notes"
    run_ioncast(
        "match", PLAIN, *made.options, "--time-limit", "5s", environment={"NOTES": str(notes)}
    )
    deadline = time.monotonic() + 300
    while (runs := is_running(int(notes.read_text()))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not runs


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_run_and_removes_its_folder(
    programs: Make, number: signal.Signals
) -> None:
    made = programs("echo $$ > $NOTES.new; mv $NOTES.new $NOTES; sleep 600")
    notes = made.folder / "notes"
    with killed_at_the_end(
        [sys.executable, "-m", "ioncast", "match", str(PLAIN), *made.options],
        env=os.environ | {"NOTES": str(notes)},
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        while not notes.exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate()
    assert process.returncode == 130
    assert said.endswith("ioncast: stopped\n")
    assert list(made.work_dir.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(int(notes.read_text()), 0)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("ior", "IOR is not found on this machine"),
        ("mpiexec", "mpiexec: not found on this machine"),
        ("libdarshan.so", "libdarshan.so: not a file; name Darshan's libdarshan.so with"),
        ("runs", "runs: the test directory does not exist or cannot be written to"),
    ],
)
def test_a_missing_program_is_told_before_anything_starts(
    programs: Make, missing: str, said: str
) -> None:
    made = programs("echo started > $NOTES")
    for place in (made.folder / missing, made.folder.parent / missing):
        if place.is_dir():
            place.rmdir()
        place.unlink(missing_ok=True)
    notes = made.folder / "notes"
    done = run_ioncast(
        "match",
        PLAIN,
        *made.options,
        environment={"PATH": str(made.folder), "NOTES": str(notes)},
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "under Darshan" not in done.stderr
    assert not notes.exists()


def test_more_processes_than_the_machine_can_run_are_rejected(
    programs: Make, tmp_path: Path
) -> None:
    made = programs(leaves_log("plain"))
    platform = tmp_path / "small.toml"
    platform.write_text(
        f"""
system = "small"
io_nodes = [0]
nodes = 1
processes_per_node = 2
test_directory = "{made.work_dir}"
launch = "mpiexec -n {{tasks}}"
"""
    )
    done = run_ioncast("match", PLAIN, *made.options, "--platform", platform)
    assert done.returncode == 2
    assert "it needs 2 nodes, small has nodes = 1" in done.stderr


def test_a_phase_whose_fsync_is_unknown_is_verified_without_fsync(programs: Make) -> None:
    # A program with STDIO: 8 processes write a file each, 16 MiB in requests of 4 KiB.
    made = programs(f"{leaves_log('plain')}; echo $* > $NOTES")
    notes = made.folder / "notes"
    done = run_ioncast(
        "match",
        "tests/summario/fixtures/stdio-fpp.darshan",
        *made.options,
        environment={"NOTES": str(notes)},
    )
    # The log is that of four processes, because IOR is not here.
    assert "the run had 4 processes instead of 8" in done.stderr
    assert notes.read_text().startswith("-a POSIX -w -F -k -b 16m -t 4k ")


def test_files_that_do_not_fit_are_rejected(programs: Make, tmp_path: Path) -> None:
    made = programs(leaves_log("plain"))
    platform = tmp_path / "full.toml"
    platform.write_text(
        f"""
system = "full"
io_nodes = [0]
nodes = 1
processes_per_node = 8
test_directory = "{made.work_dir}"
free_space_limit = "1000000t"
launch = "mpiexec -n {{tasks}}"
"""
    )
    done = run_ioncast("match", PLAIN, *made.options, "--platform", platform)
    assert done.returncode == 2
    assert "and must leave 976.6 PiB free" in done.stderr


def test_a_csv_of_phases_cannot_be_verified(programs: Make, tmp_path: Path) -> None:
    made = programs(leaves_log("plain"))
    phases = tmp_path / "phases.csv"
    phases.write_text(run_ioncast("phases", PLAIN, "--format", "csv").stdout)
    done = run_ioncast("match", phases, *made.options)
    assert done.returncode == 2
    assert "does not have the counters" in done.stderr


@pytest.mark.parametrize(
    "option",
    [("--system", "mysite"), ("--time-limit", "1m"), ("--work-dir", "."), ("--platform", "x")],
)
def test_an_option_without_verify_is_rejected(option: tuple[str, str]) -> None:
    done = run_ioncast("match", PLAIN, *option)
    assert done.returncode == 2
    assert f"{option[0]}: has a meaning only with --verify" in done.stderr


def with_system(location: str) -> None:
    benchmarks = "experiments/data/testbed/benchmarks.csv"
    nodes = ("--tasks", "16", "--nodes", "8")
    done = run_ioncast(
        "bench", "import", benchmarks, "--system", "mysite", *nodes, "--db", location
    )
    assert done.returncode == 0, done.stderr


def test_fidelities_are_stored_and_replaced(programs: Make, location: str) -> None:
    with_system(location)
    made = programs(leaves_log("strided"))
    wanted = IorConfig.from_command_line("mpiexec -n 4 ior -w -b 4m -t 64k")
    stored = ("--system", "mysite", "--db", location)
    for ior, expected in (("strided", 0.5), ("plain", 1)):
        made.behave(leaves_log(ior))
        assert run_ioncast("match", PLAIN, *made.options, *stored).returncode == 0
        with transaction_on(location) as connection:
            found = fidelities_of(connection, "mysite")
        assert found == {pattern_of(wanted): pytest.approx(expected)}


def test_an_unknown_system_is_told_before_anything_starts(programs: Make, location: str) -> None:
    with_system(location)
    made = programs(leaves_log("plain"))
    done = run_ioncast("match", PLAIN, *made.options, "--system", "mysight", "--db", location)
    assert done.returncode == 2
    assert "no system 'mysight'; its only system is mysite" in done.stderr
    assert "under Darshan" not in done.stderr


@pytest.mark.both_databases
def test_a_log_may_have_a_name_that_is_not_utf_8(
    programs: Make, location: str, tmp_path: Path
) -> None:
    with_system(location)
    made = programs(leaves_log("plain"))
    log = Path(os.fsdecode(bytes(tmp_path) + b"/app\xff.darshan"))
    log.write_bytes(PLAIN.read_bytes())
    stored = ("--system", "mysite", "--db", location)
    done = run_ioncast("match", log, *made.options, *stored)
    assert done.returncode == 0, done.stderr
    with transaction_on(location) as connection:
        assert list(fidelities_of(connection, "mysite").values()) == [1]


def test_a_log_without_phases_needs_no_run(programs: Make) -> None:
    made = programs("true")
    done = run_ioncast("match", PLAIN, *made.options, "--layer", "mpiio")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no I/O phases\n"
