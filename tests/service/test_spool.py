"""Decisions survive the worker that made them."""

from __future__ import annotations

import fcntl
import json
import multiprocessing
import os
import signal
import threading
from pathlib import Path

import pytest

from predictor.service import spool
from predictor.service.spool import SpoolWriter, spool_files, spool_folder


def lines_in(folder: Path) -> list[bytes]:
    return [line for path in spool_files(folder) for line in path.read_bytes().splitlines()]


def test_lines_of_all_threads_are_there_as_wholes(tmp_path: Path) -> None:
    writer = SpoolWriter(spool_folder(tmp_path))

    def append(thread: int) -> None:
        for i in range(200):
            writer.append(json.dumps({"id": [thread, i], "why": "x" * 900}).encode() + b"\n")

    threads = [threading.Thread(target=append, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = {tuple(json.loads(line)["id"]) for line in lines_in(spool_folder(tmp_path))}
    assert found == {(thread, i) for thread in range(8) for i in range(200)}


def append_and_die(folder: Path) -> None:
    writer = SpoolWriter(folder)
    for i in range(1000):
        writer.append(b"%d\n" % i)
    os.kill(os.getpid(), signal.SIGKILL)


def test_what_was_appended_outlives_a_killed_worker(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=append_and_die, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert lines_in(tmp_path) == [b"%d" % i for i in range(1000)]


def is_locked(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False


def test_a_file_is_locked_while_its_worker_may_write_to_it(tmp_path: Path) -> None:
    writer = SpoolWriter(tmp_path)
    writer.append(b"{}\n")
    [path] = spool_files(tmp_path)
    assert is_locked(path)
    writer.close()
    assert not is_locked(path)


def test_a_file_that_has_grown_long_is_followed_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "_LONGEST_FILE_BYTES", 10)
    writer = SpoolWriter(tmp_path)
    for i in range(4):
        writer.append(b"a line %d\n" % i)
    files = spool_files(tmp_path)
    assert len(files) == 2
    assert sorted(map(is_locked, files)) == [False, True]
    assert sorted(lines_in(tmp_path)) == [b"a line %d" % i for i in range(4)]


def test_a_folder_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file")
    with pytest.raises(OSError, match="spool"):
        SpoolWriter(tmp_path / "spool").append(b"{}\n")


def test_a_full_disk_is_an_error_and_later_lines_are_wholes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = SpoolWriter(tmp_path)
    writer.append(b"one\n")
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:2]))
    with pytest.raises(OSError, match="full"):
        writer.append(b"two\n")
    monkeypatch.setattr(os, "write", write)
    writer.append(b"three\n")
    assert lines_in(tmp_path) == [b"one", b"tw", b"three"]
