"""`ioncast trace`, with a library that stands for Darshan's runtime, and with the runtime."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ioncast.trace_settings import is_static
from ioncast_base.darshan_runtime import find_darshan
from tests.support.command import PROJECT, run_ioncast

pytestmark = pytest.mark.compiler

GENUINE = PROJECT / "tests/summario/fixtures/programs/bursts-dxt.darshan"

# It writes a log where Darshan 3.5 writes one, and notes Darshan's variables.
RUNTIME = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
extern char **environ;
extern char *program_invocation_short_name;
__attribute__((destructor)) static void end(void)
{
    char path[4096], date[64], data[65536];
    time_t now = time(NULL);
    if (strcmp(program_invocation_short_name, "app")) return;
    strftime(date, sizeof date, "%Y/%-m/%-d", localtime(&now));
    snprintf(path, sizeof path, "%s/%s/%d.darshan", getenv("DARSHAN_LOGPATH"), date, getpid());
    FILE *from = fopen(getenv("GENUINE"), "r"), *to = fopen(path, "w");
    size_t length = fread(data, 1, sizeof data, from);
    fwrite(data, 1, length, to);
    fclose(to);
    FILE *seen = fopen(getenv("SEEN"), "w");
    for (char **each = environ; *each; each++) fprintf(seen, "%s\n", *each);
    fclose(seen);
    FILE *config = fopen(getenv("DARSHAN_CONFIG_PATH"), "r");
    seen = fopen(getenv("SEEN_CONFIGURATION"), "w");
    length = fread(data, 1, sizeof data, config);
    fwrite(data, 1, length, seen);
    fclose(seen);
}
"""
PROGRAM = "#include <stdlib.h>\nint main(int n, char **v) { return n > 1 ? atoi(v[1]) : 0; }\n"
WAITING = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void end(int number) { exit(number); }
int main(void)
{
    signal(SIGINT, end);
    signal(SIGTERM, end);
    puts("ready");
    fflush(stdout);
    pause();
}
"""


def compiled(source: str, place: Path, *options: str) -> Path:
    code = place.with_suffix(".c")
    code.write_text(source)
    subprocess.run(["cc", "-w", "-D_GNU_SOURCE", *options, "-o", place, code], check=True)
    return place


@pytest.fixture(name="place")
def place_with_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, a library for Darshan's runtime, and the log that it copies."""
    compiled(PROGRAM, tmp_path / "app")
    compiled(RUNTIME, tmp_path / "libdarshan.so", "-shared", "-fPIC")
    monkeypatch.setenv("GENUINE", str(GENUINE))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen"))
    monkeypatch.setenv("SEEN_CONFIGURATION", str(tmp_path / "configuration"))
    monkeypatch.delenv("DARSHAN_ENABLE_NONMPI", raising=False)
    return tmp_path


