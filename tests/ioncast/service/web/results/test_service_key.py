"""The service's key is made once, is the same for all workers, and belongs to its owner alone."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from ioncast.service.web.results import service_key as keys
from ioncast.service.web.results.service_key import service_key


def test_it_is_made_once_and_survives_restarts(tmp_path: Path) -> None:
    key = service_key(tmp_path / "state")
    assert len(key) == 32
    assert service_key(str(tmp_path / "state")) == key
    assert service_key(tmp_path / "another") != key


def test_only_its_owner_may_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        service_key(tmp_path / "state")
    finally:
        os.umask(before)
    [file] = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_many_that_make_it_at_once_get_the_same(tmp_path: Path) -> None:
    found: list[bytes] = []
    together = threading.Barrier(8)

    def run() -> None:
        together.wait()
        found.append(service_key(tmp_path))

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_a_worker_that_is_slower_takes_the_key_of_the_faster_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(count: int) -> bytes:
        (tmp_path / "results.key").write_bytes(b"f" * count)
        return b"s" * count

    monkeypatch.setattr(keys.secrets, "token_bytes", overtaken)
    assert service_key(tmp_path) == b"f" * 32


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_a_damaged_key_is_never_used(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "results.key").write_bytes(content)
    with pytest.raises(OSError, match=r"results\.key is damaged.*delete it"):
        service_key(tmp_path)


def test_a_state_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    with pytest.raises(OSError, match="state"):
        service_key(tmp_path / "state")
