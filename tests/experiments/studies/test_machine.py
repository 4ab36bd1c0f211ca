from __future__ import annotations

from pathlib import Path

import pytest

from experiments.studies import machine
from experiments.studies.machine import versions


def test_versions_of_daemons_are_found_outside_the_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "glusterfs"
    program.write_text("#!/bin/sh\necho glusterfs 11.1\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(machine, "system_path", lambda: str(tmp_path))
    assert versions()["GlusterFS"] == "11.1"
