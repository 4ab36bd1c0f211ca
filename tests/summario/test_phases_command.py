"""`ioncast phases` with many logs: all cores, in order, and one line for each that fails."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from summario.phases import tables
from summario.phases.extract import extract
from summario.phases.many import FEW
from summario.phases.values import Phase
from summario.reading.log import read_log
from tests.support.command import killed_at_the_end, run_ioncast

PROJECT = Path(__file__).resolve().parents[2]
FIXTURES = PROJECT / "tests" / "summario" / "fixtures"
LOGS = sorted(FIXTURES.glob("*.darshan"))
MANY = 3 * FEW


def command(*args: str | Path, before: str = "") -> list[str]:
    """A command in a process of its own, after some statements; no warning is allowed."""
    program = f"import sys\n{textwrap.dedent(before)}\nimport ioncast.cli\nioncast.cli.main()"
    return [sys.executable, "-W", "error", "-c", program, *map(str, args)]


def run(
    *args: str | Path, before: str = "", given: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command(*args, before=before),
        input=given,
        stdin=subprocess.DEVNULL if given is None else None,
        capture_output=True,
        cwd=PROJECT,
        check=False,
        timeout=300,
    )
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with more logs than one process reads."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(MANY):
        (folder / f"{number:03d}.darshan").symlink_to(LOGS[number % len(LOGS)])
    return folder


def phases_of(folder: Path) -> list[Phase]:
    return [
        phase for log in sorted(folder.glob("*.darshan")) for phase in extract(read_log(log)).phases
    ]


@pytest.mark.slow
def test_many_logs_give_the_same_as_one_after_the_other(many: Path) -> None:
    phases = phases_of(many)
    expected = {"csv": tables.to_csv, "json": tables.to_json, "table": tables.to_text}
    for output_format, text in expected.items():
        done = run("phases", many, "--format", output_format)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == text(phases) + "\n" * (output_format != "csv")


@pytest.mark.slow
@pytest.mark.parametrize("output_format", ["csv", "json", "table"])
def test_errors_among_many_logs_have_a_line_each_and_the_others_are_printed(
    many: Path, tmp_path: Path, output_format: str
) -> None:
    cut = tmp_path / "cut.darshan"
    cut.write_bytes(LOGS[0].read_bytes()[:3000])
    options = ("--min-share", "0.5", "--format", output_format)
    done = run("phases", cut, many, tmp_path / "gone", *options)
    good = run("phases", many, *options)
    assert (done.returncode, done.stdout) == (2, good.stdout)
    first, *warnings, last = done.stderr.splitlines()
    assert first.startswith(f"ioncast: {cut}: the log is truncated")
    assert last == f"ioncast: {tmp_path / 'gone'}: No such file or directory"
    assert warnings == good.stderr.splitlines()
    assert warnings


def test_without_a_usable_log_the_formats_for_programs_are_empty(tmp_path: Path) -> None:
    for output_format, expected in (("csv", tables.to_csv([])), ("json", "[]\n"), ("table", "")):
        done = run_ioncast("phases", tmp_path / "gone", "--format", output_format)
        assert (done.returncode, done.stdout) == (2, expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "said"),
    [
        ("os.kill(os.getpid(), 9)", "was killed; read it alone, or on a computer with more memory"),
        ("os.kill(os.getpid(), 11)", "ended by signal 11; use the log of another run"),
        ("os._exit(1)", "failed; use the log of another run"),
    ],
)
def test_a_log_that_kills_its_process_has_a_line_and_the_others_are_printed(
    many: Path, end: str, said: str
) -> None:
    before = f"""
    import os
    import summario.phases.many as many
    read = many.read_source
    def read_source(source, **modules):
        if source.name.endswith(("/000.darshan", "/040.darshan")):
            {end}
        return read(source, **modules)
    many.read_source = read_source
    """
    done = run("phases", many, "--format", "csv", before=before)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        f"ioncast: {many}/{name}.darshan: the process that read it {said}"
        for name in ("000", "040")
    ]
    logs = {Path(row["log"]).stem for row in csv.DictReader(io.StringIO(done.stdout))}
    expected = {Path(phase.log).stem for phase in phases_of(many)}
    assert logs == expected - {"000", "040"}


@pytest.mark.slow
def test_a_log_that_needs_too_much_memory_has_a_line_of_its_own(many: Path) -> None:
    before = """
    import summario.phases.many as many
    read = many.read_source
    def read_source(source, **modules):
        return bytearray(1 << 62) if "/007" in source.name else read(source, **modules)
    many.read_source = read_source
    """
    done = run("phases", many, "--format", "csv", before=before)
    assert done.returncode == 2
    [line] = done.stderr.splitlines()
    assert line.startswith(f"ioncast: {many}/007.darshan: the memory is not enough to read it; ")


def test_standard_input_that_needs_too_much_memory_has_one_line() -> None:
    before = """
    import summario.reading.sources as sources
    sources.in_memory = lambda *_: bytearray(1 << 62)
    """
    done = run("phases", "-", before=before, given=LOGS[0].read_bytes())
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("ioncast: the memory is not enough; ")


def test_ctrl_c_ends_all_processes_with_one_line(many: Path) -> None:
    before = """
    import time
    import summario.phases.many as many
    read = many.read_source
    def read_source(source, **modules):
        time.sleep(600 * ("/010" in source.name))
        return read(source, **modules)
    many.read_source = read_source
    """
    with killed_at_the_end(
        command("phases", many, "--format", "csv", before=before),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PROJECT,
        start_new_session=True,
    ) as started:
        assert started.stdout is not None
        # The rows of the first logs come while a later one is being read.
        assert started.stdout.readline().startswith(b"job,")
        assert started.stdout.readline()
        # A terminal sends Ctrl-C to the whole group of processes.
        os.killpg(started.pid, signal.SIGINT)
        _, errors = started.communicate(timeout=300)
    assert started.returncode == 130
    # The empty line ends the one on which the terminal shows ^C.
    assert errors.decode() == "\nioncast: stopped\n"


def on_a_terminal(*args: str | Path, shows_output: bool = False) -> tuple[int, bytes]:
    """Exit code of a command, and what a terminal gets from it."""
    reading, writing = pty.openpty()
    stdout = writing if shows_output else subprocess.DEVNULL
    shown = b""
    with subprocess.Popen(command(*args), stdout=stdout, stderr=writing, cwd=PROJECT) as started:
        os.close(writing)
        # The system reports the end of the terminal's other side as an error.
        with contextlib.suppress(OSError):
            while piece := os.read(reading, 1 << 16):
                shown += piece
    os.close(reading)
    return started.returncode, shown


@pytest.mark.slow
def test_a_terminal_shows_the_progress_and_errors_on_lines_of_their_own(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    gone = many / "gone.darshan"
    code, shown = on_a_terminal("phases", many, gone)
    assert code == 2
    assert b"reading logs" in shown
    assert b"100%" in shown
    assert f"\r\x1b[Kioncast: {gone}: No such file".encode() in shown


@pytest.mark.slow
def test_rows_on_a_terminal_are_not_mixed_with_the_progress(
    many: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    code, shown = on_a_terminal("phases", many, "--format", "csv", shows_output=True)
    assert code == 0
    assert b"reading logs" not in shown
    rows, _, next_step = shown.decode().replace("\r\n", "\n").partition("ioncast: next: ")
    assert rows == tables.to_csv(phases_of(many))
    assert next_step.count("\n") == 1


# Sources


@pytest.mark.slow
def test_a_log_comes_from_standard_input_or_from_gzip(tmp_path: Path) -> None:
    log = FIXTURES / "multiphase.darshan"
    packed = tmp_path / "multiphase.darshan.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    expected = json.loads(run("phases", log, "--format", "json").stdout)
    for args, given, name in (
        ([packed], None, str(packed)),
        ([tmp_path], None, str(packed)),
        (["-"], log.read_bytes(), "standard input"),
        (["-"], packed.read_bytes(), "standard input"),
    ):
        done = run("phases", *args, "--format", "json", given=given)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout) == [{**record, "log": name} for record in expected]


@pytest.mark.slow
def test_the_other_commands_that_read_a_log_accept_the_same(tmp_path: Path) -> None:
    log = FIXTURES / "multiphase.darshan"
    packed = tmp_path / "multiphase.darshan.gz"
    packed.write_bytes(gzip.compress(log.read_bytes()))
    expected = run("match", log).stdout
    assert expected.count("mpiexec") >= 3
    assert run("match", packed).stdout == expected
    assert run("match", "-", given=packed.read_bytes()).stdout == expected
    nothing = run("match", "-")
    assert (nothing.returncode, nothing.stderr) == (
        *(2, "ioncast: standard input: there is no log; send one, and give - only once\n"),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a\nb", "\x1b[2Jx", "c\udcff", "-v"])
@pytest.mark.parametrize("output_format", ["table", "csv", "json"])
def test_strange_names_keep_lines_whole_and_terminals_as_they_are(
    tmp_path: Path, name: str, output_format: str
) -> None:
    log, gone = tmp_path / f"{name}.darshan", tmp_path / name
    shutil.copy(FIXTURES / "multiphase.darshan", log)
    done = run("phases", log, LOGS[-1], gone, "--min-share", "0.4", "--format", output_format)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 2
    shown = done.stderr + (done.stdout if output_format == "table" else "")
    assert shown.replace("\n", "").isprintable()
    assert len([line for line in done.stdout.splitlines() if "stdio-fpp" in line]) >= 1
    if output_format == "csv":
        read_again = csv.DictReader(io.StringIO(done.stdout, newline=""))
        assert len({row["log"] for row in read_again}) == 2
