"""A process that ends, or cannot start for a while, starts again."""

from __future__ import annotations

import errno
import logging
import subprocess
import time
from pathlib import Path

import pytest

from ioncast.service.running import supervisor
from ioncast.service.running.supervisor import Process
from ioncast.service.settings import Settings


def test_a_process_imports_nothing_from_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # Anybody could have put these files into /tmp.
    for module in ("this", "runpy", "codecs", "string"):
        (tmp_path / f"{module}.py").write_text("open('ran', 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    kept = Process("a process", "this", Settings())
    kept.keep_running()
    assert kept.running is not None
    assert kept.running.wait() == 0
    assert not (tmp_path / "ran").exists()


def test_a_process_that_cannot_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(supervisor, "_BETWEEN_STARTS_S", 0.0)
    kept = Process("a process", "this", Settings())
    with monkeypatch.context() as without_memory, caplog.at_level(logging.ERROR):
        without_memory.setattr(subprocess, "Popen", fail)
        kept.keep_running()
    assert kept.running is None
    assert "a process cannot start: Cannot allocate memory" in caplog.text
    kept.keep_running()
    assert kept.running is not None
    # The module `this` prints its text and ends.
    assert kept.running.wait() == 0
    first = kept.running
    kept.keep_running()
    assert kept.running is not first
    kept.end(time.monotonic() + 60)
