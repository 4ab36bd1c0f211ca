"""Runs `ioncast` as a shell does, but in this process, to save the start of another one.

A warning in a command is an error here, as in all tests.
"""

from __future__ import annotations

import faulthandler
import io
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

import ioncast.cli

PROJECT = Path(__file__).resolve().parents[2]
# No command takes so long, even on a slow machine.
_TOO_LONG_S = 900


def run_ioncast(
    *args: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str | None] | None = None,
) -> CompletedProcess[str]:
    """Run a command to its end, in a folder and with variables; None removes a variable."""
    words = list(map(str, args))
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2)
    )
    with pytest.MonkeyPatch.context() as patched:
        for name, value in (environment or {}).items():
            if value is None:
                patched.delenv(name, raising=False)
            else:
                patched.setenv(name, value)
        if folder is not None:
            patched.chdir(folder)
        patched.setattr(sys, "argv", ["ioncast", *words])
        patched.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        patched.setattr(sys, "stdout", out)
        patched.setattr(sys, "stderr", err)
        faulthandler.dump_traceback_later(_TOO_LONG_S, exit=True, file=sys.__stderr__)
        try:
            with pytest.raises(SystemExit) as ended:
                ioncast.cli.main()
        finally:
            faulthandler.cancel_dump_traceback_later()
    said = (stream.buffer.getvalue().decode(errors="surrogateescape") for stream in (out, err))
    return CompletedProcess(words, ended.value.code or 0, *said)


@contextmanager
def killed_at_the_end(
    command: Sequence[str | Path], **options: Any
) -> Iterator[subprocess.Popen[Any]]:
    """Start a program, and kill it at the end, also that of a test that fails."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def run_together(*arguments: Sequence[str | Path]) -> list[CompletedProcess[str]]:
    """Run Python several times at once, each with its own arguments; no process stays behind."""

    def run(own: Sequence[str | Path]) -> CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *own],
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TOO_LONG_S,
        )

    with ThreadPoolExecutor(len(arguments)) as threads:
        return list(threads.map(run, arguments))
