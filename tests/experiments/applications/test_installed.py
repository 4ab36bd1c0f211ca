from __future__ import annotations

from pathlib import Path

import pytest

from experiments.applications.installed import find_hacc_io
from ioncast_base.darshan_runtime import find_darshan


def test_darshan_and_hacc_io_are_found_by_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert (find_darshan(), find_hacc_io()) == (None, None)
    library = tmp_path / "lib" / "libdarshan.so"
    for file in (library, tmp_path / "bin" / "darshan-config", tmp_path / "bin" / "hacc_io_write"):
        file.parent.mkdir(exist_ok=True)
        file.touch(0o755)

    assert (find_darshan(), find_hacc_io()) == (library, tmp_path / "bin" / "hacc_io_write")