def traced(place: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_ioncast("trace", "--darshan", place / "libdarshan.so", *words, folder=place)


def test_a_program_is_traced_and_its_causes_are_those_of_check(place: Path) -> None:
    run = traced(place, "--log", "kept.darshan", "--", "./app")
    assert run.returncode == 0, run.stderr
    first, rest = run.stdout.split("\n", 1)
    assert first == "log: kept.darshan"
    assert rest == run_ioncast("check", "kept.darshan", folder=place).stdout
    seen = (place / "seen").read_text().splitlines()
    assert {"DXT_ENABLE_IO_TRACE=1", "DARSHAN_ENABLE_NONMPI=1"} <= set(seen)
    assert not list(place.glob(".ioncast-trace-*"))


def test_memory_ranks_and_files_are_settings_of_darshan(place: Path) -> None:
    selection = ("--dxt-memory", "8", "--ranks", "0-3,7", "--files", "/a b/*.h5")
    run = traced(place, *selection, "./app")
    assert run.returncode == 0, run.stderr
    assert (place / "configuration").read_text().splitlines() == [
        "MAX_RECORDS 8192 DXT_POSIX,DXT_MPIIO",
        "MODMEM 20",
        "NAME_EXCLUDE .* *",
        r"NAME_INCLUDE ^/a.b/.*\.h5$ *",
        "RANK_EXCLUDE 0:",
        "RANK_INCLUDE 0:3,7:7",
    ]


def test_the_exit_code_is_that_of_the_program(place: Path) -> None:
    run = traced(place, "./app", "7")
    assert run.returncode == 7
    assert "exit code 7" in run.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_program_and_its_log_is_kept(place: Path, number: signal.Signals) -> None:
    compiled(WAITING, place / "app")
    words = ("trace", "--darshan", place / "libdarshan.so", "--log", "kept.darshan", "./app")
    with subprocess.Popen(
        [sys.executable, "-m", "ioncast", *words],
        cwd=place,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        # A terminal sends Ctrl-C to each process of the group.
        send = os.killpg if number == signal.SIGINT else os.kill
        send(process.pid, number)
        assert b"log: kept.darshan" in process.stdout.read()
    assert process.returncode == number
    assert (place / "kept.darshan").read_bytes() == GENUINE.read_bytes()


def test_settings_of_the_user_for_darshan_do_not_undo_those_of_the_trace(place: Path) -> None:
    environment = {"DARSHAN_MOD_DISABLE": "DXT_POSIX", "DARSHAN_DISABLE": "1"}
    words = ("trace", "--darshan", place / "libdarshan.so", "./app")
    run = run_ioncast(*words, folder=place, environment=environment)
    assert run.returncode == 0, run.stderr
    seen = {line.partition("=")[0] for line in (place / "seen").read_text().splitlines()}
    assert not seen & set(environment)


def test_without_a_log_the_likely_reasons_are_told(place: Path) -> None:
    run = traced(place, "--", "sh", "-c", "exit 0")
    assert run.returncode == 2
    assert "left no log of Darshan" in run.stderr
    assert "MPI_Finalize" in run.stderr


def test_a_static_program_is_told_before_it_runs(place: Path) -> None:
    compiled(PROGRAM, place / "static", "-static")
    run = traced(place, "./static")
    assert run.returncode == 2
    assert "static" in run.stderr


def test_a_log_is_not_overwritten(place: Path) -> None:
    (place / "old.darshan").touch()
    run = traced(place, "--log", "old.darshan", "./app")
    assert run.returncode == 2
    assert "exists" in run.stderr


def test_the_logs_of_several_processes_are_kept(place: Path) -> None:
    run = traced(place, "--log", "kept.darshan", "sh", "-c", "./app; ./app")
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("2 logs of processes")
    assert len(list((place / "kept-logs").glob("*.darshan"))) == 2


def test_a_page_shows_the_time_line(place: Path) -> None:
    run = traced(place, "--html", "page.html", "./app")
    assert run.returncode == 0, run.stderr
    assert "Time line of job" in (place / "page.html").read_text(encoding="utf-8")


def test_plain_and_traced_runs_are_compared_in_turn(place: Path) -> None:
    (place / "app-noted").write_text(
        '#!/bin/sh\necho "${DXT_ENABLE_IO_TRACE:-plain}" >> runs\nexec ./app\n'
    )
    (place / "app-noted").chmod(0o755)
    run = traced(place, "--overhead", "2", "./app-noted")
    assert run.returncode == 0, run.stderr
    assert (place / "runs").read_text().split() == ["plain", "1", "plain", "1"]
    assert "50.0%" in run.stdout


def test_a_comparison_ends_with_a_plain_run_that_fails(place: Path) -> None:
    run = traced(place, "--overhead", "2", "./app", "7")
    assert run.returncode == 7
    assert run.stderr == "ioncast: warning: ./app ended with exit code 7\n"


def test_a_program_that_cannot_be_read_is_not_called_static(tmp_path: Path) -> None:
    # Root, as which tests may run, can read each file.
    assert not is_static(tmp_path)


def test_a_missing_runtime_is_told_with_ways_to_get_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ioncast.trace_command.find_darshan", lambda: None)
    run = run_ioncast("trace", "./app", folder=place)
    assert run.returncode == 2
    assert "spack install darshan-runtime" in run.stderr


def test_the_variables_of_modules_name_the_runtime(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "lib").mkdir()
    library = shutil.copy(place / "libdarshan.so", place / "lib")
    monkeypatch.setenv("DARSHAN_ROOT", str(place))
    for name in ("LD_PRELOAD", "DARSHAN_RUNTIME_DIR", "DARSHAN_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert find_darshan() == Path(library)


@pytest.mark.slow
@pytest.mark.skipif(find_darshan() is None, reason="Darshan's runtime is not installed")
def test_darshan_traces_a_serial_program(tmp_path: Path) -> None:
    run = run_ioncast(
        *("trace", "--log", "dd.darshan", "--", "dd", "if=/dev/zero", "of=out", "bs=4096"),
        *("count=100",),
        folder=tmp_path,
    )
    assert run.returncode == 0, run.stderr
    rows = run_ioncast("timeline", "dd.darshan", "--csv", "rows.csv", folder=tmp_path)
    assert rows.returncode == 0, rows.stderr
    assert "write" in (tmp_path / "rows.csv").read_text()
