"""Folders of killed processes are removed, and no others."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ioncast.service.folders.locked_folders import locked_folder, remove_leftovers

PROGRAM = """
import time
from ioncast.service.folders.locked_folders import locked_folder
with locked_folder() as folder:
    (folder / "0").write_bytes(b"log")
    print(folder, flush=True)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process with a folder."""
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def test_the_folder_of_a_process_stays_until_the_process_is_killed(
    other: subprocess.Popen[str],
) -> None:
    assert other.stdout is not None
    folder = Path(other.stdout.readline().strip())
    remove_leftovers()
    assert (folder / "0").read_bytes() == b"log"
    other.kill()
    other.wait()
    remove_leftovers()
    assert not folder.exists()


def test_a_folder_is_removed_after_its_use_also_after_an_error(temporary: Path) -> None:
    with pytest.raises(FileNotFoundError), locked_folder() as folder:
        (folder / "log").write_bytes(b"log")
        raise FileNotFoundError
    assert list(temporary.iterdir()) == []


@pytest.mark.promise("service-web")
def test_folders_are_made_while_others_are_removed_all_the_time() -> None:
    has_ended = threading.Event()

    def remove() -> None:
        while not has_ended.is_set():
            remove_leftovers()

    removing = threading.Thread(target=remove)
    removing.start()
    try:
        for _ in range(500):
            with locked_folder() as folder:
                (folder / "log").write_bytes(b"log")
                assert (folder / "log").exists()
    finally:
        has_ended.set()
        removing.join()


@pytest.mark.root
def test_files_of_other_users_and_links_stay(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    link, others = (
        temporary / "ioncast-locked-folder-link",
        temporary / "ioncast-locked-folder-others",
    )
    link.symlink_to(elsewhere)
    others.mkdir()
    os.chown(others, 65534, 65534)
    remove_leftovers()
    assert elsewhere.is_dir()
    assert link.is_symlink()
    assert others.is_dir()
