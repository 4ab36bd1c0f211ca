"""Colour, next steps and shell completion, in a real terminal and a real shell."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ioncast.next_steps import NEXT_STEPS
from tests.test_docs import COMMANDS

PROJECT = Path(__file__).resolve().parents[2]
LOG = PROJECT / "experiments" / "data" / "testbed" / "logs" / "hacc-io-ionodes0.darshan"
COLOUR = "\x1b["


def on_a_terminal(*args: str | Path, **environment: str) -> tuple[int, str]:
    """Run a command whose output and errors go to one terminal."""
    ours, its = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    started = subprocess.Popen(
        [sys.executable, "-m", "ioncast", *map(str, args)],
        cwd=PROJECT,
        env=variables | {"TERM": "xterm"} | environment,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=its,
    )
    os.close(its)
    said = b""
    # Linux reports the end of a terminal as an error.
    try:
        while more := os.read(ours, 1 << 16):
            said += more
    except OSError:
        pass
    os.close(ours)
    return started.wait(timeout=120), said.decode()


def piped(*args: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ioncast", *map(str, args)],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_terminal_shows_the_next_step_and_a_pipe_does_not() -> None:
    code, said = on_a_terminal("phases", LOG)
    assert code == 0
    assert "ioncast: next: `ioncast match LOG` prints" in said
    result = piped("phases", LOG)
    assert result.stderr == ""
    assert COLOUR not in result.stdout


@pytest.mark.slow
def test_a_table_fits_a_terminal_and_a_pipe_gets_all_its_columns() -> None:
    def widest(said: str) -> int:
        rows = [line for line in said.splitlines() if line[:1].isdigit() or "  --" in line]
        return max(map(len, rows))

    log = LOG.with_name("multiphase-ionodes4.darshan")
    _, said = on_a_terminal("phases", log, COLUMNS="80", NO_COLOR="1")
    assert widest(said) <= 80
    assert "(--wide also shows: api, end s, ranks)" in said
    everything = piped("phases", log).stdout
    assert widest(everything) > 80
    _, wide = on_a_terminal("phases", "--wide", log, COLUMNS="80", NO_COLOR="1")
    assert wide.replace("\r", "").startswith(everything)


@pytest.mark.slow
def test_help_and_failures_have_no_next_step() -> None:
    for args in (("phases", "--help"), ("--version",), ("phases", "gone.darshan")):
        assert "ioncast: next:" not in on_a_terminal(*args)[1]


@pytest.mark.slow
def test_errors_are_coloured_on_a_terminal_only() -> None:
    code, said = on_a_terminal("phases", "gone.darshan")
    assert (code, f"{COLOUR}31m{COLOUR}1mioncast:" in said) == (2, True)
    assert COLOUR not in on_a_terminal("phases", "gone.darshan", NO_COLOR="1")[1]
    assert COLOUR not in piped("phases", "gone.darshan").stderr


def test_every_command_has_a_next_step_or_none() -> None:
    assert set(NEXT_STEPS) == {name.removeprefix("ioncast ") for name in COMMANDS}


def test_every_next_step_is_a_command() -> None:
    for step in filter(None, NEXT_STEPS.values()):
        for quoted in step.split("`")[1::2]:
            if quoted.startswith("ioncast "):
                words = quoted.split()
                assert {" ".join(words[:2]), " ".join(words[:3])} & set(COMMANDS), quoted


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "completed"),
    [
        (("ioncast", "ph"), ["phases"]),
        (("ioncast", "campaign", "r"), ["report", "resume", "run"]),
        (("ioncast", "phases", "--thr"), ["--threshold"]),
    ],
    ids=" ".join,
)
def test_bash_completes_commands_and_options(
    tmp_path: Path, words: tuple[str, ...], completed: list[str]
) -> None:
    program = tmp_path / "ioncast"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ioncast "$@"\n')
    program.chmod(0o755)
    script = f"""
eval "$(_IONCAST_COMPLETE=bash_source ioncast)"
COMP_WORDS=({" ".join(words)}) COMP_CWORD={len(words) - 1}
_ioncast_completion ioncast
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=PROJECT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(result.stdout.split()) == completed


@pytest.mark.parametrize("words", ["ioncast ", "ioncast campaign "])
def test_completing_the_name_of_a_command_imports_no_large_library(words: str) -> None:
    answer = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "ioncast"],
        cwd=PROJECT,
        env=os.environ
        | {
            "_IONCAST_COMPLETE": "bash_complete",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split())),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    assert answer.stdout
    loaded = {line.rsplit("|", 1)[-1].strip() for line in answer.stderr.splitlines()}
    assert not loaded & {"scipy", "jinja2", "flask", "pandas", "sklearn"}
    if words == "ioncast ":
        assert not loaded & {"numpy", "sqlalchemy", "pydantic"}
